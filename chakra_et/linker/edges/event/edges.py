"""Events: device work that waits for what another stream had been given.

Three kinds of evidence, the best first: records of waits; calls that make a stream wait; and,
inside one launch of a graph, times alone. `docs/edges.md` states the rules.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.codes import among, begins, distinct, order_of
from chakra_et.columns import NO_ROW, UNTIMED, Mask, Rows, count_up
from chakra_et.linker.activities import Activities
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.waits.given import Given
from chakra_et.linker.waits.launched import Launched
from chakra_et.linker.waits.wait_calls import SLACK_NS, WaitCalls
from chakra_et.model import EdgeKind
from chakra_et.recording import Kind

SOON_NS: Final = 20_000
"""Work that waited for an event starts this soon after the event at the latest."""

_REACH: Final = 256
"""How many pieces of work of a stream are looked at, back from the last one launched."""


def event_edges(
    table: Activities, launched: Launched, calls: WaitCalls, given: Given, arrows: EdgeList
) -> EdgeList:
    """All event edges: recorded ones where the profile has records, inferred ones where not.

    `arrows` are those that the profile draws between nodes of graphs.
    """
    waits = calls.of(Kind.STREAM_WAIT)
    if len(launched.lanes) < 2:
        return arrows
    edges = [arrows, recorded_edges(table, given)]
    if not calls.has_records:
        edges.append(inferred_edges(table, launched, calls.call[waits]))
    edges.append(graph_edges(table, launched, table.launch[arrows.target]))
    return EdgeList.joined(edges)


def recorded_edges(table: Activities, given: Given) -> EdgeList:
    """Edges from records of waits.

    The source is what the stream waited for had been given when the event was recorded; where the
    profile lacks that call, when the wait was asked for, and the edge is inferred. The target is
    what is launched next on the waiting stream. An edge against the recorded times is not made.
    """
    edges = [
        (source, wait.target, wait.evidence)
        for waits in given.waits.values()
        for wait in waits
        for source in wait.sources
        if wait.target != NO_ROW and table.end_ns[source] <= table.start_ns[wait.target] + SLACK_NS
    ]
    return _edges(edges)


def inferred_edges(table: Activities, launched: Launched, calls: Rows) -> EdgeList:
    """Edges from calls that made some stream wait for some event.

    A call is taken to be about what its thread launches next, and about the last work launched
    before the call on another stream. Of several such streams, as many as there were calls are
    taken: those whose work ended last before the waiting work began.

    Work on a stream whose thread made such a call since its last launch there, though for other
    work, waits only if the times show it: it starts late, and soon after that other work has ended.
    So does work that is launched next on a stream after such a call, where the calling thread
    launches nothing any more.
    """
    work = launched.work[table.launch[launched.work] != NO_ROW]
    launch = table.launch[work]
    thread, asked = table.lane[launch], table.start_ns[launch]
    times = {lane: np.sort(table.start_ns[calls[table.lane[calls] == lane]])
             for lane in distinct(table.lane[calls]).tolist()}  # fmt: skip
    between = _calls_between(times, thread, asked, _previous_launch(thread, asked))
    since = _previous_launch_there(table, launched, work, thread, asked)
    possible = _calls_between(times, thread, asked, since)
    late = unexplained(table, launched)
    asking = np.flatnonzero(possible > 0)
    target, certain = work[asking], between[asking] > 0
    called = _last_call(times, thread[asking], asked[asking])
    shown = late[target] > SOON_NS
    query, source = _ended_before(table, launched, target, called, shown)
    use = certain[query] | (shown[query] & _soon(table, source, target[query]))
    use[use] = count_up(np.bincount(query[use])) < np.maximum(between[asking], 1)[query[use]]
    by = np.where(certain, Evidence.EVENT_CALL, Evidence.EVENT_CALL_TIMES).astype(np.uint8)
    query, source = query[use], source[use]
    told = EdgeList(EdgeKind.EVENT, source, target[query], by[query])
    left = _last_of_their_thread(table, calls, thread, asked)
    return EdgeList.joined([told, _next_everywhere(table, launched, left, late)])


def _soon(table: Activities, source: Rows, target: Rows) -> Mask:
    """Which work began soon after other work had ended."""
    soon: Mask = table.start_ns[target] - table.end_ns[source] <= SOON_NS
    return soon


def _last_of_their_thread(table: Activities, calls: Rows, thread: Rows, asked: Rows) -> Rows:
    """The calls after which their thread launches nothing: they are about another one's work."""
    last_launch = np.full(int(table.lane.max()) + 1, UNTIMED, np.int64)
    np.maximum.at(last_launch, thread, asked)
    left: Rows = calls[table.start_ns[calls] > last_launch[table.lane[calls]]]
    return left


