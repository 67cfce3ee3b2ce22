"""Everything that becomes a node, in one table: the common ground of joins and edges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.codes import codes
from chakra_et.linker.callers import take_callers
from chakra_et.linker.detached import backend_names, callers_of, ranges_beside
from chakra_et.linker.evidence import Codes, Evidence
from chakra_et.linker.launches import find_launches
from chakra_et.linker.nesting import NONE, enclosing, ties
from chakra_et.recording import DeviceTrace, HostTrace, Kind, Role

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_DEEPEST: Final = 64
"""How deep calls are followed."""

UNTIMED: Final = np.iinfo(np.int64).min


@dataclass
class Activities:
    """One entry of each column for each node to be.

    `host` and `record` are the rows in the host trace and in the profile (`NONE` where there is
    none). `lane` numbers the thread or stream that the activity occupies, `NONE` for one without
    time; those of `beside`, which run beside the thread that asked for them, have one each.
    `nested_in` is the innermost activity that encloses this one in time on its thread,
    `caller` the operation that called it by all that is known, `launch` the call that launched
    device work: rows of this table, or `NONE`. `called_by` and `launched_by` are the `Evidence` of
    caller and launch. `host_order` lists the timed host activities by lane and start. Joins, which
    are no work and stand between many that wait for many, have `Role.SYNC` and neither host nor
    record. `rests` are rows of what is left of others behind their last launch (see `rests.py`):
    they have no record of their own. `device` is the number of the device that work runs on.
    `annotates` marks annotations of users and libraries, which do nothing themselves.
    """

    host: Rows
    record: Rows
    role: Rows
    start_ns: Rows
    end_ns: Rows
    lane: Rows
    caller: Rows
    called_by: Codes
    launch: Rows
    launched_by: Codes
    nested_in: Rows
    host_order: Rows
    beside: Rows
    rests: Rows
    device: Rows
    annotates: Mask

    def __len__(self) -> int:
        return len(self.host)

    @property
    def work(self) -> Mask:
        """Which activities are work on a device."""
        mask: Mask = self.role == Role.WORK
        return mask

    @property
    def timed_host(self) -> Mask:
        """Which activities ran on a host thread at a known time."""
        mask: Mask = (self.role < Role.WORK) & (self.lane != NONE)
        return mask

    @property
    def joins(self) -> Mask:
        """Which activities only stand between others."""
        mask: Mask = self.role == Role.SYNC
        return mask


def collect(
    host: HostTrace | None, device: DeviceTrace | None, host_record: Rows | None
) -> Activities:
    """All host nodes, then the profile's operations, calls and device work that have none.

    `host_record` is the profile's row of each host node, as `join_host` finds it.
    """
    count = 0 if host is None else len(host)
    joined = np.full(count, NONE, np.int64) if host_record is None else host_record
    record = joined
    if device is not None:
        taken = np.zeros(len(device), np.bool_)
        taken[joined[joined != NONE]] = True
        rest = np.flatnonzero(~taken & (device.role != Role.SYNC))
        record = np.concatenate((joined, rest[np.argsort(device.role[rest], kind="stable")]))
    own = np.full(len(record), NONE, np.int64)
    own[:count] = np.arange(count)
    table = Activities(
        host=own,
        record=record,
        role=np.full(len(record), int(Role.OP), np.int64),
        start_ns=np.full(len(record), UNTIMED, np.int64),
        end_ns=np.full(len(record), UNTIMED, np.int64),
        lane=np.full(len(record), NONE, np.int64),
        caller=np.full(len(record), NONE, np.int64),
        called_by=np.full(len(record), Evidence.CALL_NESTING, np.uint8),
        launch=np.full(len(record), NONE, np.int64),
        launched_by=np.full(len(record), Evidence.LAUNCH_CORRELATION, np.uint8),
        nested_in=np.full(len(record), NONE, np.int64),
        host_order=np.zeros(0, np.int64),
        beside=np.zeros(0, np.int64),
        rests=np.zeros(0, np.int64),
        device=np.full(len(record), NONE, np.int64),
        annotates=np.zeros(len(record), np.bool_),
    )
    if device is not None:
        _take_times(table, device)
        _nest(table, device)
        table.caller = table.nested_in.copy()
        _set_beside(table, device)
        table.launch = find_launches(table, device)
    if host is not None:
        take_callers(table, host)
    return table


def _take_times(table: Activities, device: DeviceTrace) -> None:
    timed = np.flatnonzero(table.record != NONE)
    rows = table.record[timed]
    table.role[timed] = device.role[rows]
    table.start_ns[timed] = device.start_ns[rows]
    table.end_ns[timed] = device.start_ns[rows] + device.duration_ns[rows]
    work = device.role[rows] == Role.WORK
    place = np.where(work, device.devices(rows), device.pid[rows])
    line = np.where(work, device.streams(rows), device.tid[rows])
    table.lane[timed] = codes(work, place, line)
    table.device[timed[work]] = place[work]
    table.annotates[timed] = device.kind[rows] == Kind.ANNOTATION


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
    keys = (ties(device, record), table.role[rows], table.start_ns[rows], table.lane[rows])
    return rows[np.lexsort(keys)]


def with_joins(table: Activities, time_ns: Rows, lane: Rows) -> Activities:
    """The table with joins as its last rows: each is at one time, and in the order of its lane."""
    count = len(time_ns)
    new: dict[str, npt.NDArray[Any]] = dict.fromkeys(
        ("host", "record", "caller", "launch", "nested_in", "device"),
        np.full(count, NONE, np.int64),
    )
    new |= {
        "role": np.full(count, int(Role.SYNC), np.int64),
        "start_ns": time_ns,
        "end_ns": time_ns,
        "lane": lane,
        "called_by": np.full(count, Evidence.CALL_NESTING, np.uint8),
        "launched_by": np.full(count, Evidence.LAUNCH_CORRELATION, np.uint8),
        "annotates": np.zeros(count, np.bool_),
    }
    return replace(table, **{n: np.append(getattr(table, n), column) for n, column in new.items()})


def begin_order(host: HostTrace, caller: Rows) -> Rows:
    """The host nodes' places in the order in which they began, callers before what they called.

    The framework numbers operations as they begin, but for some callers of old traces, which have
    larger numbers than what they called: these began no later than their first callee.
    """
    begun = host.id.astype(np.float64)
    depth = np.zeros(len(host), np.int64)
    rows = np.flatnonzero((caller[: len(host)] != NONE) & (caller[: len(host)] < len(host)))
    callers = caller[: len(host)][rows]
    for _ in range(_DEEPEST):
        earlier, deeper = begun.copy(), depth.copy()
        np.minimum.at(earlier, callers, begun[rows])
        deeper[rows] = depth[callers] + 1
        if np.array_equal(earlier, begun) and np.array_equal(deeper, depth):
            break
        begun, depth = earlier, deeper
    place = np.empty(len(host), np.int64)
    place[np.lexsort((host.id, depth, begun))] = np.arange(len(host))
    return place
