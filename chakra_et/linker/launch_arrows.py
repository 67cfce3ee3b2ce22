"""Launches and callers of device work, where the profile draws arrows in place of writing ids."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chakra_et.linker.activities import Activities
from chakra_et.linker.arrow_ends import open_at, work_at
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.nesting import NONE
from chakra_et.recording import DeviceTrace, Role

Rows = npt.NDArray[np.int64]


def follow_launch_arrows(table: Activities, device: DeviceTrace) -> None:
    """Give device work without a launch the call that its arrow begins in, else an operation.

    An arrow begins anywhere inside a call, or an operation, and ends where its work starts. Of work
    with a call, nesting alone tells the operation: a call on the thread of a queue is made while
    the operation that asked for it goes on, and does not wait for it.
    """
    arrows = device.launch_flows
    if len(arrows) == 0:
        return
    work = np.flatnonzero(table.work)
    target = work_at(table, device, work, arrows.target, table.start_ns[work])
    source = open_at(table, device, np.flatnonzero(table.timed_host), arrows.source)
    drawn = (source != NONE) & (target != NONE)
    drawn[drawn] = table.start_ns[source[drawn]] <= table.start_ns[target[drawn]]
    source, target = source[drawn], target[drawn]
    new = (table.role[source] == Role.CALL) & (table.launch[target] == NONE)
    table.launch[target[new]] = source[new]
    table.launched_by[target[new]] = Evidence.LAUNCH_ARROW
    called = (table.role[source] == Role.OP) & (table.launch[target] == NONE)
    table.caller[target[called]] = source[called]
    table.called_by[target[called]] = Evidence.CALL_ARROW
