"""Orders in which edges lead forward, and the cycles that forbid them."""

from __future__ import annotations

import numpy as np

from chakra_et.columns import Rows
from chakra_et.graph.adjacency import Adjacency


def topological_order(count: int, source: Rows, target: Rows) -> Rows:
    """Nodes so that each comes after all that it waits for; nodes on or behind cycles are missing.

    Linear in nodes and edges; where rows are in such an order already, they are returned as such.
    """
    if np.all(source < target):
        return np.arange(count)
    after = Adjacency.of(count, source, target)
    offsets, items = after.offsets.tolist(), after.items.tolist()
    waits = np.bincount(target, minlength=count).tolist()
    # The list grows while it is read: a queue without removal.
    order = [node for node in range(count) if waits[node] == 0]
    for node in order:
        for follower in items[offsets[node] : offsets[node + 1]]:
            waits[follower] -= 1
            if waits[follower] == 0:
                order.append(follower)
    return np.array(order, np.int64)


def find_cycle(count: int, source: Rows, target: Rows) -> list[int]:
    """The nodes of one cycle, each before the one that waits for it; empty if there is none."""
    stuck = np.ones(count, np.bool_)
    stuck[topological_order(count, source, target)] = False
    if not stuck.any():
        return []
    within = stuck[source] & stuck[target]
    before = Adjacency.of(count, target[within], source[within])
    # Every stuck node waits for a stuck one, so that walking back runs into a cycle.
    node = int(np.flatnonzero(stuck)[0])
    seen: dict[int, int] = {}
    path: list[int] = []
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = int(before.at(node)[0])
    return path[seen[node] :][::-1]
