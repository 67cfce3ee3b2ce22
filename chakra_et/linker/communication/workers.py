"""Transfers of a backend that communicates on the host: who asked for each, and who waits for it.

A process group as gloo hands its transfers to threads of its own, or lets a message run beside the
thread that asked for it. A profile shows each as a span. Its record function was made where the
transfer was asked for, so that its id is the next after that of the operation which asked, or of
something inside that: ids are given in one order for the whole process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.joining.ranges_beside import backend_names
from chakra_et.recording import DeviceTrace, Role
from chakra_et.recording.libraries import REQUEST

_WAITING: Final = "::wait_tensor"
"""How names of operations end that return when a transfer has filled a tensor."""


@dataclass
class Workers:
    """`transfers` are the outermost activities of threads that only communicate, and those that
    run beside the thread that asked for them.

    `inside` are the activities inside transfers, as a backend may copy what it has got, and
    `around[i]` is the transfer around `inside[i]`. `asked[k]` is what its thread did last when
    `transfers[k]` was asked for, or `NO_ROW`; `request[k]` is the operation of the framework that
    asked, which is the same or around it.
    `waits` are operations of other threads that do nothing but wait for a transfer.
    """

    transfers: Rows
    inside: Rows
    around: Rows
    asked: Rows
    request: Rows
    waits: Rows

    @classmethod
    def none(cls) -> Workers:
        """No transfers, as in a run without such a backend."""
        return cls(*(np.zeros(0, np.int64) for _ in range(6)))

    def requests(self) -> dict[int, int]:
        """The operation that asked, by transfer, where one is known to have."""
        pairs = zip(self.transfers.tolist(), self.request.tolist(), strict=True)
        return {transfer: request for transfer, request in pairs if request != NO_ROW}


def find_workers(table: Activities, device: DeviceTrace | None) -> Workers:
    """The transfers of backends on the host, and who asked for them by record-function ids."""
    if device is None:
        return Workers.none()
    host = table.host_order
    names = device.names.in_order
    backend = backend_names(names)[device.name[table.record[host]]]
    outermost = table.nested_in[host] == NO_ROW
    others = np.unique(table.lane[host[outermost & ~backend]])
    transfers = np.sort(host[outermost & ~np.isin(table.lane[host], others)])
    if len(transfers) == 0:
        return Workers.none()
    callers = np.sort(host[(table.role[host] == Role.OP) & np.isin(table.lane[host], others)])
    waiting = np.array([name.endswith(_WAITING) for name in names], np.bool_)
    waits = callers[waiting[device.name[table.record[callers]]]]
    asking = np.array([name.startswith(REQUEST) for name in names], np.bool_)
    asks = np.zeros(len(table) + 1, np.bool_)
    asks[callers] = asking[device.name[table.record[callers]]]
    asked, request = _asked(table, device.rf_id, callers, asks, transfers)
    return Workers(transfers, *_inside(table, transfers), asked, request, waits)


def _asked(
    table: Activities, rf_id: Rows, callers: Rows, asks: Mask, transfers: Rows
) -> tuple[Rows, Rows]:
    """What each transfer followed, and which operation asked for it.

    By record-function ids; else it is the operation in which a range beside it begins.
    """
    asked = np.full(len(transfers), NO_ROW, np.int64)
    beside = np.isin(transfers, table.beside)
    asked[beside] = table.caller[transfers[beside]]
    ids = rf_id[table.record[callers]]
    callers, ids = callers[ids > 0], ids[ids > 0]
    if len(ids) == 0:
        return asked, around(table, asked, asks)
    order = np.argsort(ids, kind="stable")
    callers, ids = callers[order], ids[order]
    own = rf_id[table.record[transfers]]
    place = np.maximum(np.searchsorted(ids, own) - 1, 0)
    before = callers[place]
    told = (own > 0) & (table.start_ns[before] <= table.start_ns[transfers])
    inside = around(table, before, asks) != NO_ROW
    told &= (ids[place] == own - 1) | ((ids[place] < own) & inside)
    asked[told] = before[told]
    return asked, around(table, asked, asks)


def around(table: Activities, rows: Rows, asks: Mask) -> Rows:
    """The innermost of some operations that is around each of `rows`, or is it; or `NO_ROW`."""
    while True:
        out = (rows != NO_ROW) & ~asks[rows]
        if not out.any():
            return rows
        rows = np.where(out, table.nested_in[rows], rows)


def _inside(table: Activities, transfers: Rows) -> tuple[Rows, Rows]:
    """What the threads of transfers do between one and the next, and the transfer before each."""
    order = table.host_order
    mine = order[np.isin(table.lane[order], table.lane[transfers])]
    begins = np.isin(mine, transfers)
    outer = mine[begins][np.cumsum(begins) - 1]
    return mine[~begins], outer[~begins]
