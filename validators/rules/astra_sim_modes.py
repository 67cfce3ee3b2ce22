"""Rules about what ASTRA-sim wants in its other modes: with a roofline, with local memory."""

from __future__ import annotations

import numpy as np

from chakra_et.definitions import Kind, NodeType
from chakra_et.model import AttributeColumn
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
    """Nodes without `inputs` or `outputs` as lists of text."""
    named = np.zeros((2, len(view.nodes)), np.bool_)
    for place, name in enumerate(("inputs", "outputs")):
        for column in _lists(view, name):
            named[place, column.rows] = True
    return view.hits(np.flatnonzero(~named.all(0)), "no inputs or no outputs")


@trace_rule(
    "ET733",
    "A tensor is written twice.",
    why="With track-local-mem, ASTRA-sim stops on an assertion.",
    cure="Give what is written again a name of its own, or switch the tracking off.",
)
def tensor_written_twice(view: TraceView) -> Hits:
    """Names in `outputs` (lists of name, size, name, size …) that another node has written too."""
    first: dict[str, int] = {}
    again: list[tuple[int, str]] = []
    for column in _lists(view, "outputs"):
        for row, value in zip(column.rows.tolist(), column.values, strict=True):
            for name in value[::2]:
                if first.setdefault(name, row) != row:
                    again.append((row, name))
    rows = np.array([row for row, _ in again], np.int64)
    return view.hits(
        rows,
        lambda i: f"{again[i][1]!r} is written by node {view.nodes.id[first[again[i][1]]]} too",
    )


def _lists(view: TraceView, name: str) -> list[AttributeColumn]:
    return [c for c in view.nodes.attributes.named(name) if c.key.kind is Kind.STRING_LIST]


def _for_roofline(view: TraceView, name: str) -> Hits:
    rows = view.of_type(NodeType.COMP)
    rows = rows[~view.on_host[rows]]
    value = view.integers(name)[rows]
    wrong = (value == ABSENT) | (value == 0)
    return view.hits(
        rows[wrong], lambda i: f"no {name}" if value[wrong][i] == ABSENT else f"{name} is 0"
    )
