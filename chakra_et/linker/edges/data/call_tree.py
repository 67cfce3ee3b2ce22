"""Who calls whom in the host trace, as intervals: what an operation calls lies inside its own."""

from __future__ import annotations

import msgspec
import numpy as np

from chakra_et.columns import NO_ROW, Mask, Rows, count_up
from chakra_et.graph import Adjacency
from chakra_et.kernel import kernel


class CallTree(msgspec.Struct):
    """One entry of each column for each host node.

    What node n calls, directly or not, has the positions from `position[n] + 1` to `end[n]`, that
    one left out. `begun[n]` is the place of n in the order in which all nodes began,
    `last_begun[n]` the last such place among n and what it calls.
    """

    position: Rows
    end: Rows
    begun: Rows
    last_begun: Rows

    def calls(self, chosen: Mask) -> Mask:
        """Which nodes call a chosen one, directly or not."""
        before = np.zeros(len(chosen) + 1, np.int64)
        before[1 + self.position[chosen]] = 1
        np.cumsum(before, out=before)
        calls: Mask = before[self.end] > before[self.position + 1]
        return calls


def call_tree(caller: Rows, begun: Rows) -> CallTree:
    """The tree of host nodes; `caller` holds rows of the same nodes, or `NO_ROW`.

    Nodes on a circle of callers, as damaged files may have them, call nothing. Linear in nodes.
    """
    if (module := kernel()) is not None:
        found = module.call_tree(caller, begun)
        if found is not None:
            position, end, last_begun = found
            return CallTree(position, end, begun, last_begun)
    count = len(caller)
    order = np.argsort(begun, kind="stable")
    called = order[caller[order] != NO_ROW]
    callees = Adjacency.of(count, caller[called], called)
    level = order[caller[order] == NO_ROW]
    levels = []
    while len(level):
        levels.append(level)
        level = _callees(callees, level)
    size = np.ones(count, np.int64)
    last_begun = begun.copy()
    for level in reversed(levels[1:]):
        np.add.at(size, caller[level], size[level])
        np.maximum.at(last_begun, caller[level], last_begun[level])
    position = np.zeros(count, np.int64)
    placed = 0
    if levels:
        position[levels[0]] = np.cumsum(size[levels[0]]) - size[levels[0]]
        placed = int(size[levels[0]].sum())
    for level in levels[1:]:
        before = np.cumsum(size[level]) - size[level]
        first = np.append(True, caller[level][1:] != caller[level][:-1])
        begins = np.flatnonzero(first)
        before -= before[begins][np.cumsum(first) - 1]
        position[level] = position[caller[level]] + 1 + before
    reached = np.zeros(count, np.bool_)
    reached[np.concatenate(levels) if levels else order[:0]] = True
    position[~reached] = placed + np.arange(np.count_nonzero(~reached))
    return CallTree(position, position + size, begun, last_begun)


def _callees(callees: Adjacency, level: Rows) -> Rows:
    """What the nodes of a level call, caller by caller."""
    begin, end = callees.offsets[level], callees.offsets[level + 1]
    count = end - begin
    within = count_up(count)
    found: Rows = callees.items[np.repeat(begin, count) + within]
    return found
