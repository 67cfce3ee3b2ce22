"""Own time: when each node's own work begins and ends, so that its edges give the recording.

Host time is moved, never lost. Where device work began while the call that launched it was still
running, the call's own time ends there, and the rest of it belongs to what follows on the thread.
What waited begins when its wait was over; the wait belongs to nobody.
"""

from __future__ import annotations

import msgspec
import numpy as np

from chakra_et.codes import order_of
from chakra_et.columns import NEVER, NO_ROW, UNTIMED, Mask, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.edge_list import EdgeList, in_time
from chakra_et.linker.edges.thread.host_time import HostTime
from chakra_et.linker.time.held import LAG_NS, ends_of_outrun, ready
from chakra_et.linker.time.rests import first_given
from chakra_et.linker.waits.stream_order import StreamOrder
from chakra_et.model import EdgeKind
from chakra_et.recording import DeviceTrace, Recording
from chakra_et.shown import several


class OwnTime(msgspec.Struct):
    """By activity: where its own time begins and ends, and how long after what it waits for.

    `lag_ns` is that time for work of a device or of a worker thread, where the front end explains
    it; it is negative for work that began before the end of its predecessor on the stream, and then
    counts from that end alone. Where it is more than `LAG_NS`, it is `contention_ns` if other
    streams of the device were at work all the time, else `late_ns`, which nothing explains.
    `return_ns` is what the blocking copy right before a call that waits itself took to return.
    `release_ns` is when work outside the window let go of it, or `UNTIMED`.
    """

    begin_ns: Rows
    end_ns: Rows
    lag_ns: Rows
    late_ns: Rows
    contention_ns: Rows
    return_ns: Rows
    release_ns: Rows


def own_time(
    table: Activities,
    time: HostTime,
    edges: list[EdgeList],
    copies: EdgeList,
    device: DeviceTrace | None,
) -> OwnTime:
    """Own times by all edges; `copies` are the edges of blocking copies, part of `edges`."""
    begin, end = table.start_ns.copy(), time.end_ns.copy()
    before, after = _neighbours(table)
    _cut_launches(table, time, edges, begin, end, after)
    _cut_copies(table, edges, copies, end)
    _begin_after_threads(table, time, begin, end, before)
    returned = _return_times(table, time, edges, copies, before)
    _begin_after_copies(table, time, copies, begin, end, before, returned)
    for found in edges:
        if found.kind is EdgeKind.SYNC:
            np.maximum.at(begin, found.target, table.end_ns[found.source])
    _begin_after_transfers(table, time, edges, begin, end)
    released = _released(table, device)
    host = table.timed_host
    begin[host] = np.minimum(np.maximum(begin, released)[host], end[host])
    inside = time.workers.inside
    begin[inside] = end[inside]
    stream = ready(table, [e for e in edges if e.kind is EdgeKind.STREAM], end)
    others = ready(table, [e for e in edges if e.kind is not EdgeKind.STREAM], end)
    # A thread that begins with a call that waits begins when that is made.
    threads = ready(table, [e for e in edges if e.kind is EdgeKind.THREAD], end)
    others[time.begun] = threads[time.begun]
    let_go = np.maximum(np.maximum(stream, others), released)
    given = table.work.copy()
    given[time.workers.transfers] = True
    given[time.begun] = True
    delay = np.where(given & (let_go != UNTIMED), table.start_ns - let_go, 0)
    late = delay > LAG_NS
    late[time.begun] = True
    filled = late & table.work
    filled[filled] = _filled(table, np.flatnonzero(filled), let_go)
    # Only work that runs beside its predecessor on the stream starts before what it waits for ends.
    beside = table.work & (stream != UNTIMED) & (table.start_ns < stream)
    lag = np.where(late, 0, np.maximum(delay, 0))
    lag[beside] = (table.start_ns - stream)[beside]
    delay = np.maximum(delay, 0)
    late_ns, contention = (np.where(rows, delay, 0) for rows in (late & ~filled, filled))
    return OwnTime(begin, end, lag, late_ns, contention, returned, released)


