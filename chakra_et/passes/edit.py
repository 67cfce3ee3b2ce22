"""Changes of traces that several passes are made of."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import Kind
from chakra_et.graph.lanes import lanes
from chakra_et.model import (
    AttributeTable,
    EdgeKind,
    Edges,
    Metadata,
    Nodes,
    Trace,
    edge_evidence,
    set_time_parts,
    time_parts,
)
from chakra_et.model.time_parts import NAME as TIME_PARTS

WAITS_ON: Final = "sync_on"
"""The attribute by which a replay looks up what a call waits for."""
_ORDERING: Final = (EdgeKind.PROGRAM, EdgeKind.STREAM, EdgeKind.DATA)
"""Kinds of edges whose targets begin when their sources are over: they make lanes."""
NOTE: Final = "cured"
"""The attribute that tells what a pass made of a node."""


def copied(trace: Trace) -> Trace:
    """A trace whose columns may be changed without the given one noticing."""
    return Trace(trace.nodes.copied(), trace.edges, _metadata(trace))


def _metadata(trace: Trace) -> Metadata:
    """What a file says of the whole trace, of which attributes may be changed."""
    told = trace.metadata
    return Metadata(told.version, [copy(each) for each in told.attributes], told.extra)


def rebuilt(trace: Trace, rows: Rows, edges: Edges, like: Rows | None = None) -> Trace:
    """The nodes of some rows, in that order, with other edges.

    `like[e]` is the edge of the trace in whose place edge e stands, negative for none: what that
    one rests on, it rests on too. Without `like`, the edges are those that the rows had.
    """
    nodes = trace.nodes.take(rows)
    if like is not None:
        edge_evidence.carry(trace, like, nodes, edges)
    return Trace(nodes, edges, _metadata(trace))


def with_edges(
    trace: Trace,
    target: Rows,
    source: npt.NDArray[np.uint64],
    kind: npt.NDArray[np.uint8],
    inferred: Mask,
    like: Rows,
) -> Trace:
    """The same nodes with other edges, given as to `Edges.collect`; `like` is as in `rebuilt`."""
    places = Edges.in_rows(target, source, kind)
    edges = Edges.from_rows(
        len(trace.nodes), target[places], source[places], kind[places], inferred[places]
    )
    return rebuilt(trace, np.arange(len(trace.nodes)), edges, like[places])


def set_attribute(
    table: AttributeTable,
    name: str,
    kind: Kind,
    rows: Rows,
    values: Sequence[Any] | npt.NDArray[Any],
) -> None:
    """Give nodes an attribute, in place of those of that name in whatever kind."""
    drop_attribute(table, name, rows)
    table.add(name, kind, values, rows)


def drop_attribute(table: AttributeTable, name: str, rows: Rows) -> None:
    """Take an attribute from nodes, in whatever kind."""
    for column in table.named(name):
        taken = column.rows[np.isin(column.rows, rows)]
        if len(taken):
            table.remove(column, taken)


def annotate(table: AttributeTable, rows: Rows, notes: Sequence[str]) -> None:
    """Note on nodes what was made of them, after what earlier passes noted."""
    before = [table.get(int(row), NOTE) for row in rows]
    texts = [f"{b}; {n}" if b else n for b, n in zip(before, notes, strict=True)]
    set_attribute(table, NOTE, Kind.STRING, rows, texts)


REFERENCES: Final = ("same_kernel", "rest_of")
"""Attributes that hold the id of another node."""


def follow_ids(trace: Trace, renumbered: Trace, new_row: Rows) -> None:
    """Let attributes that name nodes by id follow new ids; row r of `trace` is `new_row[r]` now."""
    nodes, changed = trace.nodes, renumbered.nodes
    for name in REFERENCES:
        for column in nodes.attributes.named(name):
            named = nodes.rows_of(np.asarray(column.values, np.uint64))
            rows, there = new_row[column.rows], named >= 0
            drop_attribute(changed.attributes, name, rows)
            order = np.argsort(rows[there], kind="stable")
            ids = changed.id[new_row[named[there]]][order]
            changed.attributes.add(name, Kind.UINT64, ids, rows[there][order])
    if nodes.attributes.named(TIME_PARTS):
        set_time_parts(changed, time_parts(nodes).moved(new_row))


def edges_of(
    count: int, target: Rows, source: npt.NDArray[np.uint64], like: Edges, places: Rows
) -> tuple[Edges, Rows]:
    """Edges with the kinds and flags of the edges `places` of `like`, and the place for each."""
    order = Edges.in_rows(target, source, like.kind[places])
    places = places[order]
    edges = Edges.from_rows(
        count, target[order], source[order], like.kind[places], like.inferred[places]
    )
    return edges, places


def without_waits(trace: Trace, rows: Mask) -> Trace:
    """A trace in which the calls of some rows wait for no device work, in a replay either."""
    edges = trace.edges
    keep = np.flatnonzero((edges.kind != EdgeKind.SYNC) | ~rows[edges.target])
    left = with_edges(
        trace, edges.target[keep], edges.source[keep], edges.kind[keep], edges.inferred[keep], keep
    )
    drop_attribute(left.nodes.attributes, WAITS_ON, np.flatnonzero(rows))
    return left


def without_nodes(trace: Trace, dropped: Mask) -> Trace:
    """A trace without some nodes: what waited for one of them waits for what that waited for."""
    edges, source = trace.edges, trace.source_rows()
    target = edges.target
    gone = (source >= 0) & dropped[np.maximum(source, 0)]
    ancestors = _kept_ancestors(trace, dropped, source)
    stay = np.flatnonzero(~gone & ~dropped[target])
    replaced = np.flatnonzero(gone & ~dropped[target])
    new = [(t, s, e) for e, t in _pairs(replaced, target) for s in ancestors[int(source[e])]]
    place = np.cumsum(~dropped) - 1
    rows = np.flatnonzero(~dropped)
    targets = np.concatenate([target[stay], np.array([t for t, _, _ in new], np.int64)])
    ids = np.concatenate([edges.source[stay], trace.nodes.id[[s for _, s, _ in new]]])
    places = np.concatenate([stay, np.array([e for _, _, e in new], np.int64)])
    kept = ids != trace.nodes.id[targets]
    return rebuilt(
        trace,
        rows,
        *edges_of(len(rows), place[targets[kept]], ids[kept], edges, places[kept]),
    )


def _pairs(edges: Rows, target: Rows) -> list[tuple[int, int]]:
    return list(zip(edges.tolist(), target[edges].tolist(), strict=True))


def _kept_ancestors(trace: Trace, dropped: Mask, source: Rows) -> dict[int, list[int]]:
    """For each dropped node, the nearest nodes before it that stay: of each lane, the last."""
    offsets, target, kind = trace.edges.offsets, trace.edges.target, trace.edges.kind
    links = np.concatenate([np.flatnonzero((kind == k) & (source >= 0)) for k in _ORDERING])
    lane, place = (c.tolist() for c in lanes(len(dropped), source[links], target[links]))
    waits = {
        row: [s for s in source[offsets[row] : offsets[row + 1]].tolist() if s >= 0]
        for row in np.flatnonzero(dropped).tolist()
    }
    found: dict[int, dict[int, int]] = {}
    for row in waits:
        seen: set[int] = set()
        kept: dict[int, int] = {}
        stack = [row]
        while stack:
            for parent in waits[stack.pop()]:
                if parent in seen:
                    continue
                seen.add(parent)
                if parent in waits and parent not in found:
                    stack.append(parent)
                    continue
                for last in found[parent].values() if parent in waits else (parent,):
                    here = kept.setdefault(lane[last], last)
                    if place[here] < place[last]:
                        kept[lane[last]] = last
        found[row] = kept
    return {row: list(kept.values()) for row, kept in found.items()}


def appended(
    nodes: Nodes, start_ns: Rows, duration_ns: Rows, node_type: int, name: str, first_id: int
) -> Nodes:
    """Nodes with further ones behind them, which have no attributes yet."""
    count = len(start_ns)
    table = nodes.attributes
    layouts = list(table.layouts)
    if () not in layouts:
        layouts.append(())
    bare = np.full(count, layouts.index(()), np.int32)
    attributes = AttributeTable(
        len(nodes) + count, list(table.columns), layouts, np.concatenate([table.layout, bare])
    )
    names = [*nodes.names, name]

    def filled(column: npt.NDArray[Any], value: Any) -> npt.NDArray[Any]:
        return np.concatenate([column, np.full(count, value, column.dtype)])

    new_ids = np.arange(first_id, first_id + count, dtype=np.uint64)
    return Nodes(
        id=np.concatenate([nodes.id, new_ids]),
        type=filled(nodes.type, node_type),
        name_code=filled(nodes.name_code, len(names) - 1),
        names=names,
        start_ns=np.concatenate([nodes.start_ns, start_ns]),
        duration_ns=np.concatenate([nodes.duration_ns, duration_ns]),
        input_code=filled(nodes.input_code, -1),
        output_code=filled(nodes.output_code, -1),
        texts=nodes.texts,
        attributes=attributes,
        extra=dict(nodes.extra),
        exact_start=filled(nodes.exact_start, True),
        exact_duration=filled(nodes.exact_duration, True),
    )
