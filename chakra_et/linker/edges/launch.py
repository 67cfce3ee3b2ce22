"""Launch: device work waits for the call that launched it."""

from __future__ import annotations

import numpy as np

from chakra_et.linker.activities import Activities
from chakra_et.linker.edges.edge_list import EdgeList
from chakra_et.linker.nesting import NONE
from chakra_et.model import EdgeKind


def launch_edges(table: Activities) -> EdgeList:
    """One edge into each device activity whose launch is in the profile.

    Evidence: equal correlation ids, or an arrow.
    """
    target = np.flatnonzero(table.launch != NONE)
    return EdgeList(EdgeKind.LAUNCH, table.launch[target], target, table.launched_by[target])
