"""Call: from an operation to what it calls on its thread, and to the device work it launched.

Who calls is told, the best first, by the recording itself, by the host trace's parents as far as
times allow them, by nesting in time on the same thread; of device work without a launch, by an
arrow, or by the ids of its record.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.joining.nesting import digit
from chakra_et.linker.tallies import JoinTally
from chakra_et.model import EdgeKind
from chakra_et.recording import HostTrace, Stated
from chakra_et.recording.same import lookup
from chakra_et.shown import several

_DEEPEST: Final = 64
"""How far out a caller is looked for."""


def call_edges(table: Activities) -> EdgeList:
    """One edge into each activity that has a caller; device work is called by its launch's caller.

    Evidence: the host trace's parents, else nesting in time on the same thread; of device work
    without a launch, the ids of its record, or an arrow.
    """
    caller, evidence = table.caller.copy(), table.called_by.copy()
    launched = np.flatnonzero(table.launch != NO_ROW)
    caller[launched] = table.caller[table.launch[launched]]
    evidence[launched] = Evidence.CALL_LAUNCH
    target = np.flatnonzero(caller != NO_ROW)
    return EdgeList(EdgeKind.CALL, caller[target], target, evidence[target])


def take_callers(table: Activities, host: HostTrace) -> list[str]:
    """Give host nodes the callers that the host trace names, and say where times contradict it.

    The host trace knows callers better than times do, unless the work ran on another thread, or
    began after the caller had ended: the host trace calls so what was open when it noted a node,
    which another thread may have changed. Then nesting on the thread decides, and where nothing is
    around, the nearest caller of that caller that is possible.
    """
    count = len(host)
    parent = named_callers(host)
    over = _over(table, np.arange(count), parent)
    lane, nested = table.lane[:count], table.caller[:count]
    possible = _possible(table, parent, np.flatnonzero(over))
    has_parent = possible != NO_ROW
    parent_lane = np.where(has_parent, lane[possible], NO_ROW)
    believe = has_parent & ((lane == NO_ROW) | (parent_lane == lane)) & ~over
    believe |= has_parent & (parent_lane == NO_ROW) & (nested == NO_ROW)
    believe |= has_parent & over & (nested == NO_ROW)
    table.caller[:count] = np.where(believe, possible, nested)
    table.called_by[:count][believe] = Evidence.CALL_PARENT
    return _caller_warnings(int(np.count_nonzero(over)))


def named_callers(host: HostTrace) -> Rows:
    """The row of the caller that the host trace names for each node, or `NO_ROW`."""
    callers = lookup(host.id, np.arange(len(host)), host.parent)
    callers[host.parent == host.id] = NO_ROW
    return callers


def _over(table: Activities, rows: Rows, callers: Rows) -> Mask:
    """Whether rows began before their callers did, or after these had ended, on one thread."""
    last = digit(table.start_ns[table.host_order], table.end_ns[table.host_order])
    start, lane = table.start_ns[rows], table.lane[rows]
    timed = (callers != NO_ROW) & (lane != NO_ROW) & (table.lane[callers] == lane)
    before = start < table.start_ns[callers] - last
    over: Mask = timed & (before | (start > table.end_ns[callers] + last))
    return over


def _possible(table: Activities, parent: Rows, rows: Rows) -> Rows:
    """Each node's caller; for `rows`, whose caller had ended when they began, the nearest caller of
    that one that had not.
    """
    caller: Rows = parent.copy()
    for _ in range(1, _DEEPEST):
        if len(rows) == 0:
            return caller
        caller[rows] = parent[caller[rows]]
        rows = rows[_over(table, rows, caller[rows])]
    caller[rows] = NO_ROW
    return caller


def _caller_warnings(over: int) -> list[str]:
    """How many callers of the host trace the times of the profile contradict."""
    if over == 0:
        return []
    return [
        f"{several(over, 'operation', 'operations')} "
        "began when the caller that the host trace names had ended; what was "
        "open on their thread counts as their caller"
    ]


def give_callers(table: Activities, stated: Stated) -> list[JoinTally]:
    """Give device work the host node that launched it."""
    if len(stated.launcher) == 0:
        return []
    work = np.flatnonzero(table.work)
    table.caller[work] = stated.launcher[table.record[work]]
    table.called_by[work] = Evidence.CALL_FILE
    found = int(np.count_nonzero(table.caller[work] != NO_ROW))
    return [JoinTally("device nodes to operations", Evidence.CALL_FILE.label, found, len(work))]
