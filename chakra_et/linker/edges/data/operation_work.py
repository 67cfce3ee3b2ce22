"""Which device work each operation launched itself."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import order_of
from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.linker.activities import Activities

_DEEPEST: Final = 64
"""How many callers up the operation of a launch is looked for."""


class OperationWork(msgspec.Struct):
    """For each host node the device work that it launched first and last, or `NO_ROW`.

    Work belongs to the innermost operation around its launch; what is launched under a label inside
    an operation belongs to the operation. `known` tells whether there is device work at all: a host
    trace alone has none.
    """

    first: Rows
    last: Rows
    known: bool

    @property
    def launches(self) -> Mask:
        """Which operations launched work."""
        mask: Mask = self.first != NO_ROW
        return mask


def operation_work(table: Activities, caller: Rows, operations: Mask) -> OperationWork:
    """Device work by operation; `caller` is that of each activity among the host nodes."""
    owner = caller.copy()
    for _ in range(_DEEPEST):
        label = np.flatnonzero(owner != NO_ROW)
        label = label[~operations[owner[label]]]
        if len(label) == 0:
            break
        owner[label] = caller[owner[label]]
    owner[label] = NO_ROW
    work = np.flatnonzero(table.work & (table.launch != NO_ROW))
    mine = owner[table.launch[work]]
    work, mine = work[mine != NO_ROW], mine[mine != NO_ROW]
    order = order_of(table.start_ns[table.launch[work]], table.end_ns[work])
    first, last = (np.full(len(operations), NO_ROW, np.int64) for _ in range(2))
    first[mine[order[::-1]]] = work[order[::-1]]
    last[mine[order]] = work[order]
    return OperationWork(first, last, bool(table.work.any()))


def host_callers(table: Activities, count: int) -> Rows:
    """The innermost node of the host trace around each activity, or `NO_ROW`; nodes come first."""
    caller: Rows = table.caller.copy()
    between = np.flatnonzero(caller >= count)
    # What only the profiler saw stands between.
    for _ in range(_DEEPEST):
        if len(between) == 0:
            break
        caller[between] = table.caller[caller[between]]
        between = between[caller[between] >= count]
    caller[between] = NO_ROW
    return caller
