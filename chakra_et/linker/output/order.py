"""An order in which every edge leads forward."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from chakra_et.codes import order_of
from chakra_et.columns import NO_ROW, UNTIMED, Mask, Rows
from chakra_et.linker.activities import Activities, begin_order
from chakra_et.linker.communication.workers import Workers
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.finding import Linkage
from chakra_et.linker.time.own_time import OwnTime
from chakra_et.linker.waits.stream_order import StreamOrder
from chakra_et.recording import HostTrace
from chakra_et.shown import several


def issue_order(
    table: Activities, streams: StreamOrder, workers: Workers, begin_ns: Rows, begun: Rows
) -> Rows:
    """All activities as they began: device work not before its launch nor its predecessor.

    A transfer of a backend on the host comes right after what asked for it, whichever worker thread
    was the first to begin. `begin_ns[a]` is when the own time of activity a begins.
    `begun[a]` breaks ties of host activities (the number the framework gave them as they started).
    Activities without a time follow their caller.
    """
    key = _times_of_callers(table, begin_ns)
    told = workers.asked != NO_ROW
    given = table.work.copy()
    given[workers.transfers[told]] = True
    key[workers.transfers[told]] = key[workers.asked[told]]
    work = streams.order
    key[work] = np.maximum(key[work], _launch_times(table, work))
    lane = table.lane[work]
    begins = np.flatnonzero(np.append(True, lane[1:] != lane[:-1])) if len(work) else work
    for start, end in zip(begins, np.append(begins[1:], len(work))):  # noqa: B905 - neighbours
        part = work[start:end]
        key[part] = np.maximum.accumulate(key[part])
    place = np.zeros(len(table), np.int64)
    place[table.host_order] = np.arange(len(table.host_order))
    place[work] = np.arange(len(work))
    untimed: Mask = (table.lane == NO_ROW) & ~table.work
    place[untimed] = begun[untimed]
    return order_of(key, ~table.joins, given, ~untimed, place)


def _launch_times(table: Activities, work: Rows) -> Rows:
    launch = table.launch[work]
    return np.where(launch != NO_ROW, table.start_ns[launch], UNTIMED)


def _times_of_callers(table: Activities, begin_ns: Rows) -> Rows:
    """Start times; of an activity without one, that of the nearest caller that has one."""
    key: Rows = begin_ns.copy()
    caller = table.caller
    waiting = np.flatnonzero((key == UNTIMED) & (caller != NO_ROW))
    for _ in range(64):
        known = key[caller[waiting]] != UNTIMED
        if not known.any():
            break
        key[waiting[known]] = key[caller[waiting[known]]]
        waiting = waiting[~known]
    return key


def contradicting(order: Rows, edges: list[EdgeList]) -> int:
    """How many edges lead backward in an order."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return sum(int(np.count_nonzero(place[e.source] >= place[e.target])) for e in edges)


def sorted_by_edges(order: Rows, edges: list[EdgeList]) -> tuple[Rows, Mask]:
    """The order nearest to the given one in which edges lead forward, and what lies on no cycle.

    Activities on a cycle, or behind one, come last, in the given order.
    """
    count = len(order)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    source = place[np.concatenate([e.source for e in edges])]
    target = place[np.concatenate([e.target for e in edges])]
    waits = np.bincount(target, minlength=count).tolist()
    by_source = np.argsort(source, kind="stable")
    offsets = np.searchsorted(source[by_source], np.arange(count + 1)).tolist()
    targets = target[by_source].tolist()
    ready = [p for p in range(count) if waits[p] == 0]
    result = []
    while ready:
        p = heappop(ready)
        result.append(p)
        for q in targets[offsets[p] : offsets[p + 1]]:
            waits[q] -= 1
            if waits[q] == 0:
                heappush(ready, q)
    free = np.zeros(count, np.bool_)
    free[result] = True
    stuck = np.flatnonzero(~free)
    sound = np.zeros(count, np.bool_)
    sound[order[free]] = True
    return order[np.concatenate((np.array(result, np.int64), stuck))], sound


def forward_order(
    found: Linkage,
    host: HostTrace | None,
    own: OwnTime,
    edges: list[EdgeList],
    warnings: list[str],
) -> tuple[Rows, list[EdgeList]]:
    """An order of all nodes in which edges lead forward; others are left out and counted."""
    table = found.table
    begun = np.zeros(len(table), np.int64)
    if host is not None:
        begun[: len(host)] = begin_order(host, table.caller)
    order = issue_order(table, found.streams, found.communications.workers, own.begin_ns, begun)
    if contradicting(order, edges) == 0:
        return order, edges
    order, _ = sorted_by_edges(order, edges)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    kept = []
    for some in edges:
        forward = place[some.source] < place[some.target]
        lost = int(np.count_nonzero(~forward))
        if lost:
            label = some.kind.label
            warnings.append(
                f"{several(lost, f'{label} edge contradicts', f'{label} edges contradict')} "
                f"the recorded times or each other and {'was' if lost == 1 else 'were'} left out"
            )
        kept.append(some.select(forward))
    return order, kept
