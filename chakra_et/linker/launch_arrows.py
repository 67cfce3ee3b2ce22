"""Launches and callers of device work, where the profile draws arrows in place of writing ids."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chakra_et.converters.kineto import DeviceTrace, Role
from chakra_et.linker.activities import Activities
from chakra_et.linker.arrow_ends import open_at, work_at
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.nesting import NONE
from chakra_et.linker.report import JoinTally

Rows = npt.NDArray[np.int64]


def follow_launch_arrows(table: Activities, device: DeviceTrace) -> list[JoinTally]:
    """Give device work without a launch the call that its arrow begins in, else an operation.

    An arrow begins anywhere inside a call, or an operation, and ends where its work starts. An
    operation is the caller of work without a call, and of the work's call if nothing else is known
    of that one: it may be on another thread.
    """
    arrows = device.launch_flows
    if len(arrows) == 0:
        return []
    work = np.flatnonzero(table.work)
    target = work_at(table, device, work, arrows.target, table.start_ns[work])
    source = open_at(table, device, np.flatnonzero(table.timed_host), arrows.source)
    drawn = (source != NONE) & (target != NONE)
    drawn[drawn] = table.start_ns[source[drawn]] <= table.start_ns[target[drawn]]
    source, target = source[drawn], target[drawn]
    from_call = table.role[source] == Role.CALL
    without = int(np.count_nonzero(table.launch[work] == NONE))
    new = from_call & (table.launch[target] == NONE)
    table.launch[target[new]] = source[new]
    table.launched_by[target[new]] = Evidence.LAUNCH_ARROW
    launched = len(np.unique(target[new]))
    called = _give_callers(table, source[~from_call], target[~from_call])
    by = Evidence.LAUNCH_ARROW.label
    return [
        JoinTally("device events without a correlation id to calls", by, launched, without),
        JoinTally("work or its launch to operations", by, called, len(work)),
    ]


def _give_callers(table: Activities, ops: Rows, work: Rows) -> int:
    """Let operations call what has no caller: work without a launch, or the calls around one."""
    launch = table.launch[work]
    callee = np.where(launch != NONE, launch, work)
    while True:
        around = table.caller[callee]
        up = (around != NONE) & (table.role[around] == Role.CALL)
        if not up.any():
            break
        callee[up] = around[up]
    new = (table.caller[callee] == NONE) & (table.lane[ops] != table.lane[callee])
    table.caller[callee[new]] = ops[new]
    table.called_by[callee[new]] = Evidence.CALL_ARROW
    return int(np.count_nonzero(new))
