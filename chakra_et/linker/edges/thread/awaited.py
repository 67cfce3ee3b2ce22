"""Transfers of worker threads that the thread which asked for them has waited for.

No profile records such a wait: a call of Python or of a library returns when the transfer has
ended. What the thread did tells. If asking was the last thing that it did before the transfer
ended, and it went on only then, it has waited, whether inside the operation that had asked (as a
function of autograd that communicates) or outside of all.
"""

from __future__ import annotations

import msgspec
import numpy as np

from chakra_et.codes import among, order_of, search_rows
from chakra_et.columns import NO_ROW, UNTIMED, Mask, Rows, no_rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.workers import Workers, around


class Awaited(msgspec.Struct):
    """`goes_on[k]` is what its thread did next when `transfers[k]` had ended, for which it waited.

    That is at place `places[k]` of the host order. The thread is `idle[k]` if it did nothing when
    the transfer ended, and `idle_from[k]` is since when.
    """

    transfers: Rows
    goes_on: Rows
    places: Rows
    idle_from: Rows
    idle: Mask

    @classmethod
    def none(cls) -> Awaited:
        """No waits, as without workers."""
        return cls(no_rows(), no_rows(), no_rows(), no_rows(), np.zeros(0, np.bool_))

    def woken_ns(self, table: Activities) -> Rows:
        """When each activity's thread could go on with it: when the wait was over, or its start."""
        woken: Rows = table.start_ns.copy()
        woken[self.goes_on[self.idle]] = table.end_ns[self.transfers[self.idle]]
        return woken


def awaited(table: Activities, workers: Workers, awake: Rows, least_ns: int) -> Awaited:
    """What threads waited for, by what they did.

    A range beside the thread that asked ends where somebody has waited for it, which that thread
    most often did, so it counts whatever else that thread did. For another transfer it must have
    done nothing for `least_ns` since it asked, and not be `awake`, as something else tells.
    """
    known = workers.asked != NO_ROW
    if not known.any():
        return Awaited.none()
    transfers, asked, request = (
        x[known] for x in (workers.transfers, workers.asked, workers.request)
    )
    # Of several transfers that one activity follows, the last one says since when it idled.
    by_end = np.argsort(table.end_ns[transfers], kind="stable")
    transfers, asked, request = (x[by_end] for x in (transfers, asked, request))
    places = _next_starts(table, table.lane[asked], table.end_ns[transfers])
    followed = places != NO_ROW
    transfers, places = transfers[followed], places[followed]
    order, ended = table.host_order, table.end_ns[transfers]
    goes_on, before = order[places], order[places - 1]
    last = np.where(among(before, table.rests), order[places - 2], before)
    idle = table.end_ns[before] <= ended
    idle_from = _last_ends(table, table.lane[goes_on], ended)
    asks = np.zeros(len(table), np.bool_)
    asks[np.where(request != NO_ROW, request, asked)] = True
    waited = idle & (around(table, last, asks) != NO_ROW) & ~among(goes_on, awake)
    waited &= table.start_ns[goes_on] - idle_from >= least_ns
    waited |= among(transfers, table.beside)
    return Awaited(
        transfers[waited], goes_on[waited], places[waited], idle_from[waited], idle[waited]
    )


def _next_starts(table: Activities, lanes: Rows, times_ns: Rows) -> Rows:
    """The first place of the host order on each lane from a time on, or `NO_ROW`."""
    order = table.host_order
    lane = table.lane[order]
    place = search_rows((lane, table.start_ns[order]), (lanes, times_ns), "left")
    found = place < len(order)
    found &= lane[np.minimum(place, len(order) - 1)] == lanes
    return np.where(found, place, NO_ROW)


def _last_ends(table: Activities, lanes: Rows, times_ns: Rows) -> Rows:
    """When something other than an annotation last ended on each lane by a time, or `UNTIMED`."""
    does = table.host_order[~table.annotates[table.host_order]]
    does = does[order_of(table.lane[does], table.end_ns[does])]
    lane, end = table.lane[does], table.end_ns[does]
    place = search_rows((lane, end), (lanes, times_ns)) - 1
    found = place >= 0
    found &= lane[np.maximum(place, 0)] == lanes
    return np.where(found, end[np.maximum(place, 0)], UNTIMED)
