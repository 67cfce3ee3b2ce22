"""Steps of ranks, and what there is to compare of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import EdgeKind, NodeType
from chakra_et.graph.intervals import covered
from chakra_et.model import UNKNOWN_NS, Edges, Trace, TraceSet
from chakra_et.recording.libraries import STEP
from chakra_et.replay import replay
from chakra_et.replay.columns import Columns, columns_of
from chakra_et.replay.figures import work_intervals
from chakra_et.synth.view import ABSENT, HOST, SIZES, RankView, view_of

MOST_UNITS: Final = 24
"""So many units of a set are compared, evenly chosen among all."""
_FAN_IN: Final = 8
"""Nodes with this many edges of a kind, or more, count alike."""
_GRAM: Final = 3
_PATH: Final = ("host", "device", "communication", "unexplained")

Counts: TypeAlias = "Counter[str]"
Reals: TypeAlias = npt.NDArray[np.float64]


@dataclass
class Unit:
    """A step of a rank, or all of a rank, as distributions.

    `values` are logarithms of sizes, durations and distances, sorted; `counts` of what is not a
    number; `figures` of the replay. `symbols` are the rows as texts.
    """

    rank: int
    step: int
    symbols: list[str]
    counts: dict[str, Counts] = field(default_factory=dict)
    values: dict[str, Reals] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)


def has_steps(traces: TraceSet) -> bool:
    """Whether annotations tell the steps of all ranks."""
    return all(any(STEP.fullmatch(n) for n in trace.nodes.names) for trace in traces.values())


def units_of(traces: TraceSet, by_step: bool) -> list[Unit]:
    """The units of a set, in the order of ranks and steps; of very many, some."""
    views = {rank: view_of(trace, rank) for rank, trace in traces.items()}
    places = [
        (rank, step)
        for rank, view in views.items()
        for step in range(view.steps if by_step else 1)
        if len(view)
    ]
    if len(places) > MOST_UNITS:
        chosen = np.linspace(0, len(places) - 1, MOST_UNITS).astype(int)
        places = [places[i] for i in chosen.tolist()]
    replayed = replay(traces).traces
    columns = {rank: columns_of(replayed[rank]) for rank in {rank for rank, _ in places}}
    found = []
    for rank, step in places:
        view = views[rank]
        inside = view.step == step if by_step else np.ones(len(view), np.bool_)
        unit = _unit(view, step, inside)
        unit.figures = _figures(columns[rank], view.order[inside])
        unit.counts["critical path"] = _path(view.trace, view.order[inside])
        found.append(unit)
    return found


def _unit(view: RankView, step: int, inside: Mask) -> Unit:
    symbols = _symbols(view, np.flatnonzero(inside))
    unit = Unit(view.rank, step, symbols)
    types = view.type[inside]
    unit.counts["node types"] = Counter(_type(t) for t in types.tolist())
    unit.counts["operator families"] = Counter(symbols)
    grams = zip(*(symbols[i:] for i in range(_GRAM)))  # noqa: B905 - the ends differ
    unit.counts[f"{_GRAM}-grams"] = Counter(map(" ".join, grams))
    for place, name in enumerate(SIZES):
        sizes = view.sizes[inside, place]
        unit.values[name] = _logs(sizes[sizes != ABSENT])
    host = np.array([kind == HOST for kind, _ in view.lanes], np.bool_)[view.lane]
    talks = view.communicates
    for name, mask in (
        ("host durations", host & ~talks),
        ("device durations", ~host & ~talks),
        ("communication durations", talks),
    ):
        unit.values[name] = _logs(view.duration_ns[inside & mask])
    _graph(unit, view, inside)
    return unit


def _symbols(view: RankView, rows: Rows) -> list[str]:
    """Each row as its type, family, collective and kind of lane."""
    kinds = np.array([kind for kind, _ in view.lanes], np.int64)[view.lane]
    columns = np.stack([view.type, view.family, view.collective, kinds], axis=1)[rows]
    distinct, code = np.unique(columns, axis=0, return_inverse=True)
    texts = [
        f"{_type(t)}/{view.families[f]}/{c if t == NodeType.COMM_COLL else ''}/{k}"
        for t, f, c, k in distinct.tolist()
    ]
    return [texts[i] for i in code.reshape(-1).tolist()]


def _type(number: int) -> str:
    return NodeType(number).name


def _logs(values: Rows) -> Reals:
    return np.sort(np.log1p(np.maximum(values, 0).astype(np.float64)))


def _graph(unit: Unit, view: RankView, inside: Mask) -> None:
    """Distances in rows, and edges of each kind into a node; callers apart from all others."""
    here = inside[view.target]
    distance = (view.target - view.source)[here]
    kind = view.kind[here]
    fan: Counts = Counter()
    place = np.cumsum(inside) - 1
    for code in np.unique(kind).tolist():
        of_kind = kind == code
        label = EdgeKind(code).label
        unit.values[f"{label} distances"] = _logs(distance[of_kind])
        into = np.bincount(place[view.target[here][of_kind]], minlength=int(inside.sum()))
        for number, count in enumerate(np.bincount(np.minimum(into, _FAN_IN)).tolist()):
            fan[f"{label} {number}"] += count
    unit.counts["fan-in"] = fan


def _figures(columns: Columns, rows: Rows) -> dict[str, float]:
    """The span of some rows in ns, and the share of it in which communication is exposed."""
    chosen = np.zeros(len(columns), np.bool_)
    chosen[rows] = True
    placed = chosen & columns.counts & columns.timed
    ends = columns.begin + columns.duration
    if not placed.any():
        return {"span": 0.0, "exposed": 0.0}
    span = int(ends[placed].max() - columns.begin[placed].min())
    busy, calls = work_intervals(columns, columns.parts, columns.begin, ends, placed)
    every = np.append(busy[0], calls[0]), np.append(busy[1], calls[1])
    exposed = covered(*every) - covered(*busy)
    return {"span": float(span), "exposed": exposed / span if span else 0.0}


def _path(trace: Trace, rows: Rows) -> Counts:
    """What the critical path of some rows, replayed alone, consists of, in ns."""
    alone = _part(trace, rows)
    bound = replay(alone).paths[alone.rank or 0].bound_ns
    told = {
        "host": bound["host"] + bound["gap"],
        "device": bound["device"],
        "communication": bound["communication"],
    }
    told["unexplained"] = sum(bound.values()) - sum(told.values())
    return Counter(told)


def _part(trace: Trace, rows: Rows) -> Trace:
    """Some rows of a trace with the edges between them."""
    rows = np.sort(rows)
    place = np.full(len(trace.nodes), -1, np.int64)
    place[rows] = np.arange(len(rows))
    edges, source = trace.edges, trace.source_rows()
    target = edges.target
    kept = (source >= 0) & (place[target] >= 0) & (place[np.maximum(source, 0)] >= 0)
    nodes = trace.nodes.take(rows)
    for name in ("time_parts", "release_ns"):
        for column in nodes.attributes.named(name):
            nodes.attributes.remove(column, column.rows)
    nodes.start_ns[:] = UNKNOWN_NS
    for name in ("own_start_ns", "inclusive_ns", "exclusive_ns"):
        for column in nodes.attributes.named(name):
            nodes.attributes.remove(column, column.rows)
    part = Edges.collect(
        len(rows), place[target[kept]], edges.source[kept], edges.kind[kept], edges.inferred[kept]
    )
    return Trace(nodes, part, trace.metadata)
