"""The columns of one sampled rank: types, lanes, sizes, times and edges of all rows at once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.build import Workload
from chakra_et.build.operation import Operation
from chakra_et.build.places import Place
from chakra_et.columns import Rows as Column
from chakra_et.columns import count_up, turns_of
from chakra_et.definitions import Kind, NodeType
from chakra_et.model import UNKNOWN_NS, AttributeTable, EdgeKind, Edges, Nodes, Trace
from chakra_et.synth.masters import Master, drawn_sizes
from chakra_et.synth.model import Part
from chakra_et.synth.phases import PHASES
from chakra_et.synth.scaling import Scaling
from chakra_et.synth.sketches import Sketch, SketchTable, spread
from chakra_et.synth.times import Durations
from chakra_et.synth.tokens import source_places
from chakra_et.synth.view import ABSENT, COMMUNICATION, HOST, STREAM, last_of_depth

_LAG_NS: Final = 20_000
"""Delays up to this are those of front ends; longer ones are told as late."""
_NOWHERE: Final[Place] = ("", 0)


class Rows:
    """A rank as `write_programs` takes it: its trace, and what it communicates."""

    def __init__(
        self, workload: Workload, trace: Trace, operations: list[Operation], of: Column
    ) -> None:
        self.workload = workload
        self.operations = operations
        self.operation_of = np.maximum(of, 0)
        self.communication: npt.NDArray[np.int64] = np.flatnonzero(of >= 0)
        self.places = [_NOWHERE] * len(self.communication)
        self._trace = trace

    def trace(self, rank: int) -> Trace:
        """The trace of the rank that these rows were drawn for."""
        assert self._trace.rank == rank
        return self._trace


class Drawer:
    """Draws what tokens leave open, for one rank after the other."""

    def __init__(self, part: Part, workload: Workload, scaling: Scaling) -> None:
        self._part, self._workload, self._scaling = part, workload, scaling
        tokens = part.tokens
        self._durations = Durations(part)
        self._delays, self._waits = (
            SketchTable(
                [some.get(t, Sketch((), (), ())) for t in range(len(tokens))], part.grain_ns
            )
            for some in (part.delays, part.waits)
        )
        self._skew = SketchTable([part.skew], part.grain_ns)
        self._type = np.array([t.type for t in tokens], np.int64)
        self._lane = np.array([t.lane for t in tokens], np.int64)
        self._depth = np.array([t.depth for t in tokens], np.int64)
        self._phase = np.array([t.phase for t in tokens], np.int64)
        self._family = np.array([t.family for t in tokens], np.int64)
        self._called = np.array([t.called for t in tokens], np.bool_)
        self._step = np.array([t.step for t in tokens], np.bool_)
        self._lane_kind = np.array([kind for kind, _ in part.lanes], np.int64)
        self._lane_number = np.array([number for _, number in part.lanes], np.int64)
        self._slots = _SlotTable(part)

    def rows(
        self, rank: int, master: Master, tokens: Column, mark: Column, random: np.random.Generator
    ) -> Rows:
        """The rows of a rank, of tokens, and for each its mark in the master or -1."""
        operation = np.where(mark >= 0, master.operation[mark], -1)
        sizes = drawn_sizes(self._part, tokens, self._scaling, random)
        talks = operation >= 0
        sizes[talks] = master.sizes[mark[talks]]
        # A group of one rank has nothing to communicate: the row stays as one that takes no time.
        alone = np.isin(self._type[tokens], COMMUNICATION) & ~talks
        step = master.steps[np.maximum.accumulate(np.where(mark >= 0, mark, 0))]
        turn = turns_of(tokens, step)
        duration = self._times(rank, master, tokens, mark, turn, operation, random)
        duration[alone] = 0
        sizes[alone] = ABSENT
        names, name_code = self._names(tokens, operation, master)
        nodes = Nodes(
            id=np.arange(1, len(tokens) + 1, dtype=np.uint64),
            type=np.where(alone, NodeType.COMP, self._type[tokens]).astype(np.int32),
            name_code=name_code,
            names=names,
            start_ns=np.full(len(tokens), UNKNOWN_NS, np.int64),
            duration_ns=duration,
            exact_duration=np.ones(len(tokens), np.bool_),
        )
        self._attributes(nodes.attributes, tokens, sizes, random)
        self._communication(nodes.attributes, rank, operation, master.operations)
        edges = self._edges(tokens, step, turn, master.role, random)
        self._begin(nodes.attributes, step, edges, random)
        trace = Trace(nodes, edges, self._workload.metadata(rank))
        return Rows(self._workload, trace, master.operations, operation)

    def _times(
        self,
        rank: int,
        master: Master,
        tokens: Column,
        mark: Column,
        turn: Column,
        operation: Column,
        random: np.random.Generator,
    ) -> Column:
        """Durations; of communication the shared one, and a wait on all ranks but the last one."""
        drawn = self._durations.draw(master.role, tokens, turn, random)
        duration = np.rint(drawn * self._scaling.time[tokens]).astype(np.int64)
        rows = np.flatnonzero(operation >= 0)
        if len(rows):
            place, size = self._places(rank, master.operations)
            at = operation[rows]
            drawn = self._waits.draw(tokens[rows], random)
            waits = np.rint(drawn * self._scaling.time[tokens[rows]]).astype(np.int64)
            waits[master.last[mark[rows]] % size[at] == place[at]] = 0
            duration[rows] = master.duration_ns[mark[rows]] + waits
        return duration

    def _places(self, rank: int, operations: list[Operation]) -> tuple[Column, Column]:
        """The rank's place among the members of each operation, and how many there are."""
        found = {}
        for name, family in self._workload.families.items():
            group = int(family.group_of[rank])
            where = family.members[group].tolist().index(rank) if group >= 0 else 0
            found[name] = where, family.size
        pairs = [found.get(op.family or "", (0, 2)) for op in operations]
        place, size = np.array(pairs, np.int64).reshape(-1, 2).T
        return place, size

    def _names(
        self, tokens: Column, operation: Column, master: Master
    ) -> tuple[list[str], npt.NDArray[np.int32]]:
        """Families for names; collectives are called by their type, and steps as profilers do."""
        families = list(self._part.families)
        kinds = [op.name for op in master.operations]
        code = self._family[tokens].copy()
        talks = operation >= 0
        code[talks] = operation[talks] + len(families)
        steps = np.flatnonzero(self._step[tokens])
        code[steps] = np.arange(len(steps)) + len(families) + len(kinds)
        names = [*families, *kinds, *(f"ProfilerStep#{n}" for n in range(1, len(steps) + 1))]
        return names, code.astype(np.int32)

    def _attributes(
        self, table: AttributeTable, tokens: Column, sizes: Column, random: np.random.Generator
    ) -> None:
        lane = self._lane[tokens]
        kind, number = self._lane_kind[lane], self._lane_number[lane]
        talks = np.isin(self._type[tokens], COMMUNICATION)
        table.add("is_cpu_op", Kind.BOOL, (kind == HOST) & ~talks)
        for name, of_kind, first in (("thread", HOST, 1), ("stream", STREAM, 0)):
            _add(table, name, Kind.INT64, number + first, kind == of_kind)
        _add(table, "num_ops", Kind.INT64, sizes[:, 0], sizes[:, 0] != ABSENT)
        there = sizes[:, 1] != ABSENT
        _add(table, "tensor_size", Kind.UINT64, sizes[:, 1].astype(np.uint64), there)
        _add(table, "comm_size", Kind.INT64, sizes[:, 2], sizes[:, 2] != ABSENT)
        phase = self._phase[tokens]
        rows = np.flatnonzero(phase)
        if len(rows):
            table.add("phase", Kind.STRING, [PHASES[p] for p in phase[rows].tolist()], rows)
        delay = self._delays.draw(tokens, random)
        _add(table, "lag_ns", Kind.INT64, delay, (delay > 0) & (delay <= _LAG_NS))
        _add(table, "late_ns", Kind.INT64, delay, delay > _LAG_NS)

    def _begin(
        self, table: AttributeTable, step: Column, edges: Edges, random: np.random.Generator
    ) -> None:
        """What the first step begins with waits as long as this rank is behind others."""
        waits = np.zeros(len(step), np.bool_)
        waits[edges.target] = True
        rows = np.flatnonzero(~waits & (step == 0))
        skew = self._skew.draw(np.zeros(1, np.int64), random)
        if skew[0]:
            table.add("release_ns", Kind.INT64, np.repeat(skew, len(rows)), rows)

    def _communication(
        self, table: AttributeTable, rank: int, operation: Column, operations: list[Operation]
    ) -> None:
        """Types, tags, groups and peers: groups and peers stand last, as in what is built."""
        workload, rows = self._workload, np.flatnonzero(operation >= 0)
        if len(rows) == 0:
            return
        families = workload.families
        grid = workload.grid
        told: dict[str, list[Any]] = {
            name: [] for name in ("comm_type", "comm_tag", "pg_name", "comm_src", "comm_dst")
        }
        for op in operations:
            peer = None if op.peer is None else int(op.peer.of(grid, rank))
            sends = op.type == NodeType.COMM_SEND
            told["comm_type"].append(op.collective)
            told["comm_tag"].append(op.tag)
            told["pg_name"].append(op.family and str(families[op.family].number(rank)))
            told["comm_src"].append(None if peer is None else rank if sends else peer)
            told["comm_dst"].append(None if peer is None else peer if sends else rank)
        kinds = (Kind.INT64, Kind.INT32, Kind.STRING, Kind.INT32, Kind.INT32)
        for (name, values), kind in zip(told.items(), kinds, strict=True):
            there = np.array([value is not None for value in values], np.bool_)
            mine = rows[there[operation[rows]]]
            if len(mine):
                table.add(name, kind, [values[i] for i in operation[mine].tolist()], mine)

    def _edges(
        self, tokens: Column, step: Column, turn: Column, role: int, random: np.random.Generator
    ) -> Edges:
        count = len(tokens)
        lane, depth = self._lane[tokens], self._depth[tokens]
        called = np.flatnonzero(self._called[tokens])
        caller = last_of_depth(lane, depth - 1, lane, depth)[called]
        target, source, kind = self._slots.draw(tokens, step, turn, role, random)
        there = caller >= 0
        target = np.concatenate([called[there], target])
        source = np.concatenate([caller[there], source])
        calls = np.full(int(there.sum()), EdgeKind.CALL, np.int64)
        kinds = np.concatenate([calls, kind])
        told = len(kinds)
        if self._part.of_single_steps:
            after, before = _between_steps(step, source, target)
            target, source = np.append(target, after), np.append(source, before)
            kinds = np.append(kinds, np.full(len(after), EdgeKind.DATA))
        ids = (source + 1).astype(np.uint64)
        guessed = np.arange(len(kinds)) >= told
        return Edges.collect(count, target, ids, kinds.astype(np.uint8), guessed)


