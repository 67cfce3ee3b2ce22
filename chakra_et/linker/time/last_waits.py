"""Transfers for which a thread has waited at its end, with nothing behind them but ends of ranges.

A wait is seen by what the thread does next. At its end nothing begins, but what was open around
the last operation ends: if that is soon after the transfer, the thread waited for it.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import distinct
from chakra_et.columns import NEVER, NO_ROW, UNTIMED, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.workers import around
from chakra_et.linker.edges.thread.host_time import WAIT_NS, HostTime

LEFT_NS: Final = 1_000_000
"""What a thread does behind its last wait takes no longer, nor half as long as the wait; else it
may have done so meanwhile."""


class LastWaits(msgspec.Struct):
    """Waits at the ends of threads: of lane `lanes[k]` behind activity `after[k]`.

    What is left of the thread begins when the transfer has ended.
    """

    lanes: Rows
    after: Rows
    begin_ns: Rows
    end_ns: Rows

    def until(self, lanes: Rows) -> Rows:
        """When the wait at the end of each lane is over; for lanes without one, `NEVER`."""
        over = np.full(int(max(lanes.max(initial=0), self.lanes.max(initial=0))) + 1, NEVER)
        over[self.lanes] = self.begin_ns
        return np.asarray(over[lanes])


def waits_at_ends(table: Activities, time: HostTime) -> LastWaits:
    """The threads whose last operation asked for a transfer, and whose ranges ended with it."""
    workers, order = time.workers, table.host_order
    known = workers.asked != NO_ROW
    transfers, asked, request = (
        x[known] for x in (workers.transfers, workers.asked, workers.request)
    )
    lane = table.lane[asked]
    count = int(table.lane.max(initial=-1)) + 1
    last = np.full(count, NO_ROW, np.int64)
    last[table.lane[order]] = order
    over, idle_from, end = (np.full(count, UNTIMED, np.int64) for _ in range(3))
    np.maximum.at(over, lane, table.end_ns[transfers])
    does = order[~table.annotates[order]]
    np.maximum.at(idle_from, table.lane[does], table.end_ns[does])
    np.maximum.at(end, table.lane[order], table.end_ns[order])
    asks = np.zeros(len(table), np.bool_)
    asks[np.where(request != NO_ROW, request, asked)] = True
    lanes = distinct(lane)
    waited = around(table, last[lanes], asks) != NO_ROW
    idle, late = over[lanes] - idle_from[lanes], end[lanes] - over[lanes]
    soon = (late > 0) & (late <= LEFT_NS) & (2 * late <= idle)
    lanes = lanes[waited & (idle >= WAIT_NS) & soon]
    return LastWaits(lanes, last[lanes], over[lanes], end[lanes])
