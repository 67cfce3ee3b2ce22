"""Calls that wait, and calls about events: which they are, and what the profile says of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.converters.kineto import DeviceTrace, Role
from chakra_et.converters.kineto.device_trace import NO_ID
from chakra_et.linker.activities import Activities
from chakra_et.linker.nesting import NONE

Rows = npt.NDArray[np.int64]


class Wait(IntEnum):
    """What a call waits for, or does with an event."""

    OTHER = 0
    STREAM = 1
    """The host waits until a stream has done what it was given."""
    DEVICE = 2
    """The host waits until all streams of a device have."""
    EVENT = 3
    """The host waits for an event."""
    FREE = 4
    """The driver may wait for the whole device before it gives memory back."""
    STREAM_EVENT = 5
    """A stream is made to wait for an event; the host goes on."""
    RECORD = 6
    """An event is recorded on a stream."""


_CALLS: Final = (
    (re.compile(r"(Stream|Queue)(Host)?Synchronize|SynchronizeStream|QueueFinish"), Wait.STREAM),
    (re.compile(r"(Device|Ctx)Synchronize|SynchronizeDevice"), Wait.DEVICE),
    (re.compile(r"Event(Host)?Synchronize|SynchronizeEvent|EventWait$|FenceHost"), Wait.EVENT),
    (re.compile(r"StreamWaitEvent"), Wait.STREAM_EVENT),
    (re.compile(r"EventRecord|RecordEvent"), Wait.RECORD),
    (re.compile(r"^(cuda|hip|cuMem)Free$"), Wait.FREE),
)  # fmt: skip
"""Calls by name, for profiles without records of waits: data for every vendor."""

_KINDS: Final = {
    "Stream Sync": Wait.STREAM,
    "Context Sync": Wait.DEVICE,
    "Event Sync": Wait.EVENT,
    "Stream Wait Event": Wait.STREAM_EVENT,
}
"""The profiler's own words for its records of waits."""


class _Args(msgspec.Struct, gc=False):
    """Arguments of a record of a wait."""

    kind: str = msgspec.field(default="", name="cuda_sync_kind")
    wait_on_stream: Any = -1
    record: Any = msgspec.field(default=-1, name="wait_on_cuda_event_record_corr_id")


@dataclass
class WaitCalls:
    """Calls that wait or record, in order of time: one entry of each column for each call.

    `call` is the row of the activity table, `kind` a `Wait`. `recorded` tells whether the profile
    has a record of the wait; then `stream` is the waiting stream, `awaited` the stream waited for
    and `record` the call that recorded the event (a row), each `NONE` where it does not say.
    `guessed` marks those whose `awaited` stream is not told, but taken from the order of launches.
    `has_records` tells whether the profiler recorded waits at all.
    """

    call: Rows
    kind: Rows
    recorded: npt.NDArray[np.bool_]
    device: Rows
    stream: Rows
    awaited: Rows
    record: Rows
    guessed: npt.NDArray[np.bool_]
    has_records: bool

    def of(self, *kinds: Wait) -> Rows:
        """The places of the calls of some kinds."""
        return np.flatnonzero(np.isin(self.kind, kinds))


def wait_calls(table: Activities, device: DeviceTrace) -> WaitCalls:
    """All calls that wait for a device or deal with events, by record or by name."""
    calls = np.flatnonzero((table.role == Role.CALL) & (table.record != NONE))
    kind = kinds_of(device)[device.name[table.record[calls]]]
    waits = device.rows(Role.SYNC).tolist()
    args = [_decode(device.args[row]) for row in waits]
    correlation = device.correlation[table.record[calls]]
    named = {int(device.correlation[row]) for row in waits}
    named |= {a.record for a in args if isinstance(a.record, int)}
    places = np.flatnonzero(np.isin(correlation, [n for n in named if n > 0]))
    by_id = dict(zip(correlation[places].tolist(), places.tolist(), strict=True))
    count = len(calls)
    columns = {
        name: np.full(count, NONE, np.int64) for name in ("device", "stream", "awaited", "record")
    }
    recorded = np.zeros(count, np.bool_)
    for row, told_of in zip(waits, args, strict=True):
        place = by_id.get(int(device.correlation[row]))
        told = _KINDS.get(told_of.kind or device.names.in_order[device.name[row]])
        if place is None or told is None:
            continue
        recorded[place] = True
        kind[place] = told
        columns["device"][place] = device.device[row]
        columns["stream"][place] = _stream(device.stream[row])
        columns["awaited"][place] = _stream(told_of.wait_on_stream)
        call = by_id.get(told_of.record) if isinstance(told_of.record, int) else None
        columns["record"][place] = NONE if call is None else calls[call]
    use = np.flatnonzero(kind != Wait.OTHER)
    use = use[np.argsort(table.start_ns[calls[use]], kind="stable")]
    return WaitCalls(
        calls[use],
        kind[use],
        recorded[use],
        guessed=np.zeros(len(use), np.bool_),
        has_records=bool(recorded.any()),
        **{name: column[use] for name, column in columns.items()},
    )


def kinds_of(device: DeviceTrace) -> Rows:
    """What calls of each of the profile's names do: a `Wait` by the code of the name."""
    return np.array([_by_name(name) for name in device.names.in_order], np.int64)


def calls_named(table: Activities, device: DeviceTrace, *kinds: Wait) -> Rows:
    """The calls whose names say that they do something of these kinds."""
    calls = np.flatnonzero((table.role == Role.CALL) & (table.record != NONE))
    return calls[np.isin(kinds_of(device)[device.name[table.record[calls]]], kinds)]


def _by_name(name: str) -> Wait:
    return next((kind for pattern, kind in _CALLS if pattern.search(name)), Wait.OTHER)


def _decode(text: bytes) -> _Args:
    try:
        return msgspec.json.decode(text or b"{}", type=_Args)
    except msgspec.DecodeError:
        return _Args()


def _stream(value: Any) -> int:
    """A stream's number; older profilers write -1 as an unsigned number."""
    if not isinstance(value, (int, np.integer)) or value in (NO_ID, 0xFFFFFFFF):
        return NONE
    return int(value)
