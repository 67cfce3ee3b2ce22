"""Which interval encloses which, on each lane."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.kineto import DeviceTrace, Role

Rows = npt.NDArray[np.int64]

NONE: Final = -1


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


def enclosing(
    lane: npt.NDArray[np.int64],
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """The innermost interval of the same lane that is open when each interval starts, or `NONE`.

    `order` sorts the intervals by lane and start, enclosing ones before enclosed ones. An interval
    may end a little after the one that encloses it: profilers cut start and duration separately.
    """
    result = np.full(len(lane), NONE, np.int64)
    lanes, starts, ends = lane.tolist(), start.tolist(), end.tolist()
    parents = result.tolist()
    open_now: list[int] = []
    current = None
    for item in order.tolist():
        if lanes[item] != current:
            current = lanes[item]
            open_now = []
        now = starts[item]
        while open_now and ends[open_now[-1]] <= now:
            open_now.pop()
        if open_now:
            parents[item] = open_now[-1]
        open_now.append(item)
    return np.array(parents, np.int64)