def _next_everywhere(table: Activities, launched: Launched, calls: Rows, late: Rows) -> EdgeList:
    """Edges into the first work that is launched on each stream after a call, if it is late."""
    count = len(launched.lanes)
    asked = np.repeat(table.start_ns[calls], count)
    target = launched.first_after(np.tile(launched.lanes, len(calls)), asked)
    use = (target != NO_ROW) & (late[target] > SOON_NS)
    target, asked = target[use], asked[use]
    query, source = _ended_before(table, launched, target, asked, np.ones(len(target), np.bool_))
    soon = _soon(table, source, target[query])
    query, source = query[soon], source[soon]
    first = begins(query)
    return EdgeList.by(Evidence.EVENT_CALL_TIMES, source[first], target[query[first]])


def graph_edges(table: Activities, launched: Launched, told: Rows) -> EdgeList:
    """Edges between streams inside one launch of a graph, where times show them.

    Most profiles do not hold a graph's inner dependencies. Work that starts late, and soon after
    work of the same launch on another stream has ended, is taken to have waited for it; not so in
    launches of which the profile has `told`.
    """
    launch = table.launch[launched.work]
    several = _launches_on_several_streams(launch, launched.lane)
    several = several[~among(several, told)]
    late = unexplained(table, launched)
    edges: list[tuple[int, int, Evidence]] = []
    grouped = np.argsort(launch, kind="stable")
    begins = np.searchsorted(launch[grouped], several, "left")
    ends_at = np.searchsorted(launch[grouped], several, "right")
    for begin, until in zip(begins.tolist(), ends_at.tolist(), strict=True):
        mine = launched.work[grouped[begin:until]]
        by_end = mine[np.argsort(table.end_ns[mine], kind="stable")]
        ends = table.end_ns[by_end]
        for target in mine[late[mine] > 0].tolist():
            place = int(np.searchsorted(ends, table.start_ns[target], "right")) - 1
            while place >= 0 and table.lane[by_end[place]] == table.lane[target]:
                place -= 1
            if place < 0:
                continue
            wait = table.start_ns[target] - ends[place]
            if wait <= SOON_NS and wait < late[target]:
                edges.append((int(by_end[place]), target, Evidence.EVENT_GRAPH))
    return _edges(edges)


def _previous_launch(thread: Rows, asked: Rows) -> Rows:
    """When each launch's thread made its launch before (equal times are one launch)."""
    order = order_of(thread, asked)
    thread, asked = thread[order], asked[order]
    begins_thread = np.append(True, thread[1:] != thread[:-1])[: len(order)]
    begins = np.flatnonzero(begins_thread | np.append(True, asked[1:] != asked[:-1])[: len(order)])
    before = np.where(begins_thread[begins], UNTIMED, asked[begins - 1])
    result = np.empty(len(order), np.int64)
    result[order] = np.repeat(before, np.diff(np.append(begins, len(order))))
    return result


def _previous_launch_there(
    table: Activities, launched: Launched, work: Rows, thread: Rows, asked: Rows
) -> Rows:
    """When the same thread last launched on the same stream."""
    place = thread * (int(table.lane.max()) + 1) + table.lane[work]
    return _previous_launch(place, asked)