def _between_steps(step: Column, source: Column, target: Column) -> tuple[Column, Column]:
    """Edges with which each step begins when the one before is over: targets and sources.

    The first row of a step waits for what nothing in the step before waits for; what waits for
    nothing in its own step waits for its first row.
    """
    inside = step[source] == step[target]
    leads, waits = (np.zeros(len(step), np.bool_) for _ in range(2))
    leads[source[inside]] = True
    waits[target[inside]] = True
    first = np.searchsorted(step, np.arange(int(step[-1]) + 1))
    last = np.flatnonzero(~leads & (step < step[-1]))
    begins = ~waits & (step > 0)
    begins[first] = False
    rows = np.flatnonzero(begins)
    return np.append(first[step[last] + 1], rows), np.append(last, first[step[rows]])


def _add(
    table: AttributeTable, name: str, kind: Kind, values: npt.NDArray[Any], mask: npt.NDArray[Any]
) -> None:
    """An attribute of the rows of a mask."""
    rows = np.flatnonzero(mask)
    if len(rows):
        table.add(name, kind, values[rows], rows)


class _SlotTable:
    """Variants of all tokens and their slots side by side, to draw all edges of a rank at once."""

    def __init__(self, part: Part) -> None:
        variants = part.variants
        self._own = np.array([t.lane for t in part.tokens], np.int64)
        family = np.array([t.family for t in part.tokens], np.int64)
        self._across = source_places(self._own, family, len(part.lanes), part.sources)
        groups = list(dict.fromkeys((v.token, v.role, v.turn) for v in variants))
        number = {group: i for i, group in enumerate(groups)}
        of = np.array([number[v.token, v.role, v.turn] for v in variants], np.int64)
        count = np.array([v.count for v in variants], np.float64)
        self._variants = np.searchsorted(of, np.arange(len(groups) + 1))
        any_turn = [number[token, ABSENT, ABSENT] for token in range(len(part.tokens))]
        latest = max(turn for _, _, turn in groups) + 2
        shape = (part.world.roles, len(any_turn), latest)
        self._group = np.broadcast_to(np.array(any_turn, np.int64)[:, None], shape).copy()
        for (token, role, turn), place in number.items():
            if turn != ABSENT:
                self._group[role, token, turn] = place
        total = np.add.reduceat(count, self._variants[:-1])
        running = np.cumsum(count) - np.repeat(
            (np.cumsum(count) - count)[self._variants[:-1]], np.diff(self._variants)
        )
        self._shares = of + running / total[of]
        sizes = np.array([len(v.slots) for v in variants], np.int64)
        self._first = np.append(0, np.cumsum(sizes))
        slots = [slot for v in variants for slot in v.slots]
        self._kind = np.array([kind for kind, _ in slots], np.int64)
        self._place = np.array([place for _, place in slots], np.int64)
        same = (np.diff(self._kind, prepend=-1) == 0) & (np.diff(self._place, prepend=-1) == 0)
        self._again = same & (count_up(sizes) > 0)
        distances = [d for v in variants for d in v.distances]
        self._values = np.array([v for d in distances for v in d.values], np.int64)
        shares = [np.cumsum(d.counts) / sum(d.counts) + i for i, d in enumerate(distances)]
        self._keys = np.concatenate(shares) if shares else np.zeros(0)

    def _drawn(
        self, tokens: Column, turn: Column, role: int, random: np.random.Generator
    ) -> Column:
        """A variant of each token, by its occurrence in the step."""
        turn = np.minimum(turn, self._group.shape[2] - 1)
        group = self._group[role, tokens, turn]
        share = spread(group, len(self._variants) - 1, random)
        at = np.searchsorted(self._shares, group + share, side="right")
        return np.asarray(np.minimum(at, self._variants[group + 1] - 1), np.int64)

    def draw(
        self,
        tokens: Column,
        step: Column,
        turn: Column,
        role: int,
        random: np.random.Generator,
    ) -> tuple[Column, Column, Column]:
        """Targets, sources and kinds of edges; a source before the first row is left out."""
        variant = self._drawn(tokens, turn, role, random)
        counts = self._first[variant + 1] - self._first[variant]
        target = np.repeat(np.arange(len(tokens)), counts)
        slot = np.repeat(self._first[variant], counts) + count_up(counts)
        if len(slot) == 0:
            return target, slot, slot
        steps = int(step[-1]) + 1
        share = spread(slot * steps + step[target], len(self._kind) * steps, random)
        at = np.searchsorted(self._keys, slot + share, side="right")
        back = _summed(self._values[np.minimum(at, len(self._values) - 1)], self._again[slot])
        count = len(tokens)
        place = np.append(self._own[tokens], self._across[tokens])
        order = np.argsort(place, kind="stable")
        row = order % count
        placed = place[order] * count + row
        wanted = self._place[slot] * count
        begin = np.searchsorted(placed, wanted)
        where = np.searchsorted(placed, wanted + target) - back
        there = where >= begin
        source = row[np.maximum(where, 0)]
        return target[there], source[there], self._kind[slot][there]


def _summed(values: Column, again: npt.NDArray[np.bool_]) -> Column:
    """Running sums that begin anew wherever `again` is false."""
    total = np.cumsum(values)
    first = np.flatnonzero(~again)
    lengths = np.diff(np.append(first, len(values)))
    return np.asarray(total - np.repeat(total[first] - values[first], lengths))
