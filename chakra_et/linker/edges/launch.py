"""Launch: device work waits for the call that launched it."""

from __future__ import annotations

import numpy as np

from chakra_et.linker.activities import Activities
from chakra_et.linker.edges.edge_list import EdgeList
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.nesting import NONE


def launch_edges(table: Activities) -> EdgeList:
    """One edge into each device activity whose launch is in the profile.

    Evidence: equal correlation ids.
    """
    target = np.flatnonzero(table.launch != NONE)
    return EdgeList.by(Evidence.LAUNCH_CORRELATION, table.launch[target], target)
