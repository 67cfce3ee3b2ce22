"""Cycles in a graph of edges: which nodes are held up by one, and the shortest of each."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

from chakra_et.columns import Mask, Rows

_STEPS: Final = 2_000_000
"""Edges that the search for the shortest cycle of one component may look at."""


def held_up(count: int, source: Rows, target: Rows, never: Rows | None = None) -> Rows:
    """Rows that can never start: `never`, those on a cycle, and all that wait for one; ascending.

    A file nearly always stands in an order that proves it free of cycles; only if it does not,
    nodes are taken away one by one.
    """
    never = np.zeros(0, np.int64) if never is None else never
    ordered = bool((source < target).all()) or bool((source > target).all())
    if ordered and len(never) == 0:
        return never
    return np.flatnonzero(_peel(count, source, target, never))


def _peel(count: int, source: Rows, target: Rows, never: Rows) -> Mask:
    """Take away nodes that wait for nothing, until there are none; what is left."""
    order = np.argsort(source, kind="stable")
    follower = target[order].tolist()
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(source, minlength=count), out=offsets[1:])
    starts = offsets.tolist()
    waits = np.bincount(target, minlength=count)
    waits[never] += 1
    ready = np.flatnonzero(waits == 0).tolist()
    left = waits.tolist()
    while ready:
        row = ready.pop()
        for next_row in follower[starts[row] : starts[row + 1]]:
            left[next_row] -= 1
            if left[next_row] == 0:
                ready.append(next_row)
    return np.asarray(left, np.int64) > 0


def cycles(count: int, source: Rows, target: Rows, held: Rows | None = None) -> list[list[int]]:
    """The shortest cycle of each strongly connected component, as rows: each waits for the next.

    `held` is what `held_up` returns, if it is known already. In a component of more than a few
    thousand nodes it is the shortest cycle that a bounded search finds.
    """
    held = held_up(count, source, target) if held is None else held
    if len(held) == 0:
        return []
    inside = np.zeros(count, np.bool_)
    inside[held] = True
    kept = inside[source] & inside[target]
    # What only waits for a cycle lies on none: peel from the other side too.
    inside &= _peel(count, target[kept], source[kept], np.zeros(0, np.int64))
    kept = inside[source] & inside[target]
    waits: dict[int, list[int]] = {}
    for t, s in zip(target[kept].tolist(), source[kept].tolist(), strict=True):
        waits.setdefault(t, []).append(s)
    return [_shortest(component, waits) for component in _components(waits)]


def _components(waits: dict[int, list[int]]) -> list[list[int]]:
    """Strongly connected components of more than one node, after Tarjan, without recursion."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found = []
    for root in waits:
        if root in number:
            continue
        work = [(root, iter(waits[root]))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            row, others = work[-1]
            for other in others:
                if other not in number:
                    number[other] = low[other] = len(number)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(waits.get(other, ()))))
                    break
                if other in on_stack:
                    low[row] = min(low[row], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[row])
                if low[row] == number[row]:
                    component = stack[stack.index(row) :]
                    del stack[-len(component) :]
                    on_stack.difference_update(component)
                    if len(component) > 1:
                        found.append(component)
    return found


def _shortest(component: list[int], waits: dict[int, list[int]]) -> list[int]:
    """The shortest cycle of a component, by a search in breadth from each of its nodes."""
    members = set(component)
    best: list[int] = []
    steps = 0
    for start in sorted(component):
        came: dict[int, int] = {}
        queue = deque([(start, 1)])
        while queue:
            row, length = queue.popleft()
            if best and length >= len(best):
                break
            for other in waits.get(row, ()):
                steps += 1
                if other == start:
                    path = [row]
                    while path[-1] != start:
                        path.append(came[path[-1]])
                    best = path[::-1]
                    queue.clear()
                    break
                if other in members and other not in came:
                    came[other] = row
                    queue.append((other, length + 1))
        if best and (len(best) == 2 or steps > _STEPS):
            break
    return best
