"""Lanes: chains of nodes that come one after the other, as on a thread or a stream."""

from __future__ import annotations

import numpy as np

from chakra_et.columns import NO_ROW, Rows


def lanes(count: int, source: Rows, target: Rows) -> tuple[Rows, Rows]:
    """The first node of the lane of each node, and how many nodes come before it there.

    Nodes are numbered from 0 to `count`; each edge tells what comes next. Of two edges from one
    node the first counts. What runs into a circle is left there, with numbers that say nothing.
    """
    after = np.full(count, NO_ROW, np.int64)
    after[source[::-1]] = target[::-1]
    before = np.full(count, NO_ROW, np.int64)
    before[after[after >= 0]] = np.flatnonzero(after >= 0)
    first = np.where(before >= 0, before, np.arange(count))
    place = (before >= 0).astype(np.int64)
    # Twice as far back along the lane each time.
    for _ in range(count.bit_length()):
        ahead = first[first]
        if np.array_equal(ahead, first):
            break
        place += place[first]
        first = ahead
    return first, place
