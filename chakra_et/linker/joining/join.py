"""Joining host nodes with the profiler's records of the same operations."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import among, distinct
from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.errors import LinkError
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.joining.thread_order import by_order
from chakra_et.linker.notes import Notes
from chakra_et.recording import DeviceTrace, HostTrace, Recording, Role
from chakra_et.recording.same import agreeing, common_names, lookup

_AGREE: Final = 0.9
"""Share of joined operations whose names must agree for ids to be believed."""
_ENOUGH: Final = 8
"""Operations that two files must share in order, where their ids say that they share none."""
_ALIGNED: Final = 0.5
"""Share of host operations that must find their record for an alignment to be believed."""


class HostJoin(msgspec.Struct):
    """`record[i]` is the profile's row for host node i, or `NO_ROW`; `by` says how it was found."""

    record: Rows
    by: str
    matched: int
    of: int
    warnings: list[str] = msgspec.field(default_factory=list)


def join_views(recording: Recording, notes: Notes) -> HostJoin | None:
    """Find the profiler's record of each host node; None where a view is missing.

    What the recording itself states counts first. Raises LinkError when the views do not belong
    together.
    """
    host, device, stated = recording.host, recording.device, recording.stated.record
    if host is None or device is None:
        return None
    if len(stated) == 0:
        join = join_host(host, device)
        notes.warnings += join.warnings
        return join
    matched = int(np.count_nonzero(stated != NO_ROW))
    return HostJoin(stated, Evidence.CALL_FILE.label, matched, len(host) - host.stubs)


def join_host(host: HostTrace, device: DeviceTrace) -> HostJoin:
    """Find the profiler's record of each host node: by ids where both files have them.

    Ids are believed if the names behind them agree; record-function ids come first, then External
    ids. Without ids, the operations of each thread are aligned in order, with gaps.
    Raises LinkError when the files do not belong together.
    """
    ops = device.rows(Role.OP)
    host_name, record_name = common_names(host, device)
    join = _by_record_function(host, device, ops, host_name, record_name)
    if join is None:
        join = _by_external_id(host, device, ops, host_name, record_name)
    if join is None:
        join = _by_order(host, device, ops, host_name, record_name)
    _compare_processes(host, device, ops, join)
    if host.is_timed:
        join.warnings.append(
            "times that a tool has added to the host trace were ignored: the profile has them"
        )
    return join


def _by_record_function(
    host: HostTrace, device: DeviceTrace, ops: Rows, host_name: Rows, record_name: Rows
) -> HostJoin | None:
    ids = device.rf_id[ops]
    # Every id is 0 when no observer of the host trace was active while the profile was taken.
    if not np.any(ids > 0):
        return None
    known = ops[ids > 0]
    record = lookup(device.rf_id[known], known, host.rf_id)
    record[host.rf_id <= 0] = NO_ROW
    overlap = int(np.count_nonzero(record != NO_ROW))
    agree = agreeing(record, host_name, record_name, device)
    matched = int(np.count_nonzero(agree))
    if overlap == 0 or matched < _AGREE * overlap:
        join = _of_another_run(host, device, ops, host_name, record_name, overlap)
        if join is not None:
            return join
        raise LinkError(
            f"host and device trace do not belong together: {overlap} record-function ids occur in "
            f"both, but the names behind {overlap - matched} of them differ"
            if overlap
            else "host and device trace do not belong together: both have record-function ids, "
            "but no id occurs in both",
            path=device.path,
            place=_example(host, device, record, agree),
            remedy=f"Give the profile of the same run, rank and window as {host.path}.",
        )
    warnings = []
    if matched < overlap:
        warnings.append(
            f"{overlap - matched} of {overlap} record-function ids lead to another name; "
            "these were not joined"
        )
        record[~agree] = NO_ROW
    expected = np.count_nonzero(among(host.rf_id, device.rf_id[known]) & (host.rf_id > 0))
    return HostJoin(record, "record-function id", matched, int(expected), warnings)


def _of_another_run(
    host: HostTrace,
    device: DeviceTrace,
    ops: Rows,
    host_name: Rows,
    record_name: Rows,
    overlap: int,
) -> HostJoin | None:
    """By order, where ids tell that the files are of different times: one is a part of the other.

    None where too little of the shorter one is found in the longer one to say that, and where ids
    lead to other names, unless the shorter file is one iteration of many in the longer one.
    """
    candidates = np.flatnonzero(~host.is_root)
    record, warnings = by_order(host, device, candidates, host_name, record_name)
    matched = int(np.count_nonzero(record != NO_ROW))
    enough = max(_AGREE * min(len(candidates), len(ops)), _ENOUGH)
    if matched < enough or (overlap and not warnings):
        return None
    what = f"{overlap} record-function ids occur in both files and do not agree"
    warnings.insert(
        0,
        f"{what if overlap else 'no record-function id occurs in both files'}: they are of "
        "different windows, or of two runs of one script; operations were joined by their order",
    )
    return HostJoin(record, "order within each thread", matched, len(candidates), warnings)


def _example(host: HostTrace, device: DeviceTrace, record: Rows, agree: Mask) -> str | None:
    differing = np.flatnonzero((record != NO_ROW) & ~agree)
    if len(differing) == 0:
        return None
    row = int(differing[0])
    mine, theirs = host.names.in_order, device.names.in_order
    return (
        f"record-function id {host.rf_id[row]} is {mine[host.name[row]]!r} in the host trace and "
        f"{theirs[device.name[record[row]]]!r} in the profile"
    )


def _by_external_id(
    host: HostTrace, device: DeviceTrace, ops: Rows, host_name: Rows, record_name: Rows
) -> HostJoin | None:
    """In some files the External id of an operation is its record-function id; most are not so."""
    record = lookup(device.external_id[ops], ops, host.rf_id)
    record[host.rf_id <= 0] = NO_ROW
    wanted = int(np.count_nonzero(host.rf_id > 0))
    agree = agreeing(record, host_name, record_name, device)
    matched = int(np.count_nonzero(agree))
    if matched == 0 or matched < _AGREE * wanted or matched < _AGREE * len(ops):
        return None
    record[~agree] = NO_ROW
    return HostJoin(record, "External id", matched, wanted)


def _by_order(
    host: HostTrace, device: DeviceTrace, ops: Rows, host_name: Rows, record_name: Rows
) -> HostJoin:
    """Align each host thread with the profiled thread that resembles it most."""
    candidates = np.flatnonzero(~host.is_root)
    record, warnings = by_order(host, device, candidates, host_name, record_name)
    matched = int(np.count_nonzero(record != NO_ROW))
    if len(candidates) and len(ops) and matched < _ALIGNED * min(len(candidates), len(ops)):
        raise LinkError(
            f"host and device trace do not belong together: the files share no ids, and only "
            f"{matched} of {len(candidates)} host operations occur in the same order in the "
            "profile",
            path=device.path,
            remedy=f"Give the profile of the same run, rank and window as {host.path}.",
        )
    return HostJoin(record, "order within each thread", matched, len(candidates), warnings)


def _compare_processes(host: HostTrace, device: DeviceTrace, ops: Rows, join: HostJoin) -> None:
    pids = distinct(device.pid[ops]).tolist()
    if host.pid is not None and pids and host.pid not in pids:
        join.warnings.append(
            f"process ids differ (host trace {host.pid}, profile {', '.join(map(str, pids))}), "
            "but the operations agree: the files may be of two runs of one script"
        )
