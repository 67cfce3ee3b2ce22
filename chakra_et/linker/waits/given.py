"""What a stream must have done for all that it was given to be done.

That is its last work and, if it was made to wait for an event since, what it waits for.
"""

from __future__ import annotations

import msgspec
import numpy as np

from chakra_et.columns import NEVER, NO_ROW
from chakra_et.linker.activities import Activities
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.waits.launched import Launched
from chakra_et.linker.waits.wait_calls import WaitCalls
from chakra_et.recording import Kind

Stream = tuple[int, int]
"""Device and stream number; the stream may have run nothing."""


class StreamWait(msgspec.Struct):
    """A recorded wait of a stream: when it was asked for, when work was launched there next."""

    asked: int
    until: int
    target: int
    sources: list[int]
    evidence: Evidence


class Given(msgspec.Struct):
    """Streams as hosts see them: what they were given, waits for events included."""

    launched: Launched
    waits: dict[Stream, list[StreamWait]] = msgspec.field(default_factory=dict)

    def by(self, stream: Stream, time: int) -> list[int]:
        """The work that must have ended for a stream to have done what it was given by a time."""
        last = self._launched(stream, time)
        found = [last] if last != NO_ROW else []
        for wait in reversed(self.waits.get(stream, [])):
            if wait.until <= time:
                break
            if wait.asked <= time:
                found += [source for source in wait.sources if source not in found]
        return found

    def add(self, stream: Stream, wait: StreamWait) -> None:
        """A stream was made to wait; later ones are added later."""
        self.waits.setdefault(stream, []).append(wait)

    def _launched(self, stream: Stream, time: int) -> int:
        lane = self.launched.lane_of.get(stream)
        if lane is None:
            return NO_ROW
        return int(self.launched.last_before(np.array([lane]), np.array([time]))[0])

    def next_launch(self, stream: Stream, time: int) -> tuple[int, int]:
        """When work is launched on a stream next after a time, and that work."""
        lane = self.launched.lane_of.get(stream)
        if lane is None:
            return NEVER, NO_ROW
        place = self.launched.place_after(lane, time)
        if place == NO_ROW:
            return NEVER, NO_ROW
        return int(self.launched.when[place]), int(self.launched.work[place])


def given_to_streams(table: Activities, launched: Launched, calls: WaitCalls) -> Given:
    """All recorded waits of streams for events, each with what the event stands for."""
    given = Given(launched)
    waits = calls.of(Kind.STREAM_WAIT)
    for place in waits[calls.recorded[waits]].tolist():
        device, asked = int(calls.device[place]), int(table.start_ns[calls.call[place]])
        waiting = device, int(calls.stream[place])
        awaited = device, int(calls.awaited[place])
        if NO_ROW in (waiting[1], awaited[1]) or waiting == awaited:
            continue
        record = int(calls.record[place])
        recorded_at = asked if record == NO_ROW else int(table.start_ns[record])
        own = launched.lane_of.get(waiting, NO_ROW)
        sources = [s for s in given.by(awaited, recorded_at) if table.lane[s] != own]
        until, target = given.next_launch(waiting, asked)
        by = Evidence.EVENT_STREAM if record == NO_ROW else Evidence.EVENT_RECORD
        if calls.guessed[place]:
            by = Evidence.EVENT_LAUNCHED_LAST
        given.add(waiting, StreamWait(asked, until, target, sources, by))
    return given
