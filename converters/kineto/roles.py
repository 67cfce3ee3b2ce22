"""Roles of records whose category says nothing: by their process, or by their arguments."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from chakra_et.codes import among, codes, distinct, distinct_rows
from chakra_et.columns import Mask
from chakra_et.converters.kineto.categories import (
    ANNOTATION,
    PROCESSES,
    ROLE_ENDINGS,
    ROLES,
    UNKNOWN,
)
from chakra_et.recording import NO_ID, DeviceTrace, Role
from chakra_et.shown import several

NO_ROLE: Final = 255
"""The role of a record before anything tells it."""
NO_PROCESS: Final = "no category, and no process known here"
_SHOWN: Final = 4


def give_roles(device: DeviceTrace) -> DeviceTrace:
    """Give records of unknown categories a role, and leave out those without one.

    The name of the process tells (Ascend writes no categories), or the end of the category's name,
    as vendors name theirs alike. Else what has a device, a stream and a duration is device work,
    and so is what has the correlation id of a call and runs on no thread that calls.
    """
    if not (device.role == NO_ROLE).any():
        return device
    _by_process(device)
    unknown = device.role == NO_ROLE
    endings = np.array([_by_ending(name) for name in device.categories.in_order], np.uint8)
    device.role[unknown] = endings[device.category[unknown]]
    unknown = device.role == NO_ROLE
    placed = (device.device != NO_ID) & (device.stream != NO_ID)
    work = unknown & (device.duration_ns > 0) & (placed | _launched(device))
    names = np.array([ANNOTATION in name for name in device.categories.in_order], np.bool_)
    work &= ~names[device.category]
    device.role[work] = Role.WORK
    device.warnings += _told(device, work)
    return _without(device, unknown & ~work)


def _by_process(device: DeviceTrace) -> None:
    """Records without a category get the name of their process as one, if it tells a role."""
    bare = device.category == device.categories.get("", NO_ID)
    for pid, name in device.process_names.items():
        rows = (device.role == NO_ROLE) & bare & (device.pid == pid)
        if name in PROCESSES and rows.any():
            device.role[rows] = ROLES[name]
            code = np.int32(device.categories[name])
            device.category = np.where(rows, code, device.category)
            count = int(np.count_nonzero(rows))
            counts = Counter(device.counts)
            counts["", "X"] -= count
            counts[name, "X"] += count
            device.counts = dict(+counts)
            work = rows & (device.role == Role.WORK) & (device.stream == NO_ID)
            device.stream = np.where(work, device.tid, device.stream)
            if ROLES[name] is Role.CALL:
                _to_threads(device, rows, pid)


def _to_threads(device: DeviceTrace, rows: Mask, pid: int) -> None:
    """Put calls that stand in a process of their own on the threads of the one that made them.

    Its number is that of the process with two digits more; where there is only one with
    operations, it is that one.
    """
    pids = distinct(device.pid[device.role == Role.OP]).tolist()
    owners = [own for own in pids if own == pid // 100] or (pids if len(pids) == 1 else [])
    for owner in owners:
        device.pid = np.where(rows, owner, device.pid)
        source = device.launch_flows.source
        source.pid[source.pid == pid] = owner


def _by_ending(category: str) -> int:
    roles = (role for ending, role in ROLE_ENDINGS.items() if category.endswith(ending))
    return int(next(roles, NO_ROLE))


def _launched(device: DeviceTrace) -> Mask:
    """Which records have the correlation id of a call, and lie on no host thread."""
    calls = device.role == Role.CALL
    ids = device.correlation[calls]
    thread = codes(device.pid, device.tid)
    on_host = among(thread, thread[calls | (device.role == Role.OP)])
    return among(device.correlation, ids[ids > 0]) & ~on_host


def _told(device: DeviceTrace, work: Mask) -> list[str]:
    if not work.any():
        return []
    return [
        f"{several(int(np.count_nonzero(work)), 'record', 'records')} of unknown categories "
        f"({_names(device, work)}) have a device and a stream, or the correlation id of a call; "
        "they count as device work"
    ]


def _without(device: DeviceTrace, lost: Mask) -> DeviceTrace:
    """The records that have a role; of the others, the warnings say how much time they took."""
    if not lost.any():
        return device
    microseconds = int(device.duration_ns[lost].clip(0).sum()) / 1000
    were = "was" if np.count_nonzero(lost) == 1 else "were"
    device.warnings.append(
        f"{several(int(np.count_nonzero(lost)), 'record', 'records')} "
        f"({microseconds:,.3f} us in all) {were} left out, because "
        f"their meaning is unknown: {_names(device, lost)}"
    )
    bare = lost & (device.category == device.categories.get("", NO_ID))
    kept = device.select(~(lost & ~bare), UNKNOWN)
    return kept.select(~bare[~(lost & ~bare)], NO_PROCESS)


def _names(device: DeviceTrace, rows: Mask) -> str:
    """The categories of some records; of those without one, the processes."""
    names: dict[str, None] = {}
    pairs = distinct_rows(device.category[rows], device.pid[rows])
    for code, pid in zip(*(column.tolist() for column in pairs), strict=True):
        process = device.process_names.get(pid, str(pid))
        names[device.categories.in_order[code] or f"those of process {process!r}"] = None
    shown = list(names)[:_SHOWN]
    return ", ".join(shown) + " and more" * (len(names) > _SHOWN)
