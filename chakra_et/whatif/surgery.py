"""Cutting and joining the graph of one trace: nodes copied, moved, dropped; waits added, forgotten.

Changes are collected in columns and made at once. The order of a thread, or of a stream, is a
chain: what is put behind a node comes before what followed it, and what is taken out closes the
gap.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.definitions import Kind
from chakra_et.model import EdgeKind, Edges, Nodes, Trace, edge_evidence, set_time_parts
from chakra_et.passes.edit import drop_attribute
from chakra_et.scale.changes import set_plain
from chakra_et.whatif.chains import CHAINS, in_order
from chakra_et.whatif.extended import Extended

_DELAYS: Final = ("lag_ns", "late_ns", "contention_ns", "release_ns", "return_ns", "own_start_ns",
                  "sync_on")  # fmt: skip
_WAITS: Final = (EdgeKind.STREAM, EdgeKind.EVENT, EdgeKind.SYNC, EdgeKind.DATA, EdgeKind.PROGRAM)
_ASKS: Final = (EdgeKind.LAUNCH, EdgeKind.THREAD)
Given = npt.ArrayLike
"""A row, a value, or an array of them; one value is that of all rows."""


class Wanted:
    """Values that some rows are to have; of several for one row, the last."""

    def __init__(self) -> None:
        self._given: list[tuple[Rows, Rows]] = []

    def __bool__(self) -> bool:
        return bool(self._given)

    def put(self, rows: Given, values: Given) -> None:
        """Let rows have values."""
        told = np.broadcast_arrays(np.atleast_1d(np.asarray(rows, np.int64)), values)
        self._given.append((told[0].ravel(), told[1].ravel()))

    def into(self, column: Rows) -> Rows:
        """The column with these values in it."""
        for rows, values in self._given:
            column[rows] = values
        return column

    def told(self, count: int) -> Mask:
        """Which of so many rows have such a value."""
        found = np.zeros(count, np.bool_)
        for rows, _ in self._given:
            found[rows] = True
        return found


class Surgery:
    """Changes of a trace. Rows of copies follow those of the trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.count = len(trace.nodes)
        self.source = trace.source_rows()
        self.target = trace.edges.target
        self.kind = trace.edges.kind
        self.links = np.zeros(len(trace.edges), np.bool_)
        # The row that follows each one in its chain, and the row before it.
        self._next: dict[EdgeKind, Rows] = {}
        self._previous: dict[EdgeKind, Rows] = {}
        for kind in CHAINS:
            self._find_links(kind)
        self._like = [np.arange(self.count)]
        self._together: list[Rows] = []
        self._total = self.count
        self._dropped: list[Rows] = []
        self._forgotten = np.zeros(len(trace.edges), np.bool_)
        # Target, source, kind and whether it is a guess, of some waits each.
        self._added: list[tuple[npt.NDArray[Any], ...]] = []
        self._own_ns, self._starts_ns, self._names = Wanted(), Wanted(), Wanted()
        self._rest, self._instead = Wanted(), Wanted()
        self._numbers: dict[str, Wanted] = {}
        self._shapes: dict[int, bytes] = {}
        self._new_names: list[str] = []
        self._bare: list[Rows] = []

    def _find_links(self, kind: EdgeKind) -> None:
        """Chains; of two edges from one node, or into one, the first is a link and others waits."""
        edges = np.flatnonzero((self.source >= 0) & (self.kind == kind))
        edges = edges[_first(self.source[edges], self.target[edges])]
        self.links[edges] = True
        for chains, rows, values in (
            (self._next, self.source, self.target), (self._previous, self.target, self.source),
        ):  # fmt: skip
            chains[kind] = np.full(self.count, NO_ROW, np.int64)
            chains[kind][rows[edges]] = values[edges]

    # -----------------------------------------------------------------------------------------
    # Nodes

    def copies(self, rows: Rows, together: Rows | None = None) -> Rows:
        """New nodes like those of `rows`, which wait for nothing yet; their rows.

        What names another node names the copy of it that was made together with this one: by the
        same call, and with the same number in `together` where that is given.
        """
        first = self._together[-1].max(initial=-1) + 1 if self._together else 0
        self._together.append(first + (np.zeros(len(rows), np.int64) if together is None
                                       else together))  # fmt: skip
        self._like.append(np.asarray(rows, np.int64))
        self._total += len(rows)
        none = np.full(len(rows), NO_ROW, np.int64)
        for chains in (self._next, self._previous):
            for kind in CHAINS:
                chains[kind] = np.append(chains[kind], none)
        return np.arange(self._total - len(rows), self._total)

    def more(self, rows: Rows, count: int, *, launches: bool = False) -> Rows:
        """So many more nodes behind each of some rows, one after the other, int64[rows, count].

        They begin at once, and have nothing of what others own of the time of what they are like.
        What waited for that waits for the last of them; with `launches`, that one also launches
        what it did.
        """
        each = np.repeat(np.arange(len(rows)), count)
        made = self.copies(rows[each], each)
        self._bare.append(made)
        table = made.reshape(len(rows), count)
        on_host = self.trace.nodes.attributes.dense("is_cpu_op", False, np.bool_)[rows]
        for chosen, kind in ((on_host, EdgeKind.PROGRAM), (~on_host, EdgeKind.STREAM)):
            self.put(table[chosen], rows[chosen], kind)
        last = np.full(self.count, NO_ROW, np.int64)
        last[rows] = table[:, -1]
        self._hand_over(last, (*_WAITS, *_ASKS) if launches else _WAITS)
        # A replay asks what had been launched when a call waits for a stream.
        place = np.full(self.count, NO_ROW, np.int64)
        place[rows] = np.arange(len(rows))
        into = (self.source >= 0) & (self.kind == EdgeKind.LAUNCH) & (place[self.target] >= 0)
        source = self.source[into]
        source = np.where(launches & (last[source] >= 0), last[source], source)
        self.wait(table[place[self.target[into]]], source[:, None], EdgeKind.LAUNCH)
        return table

    def _hand_over(self, to: Rows, kinds: tuple[EdgeKind, ...]) -> None:
        """Let what waits for nodes, by edges of some kinds, wait for other ones."""
        waits = (self.source >= 0) & ~self.links & ~self._forgotten & np.isin(self.kind, kinds)
        edges = np.flatnonzero(waits & (to[self.source] >= 0))
        guess = self.trace.edges.inferred[edges]
        self.wait(self.target[edges], to[self.source[edges]], self.kind[edges], inferred=guess)
        self.forget(edges)

    def drop(self, rows: Given) -> None:
        """Take nodes out: chains close, other waits for them end."""
        self._dropped.append(np.atleast_1d(np.asarray(rows, np.int64)))

    def replace(self, row: int, by: int) -> None:
        """Take a node out; what waits for it waits for another one."""
        self.drop(row)
        self._instead.put(row, by)

    def takes(self, rows: Given, ns: Given) -> None:
        """Let the own time of nodes be so long."""
        self._own_ns.put(rows, ns)

    def starts(self, rows: Given, ns: Given) -> None:
        """Let nodes have other recorded starts."""
        self._starts_ns.put(rows, ns)

    def tell(self, name: str, rows: Given, values: Given) -> None:
        """Let nodes have whole numbers in an attribute."""
        self._numbers.setdefault(name, Wanted()).put(rows, values)

    def shapes(self, row: int, text: bytes) -> None:
        """Let a node's inputs have other shapes."""
        self._shapes[row] = text

    def rest(self, rows: Given, last: Given) -> None:
        """Let what others own after a node's own time come after that of another one."""
        self._rest.put(rows, last)

    def name(self, rows: Given, text: str) -> None:
        """Let nodes have another name."""
        self._names.put(rows, len(self.trace.nodes.names) + len(self._new_names))
        self._new_names.append(text)

    # -----------------------------------------------------------------------------------------
    # Waits

    def wait(
        self,
        target: Given,
        source: Given,
        kind: EdgeKind | npt.NDArray[Any],
        *,
        inferred: bool | Mask = False,
    ) -> None:
        """Let nodes wait for others: rows, or arrays of as many."""
        every = np.broadcast_arrays(np.atleast_1d(target), source, int(kind) if isinstance(
            kind, EdgeKind) else kind, inferred)  # fmt: skip
        self._added.append(tuple(column.ravel() for column in every))

    def into(self, row: int) -> Rows:
        """The edges of the trace into a node, from nodes that it has."""
        first, last = self.trace.edges.offsets[row : row + 2].tolist()
        known: Rows = np.flatnonzero(self.source[first:last] >= 0) + first
        return known

    def forget(self, edges: Rows) -> None:
        """Take out edges of the trace, but links of chains."""
        self._forgotten[edges[~self.links[edges]]] = True

    def following(self, row: int, kind: EdgeKind = EdgeKind.PROGRAM) -> int | None:
        """What follows a node in its chain; nodes that are taken out stand there to the end."""
        return _told(self._next[kind][row])

    def preceding(self, row: int, kind: EdgeKind = EdgeKind.PROGRAM) -> int | None:
        """What a node follows in its chain."""
        return _told(self._previous[kind][row])

    def put(self, rows: Rows, behind: Given, kind: EdgeKind = EdgeKind.PROGRAM) -> None:
        """Put nodes that are in no chain behind another one, in their order; or each row of a table
        behind a node of its own.
        """
        after, before = self._next[kind], self._previous[kind]
        runs = np.column_stack([np.atleast_1d(np.asarray(behind, np.int64)), np.atleast_2d(rows)])
        following = after[runs[:, 0]]
        after[runs[:, :-1]], before[runs[:, 1:]] = runs[:, 1:], runs[:, :-1]
        after[runs[:, -1]] = following
        before[following[following >= 0]] = runs[following >= 0, -1]

    def begin(self, rows: Rows, before: int, kind: EdgeKind = EdgeKind.PROGRAM) -> None:
        """Put nodes that are in no chain before the first node of one."""
        run = np.append(rows, before)
        self._next[kind][run[:-1]], self._previous[kind][run[1:]] = run[1:], run[:-1]

    # -----------------------------------------------------------------------------------------

    def finish(self) -> Trace:
        """The trace after all changes, its nodes in the order in which threads and streams run
        them; itself if there are none.
        """
        told = (self._like[1:], self._dropped, self._added, self._own_ns, self._numbers,
                self._shapes, self._names)  # fmt: skip
        if not any(map(bool, told)) and not self._forgotten.any():
            return self.trace
        extended = Extended(self.trace, self._like, self._together)
        gone = np.zeros(self._total, np.bool_)
        gone[[row for rows in self._dropped for row in rows.tolist()]] = True
        start_ns = self._starts_ns.into(self.trace.nodes.start_ns[extended.like])
        links = [_closed(self._next[kind], gone) for kind in CHAINS]
        order = in_order(start_ns, *np.concatenate(links, axis=1))
        rows = order[~gone[order]]
        new_row = np.full(self._total, NO_ROW, np.int64)
        new_row[rows] = np.arange(len(rows))
        nodes = extended.nodes(rows, new_row)
        nodes.start_ns = start_ns[rows]
        self._describe(nodes, new_row)
        edges, like = self._edges(links, extended.ids, new_row)
        edge_evidence.carry(self.trace, like, nodes, edges)
        own = self._own_ns.told(self._total), self._own_ns.into(np.zeros(self._total, np.int64))
        bare = np.concatenate([*self._bare, np.zeros(0, np.int64)])
        parts = extended.parts(own, bare, self._rest.into(np.arange(self._total)), gone)
        parts = parts.moved(new_row)
        set_time_parts(nodes, parts)
        nodes.duration_ns = parts.by_node(len(rows))
        return Trace(nodes, edges, self.trace.metadata)

    def _describe(self, nodes: Nodes, new_row: Rows) -> None:
        """Names, numbers and shapes of the nodes that are left."""
        for name, wanted in self._numbers.items():
            rows = np.flatnonzero(wanted.told(self._total) & (new_row >= 0))
            values = wanted.into(np.zeros(self._total, np.int64))[rows]
            along = np.argsort(new_row[rows])
            set_plain_number(nodes, name, new_row[rows][along], values[along].tolist())
        for name in _DELAYS if self._bare else ():
            drop_attribute(nodes.attributes, name, new_row[np.concatenate(self._bare)])
        if self._names:
            nodes.names = [*nodes.names, *self._new_names]
            named = self._names.into(np.full(self._total, NO_ROW, np.int64))[new_row >= 0]
            at = new_row[new_row >= 0]
            nodes.name_code[at[named >= 0]] = named[named >= 0]
        self._set_shapes(nodes, new_row)

    def _set_shapes(self, nodes: Nodes, new_row: Rows) -> None:
        texts = list(nodes.texts)
        for row, shapes in self._shapes.items():
            code = int(nodes.input_code[new_row[row]])
            if code >= 0:
                before = texts[code]
                texts.append((before[0], shapes, *before[2:]))
                nodes.input_code[new_row[row]] = len(texts) - 1
        nodes.texts = texts

    def _edges(
        self, links: list[Rows], ids: npt.NDArray[np.uint64], new_row: Rows
    ) -> tuple[Edges, Rows]:
        """The edges that are left and new, and the edge of the trace in whose place each stands."""
        stay, fresh = self._chained(links)
        stood = self._instead.into(np.arange(self._total))
        while not np.array_equal(further := stood[stood], stood):
            stood = further
        kept = np.flatnonzero(stay)
        known = (self.target[kept], self.source[kept], self.kind[kept],
                 self.trace.edges.inferred[kept])  # fmt: skip
        target, source, kind, inferred = map(
            np.concatenate, zip(known, *fresh, *self._added, strict=True)
        )
        like = np.append(kept, np.full(len(target) - len(kept), NO_ROW))
        row = np.where(source >= 0, stood[source], NO_ROW)
        unknown = np.append(self.trace.edges.source, np.uint64(0))[like]
        named = np.where(row >= 0, ids[row], unknown)
        left = np.flatnonzero((new_row[target] >= 0) & ((row < 0) | (new_row[row] >= 0)))
        target, kind = new_row[target[left]], kind[left].astype(np.uint8)
        places = Edges.in_rows(target, named[left], kind)
        edges = Edges.from_rows(
            int(new_row.max(initial=-1)) + 1, target[places], named[left][places], kind[places],
            inferred[left][places].astype(np.bool_),
        )  # fmt: skip
        return edges, like[left][places]

    def _chained(self, links: list[Rows]) -> tuple[Mask, list[tuple[npt.NDArray[Any], ...]]]:
        """Which edges of the trace stay, and the links that are new, as waits are collected."""
        stay: Mask = ~self._forgotten
        fresh: list[tuple[npt.NDArray[Any], ...]] = []
        for chain, (source, target) in zip(CHAINS, links, strict=True):
            after = np.full(self._total, NO_ROW, np.int64)
            after[source] = target
            old = np.flatnonzero(self.links & (self.kind == chain))
            same = after[self.source[old]] == self.target[old]
            stay[old] = same
            after[self.source[old[same]]] = NO_ROW
            rows = np.flatnonzero(after >= 0)
            fresh.append((after[rows], rows, np.full(len(rows), chain), np.zeros(len(rows))))
        return stay, fresh


