"""Hand-over between host threads: one that waits goes on when another has got somewhere."""

from __future__ import annotations

from chakra_et.linker.edges.edge_list import EdgeList
from chakra_et.linker.host_time import HostTime
from chakra_et.model import EdgeKind


def thread_edges(time: HostTime) -> EdgeList:
    """One edge into each activity that begins a thread or follows a wait for another thread.

    Evidence: sequence numbers name the thread of the forward operation; otherwise the thread whose
    work ended last before the wait was over is taken, and the edge is inferred.
    """
    return EdgeList(EdgeKind.THREAD, time.waited_for, time.waiting, ~time.source_told)
