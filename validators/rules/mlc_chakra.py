"""Rules about mlc-chakra's tools: its C++ feeder and its readers in Python."""

from __future__ import annotations

import numpy as np

from chakra_et.model import EdgeKind
from chakra_et.validators.finding import NOTHING, Hits
from chakra_et.validators.rule import trace_rule
from chakra_et.validators.view import TraceView


@trace_rule(
    "ET801",
    "Dependencies are in ctrl_deps alone.",
    why="The older feeder looks at data_deps only: such nodes start too early.",
    cure="Put what a node has to wait for into data_deps.",
)
def only_ctrl(view: TraceView) -> Hits:
    """Nodes that wait for others by ctrl_deps and by nothing else, told once."""
    call = view.edges.kind == EdgeKind.CALL
    controlled = np.unique(view.target[call])
    alone = np.setdiff1d(controlled, view.target[~call])
    if len(alone) == 0:
        return NOTHING
    return Hits.of([view.at(int(alone[0]), f"{len(alone)} nodes have ctrl_deps and no data_deps")])
