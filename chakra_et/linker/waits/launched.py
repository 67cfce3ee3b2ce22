"""What had been launched when: streams as queues that host threads fill."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from chakra_et.columns import NEVER, NO_ROW, UNTIMED, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.waits.stream_order import StreamOrder
from chakra_et.recording import DeviceTrace

_TIME_BITS: Final = 50


class Launched(msgspec.Struct):
    """Device work by stream, with the time at which each piece had been launched.

    `work` lists the rows of the activity table by lane and start; `lane` is ascending, `when`
    ascending within a lane: the end of the launching call or the start of the work, whichever is
    earlier. A stream is a queue: what runs before other work was given to it no later, though its
    call may have lasted longer. Work without a launch in the profile counts as launched at once.
    `place[a]` is where activity a stands in `work`; `start` is when each piece begins.
    """

    work: Rows
    lane: Rows
    when: Rows
    lanes: Rows
    lane_of: dict[tuple[int, int], int]
    base: int
    keys: Rows
    place: Rows
    start: Rows

    def last_before(self, lane: Rows, time: Rows) -> Rows:
        """The last work launched on each lane by each time (rows; `NO_ROW` if there is none)."""
        place = np.searchsorted(self.keys, _keys(lane, time, self.base), "right") - 1
        return self._rows(place, lane)

    def first_after(self, lane: Rows, time: Rows) -> Rows:
        """The first work launched on each lane after each time (rows; `NO_ROW` for none)."""
        return self._rows(np.searchsorted(self.keys, _keys(lane, time, self.base), "right"), lane)

    def over_by(self, table: Activities, last: Rows, time: int) -> Rows:
        """The same work, but what stood before it on its stream for work without a launch that
        ended after a time: of that it is not known whether it had been launched.

        Left out where nothing had both been launched and ended.
        """
        result = last.copy()
        for i in np.flatnonzero(
            (table.launch[last] == NO_ROW) & (table.end_ns[last] > time)
        ).tolist():
            place = int(self.place[last[i]])
            first = int(np.searchsorted(self.lane, self.lane[place], "left"))
            place = first + int(np.searchsorted(self.start[first:place], time, "right")) - 1
            # The last that had begun may still run.
            place -= place >= first and bool(table.end_ns[self.work[place]] > time)
            result[i] = self.work[place] if place >= first else NO_ROW
        known: Rows = result[result != NO_ROW]
        return known

    def place_after(self, lane: int, time: int) -> int:
        """The place in `work` of what is launched on a lane first after a time, or `NO_ROW`."""
        key = _keys(np.array([lane]), np.array([time]), self.base)
        place = int(np.searchsorted(self.keys, key, "right")[0])
        return place if place < len(self.work) and self.lane[place] == lane else NO_ROW

    def _rows(self, place: Rows, lane: Rows) -> Rows:
        if len(self.work) == 0:
            return np.full(len(lane), NO_ROW, np.int64)
        near = np.clip(place, 0, len(self.work) - 1)
        there = (near == place) & (self.lane[near] == lane)
        return np.where(there, self.work[near], NO_ROW)


def launched_work(table: Activities, device: DeviceTrace, streams: StreamOrder) -> Launched:
    """The queues of all streams."""
    work = streams.order
    lane = table.lane[work]
    launch = table.launch[work]
    submitted = np.minimum(table.end_ns[launch], table.start_ns[work])
    submitted = np.maximum(submitted, table.start_ns[launch])
    when = np.where(launch != NO_ROW, submitted, UNTIMED)
    lanes, begins = np.unique(lane, return_index=True)
    for start, end in zip(begins, np.append(begins[1:], len(work))):  # noqa: B905 - neighbours
        when[start:end] = _in_order(when[start:end], table.start_ns[launch[start:end]])
    record = table.record[work[begins]] if len(work) else work
    lane_of: dict[tuple[int, int], int] = {}
    streams_of = zip(device.devices(record).tolist(), device.streams(record).tolist(), strict=True)
    for number, stream in zip(lanes.tolist(), streams_of, strict=True):
        lane_of[stream] = number
    known = when[when != UNTIMED]
    # One below the first launch, so that work without a launch comes before it.
    base = int(known.min()) - 1 if len(known) else 0
    when = np.where(when == UNTIMED, base, when)
    place = np.full(len(table), NO_ROW, np.int64)
    place[work] = np.arange(len(work))
    return Launched(
        work, lane, when, lanes, lane_of, base, _keys(lane, when, base), place, table.start_ns[work]
    )


def _in_order(when: Rows, called: Rows) -> Rows:
    """When a queue was given each piece, by when that had surely been and when its call began.

    None was given later than what comes behind it, nor before its call.
    """
    known = when != UNTIMED
    latest = np.minimum.accumulate(np.where(known, when, NEVER)[::-1])[::-1]
    given: Rows = np.maximum.accumulate(np.where(known, np.maximum(latest, called), UNTIMED))
    return given


def _keys(lane: Rows, time: Rows, base: int) -> Rows:
    """Lane and time as one number, so that NumPy can search in both at once.

    Times are cut to 2**50 ns (13 days) from `base`; what lies outside is before or after all else.
    """
    return (lane << _TIME_BITS) + np.clip(time - base, 0, (1 << _TIME_BITS) - 1)
