"""Transitive slimming: edges that other edges imply."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]


def implied_edges(lane: Rows, place: Rows, source: Rows, target: Rows) -> npt.NDArray[np.bool_]:
    """Which edges another edge between the same two lanes implies.

    `lane[n]` is the thread or stream of node n and `place[n]` its position there; neighbours on a
    lane wait for each other. What waits for early work of a lane, at or after a node that waited
    for later work of it, waits for nothing new. Of equal edges the first stays. Linear but for one
    sort.
    """
    from_lane, to_lane = lane[source], lane[target]
    order = np.lexsort((-place[source], place[target], to_lane, from_lane))
    new_pair = np.ones(len(order), np.bool_)
    f, t = from_lane[order], to_lane[order]
    new_pair[1:] = (f[1:] != f[:-1]) | (t[1:] != t[:-1])
    pair = np.cumsum(new_pair) - 1
    # A running maximum for each pair of lanes: pairs are moved apart by more than any position.
    width = int(place.max()) + 2 if len(place) else 1
    reached = np.maximum.accumulate(pair * width + place[source][order])
    before = np.append(-1, reached[:-1]) if len(order) else reached
    implied = np.zeros(len(order), np.bool_)
    implied[order] = ~new_pair & (pair * width + place[source][order] <= before)
    return implied
