"""What lies at the ends of flow arrows: host activities that are open, device work that starts."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.codes import codes, order_of, row_keys
from chakra_et.columns import NO_ROW, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.joining.nesting import enclosing
from chakra_et.recording import DeviceTrace, Ends

_CLIMBS: Final = 64
"""How far out an activity is looked for step by step, before all are walked through."""
_DIGIT_NS: Final = 1000
"""An end of an arrow may lie this much behind its work, as profilers cut times."""


def open_at(table: Activities, device: DeviceTrace, rows: Rows, ends: Ends) -> Rows:
    """The innermost of some host activities that is open at a time on a thread, or `NO_ROW`."""
    if len(ends) == 0 or len(rows) == 0:
        return np.full(len(ends), NO_ROW, np.int64)
    among = np.zeros(len(table), np.bool_)
    among[rows] = True
    ordered = table.host_order[among[table.host_order]]
    record, count = table.record[ordered], len(ordered)
    thread = codes(np.append(device.pid[record], ends.pid), np.append(device.tid[record], ends.tid))
    key = row_keys(thread, np.append(table.start_ns[ordered], ends.time_ns))
    # Lanes are numbered in another order than threads; within each, times ascend.
    by_key = np.argsort(key[:count], kind="stable")
    place = np.searchsorted(key[:count][by_key], key[count:], "right") - 1
    same = (place >= 0) & (thread[by_key[place]] == thread[count:])
    row = np.where(same, ordered[by_key[place]], NO_ROW)
    for _ in range(_CLIMBS):
        over = (row != NO_ROW) & ((table.end_ns[row] < ends.time_ns) | ~among[row])
        if not over.any():
            return row
        row[over] = table.nested_in[row[over]]
    begin = np.append(table.start_ns[ordered], ends.time_ns)
    # An activity is open at its last nanosecond, too.
    end = np.append(table.end_ns[ordered] + 1, ends.time_ns)
    # Of what begins at the same time, operations come first, and those around before those inside.
    around = enclosing(thread, begin, end, order_of(thread, begin))[count:]
    return np.where(around == NO_ROW, NO_ROW, ordered[around])


def work_at(table: Activities, device: DeviceTrace, work: Rows, ends: Ends, moment: Rows) -> Rows:
    """The work on the row of each end whose `moment` is its time, or under way; or `NO_ROW`."""
    if len(work) == 0:
        return np.full(len(ends), NO_ROW, np.int64)
    record, count = table.record[work], len(work)
    row = codes(np.append(device.pid[record], ends.pid), np.append(device.tid[record], ends.tid))
    exact = codes(row, np.append(moment, ends.time_ns))
    found = np.full(int(exact.max(initial=0)) + 1, NO_ROW, np.int64)
    found[exact[:count]] = work
    key = row_keys(row, np.append(table.start_ns[work], ends.time_ns))
    order = np.argsort(key[:count], kind="stable")
    place = np.searchsorted(key[:count][order], key[count:], "right") - 1
    begun = order[np.maximum(place, 0)]
    under_way = (place >= 0) & (row[begun] == row[count:])
    under_way &= table.end_ns[work[begun]] + _DIGIT_NS >= ends.time_ns
    told = found[exact[count:]]
    return np.where(told != NO_ROW, told, np.where(under_way, work[begun], NO_ROW))
