"""More or fewer layers in a recorded run: one is copied in its place, or the middle ones go."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import numpy as np

from chakra_et.columns import Rows
from chakra_et.definitions import EdgeKind, NodeType
from chakra_et.model import Trace, TraceSet
from chakra_et.times import callers
from chakra_et.whatif.chains import CHAINS, program_order
from chakra_et.whatif.edit import Change, MissedError
from chakra_et.whatif.recorded.buckets import rebucketed
from chakra_et.whatif.recorded.layers import Layers, find_layers
from chakra_et.whatif.recorded.sums import GradientSum, cap_of, sums_of, told_cap
from chakra_et.whatif.surgery import Surgery


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
    made, caps = {}, []
    for rank, trace in traces.items():
        sums = _sums(trace, rank)
        if sums:
            caps.append(cap_of(trace, sums))
        made[rank] = _Stack(trace, found[rank], sums).run(count)
    before, after = (sum(int(t.nodes.duration_ns.sum()) for t in each.values())
                     for each in (traces, made))  # fmt: skip
    nodes = sum(len(trace.nodes) for trace in made.values())
    provenance = Counter({"recorded": nodes})
    result = TraceSet(made)
    if caps:
        result, sums_changed = rebucketed(result, text, caps[0])
        told += (f"sums of gradients; {told_cap(caps[0])}",)
        sized = Counter(sums_changed.provenance)
        provenance = provenance - Counter({"recorded": sum(sized.values())}) + sized
        after = sum(int(t.nodes.duration_ns.sum()) for t in result.values())
        nodes = sum(len(trace.nodes) for trace in result.values())
    return result, Change(text, nodes, before, after, "structure", provenance, told)


def _sums(trace: Trace, rank: int) -> list[GradientSum]:
    """The sums of gradients; none in a run of one rank, or without all-reduces."""
    try:
        return sums_of(trace, rank)
    except MissedError:
        return []


_Key: TypeAlias = tuple[int, int, int]
_Named: TypeAlias = tuple[dict[_Key, int], dict[int, _Key]]


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
        self.order = program_order(trace)
        self.place = np.argsort(self.order)
        self._parent = callers(trace)
        self._of_sums()
        self._of_gradients()
        self._known: dict[tuple[int, int, int], _Named] = {}

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
        for one in self.sums:
            self._label((one.row, one.call), -1)
            self._label(np.flatnonzero(self._parent == one.call).tolist(), -1)
            views = self._views(one)
            for place, reader in enumerate(one.readers):
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
        if not one.readers:
            return []
        first = one.readers[0]
        first = int(self._parent[first]) if self._parent[first] >= 0 else first
        found: list[int] = []
        row = self.surgery.preceding(first)
        names = self.trace.nodes.name_code
        while (
            row is not None
            and len(found) < len(one.readers)
            and (not found or names[row] == names[found[0]])
        ):
            found.append(row)
            row = self.surgery.preceding(row)
        return found[::-1] if len(found) == len(one.readers) else []

    def _of_gradients(self) -> None:
        """What comes after the backward pass is of the layer whose gradients alone it reads."""
        data = (self.surgery.kind == EdgeKind.DATA) & (self.surgery.source >= 0)
        reads: dict[int, list[int]] = {}
        for s, t in zip(
            self.surgery.source[data].tolist(), self.surgery.target[data].tolist(), strict=True
        ):
            reads.setdefault(t, []).append(s)
        sums = {row for one in self.sums for row in (one.row, one.call)}
        forward = np.flatnonzero((self.layer >= 0) & (self.part == 0))
        begin = self.trace.nodes.start_ns[forward].min() if len(forward) else 0
        for row in self.order.tolist():
            if self.layer[row] >= 0 or row in sums or self.trace.nodes.start_ns[row] < begin:
                continue
            known = {(int(self.layer[s]), int(self.step[s])) for s in reads.get(row, ())
                     if self.layer[s] >= 0 and self.part[s] == 1}  # fmt: skip
            latest = max((step for _, step in known), default=-1)
            mine = {layer for layer, step in known if step == latest}
            caller = int(self._parent[row])
            if len(mine) == 1:
                self.layer[row], self.step[row], self.part[row] = mine.pop(), latest, 1
            elif caller >= 0 and self.part[caller] == 1 and self.layer[caller] >= 0:
                self._label((row,), caller)

    def _like(self, row: int, layer: int) -> int | None:
        """The node of another layer that does what a node does in its own."""
        step, part = int(self.step[row]), int(self.part[row])
        _, mine = self._keys((step, part, int(self.layer[row])))
        others, _ = self._keys((step, part, layer))
        return others.get(mine[row]) if row in mine else None

    def _keys(self, where: tuple[int, int, int]) -> _Named:
        """The nodes of a layer by name, inputs and how many there were of these before; and the
        other way round.
        """
        if where not in self._known:
            step, part, layer = where
            rows = np.flatnonzero((self.step == step) & (self.part == part) & (self.layer == layer))
            seen: Counter[tuple[int, int]] = Counter()
            found = {}
            nodes = self.trace.nodes
            for row in rows[np.argsort(self.place[rows])].tolist():
                key = (int(nodes.name_code[row]), int(nodes.input_code[row]))
                found[key[0], key[1], seen[key]] = row
                seen[key] += 1
            self._known[where] = found, {row: key for key, row in found.items()}
        return self._known[where]

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
        for edge in edges[(a == m) | (b == m)].tolist():
            self._edge_of_copies(edge, m, copies)
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
        for row in rows[numbers[rows] >= 0].tolist():
            self.surgery.tell("seq_id", int(place[row]), int(numbers[row]) + copy * apart)

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
        new = [int(place[row]) for place in order for row in run]
        if forward:
            self.surgery.put(new, run[-1], kind)
            return
        before = self.surgery.preceding(run[0], kind)
        if before is None:
            self.surgery.begin(new, run[0], kind)
        else:
            self.surgery.put(new, before, kind)

    def _edge_of_copies(self, edge: int, m: int, copies: list[Rows]) -> None:
        """The waits of copies, and of what waits for them, by one edge of the layer they copy."""
        surgery = self.surgery
        s, t = int(surgery.source[edge]), int(surgery.target[edge])
        kind, a, b = EdgeKind(int(surgery.kind[edge])), int(self.layer[s]), int(self.layer[t])
        if b == m:
            for place, mine in enumerate(copies):
                source: int | None = s
                if a == m:
                    source = int(mine[s])
                elif a == m - 1 and (like := self._like(s, m)) is not None:
                    source = like if place == 0 else int(copies[place - 1][like])
                elif a == m + 1 and (like := self._like(s, m)) is not None:
                    source = s if place == len(copies) - 1 else int(copies[place + 1][like])
                surgery.wait(int(mine[t]), source, kind, inferred=self._guess(edge))
            if a == m + 1 and (like := self._like(s, m)) is not None:
                self._instead(edge, int(copies[0][like]), t, kind)
        elif b == m + 1:
            self._instead(edge, int(copies[-1][s]), t, kind)
        elif b < 0 and kind is EdgeKind.DATA:
            for mine in copies:
                surgery.wait(t, int(mine[s]), kind, inferred=self._guess(edge))

    def _instead(self, edge: int, source: int, target: int, kind: EdgeKind) -> None:
        self.surgery.forget(np.array([edge]))
        self.surgery.wait(target, source, kind, inferred=self._guess(edge))

    def _guess(self, edge: int) -> bool:
        return bool(self.trace.edges.inferred[edge])

    # -----------------------------------------------------------------------------------------
    # Fewer

    def _fewer(self, count: int) -> None:
        """The middle layers go; what waited for them waits for those that are next."""
        low = -(-count // 2) - 1
        high = self.count - (count - low - 1)
        gone = (self.layer > low) & (self.layer < high)
        edges = np.flatnonzero(self.surgery.source >= 0)
        s, t = self.surgery.source[edges], self.surgery.target[edges]
        for edge in edges[gone[s] & ~gone[t] & (self.layer[t] >= 0)].tolist():
            source, target = int(self.surgery.source[edge]), int(self.surgery.target[edge])
            wanted = low if self.layer[target] >= high else high
            like = self._like(source, wanted) if 0 <= wanted < self.count else None
            if like is not None and not self.surgery.links[edge]:
                self.surgery.wait(
                    target, like, EdgeKind(int(self.surgery.kind[edge])), inferred=self._guess(edge)
                )
        for one in self.sums:
            left = sum(s for g, s in zip(one.gradients, one.sizes, strict=True) if not gone[g])
            self.surgery.tell("comm_size", one.row, left)
            if not left:
                self.surgery.drop((one.row, one.call))
        self.surgery.drop(np.flatnonzero(gone).tolist())
