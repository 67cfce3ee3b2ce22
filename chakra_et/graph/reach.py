"""What nodes wait for over several edges, where they stand in lanes: threads and streams."""

from __future__ import annotations

import numpy as np

from chakra_et.codes import begins, order_of
from chakra_et.columns import Rows


def last_awaited(lane: Rows, place: Rows, source: Rows, target: Rows, of: int) -> Rows:
    """For each node the last place on lane `of` whose node it waits for, directly or not, or -1.

    `lane[n]` is the thread or stream of node n and `place[n]` its position there; neighbours on a
    lane wait for each other. The edges are those between lanes. A path need not come back to a lane
    that it has left, so there are as many rounds as lanes, at most; each is linear.
    """
    order = order_of(lane, place)
    # A running maximum for each lane: lanes are moved apart by more than any place.
    apart = (np.cumsum(begins(lane[order])) - 1) * (int(place.max(initial=0)) + 2)
    at = np.empty_like(order)
    at[order] = np.arange(len(order))
    source, target = at.take(source), at.take(target)
    reached: Rows = np.where(lane == of, place, -1).take(order)
    while True:
        along = np.maximum.accumulate(reached + apart) - apart
        reached = along.copy()
        np.maximum.at(reached, target, along.take(source))
        if np.array_equal(reached, along):
            return reached.take(at)
