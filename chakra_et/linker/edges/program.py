"""Program order: what a host thread did before."""

from __future__ import annotations

import numpy as np

from chakra_et.linker.activities import Activities
from chakra_et.linker.edges.edge_list import EdgeList, Rows
from chakra_et.linker.evidence import Evidence


def program_edges(table: Activities) -> EdgeList:
    """One edge into each host activity but the first of its thread, from the one before it.

    Evidence: start times on one thread. Operations and runtime calls are one sequence.
    """
    order = table.host_order
    lane = table.lane[order]
    neighbours = np.flatnonzero(lane[1:] == lane[:-1])
    return EdgeList.by(Evidence.PROGRAM_STARTS, order[neighbours], order[neighbours + 1])


def program_edges_without_times(thread: Rows, begun: Rows) -> EdgeList:
    """The same for a host trace alone: the framework numbers operations as they start."""
    order = np.lexsort((begun, thread))
    neighbours = np.flatnonzero(thread[order][1:] == thread[order][:-1])
    return EdgeList.by(Evidence.PROGRAM_NUMBERS, order[neighbours], order[neighbours + 1])
