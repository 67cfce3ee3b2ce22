"""The order in which nodes should be issued: by their starts, as far as edges allow."""

from __future__ import annotations

import heapq

import numpy as np

from chakra_et.columns import Rows
from chakra_et.model import UNKNOWN_NS, Trace


def issue_order(trace: Trace) -> Rows:
    """Rows by start, then by id, but none before what it waits for.

    A node without a start counts as starting with the one before it in the file.
    """
    nodes = trace.nodes
    start = np.maximum.accumulate(nodes.start_ns)
    start = np.where(nodes.start_ns == UNKNOWN_NS, start, nodes.start_ns)
    order = np.lexsort((nodes.id, start))
    source, target = trace.source_rows(), trace.edges.target
    known = (source >= 0) & (source != target)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    if bool((place[source[known]] < place[target[known]]).all()):
        return order
    return first_free(len(order), source[known], target[known], place)


def first_free(count: int, source: Rows, target: Rows, place: Rows) -> Rows:
    """Rows in an order that edges allow: of those that are free, the one of least `place` first."""
    by_source = np.argsort(source, kind="stable")
    follower = target[by_source].tolist()
    starts = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=count))]).tolist()
    left = np.bincount(target, minlength=count).tolist()
    places = place.tolist()
    row_at = np.empty(count, np.int64)
    row_at[place] = np.arange(count)
    rows = row_at.tolist()
    ready = [places[row] for row in range(count) if left[row] == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        row = rows[heapq.heappop(ready)]
        order.append(row)
        for other in follower[starts[row] : starts[row + 1]]:
            left[other] -= 1
            if left[other] == 0:
                heapq.heappush(ready, places[other])
    return np.array(order, np.int64)
