"""Synchronisation: host work that goes on when device work has ended.

A call that only waits (`cudaStreamSynchronize` and its kin) begins its own work when what it waits
for has ended, so its edges lead into the call. A blocking copy launches what it waits for; its edge
leads into the activity after the call on its thread.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import among, distinct
from chakra_et.columns import NO_ROW, Rows, no_rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.carriers import Carriers
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.waits.given import Given
from chakra_et.linker.waits.joins import Joins
from chakra_et.linker.waits.launched import Launched
from chakra_et.linker.waits.wait_calls import SLACK_NS, WaitCalls
from chakra_et.model import EdgeKind
from chakra_et.recording import DeviceTrace, Kind, Recording, Role


class _Found(msgspec.Struct):
    """Edges as they are found: device work, the call that waited, and the evidence."""

    source: list[int]
    target: list[int]
    evidence: list[Evidence]

    def add(self, source: int, target: int, evidence: Evidence) -> None:
        self.source.append(source)
        self.target.append(target)
        self.evidence.append(evidence)


def sync_edges(
    table: Activities, launched: Launched, calls: WaitCalls, given: Given, joins: Joins
) -> EdgeList:
    """Edges from device work into the calls that waited for it, through joins where there are.

    Evidence: records of waits name the stream, or the event and the call that recorded it; the
    target is what had been launched there before. Without them, a call for the whole device waits
    for every stream; a call for one stream or event waits for the stream whose last work ended
    last before the call did, and the edge is inferred. An edge against the recorded times is not
    made; where a record tells of it, clocks may differ a little.
    """
    found = _Found([], [], [])
    if len(launched.work) == 0:
        return _edge_list(found)
    waits = calls.of(Kind.WAIT_STREAM, Kind.WAIT_DEVICE, Kind.WAIT_EVENT, Kind.FREE)
    waits = distinct(waits[~among(waits, joins.places)])
    for place in waits.tolist():
        call = int(calls.call[place])
        lanes, told = _lanes(calls, place, launched)
        if not told and calls.has_records and calls.kind[place] != Kind.FREE:
            # Every wait has a record, so this call waited for nothing.
            continue
        end = int(table.end_ns[call]) + SLACK_NS * told
        asked = _asked_at(table, calls, place)
        stream = (
            calls.awaited[place] if calls.kind[place] == Kind.WAIT_EVENT else calls.stream[place]
        )
        if told and calls.kind[place] != Kind.WAIT_DEVICE:
            last = np.array(given.by((int(calls.device[place]), int(stream)), asked), np.int64)
        else:
            last = launched.last_before(lanes, np.full(len(lanes), asked, np.int64))
            last = last[last != NO_ROW]
        last = launched.over_by(table, last, end)
        last = last[table.end_ns[last] <= end]
        if len(last) == 0:
            continue
        if told:
            by = Evidence.SYNC_RECORD if calls.recorded[place] else Evidence.SYNC_DEVICE
            if calls.guessed[place]:
                by = Evidence.SYNC_LAUNCHED_LAST
            for work in last.tolist():
                found.add(work, call, by)
            continue
        latest = int(last[np.argmax(table.end_ns[last])])
        if table.end_ns[latest] > table.start_ns[call]:
            found.add(latest, call, Evidence.SYNC_TIMES)
        elif calls.kind[place] == Kind.WAIT_STREAM:
            own = _own_stream(table, call, last, launched)
            found.add(own, call, Evidence.SYNC_LAST_USED)
    return EdgeList.joined([joins.edges, _edge_list(found)])


def _lanes(calls: WaitCalls, place: int, launched: Launched) -> tuple[Rows, bool]:
    """The lanes that a call may wait for, and whether the profile tells that it waits for all."""
    kind = calls.kind[place]
    device = int(calls.device[place])
    if kind == Kind.WAIT_DEVICE:
        mine = [lane for (d, _), lane in launched.lane_of.items() if device in (NO_ROW, d)]
        return np.array(mine, np.int64), True
    stream = calls.awaited[place] if kind == Kind.WAIT_EVENT else calls.stream[place]
    lane = launched.lane_of.get((device, int(stream)))
    if calls.recorded[place] and stream != NO_ROW:
        return np.array([] if lane is None else [lane], np.int64), True
    return launched.lanes, False


def _asked_at(table: Activities, calls: WaitCalls, place: int) -> int:
    """When what a call waits for had been launched: at the call, or when the event was recorded."""
    record = int(calls.record[place])
    by_event = calls.kind[place] == Kind.WAIT_EVENT and record != NO_ROW
    call = record if by_event else calls.call[place]
    return int(table.start_ns[call])


def _own_stream(table: Activities, call: int, last: Rows, launched: Launched) -> int:
    """Of work that had ended before a call, that of the stream that its thread used last."""
    launch = table.launch[last]
    mine = (launch != NO_ROW) & (table.lane[launch] == table.lane[call])
    rows = last[mine] if mine.any() else last
    when = np.where(table.launch[rows] != NO_ROW, table.start_ns[table.launch[rows]], launched.base)
    return int(rows[np.argmax(when)])


def sync_scopes(
    calls: WaitCalls, launched: Launched, edges: EdgeList, lanes: Rows
) -> dict[int, str]:
    """What each call that waits for a stream or a device waits for, as the attribute `sync_on`.

    `lanes` holds the lane of each activity. Where no record names the stream, it is that of the
    edge.
    """
    place = {lane: pair for pair, lane in launched.lane_of.items()}
    source = dict(zip(edges.target.tolist(), edges.source.tolist(), strict=True))
    scopes = {}
    for i in calls.of(Kind.WAIT_STREAM, Kind.WAIT_DEVICE).tolist():
        call, device, stream = int(calls.call[i]), int(calls.device[i]), int(calls.stream[i])
        last = source.get(call, NO_ROW)
        # A join waits for work in its turn.
        last = source.get(last, last)
        pair = place.get(int(lanes[last])) if last != NO_ROW else None
        if calls.kind[i] == Kind.WAIT_DEVICE:
            device = pair[0] if device == NO_ROW and pair is not None else max(device, 0)
            scopes[call] = f"device {device}"
        elif calls.recorded[i] and stream != NO_ROW:
            scopes[call] = f"stream {device} {stream}"
        elif pair is not None:
            scopes[call] = f"stream {pair[0]} {pair[1]}"
    return scopes


def blocking_copies(table: Activities, device: DeviceTrace) -> Rows:
    """Device copies that the launching call waited for.

    Evidence: a call that does not return at once, by its name, or a copy from a device to pageable
    memory of the host; and the copy ended before the call did.
    """
    copies = np.flatnonzero(table.work & (table.launch != NO_ROW))
    copies = copies[device.kind[table.record[copies]] == Kind.COPY]
    call = table.launch[copies]
    waits = device.blocks[table.record[call]] | device.blocks[table.record[copies]]
    ended = table.end_ns[copies] <= table.end_ns[call]
    blocking: Rows = copies[waits & ended & (table.role[call] == Role.CALL)]
    return blocking


_INSIDE: Final = 64
"""How many operations may seem to begin inside a blocking call."""


def copy_edges(table: Activities, copies: Rows) -> EdgeList:
    """Edges from blocking copies into what their thread did after the call.

    That is what began after the copy had ended: where clocks of host and driver differ, operations
    may seem to begin inside the call.
    """
    follows = np.full(len(table), NO_ROW, np.int64)
    order = table.host_order
    same = table.lane[order][1:] == table.lane[order][:-1]
    follows[order[:-1][same]] = order[1:][same]
    after = follows[table.launch[copies]]
    for _ in range(_INSIDE):
        early = np.flatnonzero((after != NO_ROW) & (table.start_ns[after] < table.end_ns[copies]))
        if len(early) == 0:
            break
        after[early] = follows[after[early]]
    use = after != NO_ROW
    return EdgeList.by(Evidence.SYNC_COPY, copies[use], after[use])


def _edge_list(found: _Found) -> EdgeList:
    return EdgeList(
        EdgeKind.SYNC,
        np.array(found.source, np.int64),
        np.array(found.target, np.int64),
        np.array(found.evidence, np.uint8),
    )


def stated_waits(table: Activities, recording: Recording, carriers: Carriers) -> EdgeList:
    """Edges that the recording states: from device work to what began when it had ended."""
    if recording.device is None:
        return EdgeList.by(Evidence.SYNC_FILE, no_rows(), no_rows())
    row = np.full(len(recording.device), NO_ROW, np.int64)
    work = np.flatnonzero(table.work)
    row[table.record[work]] = work
    row[carriers.merged] = carriers.into
    source, target = recording.stated.waits
    return EdgeList.by(Evidence.SYNC_FILE, row[source], target)
