"""Everything that becomes a node, with its times, and what encloses it on its thread."""

from __future__ import annotations

import numpy as np

from chakra_et.codes import codes, order_of
from chakra_et.columns import NO_ROW, UNTIMED, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.joining.nesting import enclosing, ties
from chakra_et.linker.joining.ranges_beside import backend_names, callers_of, ranges_beside
from chakra_et.recording import DeviceTrace, HostTrace, Kind, Role


def collect(
    host: HostTrace | None, device: DeviceTrace | None, host_record: Rows | None
) -> Activities:
    """All host nodes, then the profile's operations, calls and device work that have none.

    `host_record` is the profile's row of each host node, as `join_host` finds it.
    """
    count = 0 if host is None else len(host)
    joined = np.full(count, NO_ROW, np.int64) if host_record is None else host_record
    record = joined
    if device is not None:
        taken = np.zeros(len(device), np.bool_)
        taken[joined[joined != NO_ROW]] = True
        rest = np.flatnonzero(~taken & (device.role != Role.SYNC))
        record = np.concatenate((joined, rest[np.argsort(device.role[rest], kind="stable")]))
    own = np.full(len(record), NO_ROW, np.int64)
    own[:count] = np.arange(count)
    table = Activities(
        host=own,
        record=record,
        role=np.full(len(record), int(Role.OP), np.int64),
        start_ns=np.full(len(record), UNTIMED, np.int64),
        end_ns=np.full(len(record), UNTIMED, np.int64),
        lane=np.full(len(record), NO_ROW, np.int64),
        caller=np.full(len(record), NO_ROW, np.int64),
        called_by=np.full(len(record), Evidence.CALL_NESTING, np.uint8),
        launch=np.full(len(record), NO_ROW, np.int64),
        launched_by=np.full(len(record), Evidence.LAUNCH_CORRELATION, np.uint8),
        nested_in=np.full(len(record), NO_ROW, np.int64),
        host_order=np.zeros(0, np.int64),
        beside=np.zeros(0, np.int64),
        rests=np.zeros(0, np.int64),
        device=np.full(len(record), NO_ROW, np.int64),
        annotates=np.zeros(len(record), np.bool_),
    )
    if device is not None:
        _take_times(table, device)
        _nest(table, device)
        table.caller = table.nested_in.copy()
        _set_beside(table, device)
    return table


def _take_times(table: Activities, device: DeviceTrace) -> None:
    timed = np.flatnonzero(table.record != NO_ROW)
    rows = table.record.take(timed)
    role, start_ns = device.role.take(rows), device.start_ns.take(rows)
    table.role[timed] = role
    table.start_ns[timed] = start_ns
    table.end_ns[timed] = start_ns + device.duration_ns.take(rows)
    work = role == Role.WORK
    place, line = device.pid.take(rows), device.tid.take(rows)
    on_device = np.flatnonzero(work)
    place[on_device] = device.devices(rows[on_device])
    line[on_device] = device.streams(rows[on_device])
    table.lane[timed] = codes(work, place, line)
    table.device[timed[on_device]] = place[on_device]
    table.annotates[timed] = device.kind.take(rows) == Kind.ANNOTATION


def _nest(table: Activities, device: DeviceTrace) -> None:
    table.host_order = _order_on_threads(table, device)
    table.nested_in = enclosing(table.lane, table.start_ns, table.end_ns, table.host_order)


def _set_beside(table: Activities, device: DeviceTrace) -> None:
    """Give each range of a backend that runs beside the thread that asked a lane of its own."""
    host = table.host_order
    ranges = host[backend_names(device.names.in_order)[device.name[table.record[host]]]]
    beside = np.sort(ranges_beside(ranges, host, table.lane, table.nested_in))
    if len(beside) == 0:
        return
    callers = callers_of(beside, table.nested_in, table.start_ns, table.end_ns)
    table.beside = beside
    table.lane[beside] = table.lane.max() + 1 + np.arange(len(beside))
    _nest(table, device)
    table.caller = table.nested_in.copy()
    table.caller[beside] = callers


def _order_on_threads(table: Activities, device: DeviceTrace) -> Rows:
    """Timed host activities by lane and start; where starts are equal, callers come first."""
    rows = np.flatnonzero(table.timed_host)
    record = table.record[rows]
    keys = (table.lane[rows], table.start_ns[rows], table.role[rows], ties(device, record))
    return rows[order_of(*keys)]
