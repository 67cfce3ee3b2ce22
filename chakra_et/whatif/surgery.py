"""Cutting and joining the graph of one trace: nodes copied, moved, dropped; waits added, forgotten.

Changes are collected and made at once. The order of a thread, or of a stream, is a chain: what is
put behind a node comes before what followed it, and what is taken out closes the gap.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.codes import distinct
from chakra_et.columns import NO_ROW, Mask, Rows, count_up
from chakra_et.definitions import Kind
from chakra_et.model import (
    EdgeKind,
    Edges,
    Nodes,
    TimeParts,
    Trace,
    edge_evidence,
    set_time_parts,
    time_parts,
)
from chakra_et.passes.edit import REFERENCES, drop_attribute, rebuilt, set_attribute
from chakra_et.scale.changes import set_plain
from chakra_et.whatif.chains import CHAINS, program_order
from chakra_et.whatif.extended import extended

_DELAYS: Final = ("lag_ns", "late_ns", "contention_ns", "release_ns", "return_ns", "own_start_ns",
                  "sync_on")  # fmt: skip
_WAITS: Final = frozenset((EdgeKind.STREAM, EdgeKind.EVENT, EdgeKind.SYNC, EdgeKind.DATA,
                           EdgeKind.PROGRAM))  # fmt: skip
_ASKS: Final = frozenset((EdgeKind.LAUNCH, EdgeKind.THREAD))


class Surgery:
    """Changes of a trace. Rows of copies follow those of the trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.count = len(trace.nodes)
        self.source = trace.source_rows()
        self.target = trace.edges.target
        self.kind = trace.edges.kind
        self._by_source = np.argsort(self.source, kind="stable")
        self._sources = self.source[self._by_source]
        self._like = [np.arange(self.count)]
        self._total = self.count
        self._dropped: set[int] = set()
        self._forgotten = np.zeros(len(trace.edges), np.bool_)
        # Target, source, kind and whether it is a guess, of each wait.
        self._added: tuple[list[int], ...] = ([], [], [], [])
        self._own_ns: dict[int, int] = {}
        self._starts_ns: dict[int, int] = {}
        self._numbers: dict[str, dict[int, int]] = {}
        self._shapes: dict[int, bytes] = {}
        self._names: dict[int, str] = {}
        self._instead: dict[int, int] = {}
        self._prompt: list[int] = []
        self._alone: list[int] = []
        self._rest: dict[int, int] = {}
        self.links = (self.source >= 0) & np.isin(self.kind, CHAINS)
        # The row that follows each one in its chain, and the row before it.
        self._next: dict[int, list[int]] = {}
        self._previous: dict[int, list[int]] = {}
        self._find_links()
        self._found = {kind: list(rows) for kind, rows in self._next.items()}

    @property
    def _changed(self) -> bool:
        """Whether anything is to change."""
        told = (self._dropped, self._added[0], self._own_ns, self._numbers, self._shapes)
        if self._total > self.count or self._forgotten.any() or any(map(bool, told)):
            return True
        return bool(self._names) or self._next != self._found

    def _find_links(self) -> None:
        """Chains; of two edges from one node, or into one, the first is a link and others waits."""
        for kind in CHAINS:
            edges = np.flatnonzero(self.links & (self.kind == kind))
            links, others = _links(self.source[edges], self.target[edges])
            self.links[edges[others]] = False
            for chains, rows, values in (
                (self._next, self.source, self.target), (self._previous, self.target, self.source),
            ):  # fmt: skip
                chain = np.full(self.count, NO_ROW, np.int64)
                chain[rows[edges[links]]] = values[edges[links]]
                chains[kind] = chain.tolist()

    # -----------------------------------------------------------------------------------------
    # Nodes

    def copies(self, rows: Rows) -> Rows:
        """New nodes like those of `rows`, which wait for nothing yet; their rows."""
        self._like.append(np.asarray(rows, np.int64))
        self._total += len(rows)
        for chain in (*self._next.values(), *self._previous.values()):
            chain += [NO_ROW] * len(rows)
        return np.arange(self._total - len(rows), self._total)

    def drop(self, rows: Iterable[int]) -> None:
        """Take nodes out: chains close, other waits for them end."""
        for row in rows:
            self.unlink(row)
            self._dropped.add(row)

    def replace(self, row: int, by: int) -> None:
        """Take a node out; what waits for it waits for another one."""
        self.drop((row,))
        self._instead[row] = by

    def takes(self, row: int, ns: int) -> None:
        """Let a node's own time be so long."""
        self._own_ns[row] = ns

    def starts(self, row: int, ns: int) -> None:
        """Let a node have another recorded start."""
        self._starts_ns[row] = ns

    def tell(self, name: str, row: int, value: int) -> None:
        """Let a node have a whole number in an attribute."""
        self._numbers.setdefault(name, {})[row] = value

    def shapes(self, row: int, text: bytes) -> None:
        """Let a node's inputs have other shapes."""
        self._shapes[row] = text

    def prompt(self, rows: Rows) -> None:
        """Let nodes begin at once when what they wait for is over, and look for nothing else."""
        self._prompt += rows.tolist()

    def alone(self, rows: Rows) -> None:
        """Let copies have nothing of what others own of the time of what they are copies of."""
        self._alone += rows.tolist()

    def rest(self, row: int, last: int) -> None:
        """Let what others own after a node's own time come after that of another one."""
        self._rest[row] = last

    def name(self, row: int, text: str) -> None:
        """Let a node have another name."""
        self._names[row] = text

    # -----------------------------------------------------------------------------------------
    # Waits

    def wait(
        self,
        target: Any,
        source: Any,
        kind: EdgeKind | npt.NDArray[Any],
        *,
        inferred: bool | Mask = False,
    ) -> None:
        """Let nodes wait for others: rows, or arrays of as many."""
        if isinstance(target, int) and isinstance(source, int):
            one = (target, source, int(kind), bool(inferred))
            for column, value in zip(self._added, one, strict=True):
                column.append(value)
            return
        every = np.broadcast_arrays(np.atleast_1d(target), source, kind, inferred)
        for column, values in zip(self._added, every, strict=True):
            column += values.tolist()

    def into(self, row: int) -> Rows:
        """The edges of the trace into a node, from nodes that it has."""
        first, last = self.trace.edges.offsets[row : row + 2].tolist()
        known: Rows = np.flatnonzero(self.source[first:last] >= 0) + first
        return known

    def out_of(self, row: int) -> Rows:
        """The edges of the trace from a node."""
        first, last = np.searchsorted(self._sources, (row, row + 1)).tolist()
        return self._by_source[first:last]

    def forget(self, edges: Rows) -> None:
        """Take out edges of the trace, but links of chains."""
        self._forgotten[edges[~self.links[edges]]] = True

    def behind(self, row: int, last: int, *, launches: bool = False) -> None:
        """Let what waits for a node wait for another one, which comes behind it.

        With `launches`, that one also launches what the node did.
        """
        edges = self.out_of(row)
        edges = edges[~self.links[edges] & ~self._forgotten[edges]]
        moved = []
        for edge, number in zip(edges.tolist(), self.kind[edges].tolist(), strict=True):
            if number in _WAITS or (launches and number in _ASKS):
                guess = bool(self.trace.edges.inferred[edge])
                self.wait(int(self.target[edge]), last, EdgeKind(number), inferred=guess)
                moved.append(edge)
        self.forget(np.array(moved, np.int64))

    def following(self, row: int, kind: EdgeKind = EdgeKind.PROGRAM) -> int | None:
        """What follows a node in its chain."""
        return _told(self._next[kind][row])

    def preceding(self, row: int, kind: EdgeKind = EdgeKind.PROGRAM) -> int | None:
        """What a node follows in its chain."""
        return _told(self._previous[kind][row])

    def unlink(self, row: int) -> None:
        """Take a node out of its chains."""
        for kind in CHAINS:
            after, before = self._next[kind][row], self._previous[kind][row]
            self._next[kind][row] = self._previous[kind][row] = NO_ROW
            if after >= 0:
                self._previous[kind][after] = before
            if before >= 0:
                self._next[kind][before] = after

    def put(self, rows: Iterable[int], behind: int, kind: EdgeKind = EdgeKind.PROGRAM) -> None:
        """Put nodes that are in no chain behind another one, in their order."""
        following, preceding = self._next[kind], self._previous[kind]
        after = following[behind]
        for row in rows:
            following[behind], preceding[row] = row, behind
            behind = row
        following[behind] = after
        if after >= 0:
            preceding[after] = behind

    def begin(self, rows: list[int], before: int, kind: EdgeKind = EdgeKind.PROGRAM) -> None:
        """Put nodes that are in no chain before the first node of one."""
        for row in reversed(rows):
            self._next[kind][row], self._previous[kind][before] = before, row
            before = row

    # -----------------------------------------------------------------------------------------

    def finish(self) -> Trace:
        """The trace after all changes; itself if there are none."""
        if not self._changed:
            return self.trace
        like = np.concatenate(self._like)
        nodes = extended(self.trace.nodes, like)
        self._refer(nodes, like)
        nodes.start_ns[list(self._starts_ns)] = list(self._starts_ns.values())
        for name, told in self._numbers.items():
            rows = np.array(sorted(told), np.int64)
            set_plain_number(nodes, name, rows, [told[row] for row in rows.tolist()])
        self._set_shapes(nodes)
        for name in _DELAYS if self._prompt else ():
            drop_attribute(nodes.attributes, name, np.array(sorted(self._prompt), np.int64))
        for row, text in self._names.items():
            nodes.names.append(text)
            nodes.name_code[row] = len(nodes.names) - 1
        made = Trace(nodes, self._edges(nodes, like), self.trace.metadata)
        return self._settled(made, self._parts(like))

    def _parts(self, like: Rows) -> TimeParts:
        """Whose time it is: parts of copies, too, which own what the copied ones owned."""
        parts, copied = time_parts(self.trace.nodes), like[self.count :]
        low, high = (np.searchsorted(parts.node, copied, side) for side in ("left", "right"))
        each = np.repeat(np.arange(len(copied)), high - low)
        part = count_up(high - low) + low[each]
        whose = parts.owner[part]
        beside = self._beside(like, each, whose)
        owner = np.where(beside >= 0, beside, whose)
        owner = np.where(whose == copied[each], self.count + each, owner)
        found = TimeParts(
            np.concatenate([parts.node, self.count + each]),
            np.concatenate([parts.owner, owner]),
            np.concatenate([parts.ns, parts.ns[part]]),
        )
        if self._own_ns:
            wanted = np.full(len(like), -1, np.int64)
            wanted[list(self._own_ns)] = list(self._own_ns.values())
            mine = found.own & (wanted[found.node] >= 0)
            found.ns[mine] = wanted[found.node[mine]]
        return self._with_rest(found, len(like))

    def _beside(self, like: Rows, copies: Rows, rows: Rows) -> Rows:
        """The copy of each row that was made together with a copy; of several, the last; else -1.

        Copies are numbered from 0.
        """
        sizes = np.array([len(some) for some in self._like], np.int64)
        batch = np.repeat(np.arange(len(sizes)), sizes)[self.count :]
        order = np.argsort(keys := batch * self.count + like[self.count :], kind="stable")
        wanted = batch[copies] * self.count + rows
        place = np.searchsorted(keys, wanted, "right", sorter=order) - 1
        other = order[place] if len(order) else place
        beside = (rows >= 0) & (place >= 0) & (keys[other] == wanted)
        return np.where(beside, self.count + other, NO_ROW)

    def _refer(self, nodes: Nodes, like: Rows) -> None:
        """Let copies name copies that were made together with them, by id."""
        copies = np.arange(len(like) - self.count)
        for name in REFERENCES:
            named = np.full(self.count, NO_ROW, np.int64)
            for column in self.trace.nodes.attributes.named(name):
                named[column.rows] = self.trace.nodes.rows_of(np.asarray(column.values, np.uint64))
            beside = self._beside(like, copies, named[like[self.count :]])
            rows = np.flatnonzero(beside >= 0)
            if len(rows):
                ids = nodes.id[beside[rows]]
                set_attribute(nodes.attributes, name, Kind.UINT64, self.count + rows, ids)

    def _with_rest(self, parts: TimeParts, count: int) -> TimeParts:
        """The parts without those that copies do not have, and with those that go elsewhere."""
        alone = np.zeros(count, np.bool_)
        alone[self._alone] = True
        kept = parts.own | ~alone[parts.node]
        node, owner, ns = parts.node[kept], parts.owner[kept], parts.ns[kept]
        own = np.flatnonzero(owner == node)
        place, onto = np.zeros(count, np.int64), np.arange(count)
        place[node[own]] = own
        onto[list(self._rest)] = list(self._rest.values())
        after = np.arange(len(node)) > place[node]
        node = np.where(after, onto[node], node)
        order = np.concatenate([np.flatnonzero(~after), np.flatnonzero(after)])
        order = order[np.argsort(node[order], kind="stable")]
        return TimeParts(node[order], owner[order], ns[order])

    def _set_shapes(self, nodes: Nodes) -> None:
        texts = list(nodes.texts)
        for row, shapes in self._shapes.items():
            code = int(nodes.input_code[row])
            if code >= 0:
                before = texts[code]
                texts.append((before[0], shapes, *before[2:]))
                nodes.input_code[row] = len(texts) - 1
        nodes.texts = texts

    def _edges(self, nodes: Nodes, like: Rows) -> Edges:
        edges = self.trace.edges
        stay = ~self._forgotten
        fresh = []
        for kind in CHAINS:
            after = np.array(self._next[kind], np.int64)
            links = np.array([np.flatnonzero(after >= 0), after[after >= 0]])
            number = links[0] * len(like) + links[1]
            old = np.flatnonzero(self.links & (self.kind == kind))
            before = self.source[old] * len(like) + self.target[old]
            stay[old] = np.isin(before, number)
            made = ~np.isin(number, before)
            fresh.append((*links[:, made], np.full(int(made.sum()), kind, np.uint8)))
        linked = [np.concatenate(columns) for columns in zip(*fresh, strict=True)]
        added = [np.array(column, np.int64) for column in self._added]
        stood = nodes.id[self._stand_in(len(like))]
        ids = np.where(self.source >= 0, stood[np.maximum(self.source, 0)], edges.source)
        target = np.concatenate([self.target[stay], linked[1], added[0]])
        source = np.concatenate([ids[stay], nodes.id[linked[0]], stood[added[1]]])
        kinds = np.concatenate([self.kind[stay], linked[2], added[2].astype(np.uint8)])
        inferred = np.zeros(len(target), np.bool_)
        inferred[: int(stay.sum())] = edges.inferred[stay]
        inferred[len(target) - len(added[3]) :] = added[3]
        changed = np.unique(np.append(self.target[~stay], target[int(stay.sum()) :]))
        for column in nodes.attributes.named(edge_evidence.NAME):
            gone = np.intersect1d(
                column.rows, np.union1d(changed, np.arange(self.count, len(like)))
            )
            nodes.attributes.remove(column, gone)
        return Edges.collect(len(nodes), target, source, kinds, inferred)

    def _stand_in(self, count: int) -> Rows:
        """The node that stands for each one: itself, or the one in its place."""
        stood = np.arange(count)
        for row, by in self._instead.items():
            while by in self._instead:
                by = self._instead[by]
            stood[row] = by
        return stood

    def _settled(self, trace: Trace, parts: TimeParts) -> Trace:
        """The nodes that are left, in the order in which threads and streams run them."""
        gone = np.zeros(len(trace.nodes), np.bool_)
        gone[list(self._dropped)] = True
        edges, source = trace.edges, trace.source_rows()
        stays = ~gone[edges.target] & ((source < 0) | ~gone[np.maximum(source, 0)])
        order = program_order(Trace(trace.nodes, edges.select(stays), trace.metadata))
        rows = order[~gone[order]]
        new_row = np.full(len(order), NO_ROW, np.int64)
        new_row[rows] = np.arange(len(rows))
        stay = np.flatnonzero(stays)
        stay = stay[np.argsort(new_row[edges.target[stay]], kind="stable")]
        left = Edges.from_rows(
            len(rows), new_row[edges.target[stay]], edges.source[stay], edges.kind[stay],
            edges.inferred[stay],
        )  # fmt: skip
        made = rebuilt(trace, rows, left, stay if self._dropped else None)
        kept = ~gone[parts.node] & ((parts.owner < 0) | ~gone[np.maximum(parts.owner, 0)])
        parts = TimeParts(parts.node[kept], parts.owner[kept], parts.ns[kept]).moved(new_row)
        set_time_parts(made.nodes, parts)
        made.nodes.duration_ns[:] = parts.by_node(len(rows))
        return made


def _links(source: Rows, target: Rows) -> tuple[Mask, Mask]:
    """Which edges come first from their source and into their target, and which do not."""
    first = np.ones(len(source), np.bool_)
    if any(len(distinct(rows)) < len(rows) for rows in (source, target)):
        begun: set[int] = set()
        ended: set[int] = set()
        for place, (s, t) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
            first[place] = s not in begun and t not in ended
            if first[place]:
                begun.add(s)
                ended.add(t)
    return first, ~first


def _told(row: int) -> int | None:
    """A row; None where there is none."""
    return row if row >= 0 else None


def set_plain_number(nodes: Nodes, name: str, rows: Rows, values: list[int]) -> None:
    """Give nodes a whole number in the kind in which they have the attribute, else in 64 bits."""
    columns = nodes.attributes.named(name)
    kind = columns[0].key.kind if columns and columns[0].key.kind is not None else Kind.INT64
    holder = Trace(nodes, Edges.empty(len(nodes)))
    set_plain(holder, name, kind, rows, values)