def _calls_between(times: dict[int, Rows], thread: Rows, until: Rows, since: Rows) -> Rows:
    """How many of a thread's calls lie between two times."""
    count = np.zeros(len(thread), np.int64)
    for lane, when in times.items():
        mine = thread == lane
        count[mine] = np.searchsorted(when, until[mine]) - np.searchsorted(when, since[mine])
    return count


def _last_call(times: dict[int, Rows], thread: Rows, asked: Rows) -> Rows:
    """When each thread made the last of its calls before a time; there is one."""
    last = np.empty(len(thread), np.int64)
    for lane, when in times.items():
        mine = thread == lane
        last[mine] = when[np.searchsorted(when, asked[mine]) - 1]
    return last


def _ended_before(
    table: Activities, launched: Launched, target: Rows, asked: Rows, shown: Mask
) -> tuple[Rows, Rows]:
    """The last work launched on each other stream before a time, if it ended before `target`.

    The first column is the place of the target, ascending; of one target, what ended last is first.
    If the times show that something was waited for (`shown`), earlier work of a stream counts too:
    asynchronous communication is waited for when more of it is under way.
    """
    count = len(launched.lanes)
    query, lanes = np.repeat(np.arange(len(target)), count), np.tile(launched.lanes, len(target))
    last = launched.last_before(lanes, asked[query])
    other = np.flatnonzero((lanes != table.lane[target[query]]) & (last != NO_ROW))
    query, last = query[other], last[other]
    begin = table.start_ns[target[query]]
    running = table.end_ns[last] > begin
    earlier = np.flatnonzero(running & shown[query])
    for place in earlier.tolist():
        last[place] = _ended_earlier(table, launched, int(last[place]), int(begin[place]))
    running[earlier] = last[earlier] == NO_ROW
    query, last, later = query[~running], last[~running], among(np.flatnonzero(~running), earlier)
    order = order_of(query, -table.end_ns[last], later)
    return query[order], last[order]


def _ended_earlier(table: Activities, launched: Launched, row: int, time: int) -> int:
    """The last work before `row` on its stream that ended at most `SOON_NS` before a time."""
    place = int(launched.place[row])
    for earlier in launched.work[max(place - _REACH, 0) : place][::-1].tolist():
        if table.lane[earlier] != table.lane[row] or time - table.end_ns[earlier] > SOON_NS:
            break
        if table.end_ns[earlier] <= time:
            return int(earlier)
    return NO_ROW


def unexplained(table: Activities, launched: Launched) -> Rows:
    """By activity: how long after its launch and its stream's last work device work began."""
    work = launched.work
    launch = table.launch[work]
    submitted = np.minimum(table.end_ns[launch], table.start_ns[work])
    submitted = np.maximum(submitted, table.start_ns[launch])
    ready = np.where(launch != NO_ROW, submitted, UNTIMED)
    same = launched.lane[1:] == launched.lane[:-1]
    before = np.append(UNTIMED, np.where(same, table.end_ns[work[:-1]], UNTIMED))
    ready = np.maximum(ready, before[: len(work)])
    late = np.zeros(len(table), np.int64)
    late[work] = np.where(ready == UNTIMED, 0, table.start_ns[work] - ready)
    return late


def _launches_on_several_streams(launch: Rows, lane: Rows) -> Rows:
    order = order_of(launch, lane)
    launch, lane = launch[order], lane[order]
    several = distinct(launch[1:][(launch[1:] == launch[:-1]) & (lane[1:] != lane[:-1])])
    return np.asarray(several[several != NO_ROW])


def _edges(edges: list[tuple[int, int, Evidence]]) -> EdgeList:
    return EdgeList(
        EdgeKind.EVENT,
        np.array([source for source, _, _ in edges], np.int64),
        np.array([target for _, target, _ in edges], np.int64),
        np.array([evidence for _, _, evidence in edges], np.uint8),
    )
