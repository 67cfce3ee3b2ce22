"""More or fewer data-parallel replicas of a run, and a run that goes on without one of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from chakra_et.build import Grid
from chakra_et.columns import Mask, Rows
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.errors import ChakraError
from chakra_et.model import Trace, TraceSet
from chakra_et.passes.edit import copied, without_nodes
from chakra_et.replay.columns import columns_of
from chakra_et.scale.collectives import Growth
from chakra_et.scale.degrees import Degree, axis_of, inner_of
from chakra_et.scale.families import find_kin, spans
from chakra_et.scale.plan import ScalePlan, plan_of
from chakra_et.scale.programs import grown_programs
from chakra_et.scale.sizes import Rule
from chakra_et.scale.sources import Source, sources_of
from chakra_et.whatif.edit import Change, MissedError, with_parts
from chakra_et.whatif.recorded.transfers import EXTRAPOLATED, RECORDED, common_times


@dataclass(frozen=True)
class _Held(Source):
    """A rank whose trace is in memory."""

    held: Trace

    def trace(self) -> Trace:
        return copied(self.held)


def with_replicas(traces: TraceSet, text: str, count: int) -> tuple[TraceSet, Change]:
    """The run with so many replicas: copies of those that are there, with as much data each.

    Raises MissedError where nothing tells which ranks are replicas of each other.
    """
    plan = _plan(traces, count)
    if plan is None:
        return traces, Change(text, 0, 0, 0, "structure")
    axis, size = next(iter(plan.sizes.items()))
    old = plan.layout.grid.axes[axis]
    parts = _exchange_parts(plan.sources, plan.layout.grid, axis)
    if parts and size < old:
        raise MissedError(
            f"replicas that have all of the model: {parts}, which the ranks that go would take "
            "with them",
            "Record the run with that many ranks.",
        )
    told = (f"{parts}; new ranks bring new ones, so that there are {size / old:g} times as many",)
    return _made(traces, text, plan, [place % old for place in range(size)], told if parts else ())


def without_replica(traces: TraceSet, text: str, rank: int) -> tuple[TraceSet, Change]:
    """The run without the replica of a rank that failed: the others go on, each with its data."""
    if rank not in traces:
        raise ChakraError(f"{text}: there is no rank {rank}", remedy="Name a rank of the run.")
    try:
        sources = _sources(traces)
        layout = plan_of(sources, {}, fewer=True).layout
    except ChakraError as error:
        raise _missed(error) from error
    axis = axis_of("dp", layout.grid)
    if axis is None or layout.grid.axes[axis] < 2:
        raise MissedError(
            f"a replica of what rank {rank} has: no other rank has its part of the model, so "
            "others would wait for it for ever",
            "With data parallelism, the other replicas go on.",
        )
    if parts := _exchange_parts(sources, layout.grid, axis):
        raise MissedError(f"a replica of what rank {rank} has: {parts}, which are lost with it")
    size = layout.grid.axes[axis]
    gone = int(layout.grid.coordinate(axis, rank))
    plan = _plan(traces, (size - 1) * inner_of(axis, layout.grid))
    assert plan is not None
    return _made(traces, text, plan, [place for place in range(size) if place != gone])


def _exchange_parts(sources: list[Source], grid: Grid, axis: str) -> str:
    """That replicas exchange what each has alone, such as experts or tables; empty if not."""
    for kin in find_kin(sources):
        types = {call.collective for call, _ in kin.calls}
        if axis in spans(kin, grid) and CollectiveType.ALL_TO_ALL in types:
            return (
                f"ranks of {kin.name!r} exchange parts by all-to-all (experts or tables, of which "
                "each rank has its own)"
            )
    return ""


def _sources(traces: TraceSet) -> list[Source]:
    if list(traces) != list(range(len(traces))):
        raise MissedError(f"all ranks from 0 on: there are {list(traces)[:8]}")
    return [
        _Held(**vars(told), held=trace)
        for told, trace in zip(sources_of(traces), traces.values(), strict=True)
    ]


def _plan(traces: TraceSet, count: int) -> ScalePlan | None:
    """How many replicas become `count`; None if there are as many."""
    try:
        sources = _sources(traces)
        if len(sources) == count == 1:
            return None
        layout = plan_of(sources, {}, fewer=True).layout if len(sources) > 1 else None
        axis = axis_of("dp", layout.grid) if layout is not None else None
        if layout is not None and axis is not None:
            grid = layout.grid
            if grid.axes[axis] * inner_of(axis, grid) == count:
                return None
        return plan_of(sources, {"dp": Degree(count)}, fewer=True)
    except ChakraError as error:
        raise _missed(error) from error


def _missed(error: ChakraError) -> MissedError:
    """Why replicas cannot be told; an edit has no options that could tell."""
    told = f"{error.path}: {error.problem}" if error.path is not None else error.problem
    remedy = error.remedy or ""
    if "--grid" in remedy:
        remedy = "chakra scale --grid makes more replicas where you know what ranks are for."
    return MissedError(f"ranks that are known as replicas: {told}", remedy)


def _made(
    traces: TraceSet, text: str, plan: ScalePlan, places: list[int], told: tuple[str, ...] = ()
) -> tuple[TraceSet, Change]:
    """The ranks of a plan, of which the new place `p` of the axis is a copy of `places[p]`."""
    axis = next(iter(plan.sizes))
    provenance: Counter[str] = Counter()
    slower = _with_transfers(traces, plan)
    alike = [
        type(one)(_with_trace(one.source, slower[0][one.source.rank]), one.ranks, one.operations)
        for one in plan.alike
    ]
    workload = plan.workload
    ranks = np.arange(workload.grid.world_size)
    old = plan.layout.grid
    where = {a: workload.grid.coordinate(a, ranks) for a in old.axes}
    where[axis] = np.array(places)[where[axis]]
    workload.source_of = np.asarray(old.rank(**where) + ranks * 0)
    made: dict[int, Trace] = {}
    for columns, some in grown_programs(alike, workload, plan.growth):
        for rank in some.tolist():
            trace = copied(columns.trace(rank))
            source = int(workload.source_of[rank])
            # The model of growth also shares what an optimizer does among more replicas.
            other = trace.nodes.duration_ns != traces[source].nodes.duration_ns
            other[slower[1][source]] = True
            lone = _lone(trace)
            made[rank] = without_nodes(trace, lone) if lone.any() else trace
            provenance[EXTRAPOLATED] += int((other & ~lone).sum())
            provenance[RECORDED] += int((~other & ~lone).sum())
    before, after = (sum(int(t.nodes.duration_ns.sum()) for t in each.values())
                     for each in (traces, made))  # fmt: skip
    told = (f"{axis} {old.axes[axis]} ({plan.layout.evidence[axis]}), on {old}", *told)
    nodes = sum(len(trace.nodes) for trace in made.values())
    return TraceSet(made), Change(text, nodes, before, after, "structure", +provenance, told)


def _with_trace(source: Source, trace: Trace) -> Source:
    assert isinstance(source, _Held)
    return _Held(**{**vars(source), "held": trace})


def _with_transfers(
    traces: TraceSet, plan: ScalePlan
) -> tuple[dict[int, Trace], dict[int, list[int]]]:
    """The ranks of the run, with transfers among as many as there will be; and which these are."""
    common = common_times(traces)
    made, changed = {}, {}
    for one in plan.alike:
        for rank in one.ranks:
            calls = plan.sources[rank].calls
            rows = [
                (int(row), plan.growth[op.family])
                for row, op in zip(calls.rows.tolist(),
                                   (one.operations[c] for c in calls.call_of.tolist()), strict=True)
                if op.type is NodeType.COMM_COLL and op.family in plan.growth
            ]  # fmt: skip
            made[rank], changed[rank] = _slower(traces[rank], rank, rows, common)
    return made, changed


def _slower(
    trace: Trace, rank: int, rows: list[tuple[int, Growth]], common: dict[tuple[int, int], int]
) -> tuple[Trace, list[int]]:
    """A trace whose transfers take as much longer as a rank sends more on a ring."""
    columns = columns_of(trace)
    types = trace.nodes.attributes.dense("comm_type", -1, np.int64)
    more = np.zeros(len(trace.nodes), np.int64)
    for row, growth in rows:
        factor = _factor(int(types[row]), growth)
        took = common.get((rank, row), int(trace.nodes.duration_ns[row]))
        more[row] = round((factor - 1) * took)
    changed = np.flatnonzero(more).tolist()
    if not changed:
        return trace, []
    parts = columns.parts
    ns: Rows = parts.ns + np.where(parts.own, more[parts.node], 0)
    return with_parts(trace, columns, np.maximum(ns, 0)), changed


def _factor(type: int, growth: Growth) -> float:
    """By how much what a rank sends grows: of a ring, a share of (n - 1) / n of the whole."""
    old, new = growth.old, growth.new
    share = ((new - 1) / new) / ((old - 1) / old) if old > 1 else 1.0
    if type in (CollectiveType.BROADCAST, CollectiveType.REDUCE, CollectiveType.BARRIER):
        return 1.0
    if type == CollectiveType.ALL_GATHER and growth.rules.get(type) is not Rule.DIVIDED:
        return share * new / old
    return share


def _lone(trace: Trace) -> Mask:
    """Collectives of groups of one rank, which take no other."""
    alone = {group.name for group in trace.groups if len(group.ranks) == 1}
    names = np.full(len(trace.nodes), "", object)
    for column in trace.nodes.attributes.named("pg_name"):
        names[column.rows] = np.array([str(value) for value in column.values], object)
    lone = (trace.nodes.type == NodeType.COMM_COLL) & np.isin(names.astype(str), list(alone))
    return np.asarray(lone)
