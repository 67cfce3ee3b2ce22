"""More or fewer layers in a recorded run: one is copied in its place, or the middle ones go."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from chakra_et.codes import codes
from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.definitions import EdgeKind, NodeType
from chakra_et.graph import topological_order
from chakra_et.model import Trace, TraceSet
from chakra_et.whatif.chains import CHAINS
from chakra_et.whatif.edit import Change, MissedError
from chakra_et.whatif.recorded.buckets import rebucketed
from chakra_et.whatif.recorded.filling import filling_of
from chakra_et.whatif.recorded.layers import Layers, find_layers
from chakra_et.whatif.recorded.sums import GradientSum, sums_of
from chakra_et.whatif.surgery import Surgery

_NONE: Final = frozenset({(-1, -1)})
"""Step and layer of what reads gradients of no layer."""


def restacked(traces: TraceSet, text: str, count: int) -> tuple[TraceSet, Change]:
    """The run with so many layers.

    Raises MissedError where no layers are found, or not as many on all ranks.
    """
    found = {rank: find_layers(trace, rank) for rank, trace in traces.items()}
    for rank, layers in found.items():
        messages = np.isin(traces[rank].nodes.type, (NodeType.COMM_SEND, NodeType.COMM_RECV))
        if (messages & (layers.layer >= 0)).any():
            raise MissedError(
                f"equal layers in rank {rank}: its equal parts send or receive messages, as "
                "micro-batches of a pipeline do"
            )
    counts = {layers.count for layers in found.values()}
    if len(counts) > 1:
        raise MissedError(f"as many layers on all ranks: there are {sorted(counts)}")
    first = next(iter(found.values()))
    told: tuple[str, ...] = (
        f"{first.count} equal layers of {first.period} operators each in a forward pass, over "
        f"{first.step.max() + 1} steps",
    )
    if counts == {count}:
        return traces, Change(text, 0, 0, 0, "structure", told=told)
    made, fillings = {}, []
    for rank, trace in traces.items():
        sums, missed = _sums(trace, rank)
        if sums:
            fillings.append(filling_of(trace, sums))
        elif missed and rank == next(iter(traces)):
            told += (f"collectives stay as they are; missed are {missed}",)
        made[rank] = _Stack(trace, found[rank], sums).run(count)
    before, after = (sum(int(t.nodes.duration_ns.sum()) for t in each.values())
                     for each in (traces, made))  # fmt: skip
    nodes = sum(len(trace.nodes) for trace in made.values())
    provenance = Counter({"recorded": nodes})
    result = TraceSet(made)
    if fillings:
        result, sums_changed = rebucketed(result, text, 0, fillings[0])
        told += (f"sums of gradients; {fillings[0].told}",)
        sized = Counter(sums_changed.provenance)
        provenance = provenance - Counter({"recorded": sum(sized.values())}) + sized
        after = sum(int(t.nodes.duration_ns.sum()) for t in result.values())
        nodes = sum(len(trace.nodes) for trace in result.values())
    return result, Change(text, nodes, before, after, "structure", provenance, told)


def _sums(trace: Trace, rank: int) -> tuple[list[GradientSum], str]:
    """The sums of gradients; none, and what is missed, in a run that has other collectives."""
    try:
        return sums_of(trace, rank), ""
    except MissedError as missed:
        collectives = (trace.nodes.type == NodeType.COMM_COLL).any()
        return [], missed.problem if collectives else ""


class _Stack:
    """The layers of one rank, and the changes that put others in their place."""

    def __init__(self, trace: Trace, layers: Layers, sums: list[GradientSum]) -> None:
        self.trace = trace
        self.sums = sums
        self.count = layers.count
        self.layer, self.part, self.step = (
            layers.layer.copy(), layers.part.copy(), layers.step.copy()
        )  # fmt: skip
        self.surgery = Surgery(trace)
        self.order, self.place, self._parent = layers.order, layers.place, layers.parent
        self._above, self._within = layers.above, layers.within
        self._of_sums()
        self._of_gradients()
        self._alike = _Alike(self)

    def run(self, count: int) -> Trace:
        """The trace with so many layers."""
        if count > self.count:
            self._more(count - self.count)
        else:
            self._fewer(count)
        return self.surgery.finish()

    # -----------------------------------------------------------------------------------------
    # Which layer is whose

    def _of_sums(self) -> None:
        """Sums are of no layer; what copies a gradient out of one is of the gradient's layer."""
        alone = Counter(row for one in self.sums for rows in one.readers for row in rows)
        for one in self.sums:
            self._label((one.row, one.call), -1)
            self._label(np.flatnonzero(self._parent == one.call).tolist(), -1)
            views = self._views(one)
            for readers, like in zip(one.readers, one.gradients, strict=True):
                # What reads several gradients at once is of no layer.
                self._label(
                    [row for row in readers if not one.copied_out and alone[row] == 1], like
                )
            for place, reader in enumerate(one.copies):
                like = one.gradients[place]
                rows = [reader, *([int(self._parent[reader])] if self._parent[reader] >= 0 else [])]
                rows += [views[place]] if views else []
                self._label(rows, like)

    def _label(self, rows: list[int] | tuple[int, ...], like: int) -> None:
        for row in rows:
            self.layer[row] = self.layer[like] if like >= 0 else -1
            self.step[row] = self.step[like] if like >= 0 else -1
            self.part[row] = 1

    def _views(self, one: GradientSum) -> list[int]:
        """The views of a bucket, one for each gradient, before the first that is copied out."""
        if not one.copies:
            return []
        first = one.copies[0]
        first = int(self._parent[first]) if self._parent[first] >= 0 else first
        found: list[int] = []
        row = self.surgery.preceding(first)
        names = self.trace.nodes.name_code
        while (
            row is not None
            and len(found) < len(one.copies)
            and (not found or names[row] == names[found[0]])
        ):
            found.append(row)
            row = self.surgery.preceding(row)
        return found[::-1] if len(found) == len(one.copies) else []

    def _of_gradients(self) -> None:
        """What comes after the backward pass is of the layer whose gradients alone it reads."""
        surgery, (asked, reads) = self.surgery, self._reads()
        layer, step, part, above, within = (
            column.tolist()
            for column in (self.layer, self.step, self.part, self._above, self._within)
        )
        # Threads that wait for others run behind what these write, whenever they were recorded.
        known = surgery.source >= 0
        order = topological_order(len(asked), surgery.source[known], surgery.target[known])
        rows = [row for row in order if asked[row]]
        found: dict[int, frozenset[tuple[int, int]]] = {}
        for row in rows:
            told = {(step[s], layer[s]) for s in reads.get(row, ())
                    if layer[s] >= 0 and part[s] == 1 and within[row] in (-1, step[s])}  # fmt: skip
            latest = max((when for when, _ in told), default=-1)
            mine = frozenset(one for one in told if one[0] == latest)
            if row in reads:
                found[row] = mine or _NONE
            if len(mine) == 1:
                ((step[row], layer[row]),), part[row] = mine, 1
            elif above[row] >= 0 and part[above[row]] == 1 and layer[above[row]] >= 0:
                layer[row], step[row], part[row] = layer[above[row]], step[above[row]], 1
        _tell_callers(found, rows, self._parent.tolist())
        # A caller is of the layer that alone is read in it, and so is all that it calls.
        for row in rows:
            mine, by = found.get(row, _NONE), above[row]
            if layer[row] < 0 and len(mine) == 1 and mine != _NONE:
                ((step[row], layer[row]),), part[row] = mine, 1
            elif layer[row] < 0 and by >= 0 and part[by] == 1 and layer[by] >= 0:
                layer[row], step[row], part[row] = layer[by], step[by], 1
        self.layer, self.step, self.part = map(np.array, (layer, step, part))

    def _reads(self) -> tuple[Mask, dict[int, list[int]]]:
        """What is of no layer and begins behind the first forward pass, and what it reads."""
        nodes, surgery = self.trace.nodes, self.surgery
        forward = np.flatnonzero((self.layer >= 0) & (self.part == 0))
        begin = nodes.start_ns[forward].min() if len(forward) else 0
        asked = (self.layer < 0) & (nodes.start_ns >= begin)
        asked[[row for one in self.sums for row in (one.row, one.call)]] = False
        reads: dict[int, list[int]] = {}
        data = (surgery.kind == EdgeKind.DATA) & (surgery.source >= 0) & asked[surgery.target]
        for s, t in zip(surgery.source[data].tolist(), surgery.target[data].tolist(), strict=True):
            reads.setdefault(t, []).append(s)
        return asked, reads

    # -----------------------------------------------------------------------------------------
    # More

    def _more(self, more: int) -> None:
        """Copies of a middle layer behind it; backward, before it."""
        m = self.count // 2
        rows = np.flatnonzero(self.layer == m)
        copies = []
        for _ in range(more):
            place = np.full(len(self.layer), -1, np.int64)
            place[rows] = self.surgery.copies(rows)
            copies.append(place)
            self._number(rows, place, len(copies))
        for kind in CHAINS:
            for run in self._runs(rows, kind):
                self._splice(run, copies, kind)
        edges = np.flatnonzero((self.surgery.source >= 0) & ~self.surgery.links)
        a, b = self.layer[self.surgery.source[edges]], self.layer[self.surgery.target[edges]]
        self._waits_of_copies(edges[(a == m) | (b == m)], m, copies)
        for one in self.sums:
            size = sum(
                s for g, s in zip(one.gradients, one.sizes, strict=True) if self.layer[g] == m
            )
            if size:
                self.surgery.tell("comm_size", one.row, sum(one.sizes) + more * size)

    def _number(self, rows: Rows, place: Rows, copy: int) -> None:
        """Give copies numbers of their own, by which backward functions find their layer."""
        numbers = self.trace.nodes.attributes.dense("seq_id", -1, np.int64)
        apart = int(numbers.max(initial=0)) + 1
        told = rows[numbers[rows] >= 0]
        self.surgery.tell("seq_id", place[told], numbers[told] + copy * apart)

    def _runs(self, rows: Rows, kind: EdgeKind) -> list[list[int]]:
        """Parts of a chain that are of one layer, step and part."""
        where = dict(zip(rows.tolist(), zip(self.step[rows].tolist(), self.part[rows].tolist(),
                                            strict=True), strict=True))  # fmt: skip
        found = []
        for row, place in where.items():
            before = self.surgery.preceding(row, kind)
            if before is not None and where.get(before) == place:
                continue
            run, after = [row], self.surgery.following(row, kind)
            while after is not None and where.get(after) == place:
                run.append(after)
                after = self.surgery.following(after, kind)
            if before is not None or after is not None or len(run) > 1:
                found.append(run)
        return found

    def _splice(self, run: list[int], copies: list[Rows], kind: EdgeKind) -> None:
        forward = self.part[run[0]] == 0
        order = copies if forward else copies[::-1]
        new = np.concatenate([place[run] for place in order])
        if forward:
            self.surgery.put(new, run[-1], kind)
            return
        before = self.surgery.preceding(run[0], kind)
        if before is None:
            self.surgery.begin(new, run[0], kind)
        else:
            self.surgery.put(new, before, kind)

    def _waits_of_copies(self, edges: Rows, m: int, copies: list[Rows]) -> None:
        """The waits of copies, and of what waits for them, by the edges of the layer they copy."""
        surgery = self.surgery
        s, t, kind = surgery.source[edges], surgery.target[edges], surgery.kind[edges]
        a, b, alike = self.layer[s], self.layer[t], self._alike.of(s, m)
        # What waits for a copy instead, and for nodes that read what all layers wrote.
        before, after = (b == m) & (a == m + 1) & (alike >= 0), b == m + 1
        self._instead(edges[before], copies[0][alike[before]])
        self._instead(edges[after], copies[-1][s[after]])
        reads = (b < 0) & (kind == EdgeKind.DATA)
        found = [(edges[reads], t[reads], mine[s[reads]]) for mine in copies]
        inside = np.flatnonzero(b == m)
        for place, mine in enumerate(copies):
            source = self._awaited(s[inside], alike[inside], m, copies, place)
            found.append((edges[inside], mine[t[inside]], source))
        edge, target, source = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.argsort(edge, kind="stable")
        self._wait(edge[order], target[order], source[order])

    def _awaited(self, s: Rows, alike: Rows, m: int, copies: list[Rows], place: int) -> Rows:
        """What a copy waits for, where the copied layer waits for `s`: its own, or a neighbour's.

        `alike` are the nodes of the copied layer that are like `s`, where `s` is of another one.
        """
        a, like = self.layer[s], np.maximum(alike, 0)
        below = copies[place - 1][like] if place else like
        above = s if place == len(copies) - 1 else copies[place + 1][like]
        next_to = [a == m, (a == m - 1) & (alike >= 0), (a == m + 1) & (alike >= 0)]
        return np.select(next_to, [copies[place][s], below, above], s)

    def _instead(self, edges: Rows, source: Rows) -> None:
        """Let the targets of edges wait for others in place of the sources."""
        self.surgery.forget(edges)
        self._wait(edges, self.surgery.target[edges], source)

    def _wait(self, edges: Rows, target: Rows, source: Rows) -> None:
        """Waits of the kinds of edges."""
        inferred = self.trace.edges.inferred[edges]
        self.surgery.wait(target, source, self.surgery.kind[edges], inferred=inferred)

    # -----------------------------------------------------------------------------------------
    # Fewer

    def _fewer(self, count: int) -> None:
        """The middle layers go; what waited for them waits for those that are next."""
        low = -(-count // 2) - 1
        high = self.count - (count - low - 1)
        gone = (self.layer > low) & (self.layer < high)
        edges = np.flatnonzero(self.surgery.source >= 0)
        s, t = self.surgery.source[edges], self.surgery.target[edges]
        edges = edges[gone[s] & ~gone[t] & (self.layer[t] >= 0) & ~self.surgery.links[edges]]
        further = self.layer[self.surgery.target[edges]] >= high
        for layer, some in ((low, edges[further]), (high, edges[~further])):
            like = self._alike.of(self.surgery.source[some], layer)
            told = some[like >= 0]
            self._wait(told, self.surgery.target[told], like[like >= 0])
        for one in self.sums:
            left = sum(s for g, s in zip(one.gradients, one.sizes, strict=True) if not gone[g])
            self.surgery.tell("comm_size", one.row, left)
            if not left:
                self.surgery.drop((one.row, one.call))
        self.surgery.drop(np.flatnonzero(gone))


def _tell_callers(
    found: dict[int, frozenset[tuple[int, int]]], rows: list[int], caller: list[int]
) -> None:
    """Let each caller read what its callees read, where they tell; `rows` are in their order."""
    read_in: dict[int, frozenset[tuple[int, int]]] = {}
    for row in reversed(rows):
        if row in read_in:
            found[row] = read_in[row]
        if row in found and caller[row] >= 0:
            read_in[caller[row]] = read_in.get(caller[row], frozenset()) | found[row]


class _Alike:
    """Finds the node of another layer that does what a node does in its own.

    That is the one of its name and inputs, in the same step and part; of several, the one in the
    same place among these.
    """

    def __init__(self, stack: _Stack) -> None:
        nodes, self._layer = stack.trace.nodes, stack.layer
        rows = stack.order[stack.layer[stack.order] >= 0]
        kind = codes(*(c[rows] for c in (stack.step, stack.part, nodes.name_code,
                                         nodes.input_code)))  # fmt: skip
        within = codes(kind, stack.layer[rows])
        along = np.argsort(within, kind="stable")
        begins = np.searchsorted(within[along], np.arange(within.max(initial=-1) + 1))
        turn = np.empty(len(rows), np.int64)
        turn[along] = np.arange(len(rows)) - begins[within[along]]
        self._number = np.full(len(stack.layer), NO_ROW, np.int64)
        self._number[rows] = codes(kind, turn)

    def of(self, rows: Rows, layer: int) -> Rows:
        """The nodes of a layer that do what some nodes do in theirs; -1 where none does."""
        mine = np.flatnonzero((self._layer == layer) & (self._number >= 0))
        found = np.full(int(self._number.max(initial=-1)) + 2, NO_ROW, np.int64)
        found[self._number[mine]] = mine
        return np.where(self._number[rows] >= 0, found[self._number[rows]], NO_ROW)
