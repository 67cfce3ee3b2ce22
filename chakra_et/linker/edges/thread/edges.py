"""Hand-over between host threads: one that waits goes on when another has got somewhere."""

from __future__ import annotations

import numpy as np

from chakra_et.codes import search_rows
from chakra_et.columns import NO_ROW, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.edges.thread.forward_backward import ForwardBackward
from chakra_et.linker.edges.thread.host_time import HostTime
from chakra_et.linker.evidence import Evidence
from chakra_et.model import EdgeKind


def thread_edges(time: HostTime) -> EdgeList:
    """One edge into each activity that begins a thread or follows a wait for another thread.

    Evidence: flows and sequence numbers name the thread of the forward operation; otherwise the
    thread whose work ended last before the wait was over is taken, and the edge is inferred. So it
    is for what begins a thread later than that.
    """
    waits = EdgeList(EdgeKind.THREAD, time.waited_for, time.waiting, time.by)
    begun = EdgeList.by(Evidence.THREAD_BEGINS, time.begun_after, time.begun)
    return EdgeList.joined([waits, begun])


def backward_edges(
    table: Activities, time: HostTime, forward_backward: ForwardBackward
) -> EdgeList:
    """From the last thing that each forward operation did to its backward operation.

    Only between threads, and only if that thing's own time had ended before the backward operation
    could begin: an edge must not hold up what it did not hold up.
    """
    order = table.host_order
    place = np.full(len(table), NO_ROW, np.int64)
    place[order] = np.arange(len(order))
    target = np.flatnonzero(forward_backward.named & (place != NO_ROW))
    forward = forward_backward.forward[target]
    across = (place[forward] != NO_ROW) & (table.lane[forward] != table.lane[target])
    target, forward = target[across], forward[across]
    source = order[_last_inside(table, place[forward])]
    # Where the call before was cut short, as its work began early, this one begins then.
    before = order[np.maximum(place[target] - 1, 0)]
    launching = np.zeros(len(table), np.bool_)
    launching[table.launch[table.launch != NO_ROW]] = True
    cut = (place[target] > 0) & (table.lane[before] == table.lane[target]) & launching[before]
    free = np.where(cut, table.start_ns[before], table.start_ns[target])
    use = time.end_ns[source] <= free
    return EdgeList(EdgeKind.THREAD, source[use], target[use], forward_backward.by[target[use]])


def _last_inside(table: Activities, places: Rows) -> Rows:
    """The place in the host order of the last activity inside each operation (or itself)."""
    order = table.host_order
    lane, ends = table.lane[order], table.end_ns[order[places]]
    inside = search_rows((lane, table.start_ns[order]), (lane[places], ends), "left") - 1
    return np.maximum(inside, places)