def _released(table: Activities, device: DeviceTrace | None) -> Rows:
    """By activity, when work outside the window let go of it."""
    released = np.full(len(table), UNTIMED, np.int64)
    if device is not None and len(device.released_ns):
        known = np.flatnonzero(table.record != NO_ROW)
        released[known] = device.released_ns[table.record[known]]
    return released


def _filled(table: Activities, rows: Rows, ready: Rows) -> Mask:
    """Which of some late works had others at work on their device from when they were ready on."""
    work = np.flatnonzero(table.work)
    order = work[order_of(table.device[work], table.start_ns[work])]
    result = np.zeros(len(table), np.bool_)
    for mine in np.split(order, np.flatnonzero(np.diff(table.device[order])) + 1):
        until = np.maximum.accumulate(table.end_ns[mine])
        # A pause that no front end takes begins a new block of work.
        paused = np.append(True, table.start_ns[mine][1:] - until[:-1] > LAG_NS)[: len(mine)]
        begun = table.start_ns[mine][np.flatnonzero(paused)][np.cumsum(paused) - 1]
        result[mine] = ~paused & (begun <= ready[mine] + LAG_NS)
    return result[rows]


def _neighbours(table: Activities) -> tuple[Rows, Rows]:
    """What each host activity's thread did before and after it."""
    before = np.full(len(table), NO_ROW, np.int64)
    after = np.full(len(table), NO_ROW, np.int64)
    order = table.host_order
    same = table.lane[order][1:] == table.lane[order][:-1]
    before[order[1:][same]] = order[:-1][same]
    after[order[:-1][same]] = order[1:][same]
    return before, after


def _cut_launches(
    table: Activities,
    time: HostTime,
    edges: list[EdgeList],
    begin: Rows,
    end: Rows,
    after: Rows,
) -> None:
    held = [e for e in edges if e.kind in (EdgeKind.STREAM, EdgeKind.EVENT)]
    outrun = ends_of_outrun(table, held)
    waiting = np.zeros(len(table), np.bool_)
    waiting[time.waiting] = True
    waits = waiting.copy()
    for found in edges:
        if found.kind is EdgeKind.SYNC:
            waits[found.target] = True
    # What follows and waits has no room for what the call leaves.
    outrun[(after == NO_ROW) | waits[after]] = NEVER
    first = np.minimum(first_given(table, time.workers), outrun)
    calls = np.flatnonzero(first < end)
    end[calls] = np.maximum(first[calls], table.start_ns[calls])
    followed = calls[after[calls] != NO_ROW]
    followed = followed[~waiting[after[followed]]]
    begin[after[followed]] = end[followed]


def _cut_copies(table: Activities, edges: list[EdgeList], copies: EdgeList, end: Rows) -> None:
    """A blocking copy is asked for as its call begins, if the stream explains when it began.

    Otherwise the call prepared it for long, which is host time.
    """
    held = [e for e in edges if e.kind in (EdgeKind.STREAM, EdgeKind.EVENT)]
    call = table.launch[copies.source]
    let_go = np.maximum(ready(table, held, end)[copies.source], table.start_ns[call])
    prompt = table.start_ns[copies.source] - let_go <= LAG_NS
    end[call[prompt]] = table.start_ns[call[prompt]]


def _return_times(
    table: Activities, time: HostTime, edges: list[EdgeList], copies: EdgeList, before: Rows
) -> Rows:
    """What the copy before a call that waits for something else, too, took to return.

    Else that time belongs to what follows the copy. But what waits begins when the last of what it
    waits for is over: the time would be counted after it, or be lost in it.
    """
    returned = np.zeros(len(table), np.int64)
    source = np.full(len(table), NO_ROW, np.int64)
    source[copies.target] = copies.source
    waits = np.zeros(len(table), np.bool_)
    waits[time.waiting] = True
    until = np.where(waits, np.minimum(table.end_ns[before], table.start_ns), table.start_ns)
    for found in edges:
        if found.kind is EdgeKind.SYNC:
            waits[found.target[found.source != source[found.target]]] = True
    last = copies.target[before[copies.target] == table.launch[copies.source]]
    last = last[waits[last]]
    returned[last] = np.maximum(until[last] - table.end_ns[source[last]], 0)
    return returned


