"""Worker threads of a backend that communicates on the host: who asked for each transfer.

A process group as gloo hands its transfers to threads of its own. A profile shows each as a span on
such a thread. Its record function was made where the transfer was asked for, so that its id is the
next after that of the operation which asked: ids are given in one order for the whole process.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.kineto import DeviceTrace, Role
from chakra_et.linker.activities import Activities
from chakra_et.linker.nesting import NONE

Rows = npt.NDArray[np.int64]

_WAITING: Final = "::wait_tensor"
"""How names of operations end that return when a transfer has filled a tensor."""


@dataclass
class Workers:
    """`transfers` are the outermost activities of threads that only communicate.

    `last[k]` is the last activity inside `transfers[k]`, or itself: a backend may copy what it has
    got. `asked[k]` is the operation that asked for `transfers[k]`, or `NONE`. `waits` are
    operations of other threads that do nothing but wait for a transfer.
    """

    transfers: Rows
    last: Rows
    asked: Rows
    waits: Rows


def find_workers(
    table: Activities, device: DeviceTrace | None, communication: Iterable[int]
) -> Workers:
    """The transfers on worker threads, and who asked for them by record-function ids."""
    communicates = np.zeros(len(table), np.bool_)
    communicates[list(communication)] = True
    host = np.flatnonzero(table.timed_host)
    outermost = host[table.nested_in[host] == NONE]
    others = np.unique(table.lane[outermost[~communicates[outermost]]])
    transfers = outermost[~np.isin(table.lane[outermost], others)]
    asked = np.full(len(transfers), NONE, np.int64)
    if device is None or len(transfers) == 0:
        return Workers(transfers, transfers, asked, np.zeros(0, np.int64))
    callers = host[(table.role[host] == Role.OP) & np.isin(table.lane[host], others)]
    named = np.array([name.endswith(_WAITING) for name in device.names.in_order], np.bool_)
    waits = callers[named[device.name[table.record[callers]]]]
    ids = device.rf_id[table.record[callers]]
    callers, ids = callers[ids > 0], ids[ids > 0]
    order = np.argsort(ids, kind="stable")
    callers, ids = callers[order], ids[order]
    own = device.rf_id[table.record[transfers]]
    place = np.searchsorted(ids, own) - 1
    told = np.flatnonzero((own > 0) & (place >= 0))
    told = told[ids[place[told]] == own[told] - 1]
    before = callers[place[told]]
    begun = table.start_ns[before] <= table.start_ns[transfers[told]]
    asked[told[begun]] = before[begun]
    return Workers(transfers, _last_inside(table, transfers), asked, waits)


def _last_inside(table: Activities, transfers: Rows) -> Rows:
    """What its thread did last before each next transfer, or at all."""
    order = table.host_order
    begins = np.isin(order, transfers)
    ends = np.append(begins[1:], True)
    ends[:-1] |= table.lane[order][1:] != table.lane[order][:-1]
    place = np.full(len(table), NONE, np.int64)
    place[order] = np.arange(len(order))
    closing = np.flatnonzero(ends)
    return order[closing[np.searchsorted(closing, place[transfers])]]
