"""What kind each record is: by the names of calls, and by categories. Data for every vendor."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.converters.kineto.categories import ANNOTATIONS, COPY, FILL
from chakra_et.patterns import lazy_pattern
from chakra_et.recording import DeviceTrace, Kind, Role
from chakra_et.recording.libraries import RECORD

_CALLS: Final = (
    (lazy_pattern(r"(Stream|Queue)(Host)?Synchronize|SynchronizeStream|QueueFinish"),
     Kind.WAIT_STREAM),
    (lazy_pattern(r"(Device|Ctx)Synchronize|SynchronizeDevice"), Kind.WAIT_DEVICE),
    (lazy_pattern(r"Event(Host)?Synchronize|SynchronizeEvent|EventWait$|FenceHost"),
     Kind.WAIT_EVENT),
    (lazy_pattern(r"StreamWaitEvent"), Kind.STREAM_WAIT),
    (lazy_pattern(r"EventRecord|RecordEvent"), Kind.RECORD),
    (lazy_pattern(r"^(cuda|hip|cuMem)Free$"), Kind.FREE),
    (lazy_pattern(r"^\w+(Event|Stream)Query\w*$"), Kind.POLL),
    (lazy_pattern(r"^(\w+(SetDevice|Get\w+|PeekAtLastError|ExchangeStreamCaptureMode)|\w*sleep)$"),
     Kind.PASSIVE),
)  # fmt: skip
"""Calls by name; the first pattern that is found counts."""
_RETURNS_AT_ONCE: Final = "Async"
"""What names of calls have in them that do not wait for what they launch."""


def call_kind(name: str) -> Kind:
    """What a call of the runtime or driver does."""
    return next((kind for pattern, kind in _CALLS if pattern.search(name)), Kind.OTHER)


def work_kind(category: str) -> Kind:
    """What work of a category does."""
    if COPY in category.lower():
        return Kind.COPY
    return Kind.FILL if FILL in category.lower() else Kind.OTHER


def set_kinds(device: DeviceTrace) -> None:
    """Set `kind` of all records, and `blocks` of calls."""
    names, categories = device.names.in_order, device.categories.in_order
    ops, calls, work = (device.rows(role) for role in (Role.OP, Role.CALL, Role.WORK))
    annotation = [Kind.ANNOTATION if c in ANNOTATIONS else Kind.OTHER for c in categories]
    device.kind[ops] = _coded(annotation, device.category[ops])
    if RECORD in device.names:
        device.kind[ops[device.name[ops] == device.names[RECORD]]] = Kind.COLLECTIVE
    device.kind[calls] = _coded(list(map(call_kind, names)), device.name[calls])
    device.kind[work] = _coded(list(map(work_kind, categories)), device.category[work])
    blocking = np.array([_RETURNS_AT_ONCE not in name for name in names], np.bool_)
    device.blocks[calls] = blocking[device.name[calls]] if len(calls) else False


def _coded(kinds: list[Kind], codes: Rows | np.ndarray[tuple[int], np.dtype[np.int32]]) -> Rows:
    """The kind of each record, by the code of its name or category."""
    table = np.array(kinds, np.int64)
    return table[codes] if len(codes) else np.zeros(0, np.int64)
