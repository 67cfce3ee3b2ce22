"""Which interval encloses which, on each lane."""

from __future__ import annotations

import numpy as np

from chakra_et.codes import order_of
from chakra_et.columns import NEVER, NO_ROW, Rows
from chakra_et.kernel import kernel
from chakra_et.recording import DeviceTrace, Role


def ties(device: DeviceTrace, rows: Rows) -> Rows:
    """What orders host records of one thread that start at the same time.

    The profiler writes the operations of a thread as they began, so that their place in the file
    tells. Where a file is not in that order, the longer one is taken to enclose the shorter.
    """
    ops = device.rows(Role.OP)
    by_thread = ops[order_of(device.pid[ops], device.tid[ops], ops)]
    pid, tid, start = device.pid[by_thread], device.tid[by_thread], device.start_ns[by_thread]
    same = (pid[1:] == pid[:-1]) & (tid[1:] == tid[:-1])
    if np.all(start[1:][same] >= start[:-1][same]):
        return rows
    return -device.duration_ns[rows]


def digit(start: Rows, end: Rows) -> int:
    """The last digit that times have, in ns: start and duration are cut separately there."""
    return 1000 if np.all(start % 1000 == 0) and np.all(end % 1000 == 0) else 1


def enclosing(
    lane: Rows,
    start: Rows,
    end: Rows,
    order: Rows,
) -> Rows:
    """The innermost interval of the same lane that contains each interval, or `NO_ROW`.

    Where none does, the one that holds the largest part of it counts: clocks of operations and of
    calls differ. `order` sorts the intervals by lane and start, enclosing ones before enclosed
    ones. An interval may end a little after the one that encloses it, by one digit of the file:
    profilers cut start and duration separately.
    """
    last = digit(start[order], end[order])
    if (module := kernel()) is not None:
        found: Rows = module.enclosing(*map(np.ascontiguousarray, (lane, start, end, order)), last)
        return found
    result = np.full(len(lane), NO_ROW, np.int64)
    places = _around(lane[order], start[order], end[order], last)
    inside = np.flatnonzero(places != NO_ROW)
    result[order[inside]] = order[places[inside]]
    return result


def _around(lane: Rows, start: Rows, end: Rows, last: int) -> Rows:
    """The same for intervals in their order, as places in it.

    All of them go back at once, each from the one before it to those that end later and later. What
    lies in between ends earlier, so that it is passed over.
    """
    places = np.arange(len(lane))
    before = np.where(np.append(True, lane[1:] != lane[:-1])[: len(lane)], NO_ROW, places - 1)
    ends = np.append(end, NEVER)  # which is that of `NO_ROW`, where all come to a halt
    longer, rows = before.copy(), places
    while len(rows):
        rows = rows[ends[longer[rows]] <= end[rows]]
        longer[rows] = longer[longer[rows]]
    around: Rows = before.copy()
    wanted, rows = np.maximum(end - last, start + 1), places
    while len(rows):
        rows = rows[ends[around[rows]] < wanted[rows]]
        around[rows] = longer[around[rows]]
    longest = np.where(longer == NO_ROW, places, longer)
    while not np.array_equal(longest, further := longest[longest]):
        longest = further
    # Where none contains an interval, the one that goes on longest contains most of it.
    rows = np.flatnonzero((around == NO_ROW) & (before != NO_ROW))
    rows = rows[end[longest[before[rows]]] > start[rows]]
    around[rows] = longest[before[rows]]
    return around
