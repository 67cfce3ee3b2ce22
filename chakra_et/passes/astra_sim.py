"""Cures for ASTRA-sim: what it cannot run becomes something like it that it can."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import CollectiveType, Kind, NodeType
from chakra_et.model import Edges, Trace, TraceSet
from chakra_et.passes.base import Change, PassResult, run_pass, trace_pass
from chakra_et.passes.edit import (
    NOTE,
    annotate,
    appended,
    copied,
    drop_attribute,
    set_attribute,
    without_nodes,
)
from chakra_et.validators.astra_sim_limits import LEAST_BYTES
from chakra_et.validators.sequences import WORLD, Sequence, sequences
from chakra_et.validators.view import ABSENT, RunView, TraceView

_TO_COMP: Final = (NodeType.MEM_LOAD, NodeType.MEM_STORE, NodeType.STORAGE, NodeType.DATA_OP)
_IN_PLACE: Final = {
    CollectiveType.BARRIER: CollectiveType.ALL_REDUCE,
    CollectiveType.REDUCE: CollectiveType.ALL_REDUCE,
    CollectiveType.GATHER: CollectiveType.ALL_GATHER,
    CollectiveType.SCATTER: CollectiveType.REDUCE_SCATTER,
    CollectiveType.REDUCE_SCATTER_BLOCK: CollectiveType.REDUCE_SCATTER,
}
"""What stands in for a collective that is not simulated: one that moves at least as much."""


@trace_pass(
    "drop-metadata-nodes",
    "Nodes that do work, of the types that simulators know.",
    ensures="ET204 ET701 ET702 ET703",
)
def drop_metadata_nodes(trace: Trace, rank: int) -> tuple[Trace, list[Change]]:
    """Drop METADATA nodes and those of no known type; memory and storage become COMP nodes."""
    types = trace.nodes.type
    changes = []
    other = np.flatnonzero(np.isin(types, _TO_COMP))
    if len(other):
        trace = copied(trace)
        labels = [f"{NodeType(int(t)).name}_NODE as COMP_NODE" for t in types[other]]
        trace.nodes.type[other] = NodeType.COMP
        annotate(trace.nodes.attributes, other, labels)
        changes.append(_change("memory and storage nodes made COMP nodes", trace, other, labels))
        types = trace.nodes.type
    known = (types >= NodeType.MEM_LOAD) & (types <= NodeType.COMM_COLL)
    dropped = ~known
    if dropped.any():
        for label, mask in (
            ("METADATA nodes dropped", types == NodeType.METADATA),
            ("nodes without a known type dropped", dropped & (types != NodeType.METADATA)),
        ):
            if mask.any():
                names = [trace.nodes[int(row)].name for row in np.flatnonzero(mask)[:1000]]
                changes.append(_change(label, trace, np.flatnonzero(mask), names))
        trace = without_nodes(trace, dropped)
    return trace, changes


@run_pass(
    "drop-lone-collectives",
    "No collective of a group of one rank.",
    ensures="ET716",
)
def drop_lone_collectives(traces: TraceSet) -> PassResult:
    """Drop collectives whose group has one member; what waited for them waits on."""
    run = _run(traces)
    changed, changes = {}, []
    for rank, trace in traces.items():
        view = run.views[rank]
        names = view.texts("pg_name")[view.collectives].astype(str)
        lone = [n for n in set(names.tolist()) if n not in WORLD and run.is_lone(view, n)]
        rows = view.collectives[np.isin(names, lone)]
        changed[rank] = trace
        if len(rows):
            dropped = np.zeros(len(trace.nodes), np.bool_)
            dropped[rows] = True
            notes = [f"group of one rank: {view.name(int(row))}" for row in rows[:1000]]
            change = _change("collectives of groups of one rank dropped", trace, rows, notes)
            change.rank = rank
            changes.append(change)
            changed[rank] = without_nodes(trace, dropped)
    return PassResult(TraceSet(changed), changes)


@run_pass(
    "lower-collectives",
    "Collectives that are simulated, of sizes that are.",
    ensures="ET710 ET712 ET717 ET718",
)
def lower_collectives(traces: TraceSet) -> PassResult:
    """Put like collectives in the place of others, raise sizes that are too small or uneven."""
    changed = {rank: copied(trace) for rank, trace in traces.items()}
    changes: list[Change] = []
    for rank, trace in changed.items():
        view = TraceView(trace, rank)
        changes += _lowered(view) + _without_dimensions(view)
    for group in sequences(_run(TraceSet(changed))).values():
        if len({len(s.rows) for s in group}) == 1:
            changes += _levelled(group)
    for rank, trace in changed.items():
        changes += _padded(TraceView(trace, rank))
    return PassResult(TraceSet(changed) if changes else traces, changes)


def _lowered(view: TraceView) -> list[Change]:
    rows = view.collectives
    table = view.nodes.attributes
    types = view.integers("comm_type")[rows]
    found = np.flatnonzero(np.isin(types, list(_IN_PLACE)))
    if len(found) == 0:
        return []
    chosen = rows[found]
    old = [CollectiveType(int(t)) for t in types[found]]
    new = [_IN_PLACE[t] for t in old]
    notes = [f"{a.name} as {b.name}" for a, b in zip(old, new, strict=True)]
    set_attribute(table, "comm_type", Kind.INT64, chosen, np.array(new, np.int64))
    size = view.integers("comm_size")[chosen]
    barrier = np.array([t is CollectiveType.BARRIER for t in old]) | (size == ABSENT)
    least = max(LEAST_BYTES, LEAST_BYTES * (view.trace.world_size or 1))
    set_attribute(
        table, "comm_size", Kind.INT64, chosen, np.where(barrier, np.maximum(size, least), size)
    )
    annotate(table, chosen, notes)
    return [_change("collectives lowered", view.trace, chosen, notes, view.rank)]


def _without_dimensions(view: TraceView) -> list[Change]:
    """Drop lists of dimensions that name none."""
    rows = [
        row
        for column in view.nodes.attributes.named("involved_dim")
        for row, value in zip(column.rows.tolist(), column.values, strict=True)
        if not isinstance(value, tuple) or not any(value)
    ]
    if not rows:
        return []
    at = np.unique(np.array(rows, np.int64))
    drop_attribute(view.nodes.attributes, "involved_dim", at)
    return [_change("involved_dim without a dimension dropped", view.trace, at, [], view.rank)]


def _levelled(group: list[Sequence]) -> list[Change]:
    """Raise the sizes of collectives to the largest that a rank brings, where they differ."""
    types = np.stack([s.types for s in group])
    sizes = np.stack([s.sizes for s in group])
    strict = np.stack([s.strict_sizes() for s in group])
    wrong = (types == types[0]).all(0) & (sizes != sizes[0]).any(0)
    # Sizes that have to be equal on the machine too are an error, not a licence.
    wrong &= (strict == 0).all(0) | _was_lowered(group)
    changes = []
    for place, s in enumerate(group):
        low = np.flatnonzero(wrong & (sizes[place] < sizes.max(0)))
        if len(low) == 0:
            continue
        rows = s.rows[low]
        order = np.argsort(rows)
        rows, new, old = rows[order], sizes.max(0)[low][order], sizes[place][low][order]
        notes = [
            f"{a} bytes raised to {b}" for a, b in zip(old.tolist(), new.tolist(), strict=True)
        ]
        table = s.view.nodes.attributes
        set_attribute(table, "comm_size", Kind.INT64, rows, new)
        annotate(table, rows, notes)
        changes.append(
            _change("sizes raised to the largest of the group", s.view.trace, rows, notes, s.rank)
        )
    return changes


def _was_lowered(group: list[Sequence]) -> Mask:
    """Ordinals at which a collective stands for another one, whose sizes may have differed."""
    return np.asarray(np.stack([s.view.present(NOTE)[s.rows] for s in group]).all(0))


def _padded(view: TraceView) -> list[Change]:
    rows = view.collectives
    types, size = view.integers("comm_type")[rows], view.integers("comm_size")[rows]
    gather = (types == CollectiveType.ALL_GATHER) & (size < LEAST_BYTES)
    small = np.flatnonzero((size != ABSENT) & (gather | (size < 0)))
    if len(small) == 0:
        return []
    chosen = rows[small]
    notes = [f"{old} bytes padded to {LEAST_BYTES}" for old in size[small].tolist()]
    table = view.nodes.attributes
    set_attribute(table, "comm_size", Kind.INT64, chosen, np.full(len(small), LEAST_BYTES))
    annotate(table, chosen, notes)
    return [_change("collectives padded", view.trace, chosen, notes, view.rank)]


@trace_pass("fill-idle-ranks", "A node in every trace.", ensures="ET107")
def fill_idle_ranks(trace: Trace, rank: int) -> tuple[Trace, list[Change]]:
    """Give a trace without nodes one that takes no time."""
    if len(trace.nodes):
        return trace, []
    zero = np.zeros(1, np.int64)
    nodes = appended(trace.nodes, zero, zero, NodeType.COMP, "idle rank", 1)
    nodes.attributes.add("is_cpu_op", Kind.BOOL, np.zeros(1, np.bool_))
    return Trace(nodes, Edges.empty(1), trace.metadata), [Change("node added to an idle rank", 1)]


def _run(traces: TraceSet) -> RunView:
    return RunView({rank: TraceView(trace, rank) for rank, trace in traces.items()})


def _change(
    what: str,
    trace: Trace,
    rows: Rows,
    notes: list[str],
    rank: int | None = None,
) -> Change:
    ids = trace.nodes.id[rows].tolist()
    texts = notes or [""] * len(ids)
    return Change(what, len(rows), rank, list(zip(ids, texts, strict=False)))
