"""Rules about what ASTRA-sim wants in its other modes: with a roofline, with local memory."""

from __future__ import annotations

import numpy as np

from chakra_et.definitions import NodeType
from chakra_et.validators.finding import Hits
from chakra_et.validators.rule import trace_rule
from chakra_et.validators.view import ABSENT, TraceView


@trace_rule(
    "ET730",
    "A computation has no number of operations.",
    why="With roofline-enabled, ASTRA-sim throws; 0 operations take 9223372036854775808 cycles.",
    cure="Set num_ops, or switch the roofline off to replay durations.",
)
def no_operations(view: TraceView) -> Hits:
    """Device computations without `num_ops`, or with none."""
    return _for_roofline(view, "num_ops")


@trace_rule(
    "ET731",
    "A computation has no size.",
    why="With roofline-enabled, ASTRA-sim throws; a size of 0 skips the node without an event.",
    cure="Set tensor_size to the bytes touched, or switch the roofline off to replay durations.",
)
def no_bytes(view: TraceView) -> Hits:
    """Device computations without `tensor_size`, or with 0."""
    return _for_roofline(view, "tensor_size")


@trace_rule(
    "ET732",
    "A node does not name the tensors it reads and writes.",
    why="With track-local-mem, ASTRA-sim throws at the first such node.",
    cure="Set inputs and outputs on every node, or switch the tracking off.",
)
def no_tensors(view: TraceView) -> Hits:
    """Nodes without `inputs` or `outputs`."""
    rows = np.flatnonzero(~(view.present("inputs") & view.present("outputs")))
    return view.hits(rows, "no inputs or no outputs")


def _for_roofline(view: TraceView, name: str) -> Hits:
    rows = view.of_type(NodeType.COMP)
    rows = rows[~view.on_host[rows]]
    value = view.integers(name)[rows]
    wrong = (value == ABSENT) | (value == 0)
    return view.hits(
        rows[wrong], lambda i: f"no {name}" if value[wrong][i] == ABSENT else f"{name} is 0"
    )
