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
    """`transfers` are the activities of threads that only communicate.

    `asked[k]` is the operation that asked for `transfers[k]`, or `NONE`. `waits` are operations of
    other threads that do nothing but wait for a transfer.
    """

    transfers: Rows
    asked: Rows
    waits: Rows


def find_workers(
    table: Activities, device: DeviceTrace | None, communication: Iterable[int]
) -> Workers:
    """The transfers on worker threads, and who asked for them by record-function ids."""
    communicates = np.zeros(len(table), np.bool_)
    communicates[list(communication)] = True
    host = np.flatnonzero(table.timed_host)
    others = np.unique(table.lane[host[~communicates[host]]])
    transfers = host[communicates[host] & ~np.isin(table.lane[host], others)]
    asked = np.full(len(transfers), NONE, np.int64)
    if device is None or len(transfers) == 0:
        return Workers(transfers, asked, np.zeros(0, np.int64))
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
    return Workers(transfers, asked, waits)