def _first(source: Rows, target: Rows) -> Mask:
    """Which edges come first from their source and into their target."""
    first = np.ones(len(source), np.bool_)
    shared = np.zeros(len(source), np.bool_)
    for rows in (source, target):
        shared |= np.bincount(rows)[rows] > 1
    begun: set[int] = set()
    ended: set[int] = set()
    places = np.flatnonzero(shared)
    pairs = zip(places.tolist(), source[places].tolist(), target[places].tolist(), strict=True)
    for place, s, t in pairs:
        first[place] = s not in begun and t not in ended
        if first[place]:
            begun.add(s)
            ended.add(t)
    return first


def _closed(after: Rows, gone: Mask) -> Rows:
    """Sources and targets of the links of a chain, int64[2, links], without what is gone."""
    follows, leaves = np.append(after, NO_ROW), np.append(gone, False)
    while (past := leaves[follows]).any():
        # Twice as far each time.
        follows[past] = follows[follows[past]]
    rows = np.flatnonzero((follows >= 0) & ~leaves)
    return np.array([rows, follows[rows]])


def _told(row: int) -> int | None:
    """A row; None where there is none."""
    return int(row) if row >= 0 else None


def set_plain_number(nodes: Nodes, name: str, rows: Rows, values: list[int]) -> None:
    """Give nodes a whole number in the kind in which they have the attribute, else in 64 bits."""
    columns = nodes.attributes.named(name)
    kind = columns[0].key.kind if columns and columns[0].key.kind is not None else Kind.INT64
    holder = Trace(nodes, Edges.empty(len(nodes)))
    set_plain(holder, name, kind, rows, values)
