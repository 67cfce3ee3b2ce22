"""Which interval encloses which, on each lane."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from chakra_et.columns import NO_ROW, Rows
from chakra_et.kernel import kernel
from chakra_et.recording import DeviceTrace, Role


def ties(device: DeviceTrace, rows: Rows) -> Rows:
    """What orders host records of one thread that start at the same time.

    The profiler writes the operations of a thread as they began, so that their place in the file
    tells. Where a file is not in that order, the longer one is taken to enclose the shorter.
    """
    ops = device.rows(Role.OP)
    by_thread = ops[np.lexsort((ops, device.tid[ops], device.pid[ops]))]
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
    lanes, starts, ends = lane.tolist(), start.tolist(), end.tolist()
    parents = result.tolist()
    # What is open, inner ones last. Those that end no later than what began inside them are left
    # out, as that one holds all that comes: so ends fall from each to the next.
    open_now: list[int] = []
    until: list[int] = []
    current = None
    for item in order.tolist():
        if lanes[item] != current:
            current = lanes[item]
            open_now, until = [], []
        while until and -until[-1] <= starts[item]:
            open_now.pop()
            until.pop()
        if open_now:
            inner = bisect_right(until, last - ends[item]) - 1
            parents[item] = open_now[max(inner, 0)]
        while until and -until[-1] <= ends[item]:
            open_now.pop()
            until.pop()
        open_now.append(item)
        until.append(-ends[item])
    return np.array(parents, np.int64)
