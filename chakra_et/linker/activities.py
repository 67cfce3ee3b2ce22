"""Everything that becomes a node, in one table: the common ground of joins and edges."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from chakra_et.codes import codes, order_of
from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.linker.evidence import Codes, Evidence
from chakra_et.recording import HostTrace, Role

_DEEPEST: Final = 64
"""How deep calls are followed."""


COLUMNS: Final = (
    "host", "record", "role", "start_ns", "end_ns", "lane", "caller", "called_by", "launch",
    "launched_by", "nested_in", "host_order", "beside", "rests", "device", "annotates",
)  # fmt: skip
"""The fields of the table."""


class Activities(msgspec.Struct):
    """One entry of each column for each node to be.

    `host` and `record` are the rows in the host trace and in the profile (`NO_ROW` where there is
    none). `lane` numbers the thread or stream that the activity occupies, `NO_ROW` for one without
    time; those of `beside`, which run beside the thread that asked for them, have one each.
    `nested_in` is the innermost activity that encloses this one in time on its thread,
    `caller` the operation that called it by all that is known, `launch` the call that launched
    device work: rows of this table, or `NO_ROW`. `called_by` and `launched_by` are the `Evidence`
    of caller and launch. `host_order` lists the timed host activities by lane and start. Joins,
    which are no work and stand between many that wait for many, have `Role.SYNC` and neither host
    nor record. `rests` are rows of what is left of others behind their last launch (`time/rests`):
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
        mask: Mask = (self.role < Role.WORK) & (self.lane != NO_ROW)
        return mask

    @property
    def joins(self) -> Mask:
        """Which activities only stand between others."""
        mask: Mask = self.role == Role.SYNC
        return mask


def with_joins(table: Activities, time_ns: Rows, lane: Rows) -> Activities:
    """The table with joins as its last rows: each is at one time, and in the order of its lane."""
    count = len(time_ns)
    if count == 0:
        return table
    new: dict[str, npt.NDArray[Any]] = dict.fromkeys(
        ("host", "record", "caller", "launch", "nested_in", "device"),
        np.full(count, NO_ROW, np.int64),
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
    rows = np.flatnonzero((caller[: len(host)] != NO_ROW) & (caller[: len(host)] < len(host)))
    callers = caller[: len(host)][rows]
    begun = host.id
    for _ in range(_DEEPEST):
        late = np.flatnonzero(begun.take(rows) < begun.take(callers))
        if len(late) == 0:
            break
        begun = begun.copy()
        np.minimum.at(begun, callers[late], begun[rows[late]])
    place = codes(begun)
    if place.max(initial=-1) + 1 < len(host):  # Some began at once.
        place[order_of(begun, _depth(len(host), rows, callers), host.id)] = np.arange(len(host))
    return place


def _depth(count: int, rows: Rows, callers: Rows) -> Rows:
    """How deep each of `count` nodes lies in calls; `callers` are those of some `rows`."""
    depth = np.zeros(count, np.int64)
    for _ in range(_DEEPEST):
        deeper = depth.copy()
        deeper[rows] = depth[callers] + 1
        if np.array_equal(deeper, depth):
            break
        depth = deeper
    return depth
