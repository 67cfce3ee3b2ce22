"""Transfers of a backend that communicates on the host: who asked for each, and who waits for it.

A process group as gloo hands its transfers to threads of its own, or lets a message run beside the
thread that asked for it. A profile shows each as a span. Its record function was made where the
transfer was asked for, so that its id is the next after that of the operation which asked, or of
something inside that: ids are given in one order for the whole process.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import among, distinct
from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.joining.ranges_beside import backend_names
from chakra_et.recording import DeviceTrace, Role
from chakra_et.recording.libraries import REQUEST

_WAITING: Final = "::wait_tensor"
"""How names of operations end that return when a transfer has filled a tensor."""


class Workers(msgspec.Struct):
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
    of_backends = backend_names(names)
    if not of_backends.any():
        return Workers.none()
    backend = of_backends[device.name[table.record[host]]]
    outermost = table.nested_in[host] == NO_ROW
    others = distinct(table.lane[host[outermost & ~backend]])
    transfers = np.sort(host[outermost & ~among(table.lane[host], others)])
    if len(transfers) == 0:
        return Workers.none()
    callers = np.sort(host[(table.role[host] == Role.OP) & among(table.lane[host], others)])
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

    By record-function ids: it is the last call before of the thread that its worker serves, where
    an operation that asks is still open there, else of any. Without ids it is the operation in
    which a range beside it begins.
    """
    asked = np.full(len(transfers), NO_ROW, np.int64)
    beside = among(transfers, table.beside)
    asked[beside] = table.caller[transfers[beside]]
    ids = rf_id[table.record[callers]]
    callers, ids = callers[ids > 0], ids[ids > 0]
    if len(ids) == 0:
        return asked, around(table, asked, asks)
    order = np.argsort(ids, kind="stable")
    callers, ids = callers[order], ids[order]
    own = rf_id[table.record[transfers]]
    place = np.searchsorted(ids, own) - 1
    last = np.where(place < 0, NO_ROW, callers[place])
    told = (last != NO_ROW) & ((ids[place] == own - 1) | (around(table, last, asks) != NO_ROW))
    thread = _usual_threads(table.lane[transfers], np.where(told, table.lane[last], NO_ROW))
    thread[beside] = np.where(asked[beside] == NO_ROW, NO_ROW, table.lane[asked[beside]])
    mine = _last_of_threads(table, callers, place, thread)
    request = around(table, mine, asks)
    still = (request != NO_ROW) & (table.end_ns[request] >= table.start_ns[last])
    before = np.where(still, mine, last)
    told &= (own > 0) & (table.start_ns[before] <= table.start_ns[transfers])
    asked[told] = before[told]
    return asked, around(table, asked, asks)


def _usual_threads(workers: Rows, asking: Rows) -> Rows:
    """For each transfer the thread that asked for most of what its worker did, or `NO_ROW`.

    `workers` are the lanes of transfers, `asking` those of the last call before each on any thread.
    Threads that ask at the same time share the order of ids: the last call may be another's.
    """
    pairs, count = np.unique(np.stack((workers, asking)), axis=1, return_counts=True)
    order = np.lexsort((count, pairs[1] != NO_ROW, pairs[0]))
    threads: Rows = pairs[1][order][np.searchsorted(pairs[0], workers, side="right") - 1]
    return threads


def _last_of_threads(table: Activities, callers: Rows, place: Rows, thread: Rows) -> Rows:
    """The last of `callers` up to each `place` among them that is on that thread, or `NO_ROW`."""
    lane, count = table.lane[callers], len(callers)
    order = np.argsort(lane, kind="stable")
    found = order[np.searchsorted(lane[order] * count + order, thread * count + place, "right") - 1]
    there = (lane[found] == thread) & (found <= place)
    return np.where(there, callers[found], NO_ROW)


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
    mine = order[among(table.lane[order], table.lane[transfers])]
    begins = among(mine, transfers)
    outer = mine[begins][np.cumsum(begins) - 1]
    return mine[~begins], outer[~begins]
