"""Cures of files that break the rules of the format, whoever reads them."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.definitions import ATTRIBUTES, FORMAT_VERSION, Kind, NodeType
from chakra_et.model import AttributeColumn, AttributeTable, Trace, edge_evidence
from chakra_et.model.attribute_values import INTEGER_KINDS, INTEGER_RANGES
from chakra_et.passes.base import Change, trace_pass
from chakra_et.passes.edit import (
    annotate,
    copied,
    drop_attribute,
    edges_of,
    follow_ids,
    rebuilt,
    set_attribute,
)
from chakra_et.validators.cycles import cycles
from chakra_et.validators.host_calls import calls_of_communication
from chakra_et.validators.ordering import issue_order
from chakra_et.validators.view import TraceView

_COMMUNICATION: Final = (NodeType.COMM_SEND, NodeType.COMM_RECV, NodeType.COMM_COLL)
_STALE: Final = ("edge_kinds", "start_time_ns", "duration_ns")


@trace_pass("set-version", "Metadata that is never empty.", ensures="ET004")
def set_version(trace: Trace, rank: int) -> tuple[Trace, list[Change]]:
    """Write the version of the format where there is none."""
    if trace.metadata.version:
        return trace, []
    trace = copied(trace)
    trace.metadata.version = FORMAT_VERSION
    return trace, [Change("version set", 1)]


@trace_pass("demote-calls", "Each communication once, on the device.", ensures="ET219")
def demote_calls(trace: Trace, rank: int) -> tuple[Trace, list[Change]]:
    """Make host work of calls of communication that the device does."""
    rows = calls_of_communication(TraceView(trace, rank))
    if len(rows) == 0:
        return trace, []
    trace = copied(trace)
    notes = [f"{NodeType(int(t)).name}_NODE as COMP_NODE" for t in trace.nodes.type[rows]]
    trace.nodes.type[rows] = NodeType.COMP
    annotate(trace.nodes.attributes, rows, notes)
    told = list(zip(trace.nodes.id[rows].tolist(), notes, strict=True))
    return trace, [Change("calls of communication made host work", len(rows), nodes=told)]


@trace_pass(
    "normalise-attributes",
    "Attributes in the kinds that every reader takes, once each.",
    ensures="ET202 ET203 ET212 ET216",
)
def normalise_attributes(trace: Trace, rank: int) -> tuple[Trace, list[Change]]:
    """Canonical kinds, no repetitions, nothing stale, and no communication on the host."""
    trace = copied(trace)
    table = trace.nodes.attributes
    changes = []
    repeated = _drop_repeated(table)
    if repeated:
        changes.append(Change("repeated attributes dropped", repeated))
    for name in _STALE:
        rows = np.flatnonzero(table.present(name))
        if len(rows):
            drop_attribute(table, name, rows)
            changes.append(Change(f"stale {name} dropped", len(rows)))
    rows = edge_evidence.misfits(trace)
    if len(rows):
        drop_attribute(table, edge_evidence.NAME, rows)
        changes.append(Change(f"stale {edge_evidence.NAME} dropped", len(rows)))
    for name, attribute in ATTRIBUTES.items():
        count = _to_kind(table, name, attribute.kind, attribute.accepts)
        if count:
            changes.append(Change(f"{name} written as {attribute.kind.name.lower()}", count))
    rows = np.flatnonzero(np.isin(trace.nodes.type, _COMMUNICATION))
    wrong = rows[TraceView(trace, rank).on_host[rows]]
    if len(wrong):
        set_attribute(table, "is_cpu_op", Kind.BOOL, wrong, np.zeros(len(wrong), np.bool_))
        changes.append(Change("communication taken off the host", len(wrong)))
    return (trace, changes)


def _to_kind(table: AttributeTable, name: str, kind: Kind, accepts: frozenset[Kind]) -> int:
    """Write an attribute in its own kind where another one is accepted and the values fit."""
    count = 0
    for column in table.named(name):
        if column.key.kind is kind or column.key.kind not in accepts or not len(column.rows):
            continue
        values = np.asarray(column.values)
        if kind in INTEGER_KINDS:
            low, high = INTEGER_RANGES[kind]
            if int(values.min()) < low or int(values.max()) > high:
                continue
        rows = column.rows.copy()
        table.remove(column, rows)
        table.add(name, kind, values.astype(np.bool_) if kind is Kind.BOOL else values, rows)
        count += len(rows)
    return count


def _drop_repeated(table: AttributeTable) -> int:
    """Keep the first of attributes of one name."""
    count = 0
    while (found := _repeated(table)) is not None:
        column, rows = found
        table.remove(column, rows)
        count += len(rows)
    return count


def _repeated(table: AttributeTable) -> tuple[AttributeColumn, Rows] | None:
    """A column whose name its nodes have from an earlier one, and some of those nodes."""
    for code in np.unique(table.layout).tolist():
        seen: set[str] = set()
        for number in table.layouts[code]:
            column = table.columns[number]
            if column.key.name in seen:
                return column, np.flatnonzero(table.layout == code)
            seen.add(column.key.name)
    return None


@trace_pass(
    "drop-bad-edges",
    "Edges that lead from a node to another one, each once.",
    ensures="ET102 ET103 ET104",
)
def drop_bad_edges(trace: Trace, rank: int) -> tuple[Trace, list[Change]]:
    """Without edges to missing nodes, to the node itself, and without repetitions."""
    edges, source = trace.edges, trace.source_rows()
    target = edges.target
    missing = source < 0
    itself = edges.source == trace.nodes.id[target]
    good = np.flatnonzero(~missing & ~itself)
    kept, like = edges_of(len(trace.nodes), target[good], edges.source[good], edges, good)
    changes = [
        Change("edges to missing nodes dropped", int(missing.sum())),
        Change("edges of nodes to themselves dropped", int((itself & ~missing).sum())),
        Change("repeated edges dropped", len(good) - len(kept)),
    ]
    changes = [change for change in changes if change.count]
    if not changes:
        return trace, []
    return rebuilt(trace, np.arange(len(trace.nodes)), kept, like), changes


@trace_pass("cut-cycles", "Cycles cut by dropping one edge of each.", ensures="ET105")
def cut_cycles(trace: Trace, rank: int) -> tuple[Trace, list[Change]]:
    """Drop, of each cycle, the edge that leads back furthest; as often as there are cycles."""
    edges, source, target = trace.edges, trace.source_rows(), trace.edges.target
    kept = np.ones(len(edges), np.bool_)
    cut: list[tuple[int, str]] = []
    while True:
        sound = np.flatnonzero(kept & (source >= 0) & (source != target))
        found = cycles(len(trace.nodes), source[sound], target[sound])
        if not found:
            break
        for rows in found:
            steps = list(zip(rows, [*rows[1:], rows[0]], strict=True))
            row, other = max(steps, key=lambda step: (_when(trace, step[1]), step[1] - step[0]))
            span = np.arange(edges.offsets[row], edges.offsets[row + 1])
            kept[span[source[span] == other]] = False
            ids = trace.nodes.id
            cut.append((int(ids[row]), f"no longer waits for node {ids[other]}"))
    if not cut:
        return trace, []
    places = np.flatnonzero(kept)
    new = edges_of(len(trace.nodes), target[places], edges.source[places], edges, places)
    changes = [Change("edges dropped to cut cycles", len(cut), nodes=cut)]
    return rebuilt(trace, np.arange(len(trace.nodes)), *new), changes


def _when(trace: Trace, row: int) -> int:
    return int(trace.nodes.start_ns[row])


@trace_pass(
    "renumber",
    "Nodes in the order of their starts, numbered so, none before what it waits for.",
    requires="ET105",
    ensures="ET101 ET108 ET704",
)
def renumber(trace: Trace, rank: int) -> tuple[Trace, list[Change]]:
    """Order by start, then by id, as far as edges allow, and number from 1."""
    order = issue_order(trace)
    ids = np.arange(1, len(order) + 1, dtype=np.uint64)
    if np.array_equal(order, np.arange(len(order))) and _is_issue_numbered(trace):
        return trace, []
    source = trace.source_rows()
    new_row = np.empty(len(order), np.int64)
    new_row[order] = np.arange(len(order))
    edges = trace.edges
    places = np.flatnonzero(source >= 0)
    new = edges_of(
        len(order), new_row[edges.target[places]], ids[new_row[source[places]]], edges, places
    )
    changed = rebuilt(trace, order, *new)
    changed.nodes.id = ids
    follow_ids(trace, changed, new_row)
    return Trace(changed.nodes, changed.edges, changed.metadata), [
        Change("nodes numbered in the order of issue", len(order))
    ]


def _is_issue_numbered(trace: Trace) -> bool:
    return bool((trace.nodes.id[1:] > trace.nodes.id[:-1]).all())
