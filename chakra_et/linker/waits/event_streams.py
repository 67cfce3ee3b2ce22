"""On which stream an event was recorded, where the record of a wait names only the call.

Newer profilers write the call that recorded the event and not its stream. Who records an event
means what it has just launched: the stream is that of the last work that the calling thread had
launched before, other than on the waiting stream, if that had ended before the wait was over.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec.structs import replace

from chakra_et.columns import NEVER, NO_ROW, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.waits.launched import Launched
from chakra_et.linker.waits.wait_calls import SLACK_NS, WaitCalls
from chakra_et.recording import Kind

_LATEST: Final = NEVER - SLACK_NS


def with_streams_of_events(table: Activities, launched: Launched, calls: WaitCalls) -> WaitCalls:
    """The calls, with the stream waited for where only the event's call is recorded.

    These are marked as `guessed`. Of several streams the one last launched on is taken whose work
    had ended when what waited went on.
    """
    awaited, guessed = calls.awaited.copy(), calls.guessed.copy()
    names = {lane: stream for (_, stream), lane in launched.lane_of.items()}
    about = calls.of(Kind.WAIT_EVENT, Kind.STREAM_WAIT)
    about = about[(calls.awaited[about] == NO_ROW) & (calls.record[about] != NO_ROW)]
    for place in about.tolist():
        own, until = _waiting(table, launched, calls, place)
        for work in _launched_by_thread(table, launched, int(calls.record[place])).tolist():
            if table.lane[work] != own and table.end_ns[work] <= until + SLACK_NS:
                awaited[place], guessed[place] = names[int(table.lane[work])], True
                break
    return replace(calls, awaited=awaited, guessed=guessed)


def _waiting(
    table: Activities, launched: Launched, calls: WaitCalls, place: int
) -> tuple[int, int]:
    """The lane that waits (`NO_ROW`: the host), and when it went on."""
    call = int(calls.call[place])
    if calls.kind[place] == Kind.WAIT_EVENT:
        return NO_ROW, int(table.end_ns[call])
    lane = launched.lane_of.get((int(calls.device[place]), int(calls.stream[place])), NO_ROW)
    following = launched.first_after(np.array([lane]), table.start_ns[[call]])[0]
    return lane, _LATEST if following == NO_ROW else int(table.start_ns[following])


def _launched_by_thread(table: Activities, launched: Launched, call: int) -> Rows:
    """The last work of each stream before a call, of those that its thread had launched last.

    The latest launch comes first.
    """
    at = np.full(len(launched.lanes), table.start_ns[call], np.int64)
    last = launched.last_before(launched.lanes, at)
    last = last[last != NO_ROW]
    launch = table.launch[last]
    mine = last[(launch != NO_ROW) & (table.lane[launch] == table.lane[call])]
    latest_first: Rows = mine[np.argsort(-table.start_ns[table.launch[mine]], kind="stable")]
    return latest_first
