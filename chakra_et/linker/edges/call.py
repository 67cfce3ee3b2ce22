"""Caller to callee: an operation, to what it calls on its thread and to the work it launched."""

from __future__ import annotations

import numpy as np

from chakra_et.linker.activities import Activities
from chakra_et.linker.edges.edge_list import EdgeList
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.nesting import NONE
from chakra_et.model import EdgeKind


def call_edges(table: Activities) -> EdgeList:
    """One edge into each activity that has a caller; device work is called by its launch's caller.

    Evidence: the host trace's parents, else nesting in time on the same thread; of device work
    without a launch, the ids of its record, or an arrow.
    """
    caller, evidence = table.caller.copy(), table.called_by.copy()
    launched = np.flatnonzero(table.launch != NONE)
    caller[launched] = table.caller[table.launch[launched]]
    evidence[launched] = Evidence.CALL_LAUNCH
    target = np.flatnonzero(caller != NONE)
    return EdgeList(EdgeKind.CALL, caller[target], target, evidence[target])
