"""Calls that wait, and calls about events: which they are, and what records say of them."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import among
from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.linker.activities import Activities
from chakra_et.recording import DeviceTrace, Kind, Role

_ABOUT_WAITS: Final = (
    Kind.WAIT_STREAM, Kind.WAIT_DEVICE, Kind.WAIT_EVENT, Kind.FREE, Kind.STREAM_WAIT, Kind.RECORD
)  # fmt: skip


SLACK_NS: Final = 10_000
"""How far the device's clock may be ahead of the host's: a wait may seem to end before its target.
"""


class WaitCalls(msgspec.Struct):
    """Calls that wait or record, in order of time: one entry of each column for each call.

    `call` is the row of the activity table, `kind` one of `Kind`. `recorded` tells whether the
    profile has a record of the wait; then `stream` is the waiting stream, `awaited` the stream
    waited for and `record` the call that recorded the event (a row), each `NO_ROW` where it does
    not say.
    `guessed` marks those whose `awaited` stream is not told, but taken from the order of launches.
    `has_records` tells whether the profiler recorded waits at all.
    """

    call: Rows
    kind: Rows
    recorded: Mask
    device: Rows
    stream: Rows
    awaited: Rows
    record: Rows
    guessed: Mask
    has_records: bool

    def of(self, *kinds: Kind) -> Rows:
        """The places of the calls of some kinds."""
        return np.flatnonzero(among(self.kind, kinds))


def wait_calls(table: Activities, device: DeviceTrace) -> WaitCalls:
    """All calls that wait for a device or deal with events, by record or by name."""
    calls = np.flatnonzero((table.role == Role.CALL) & (table.record != NO_ROW))
    kind = device.kind[table.record[calls]].astype(np.int64)
    waits = device.waits
    correlation = device.correlation[table.record[calls]]
    asked = device.correlation[waits.row]
    named = np.concatenate((asked, waits.recorded_by))
    places = np.flatnonzero(among(correlation, named[named > 0]))
    by_id = dict(zip(correlation[places].tolist(), places.tolist(), strict=True))
    count = len(calls)
    columns = {
        name: np.full(count, NO_ROW, np.int64) for name in ("device", "stream", "awaited", "record")
    }
    recorded = np.zeros(count, np.bool_)
    for i, number in enumerate(asked.tolist()):
        place = by_id.get(number)
        if place is None:
            continue
        recorded[place] = True
        kind[place] = waits.kind[i]
        columns["device"][place] = waits.device[i]
        columns["stream"][place] = waits.stream[i]
        columns["awaited"][place] = waits.awaited[i]
        call = by_id.get(int(waits.recorded_by[i]))
        columns["record"][place] = NO_ROW if call is None else calls[call]
    use = np.flatnonzero(among(kind, _ABOUT_WAITS))
    use = use[np.argsort(table.start_ns[calls[use]], kind="stable")]
    return WaitCalls(
        calls[use],
        kind[use],
        recorded[use],
        guessed=np.zeros(len(use), np.bool_),
        has_records=bool(recorded.any()),
        **{name: column[use] for name, column in columns.items()},
    )


def calls_of(table: Activities, device: DeviceTrace | None, *kinds: Kind) -> Rows:
    """The calls that do something of these kinds, by their names."""
    if device is None:
        return np.zeros(0, np.int64)
    calls = np.flatnonzero((table.role == Role.CALL) & (table.record != NO_ROW))
    return calls[among(device.kind[table.record[calls]], kinds)]
