"""Parts of a graph that are done more than once: copies of nodes, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import NO_ROW, Mask, Rows, count_up
from chakra_et.definitions import Kind
from chakra_et.errors import ChakraError
from chakra_et.graph import find_cycle, topological_order
from chakra_et.model import (
    EdgeKind,
    Edges,
    TimeParts,
    Trace,
    edge_evidence,
    set_time_parts,
    time_parts,
)
from chakra_et.passes.edit import REFERENCES, drop_attribute, set_attribute
from chakra_et.replay.columns import columns_of
from chakra_et.tables.places import Places

_ORDERS: Final = (EdgeKind.PROGRAM, EdgeKind.STREAM, EdgeKind.GROUP)
"""Kinds that say what comes next on a thread or stream, or in a group."""


@dataclass
class Parts:
    """Parts of a trace: `of[n]` is node n's part or -1; part p has `copies[p]` copies behind it.

    `around[p]` is the node that begins with part p and ends with it.
    """

    of: Rows
    copies: Rows
    around: Rows


def with_copies(trace: Trace, parts: Parts) -> Trace:
    """The trace with copies of some parts.

    On each thread and stream, the copies of what a part has there follow it, in its order, and
    what came next comes after the last of them. What else a node waited for in its part, its copy
    waits for in its own; what it waited for elsewhere, all copies wait for; what waited for it
    waits for all of its copies. A copy lies as far behind the one before as the part is long, and
    all that began after the part moves on. Raises ChakraError for a part that waits, in between,
    for what is none of it.
    """
    part_of = parts.of
    count = np.append(parts.copies, 0)[part_of] + 1
    old = np.repeat(np.arange(len(part_of)), count)
    first = np.cumsum(count) - count
    copy = count_up(count)
    made = _Copies(trace, part_of, count, first, Places(trace).lane[0])
    source, target, like, kind = made.edges()
    place = _order(made, old, copy, source, target)
    new_row = np.empty(len(old), np.int64)
    new_row[place] = np.arange(len(old))
    rows = old[place]
    nodes = trace.nodes.take(rows)
    nodes.id = np.arange(len(rows), dtype=np.uint64) + trace.nodes.id.min()
    ids, inferred = nodes.id[new_row[source]], np.append(trace.edges.inferred, False)[like]
    places = Edges.in_rows(new_row[target], ids, kind)
    edges = Edges.from_rows(
        len(rows), new_row[target][places], ids[places], kind[places], inferred[places]
    )
    edge_evidence.carry(trace, like[places], nodes, edges)
    changed = Trace(nodes, edges, trace.metadata)
    made.refer(changed, old, copy, new_row)
    _move_on(trace, parts, changed, rows, copy[place])
    return changed


@dataclass
class _Copies:
    """Nodes with their copies: copy c of node n has the number `first[n] + c`, of `count[n]`."""

    trace: Trace
    part_of: Rows
    count: Rows
    first: Rows
    lane: Rows

    def edges(self) -> tuple[Rows, Rows, Rows, npt.NDArray[np.uint8]]:
        """Numbers of source and target of each edge, the edge in whose place it stands (-1 for
        none), and its kind.
        """
        source, target = self.trace.source_rows(), self.trace.edges.target
        known = np.flatnonzero(source >= 0)
        s, t = source[known], target[known]
        order = np.isin(self.trace.edges.kind[known], _ORDERS)
        within = (self.part_of[s] == self.part_of[t]) & (self.part_of[s] != NO_ROW)
        made = [
            self._within(s[within], t[within], known[within]),
            self._next(s[order & ~within], t[order & ~within], known[order & ~within]),
            self._across(s[~order & ~within], t[~order & ~within], known[~order & ~within]),
        ]
        begun = self._again(t[order & ~within])
        source, target, like = (np.concatenate(c) for c in zip(*made, begun[:3], strict=True))
        kind = self.trace.edges.kind[like[: len(like) - len(begun[3])]]
        return source, target, like, np.append(kind, begun[3])

    def _within(self, s: Rows, t: Rows, like: Rows) -> tuple[Rows, Rows, Rows]:
        """Edges inside a part, once in each copy."""
        each = np.repeat(np.arange(len(s)), self.count[s])
        copy = count_up(self.count[s])
        return self.first[s][each] + copy, self.first[t][each] + copy, like[each]

    def _across(self, s: Rows, t: Rows, like: Rows) -> tuple[Rows, Rows, Rows]:
        """Edges between parts: from every copy to every copy."""
        pairs = self.count[s] * self.count[t]
        each = np.repeat(np.arange(len(s)), pairs)
        number = count_up(pairs)
        width = self.count[t][each]
        return (
            self.first[s][each] + number // width, self.first[t][each] + number % width, like[each],
        )  # fmt: skip

    def _next(self, s: Rows, t: Rows, like: Rows) -> tuple[Rows, Rows, Rows]:
        """What comes next: behind the last copy, if it is the last of its part on its lane.

        The first of a part on a lane has, in each copy, the last one of the copy before.
        """
        first_in, last_in = self._ends()
        last = last_in[s]
        sources = [self.first[s] + np.where(last, self.count[s] - 1, 0)]
        targets, likes = [self.first[t]], [like]
        enters = np.flatnonzero(first_in[t] & (self.count[t] > 1))
        ends = self._last_beside(t[enters])
        for copy in range(1, int(self.count.max(initial=1))):
            more = self.count[t[enters]] > copy
            sources.append(self.first[ends[more]] + copy - 1)
            targets.append(self.first[t[enters[more]]] + copy)
            likes.append(like[enters[more]])
        return np.concatenate(sources), np.concatenate(targets), np.concatenate(likes)

    def _again(self, entered: Rows) -> tuple[Rows, Rows, Rows, npt.NDArray[np.uint8]]:
        """The same for parts that begin a lane, where nothing says what comes next."""
        starts = self._ends()[0] & (self.count > 1)
        starts[entered] = False
        rows = np.flatnonzero(starts)
        each = np.repeat(rows, self.count[rows] - 1)
        copy = count_up(self.count[rows] - 1)
        places = Places(self.trace)
        kind = np.where(places.communication[each], EdgeKind.GROUP, EdgeKind.STREAM)
        kind[places.on_host[each]] = EdgeKind.PROGRAM
        source = self.first[self._last_beside(each)] + copy
        none = np.full(len(each), NO_ROW, np.int64)
        return source, self.first[each] + copy + 1, none, kind.astype(np.uint8)

    def _keys(self) -> Rows:
        """One number for each part on each lane."""
        width = int(self.lane.max(initial=0)) + 1
        return np.where(self.part_of != NO_ROW, self.part_of * width + self.lane, NO_ROW)

    def _ends(self) -> tuple[Mask, Mask]:
        """Which nodes are the first, and which the last, of their part on their lane."""
        keys = self._keys()
        _, first = np.unique(keys, return_index=True)
        _, last = np.unique(keys[::-1], return_index=True)
        ends = np.zeros((2, len(keys)), np.bool_)
        ends[0, first], ends[1, len(keys) - 1 - last] = True, True
        ends[:, self.part_of == NO_ROW] = False
        return ends[0], ends[1]

    def _last_beside(self, nodes: Rows) -> Rows:
        """The last node of the part of each node on its lane."""
        keys = self._keys()
        found, last = np.unique(keys[::-1], return_index=True)
        return len(keys) - 1 - last[np.searchsorted(found, keys[nodes])]

    def places(self, old: Rows, copy: Rows) -> Rows:
        """Behind which node of the trace each node or copy stands."""
        return np.where(copy > 0, self._last_beside(old), old)

    def refer(self, changed: Trace, old: Rows, copy: Rows, new_row: Rows) -> None:
        """Let what names nodes by id name the copy in the same part."""

        def named(by: Rows, node: Rows) -> Rows:
            same = (self.part_of[old[by]] == self.part_of[node]) & (self.part_of[node] != NO_ROW)
            return new_row[self.first[node] + np.where(same, copy[by], 0)]

        nodes = self.trace.nodes
        for name in REFERENCES:
            for column in nodes.attributes.named(name):
                node = np.full(len(nodes), NO_ROW, np.int64)
                node[column.rows] = nodes.rows_of(np.asarray(column.values, np.uint64))
                by = np.flatnonzero(node[old] >= 0)
                drop_attribute(changed.nodes.attributes, name, np.arange(len(changed.nodes)))
                rows = new_row[by]
                order = np.argsort(rows, kind="stable")
                ids = changed.nodes.id[named(by, node[old[by]])]
                changed.nodes.attributes.add(name, Kind.UINT64, ids[order], rows[order])
        parts = time_parts(nodes)
        begins, ends = (np.searchsorted(parts.node, np.arange(len(nodes)), side)
                        for side in ("left", "right"))  # fmt: skip
        length = (ends - begins)[old]
        by = np.repeat(np.arange(len(old)), length)
        part = count_up(length) + begins[old][by]
        owner = parts.owner[part]
        moved = np.where(parts.gap[part], owner, named(by, np.maximum(owner, 0)))
        node = new_row[by]
        order = np.argsort(node, kind="stable")
        set_time_parts(changed.nodes, TimeParts(node[order], moved[order], parts.ns[part][order]))


def _order(made: _Copies, old: Rows, copy: Rows, source: Rows, target: Rows) -> Rows:
    """Numbers of nodes in an order in which edges lead forward, near that of the trace.

    Raises ChakraError where there is none: all copies of a part would wait for what waits for them.
    """
    place = np.lexsort((old, copy, made.places(old, copy)))
    where = np.empty(len(place), np.int64)
    where[place] = np.arange(len(place))
    edges = len(place), where[source], where[target]
    order = topological_order(*edges)
    if len(order) < len(place):
        circle = old[place[find_cycle(*edges)]]
        nodes = made.trace.nodes
        outside = int(circle[np.argmax(made.part_of[circle] == NO_ROW)])
        raise ChakraError(
            f"node {nodes.id[outside]}, {nodes.names[nodes.name_code[outside]]!r}, runs while a "
            "part that is repeated waits for it, and is no part of it",
            remedy="Name ranges that do all of their work themselves, or launch it: the backward "
            "pass of a step may run on another thread.",
        )
    return place[order]


def _move_on(trace: Trace, parts: Parts, changed: Trace, old: Rows, copy: Rows) -> None:
    """Recorded times with room for copies; what holds a part on its thread lasts longer by them."""
    columns, (lane, _) = columns_of(trace), Places(trace).lane
    begin, end = columns.start[parts.around], columns.end[parts.around]
    order = np.argsort(end, kind="stable")
    room = np.append(0, np.cumsum(((end - begin) * parts.copies)[order]))

    def moved(time_ns: Rows, rows: Rows, number: Rows) -> Rows:
        part = parts.of[rows]
        inside = part != NO_ROW
        by = room[np.searchsorted(end[order], time_ns, "right")]
        own = room[np.searchsorted(end[order], begin[part], "right")] + number * (end - begin)[part]
        return np.asarray(time_ns + np.where(inside, own, by))

    nodes, attributes = changed.nodes, changed.nodes.attributes
    nodes.start_ns = np.where(columns.timed[old], moved(nodes.start_ns, old, copy), nodes.start_ns)
    for name in ("own_start_ns", "release_ns", "inclusive_ns"):
        for column in attributes.named(name):
            rows, values = column.rows, np.asarray(column.values, np.int64)
            was, number = old[rows], copy[rows]
            if name == "inclusive_ns":
                holds = np.isin(lane[was], lane[parts.around]) & (parts.of[was] == NO_ROW)
                ends = moved(columns.start[was] + values, was, number)
                values = np.where(holds, ends - nodes.start_ns[rows], values)
            else:
                values = moved(values, was, number)
            set_attribute(attributes, name, Kind.INT64, rows, values)