def _begin_after_copies(
    table: Activities,
    time: HostTime,
    copies: EdgeList,
    begin: Rows,
    end: Rows,
    before: Rows,
    returned: Rows,
) -> None:
    """What follows a blocking copy begins with the copy's end; the thread waited until then."""
    waiting = np.zeros(len(table), np.bool_)
    waiting[time.waiting] = True
    ended = table.end_ns[copies.source] + returned[copies.target]
    also = waiting[copies.target]
    begin[copies.target] = np.where(also, np.maximum(begin[copies.target], ended), ended)
    previous = before[copies.target]
    inside = previous != table.launch[copies.source]
    rows = previous[inside]
    ended = np.maximum(np.minimum(table.end_ns[rows], end[rows]), begin[rows])
    end[rows] = np.where(ended <= table.end_ns[copies.source[inside]], ended, begin[rows])
    # A device clock that is behind the host's lets a copy end before it was asked for.
    begin[copies.target] = np.maximum(begin[copies.target], end[previous])


def _begin_after_threads(
    table: Activities, time: HostTime, begin: Rows, end: Rows, before: Rows
) -> None:
    previous = before[time.waiting]
    own = np.where(previous != NO_ROW, end[previous], UNTIMED)
    begin[time.waiting] = own
    np.maximum.at(begin, time.waiting, end[time.waited_for])
    transfers = time.workers.transfers
    begin[transfers] = table.start_ns[transfers]


def _begin_after_transfers(
    table: Activities, time: HostTime, edges: list[EdgeList], begin: Rows, end: Rows
) -> None:
    """What reads what a transfer has brought begins after it, also if its own time came earlier.

    That was the rest of a call before it, which ran beside the transfer.
    """
    transfers = np.zeros(len(table), np.bool_)
    transfers[time.workers.transfers] = True
    for found in edges:
        if found.kind is EdgeKind.DATA:
            brought = transfers[found.source] & table.timed_host[found.target]
            brought &= end[found.source] <= table.start_ns[found.target]
            np.maximum.at(begin, found.target[brought], end[found.source[brought]])


def in_own_time(
    table: Activities,
    recording: Recording,
    own: OwnTime,
    edges: list[EdgeList],
    warnings: list[str],
) -> list[EdgeList]:
    """The edges that own times allow; all where there are no times."""
    if recording.device is None:
        return edges
    return [_possible(table, own, found, warnings) for found in edges]


def _possible(table: Activities, own: OwnTime, edges: EdgeList, warnings: list[str]) -> EdgeList:
    """What identity tells, of tensors or groups, without what own times of host work forbid.

    An activity's own time may last beyond its end, until the next one on its thread.
    """
    if edges.kind not in (EdgeKind.DATA, EdgeKind.GROUP):
        return edges
    timed = (table.lane[edges.source] != NO_ROW) & (table.lane[edges.target] != NO_ROW)
    edges = edges.select(timed)
    return in_time(edges, table.work[edges.source], own.end_ns, own.begin_ns, warnings)


def late_warnings(table: Activities, streams: StreamOrder, own: OwnTime) -> list[str]:
    """What to say of work that begins before, or long after, what it is known to wait for."""
    warnings = []
    if streams.overlaps:
        warnings.append(
            f"{several(streams.overlaps, 'device activity starts', 'device activities start')} "
            "before the one before on the stream has ended: a wait for most of that, or for the "
            "last one that had ended, stands for it"
        )
    starts = "device activity starts", "device activities start"
    known = "than all known waits end"
    late, held = own.late_ns[table.work], own.contention_ns
    if late.any():
        warnings.append(
            f"{several(int(np.count_nonzero(late)), *starts)} more than {LAG_NS // 1000} us later "
            f"{known}, {late.sum() / 1e6:.3f} ms together; the files do not show why"
        )
    if held.any():
        warnings.append(
            f"{several(int(np.count_nonzero(held)), *starts)} more than {LAG_NS // 1000} us later "
            f"{known}, {held.sum() / 1e6:.3f} ms together, while other streams were at work"
        )
    return warnings
