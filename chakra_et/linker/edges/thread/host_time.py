"""Host time: which part of a thread's timeline each of its activities stands for.

Consumers know one interval for each node and edges from the end of one to the start of another.
So an activity's own time runs from its start to the next start on its thread: the chain of a
thread then covers all of its timeline and replays every start. Where the thread waited for another
one, the time of waiting belongs to nobody; an edge stands for it. Nor does anybody own the time in
which a worker thread of a backend has nothing to transfer.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import among, begins, distinct, order_of, search_rows
from chakra_et.columns import NEVER, NO_ROW, UNTIMED, Mask, Rows
from chakra_et.kernel import kernel
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.workers import Workers
from chakra_et.linker.edges.thread.awaited import Awaited, awaited
from chakra_et.linker.edges.thread.forward_backward import ForwardBackward
from chakra_et.linker.evidence import Codes, Evidence
from chakra_et.recording import Role

WAIT_NS: Final = 100_000
"""A gap on a thread shorter than this is its own overhead, not waiting."""

WAKE_NS: Final = 200_000
"""A thread that waited goes on this soon after what it waited for has ended, at the latest."""


class HostTime(msgspec.Struct):
    """What the timeline of each host thread is made of.

    `end_ns[a]` is the end of activity a's own time. `waiting` lists the activities that start
    after their thread waited for another thread (or that begin a thread), `waited_for[k]` the
    activity whose own time ends last before `waiting[k]` starts on the thread that was waited for.
    `by[k]` is the `Evidence` that named that thread. A transfer on a worker thread waits for the
    operation that asked for it, which may still run then. `workers` lists these transfers.
    `awaited` lists those of them that the thread which asked for them has waited for.
    `begun` lists what begins a thread without having waited for any, and `begun_after[k]` what the
    thread that had something to do last did last before: that one started it, as far as times tell.
    """

    end_ns: Rows
    waiting: Rows
    waited_for: Rows
    by: Codes
    workers: Workers
    begun: Rows
    begun_after: Rows
    awaited: Awaited


def host_time(
    table: Activities,
    forward_backward: ForwardBackward,
    workers: Workers,
    awake: Rows | None = None,
    asking: Rows | None = None,
) -> HostTime:
    """Cut each thread's timeline at starts, and at waits for other threads.

    What is `awake` did not wait for any, whatever the times suggest. Calls `asking` wait for what a
    device was given by when they are made: where another thread went on before one was made, its
    own thread had not waited for that one.
    """
    order = table.host_order
    if len(order) == 0:
        none = np.zeros(0, np.int64)
        by = none.astype(np.uint8)
        return HostTime(table.end_ns.copy(), none, none, by, workers, none, none, Awaited.none())
    line = _timeline(table)
    asked = workers.transfers[workers.asked != NO_ROW]
    awake = np.zeros(0, np.int64) if awake is None else awake
    after = awaited(table, workers, awake, WAIT_NS)
    held = after.places[after.idle]
    line.idle_from[held - 1] = after.idle_from[after.idle]
    gaps = _waits(table, line, forward_backward.lanes(table)[order], workers.transfers)
    gaps = gaps.without(among(order, awake))
    gaps = gaps.not_told_by(among(order, asked), among(order, after.goes_on))
    gaps, end_ns, waited_for = _settled(table, line, workers, gaps, held, asking)
    waiting = order[gaps.places]
    begun_after = _last_ended(table, end_ns, gaps.starters, gaps.begun)
    begun = begun_after != NO_ROW
    inside, ended = _ended_inside(table, workers, end_ns)
    new = ~among(inside, waiting)
    by_times = int(new.sum()) + len(after.goes_on)
    asking_for = workers.asked[workers.asked != NO_ROW]
    evidence: tuple[Codes, ...] = (
        np.where(gaps.told, forward_backward.by[waiting], np.uint8(Evidence.THREAD_TIMES)),
        np.full(len(asked), Evidence.THREAD_RECORD_FUNCTION, np.uint8),
        np.full(by_times, Evidence.THREAD_TIMES, np.uint8),
    )
    return HostTime(
        end_ns,
        np.concatenate((waiting, asked, inside[new], after.goes_on)),
        np.concatenate((waited_for, asking_for, ended[new], after.transfers)),
        np.concatenate(evidence),
        workers,
        order[gaps.begun[begun]],
        begun_after[begun],
        after,
    )


def _settled(
    table: Activities,
    line: _Timeline,
    workers: Workers,
    gaps: _Gaps,
    held: Rows,
    asking: Rows | None,
) -> tuple[_Gaps, Rows, Rows]:
    """Those gaps in which threads waited, where own times end then, and what each waited for.

    `held` are places that waited for transfers. Without one wait, others may prove to be none.
    """
    order = table.host_order
    while True:
        before = distinct(np.append(gaps.places[~line.first[gaps.places]], held)) - 1
        end_ns = _cut(table, line, workers, before)
        waited_for = _last_ended(table, end_ns, gaps.lanes, gaps.places)
        waiting = order[gaps.places]
        _reach(table, line, workers, end_ns, before, waited_for, waiting)
        # Where nothing's own time had ended, the thread did not wait: the time is its own.
        waited = waited_for != NO_ROW
        if asking is not None:
            woke = (end_ns[waited_for] == table.start_ns[waiting]) | gaps.told
            waited &= woke | ~among(waiting, asking)
        if waited.all():
            return gaps, end_ns, waited_for
        gaps = gaps.some(waited)


def _cut(table: Activities, line: _Timeline, workers: Workers, before: Rows) -> Rows:
    """Where own times end: at the next start, and, at the places `before` waits, when idle."""
    order = table.host_order
    end_ns: Rows = table.end_ns.copy()
    end_ns[order] = np.where(line.last, line.idle_from, line.following)
    end_ns[order[before]] = line.idle_from[before]
    # A transfer lasts as recorded. What a backend does inside is its time, and is over with it.
    end_ns[workers.transfers] = table.end_ns[workers.transfers]
    end_ns[workers.inside] = table.end_ns[workers.around]
    return end_ns


class _Timeline(msgspec.Struct):
    """The host order with neighbours: which places are the `first` and the `last` of their thread,
    when the next one starts there (0 for the last), and from when the thread was idle until then.
    """

    first: Mask
    last: Mask
    following: Rows
    idle_from: Rows


def _timeline(table: Activities) -> _Timeline:
    order = table.host_order
    lane, start = table.lane[order], table.start_ns[order]
    last = np.append(lane[1:] != lane[:-1], True)
    following = np.where(last, 0, np.append(start[1:], 0))
    busy_until = _busy_until(order, table, following, last)
    return _Timeline(np.append(True, last[:-1]), last, following, np.maximum(start, busy_until))


def _ended_inside(table: Activities, workers: Workers, end_ns: Rows) -> tuple[Rows, Rows]:
    """Operations that wait for a transfer, and the last of those that their own thread had asked
    for before and that ended while they waited.
    """
    told = workers.asked != NO_ROW
    asked, transfers = workers.asked[told], workers.transfers[told]
    if len(transfers) == 0:
        return transfers, transfers
    order = order_of(table.lane[asked], table.end_ns[transfers])
    asked, transfers = asked[order], transfers[order]
    waits = workers.waits
    until = np.minimum(table.end_ns[waits], end_ns[waits])
    place = search_rows((table.lane[asked], table.end_ns[transfers]), (table.lane[waits], until))
    last = np.maximum(place - 1, 0)
    use = (place > 0) & (table.lane[asked[last]] == table.lane[waits])
    use &= table.end_ns[transfers[last]] > table.start_ns[waits]
    use &= table.start_ns[asked[last]] < table.start_ns[waits]
    return waits[use], transfers[last[use]]


def _busy_until(order: Rows, table: Activities, following: Rows, last: Mask) -> Rows:
    """For each activity, when something last ended on its thread before the next start there.

    For the last activity of a thread: when the last of all ended. Else the end of an annotation
    does not count, as it does nothing itself.
    """
    lane = table.lane[order]
    starts = np.flatnonzero(np.append(True, last[:-1]))
    does = np.where(table.annotates, UNTIMED, table.end_ns)[order]
    until = _latest(lane, does, np.where(last, NEVER, following))
    until[last] = np.maximum.reduceat(table.end_ns[order], starts)
    return until


def _latest(lane: Rows, values: Rows, limits: Rows) -> Rows:
    """For each row the greatest value of its lane that is not above its limit, or `UNTIMED`."""
    if (module := kernel()) is not None:
        found: Rows | None = module.latest(lane, values, limits)
        if found is not None:
            return found
    # Lanes ascend in the order of places, and so they do where values are sorted within each.
    ordered = values[order_of(lane, values)]
    place = search_rows((lane, ordered), (lane, limits)) - 1
    starts = np.flatnonzero(begins(lane))
    first = np.repeat(starts, np.diff(np.append(starts, len(lane))))
    return np.where(place >= first, ordered[np.maximum(place, 0)], UNTIMED)


class _Gaps(msgspec.Struct):
    """Places in the host order that begin after a wait of their thread, or that begin a thread.

    The thread of `places[k]` waited for `lanes[k]`, and `told[k]` says whether ids tell that. What
    is `begun` began a thread otherwise; `starters` are the lanes that had something to do before.
    """

    places: Rows
    lanes: Rows
    told: Mask
    begun: Rows
    starters: Rows

    def some(self, chosen: Mask) -> _Gaps:
        """The same with some of the waits."""
        waits = self.places[chosen], self.lanes[chosen], self.told[chosen]
        return _Gaps(*waits, self.begun, self.starters)

    def without(self, awake: Mask) -> _Gaps:
        """The same without places that waited for no thread, but for those that ids tell of."""
        waits, first = self.told | ~awake[self.places], ~awake[self.begun]
        places, lanes, told = self.places[waits], self.lanes[waits], self.told[waits]
        return _Gaps(places, lanes, told, self.begun[first], self.starters[first])

    def not_told_by(self, asked: Mask, goes_on: Mask) -> _Gaps:
        """The same without places of which workers tell more: transfers, and what waited for them.

        `asked` and `goes_on` are by place.
        """
        waits = ~asked[self.places] & (self.told | ~goes_on[self.places])
        first = ~asked[self.begun] & ~goes_on[self.begun]
        places, lanes, told = self.places[waits], self.lanes[waits], self.told[waits]
        return _Gaps(places, lanes, told, self.begun[first], self.starters[first])


def _waits(table: Activities, line: _Timeline, forward_lane: Rows, transfers: Rows) -> _Gaps:
    """What begins on each thread after a wait, or first."""
    order, first, idle_from = table.host_order, line.first, line.idle_from
    lane, start, end = (c.take(order) for c in (table.lane, table.start_ns, table.end_ns))
    gap_before = np.zeros(len(order), np.int64)
    idle_since = np.full(len(order), UNTIMED, np.int64)
    inner = np.flatnonzero(~line.last)
    gap_before[inner + 1] = line.following[inner] - idle_from[inner]
    idle_since[inner + 1] = idle_from[inner]
    candidates = np.flatnonzero(first | (gap_before >= WAIT_NS))
    # Threads without operations poll and sleep; they neither wait for others nor wake them.
    operate = np.zeros(int(lane.max(initial=NO_ROW)) + 1, np.bool_)
    operate[lane[table.role[order] == Role.OP]] = True
    operate[table.lane[table.beside]] = False
    lanes = np.flatnonzero(operate)
    candidates = candidates[among(lane[candidates], lanes)]
    # What is left of a call goes on while that still runs.
    candidates = candidates[~among(order[candidates], table.rests)]
    if len(lanes) < 2:
        none = np.zeros(0, np.int64)
        return _Gaps(none, none, np.zeros(0, np.bool_), none, none)
    # The end of an annotation is nobody's doing, and wakes nobody; that of a transfer does.
    labels = table.annotates[order] & ~among(order, transfers)
    did = np.where(labels, NO_ROW, lane)
    best_end, blocker = _ended_elsewhere(did, end, lanes, lane[candidates], start[candidates])
    # A thread that waits goes on soon after what it waited for has ended; else it slept.
    late = start[candidates] - best_end
    since = idle_since[candidates]
    ended_inside = (best_end > since) & (2 * late <= gap_before[candidates]) & (late <= WAKE_NS)
    forward = forward_lane[candidates]
    told = (forward != NO_ROW) & (forward != lane[candidates])
    blocker = np.where(told, forward, blocker)
    started = first[candidates] & (best_end != UNTIMED) & (late <= WAKE_NS)
    use = (told | started | ended_inside) & (blocker != NO_ROW)
    alone = first[candidates] & ~use & (blocker != NO_ROW)
    return _Gaps(candidates[use], blocker[use], told[use], candidates[alone], blocker[alone])


def _ended_elsewhere(
    lane: Rows, end: Rows, lanes: Rows, own: Rows, when: Rows
) -> tuple[Rows, Rows]:
    """When something last ended by each time on another of `lanes` than the own one, and which.

    `UNTIMED` and `NO_ROW` where nothing had. Of lanes on which something ended at one time, the
    lowest counts.
    """
    mine = np.flatnonzero(among(lane, lanes))
    if not len(mine):
        return np.full(len(when), UNTIMED, np.int64), np.full(len(when), NO_ROW, np.int64)
    mine = mine[order_of(end[mine], -lane[mine])]
    lane, end = lane.take(mine), end.take(mine)
    # Where the last end is on the own lane, that before the run of ends on it counts.
    runs = np.flatnonzero(begins(lane))
    place = np.searchsorted(end, when, "right") - 1
    run = runs[np.searchsorted(runs, np.maximum(place, 0), "right") - 1]
    place = np.where((place >= 0) & (lane[place] == own), run - 1, place)
    found = place >= 0
    return np.where(found, end[place], UNTIMED), np.where(found, lane[place], NO_ROW)


def _last_ended(table: Activities, end_ns: Rows, lanes: Rows, places: Rows) -> Rows:
    """On each of the given lanes, the activity whose own time ended last when a place begins."""
    order = table.host_order
    lane, own_end = table.lane.take(order), end_ns.take(order)
    position = search_rows((lane, own_end), (lanes, table.start_ns[order[places]]))
    first_of_lane = np.searchsorted(lane, lanes, "left")
    return np.where(position > first_of_lane, order[np.maximum(position - 1, 0)], NO_ROW)


def _reach(
    table: Activities,
    line: _Timeline,
    workers: Workers,
    end_ns: Rows,
    before: Rows,
    sources: Rows,
    waiting: Rows,
) -> None:
    """Let an activity after which its thread was idle last until the first one that waited for it.

    Waking up takes time, and only nodes can take time. `before` are places before waits, beside
    which the last of each thread may grow; `sources` are what the activities `waiting` waited for.
    """
    order = table.host_order
    may_grow = np.append(before, np.flatnonzero(line.last))
    busy = np.append(workers.transfers, workers.inside)
    may_grow = may_grow[~among(order[may_grow], busy)]
    # A thread that goes on itself does not idle longer.
    limit = np.where(line.last, NEVER, line.following)[may_grow]
    idle = order[may_grow]
    until = np.full(len(end_ns), NEVER, np.int64)
    known = sources != NO_ROW
    np.minimum.at(until, sources[known], table.start_ns[waiting[known]])
    awaited = until[idle] != NEVER
    idle, until_idle = idle[awaited], np.minimum(until[idle], limit)[awaited]
    end_ns[idle] = np.maximum(end_ns[idle], until_idle)
