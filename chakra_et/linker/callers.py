"""Callers as the host trace names them, and as far as the profile's times allow them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from chakra_et.linker.evidence import Evidence
from chakra_et.linker.nesting import NONE, digit
from chakra_et.recording import HostTrace

if TYPE_CHECKING:
    from chakra_et.linker.activities import Activities

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_DEEPEST: Final = 64
"""How far out a caller is looked for."""


def take_callers(table: Activities, host: HostTrace) -> None:
    """Give host nodes the callers that the host trace names.

    The host trace knows callers better than times do, unless the work ran on another thread, or
    began after the caller had ended: the host trace calls so what was open when it noted a node,
    which another thread may have changed. Then nesting on the thread decides, and where nothing is
    around, the nearest caller of that caller that is possible.
    """
    count = len(host)
    parent = named_callers(host)
    over = _over(table, np.arange(count), parent)
    lane, nested = table.lane[:count], table.caller[:count]
    possible = _possible(table, parent)
    has_parent = possible != NONE
    parent_lane = np.where(has_parent, lane[possible], NONE)
    believe = has_parent & ((lane == NONE) | (parent_lane == lane)) & ~over
    believe |= has_parent & (parent_lane == NONE) & (nested == NONE)
    believe |= has_parent & over & (nested == NONE)
    table.caller[:count] = np.where(believe, possible, nested)
    table.called_by[:count][believe] = Evidence.CALL_PARENT


def named_callers(host: HostTrace) -> Rows:
    """The row of the caller that the host trace names for each node, or `NONE`."""
    if len(host) == 0:
        return np.zeros(0, np.int64)
    order = np.argsort(host.id, kind="stable")
    ordered = host.id[order]
    place = np.minimum(np.searchsorted(ordered, host.parent), len(host) - 1)
    found = (ordered[place] == host.parent) & (host.parent != host.id)
    callers: Rows = np.where(found, order[place], NONE)
    return callers


def _over(table: Activities, rows: Rows, callers: Rows) -> Mask:
    """Whether rows began before their callers did, or after these had ended, on one thread."""
    last = digit(table.start_ns[table.host_order], table.end_ns[table.host_order])
    start, lane = table.start_ns[rows], table.lane[rows]
    timed = (callers != NONE) & (lane != NONE) & (table.lane[callers] == lane)
    before = start < table.start_ns[callers] - last
    over: Mask = timed & (before | (start > table.end_ns[callers] + last))
    return over


def _possible(table: Activities, parent: Rows) -> Rows:
    """Each node's caller, or the nearest caller of that one that lasted until the node began."""
    caller: Rows = parent.copy()
    rows = np.arange(len(parent))
    for _ in range(_DEEPEST):
        rows = rows[_over(table, rows, caller[rows])]
        if len(rows) == 0:
            return caller
        caller[rows] = parent[caller[rows]]
    caller[rows] = NONE
    return caller


def caller_warnings(table: Activities, host: HostTrace | None) -> list[str]:
    """How many callers of the host trace the times of the profile contradict."""
    if host is None:
        return []
    over = int(np.count_nonzero(_over(table, np.arange(len(host)), named_callers(host))))
    if over == 0:
        return []
    return [
        f"{over} operations began when the caller that the host trace names had ended; what was "
        "open on their thread counts as their caller"
    ]
