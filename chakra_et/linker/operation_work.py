"""Which device work each operation launched itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.linker.activities import Activities
from chakra_et.linker.nesting import NONE

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_DEEPEST: Final = 64
"""How many callers up the operation of a launch is looked for."""


@dataclass
class OperationWork:
    """For each host node the device work that it launched first and last, or `NONE`.

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
        mask: Mask = self.first != NONE
        return mask


def operation_work(table: Activities, caller: Rows, operations: Mask) -> OperationWork:
    """Device work by operation; `caller` is that of each activity among the host nodes."""
    owner = caller.copy()
    for _ in range(_DEEPEST):
        label = np.flatnonzero(owner != NONE)
        label = label[~operations[owner[label]]]
        if len(label) == 0:
            break
        owner[label] = caller[owner[label]]
    owner[label] = NONE
    work = np.flatnonzero(table.work & (table.launch != NONE))
    mine = owner[table.launch[work]]
    work, mine = work[mine != NONE], mine[mine != NONE]
    order = np.lexsort((table.end_ns[work], table.start_ns[table.launch[work]]))
    first, last = (np.full(len(operations), NONE, np.int64) for _ in range(2))
    first[mine[order[::-1]]] = work[order[::-1]]
    last[mine[order]] = work[order]
    return OperationWork(first, last, bool(table.work.any()))


def host_callers(table: Activities, count: int) -> Rows:
    """The innermost node of the host trace around each activity, or `NONE`; nodes come first."""
    caller: Rows = table.caller.copy()
    between = np.flatnonzero(caller >= count)
    # What only the profiler saw stands between.
    for _ in range(_DEEPEST):
        if len(between) == 0:
            break
        caller[between] = table.caller[caller[between]]
        between = between[caller[between] >= count]
    caller[between] = NONE
    return caller
