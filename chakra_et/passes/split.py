"""Nodes for what else only attributes tell: whose time a node holds, and late starts.

For consumers that know one owner for each node, and edges from ends to starts, but no more.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import Kind, NodeType
from chakra_et.model import (
    GAP,
    EdgeKind,
    Edges,
    Nodes,
    Trace,
    TraceSet,
    edge_evidence,
    set_time_parts,
    time_parts,
)
from chakra_et.model.time_parts import TimeParts
from chakra_et.passes.base import Change, Pass, trace_pass
from chakra_et.passes.clean import renumber
from chakra_et.passes.edit import appended, copied, drop_attribute, rebuilt, set_attribute

GAP_NAME: Final = "gap"
"""The name of a node in which nothing was open on its thread."""
LATE_NAME: Final = "late start"
"""The name of a node that stands for the time by which device work started late."""


def splitting(least_ns: int = 1) -> Pass:
    """The pass that makes nodes of parts of host time, of those that last `least_ns` or more."""

    @trace_pass(
        "split-host-time",
        "A node for each part of a host node's time that is not its own.",
        requires="ET105 ET311",
    )
    def split(trace: Trace, rank: int) -> tuple[Trace, list[Change]]:
        """Split host nodes where another owner's time begins; a replay gives the same times."""
        parts = time_parts(trace.nodes)
        splits = _on_host(trace) & ~trace.nodes.attributes.dense("polling", False, np.bool_)
        long = ~parts.own & (parts.ns >= max(least_ns, 1))
        chosen = np.flatnonzero(long & splits[parts.node])
        if len(chosen) == 0:
            return trace, []
        changes = [Change("nodes added for time of others in host nodes", len(chosen))]
        return _numbered(_split(trace, parts, chosen), rank), changes

    return split


split_host_time = splitting()


@trace_pass("show-late-starts", "A node for each late start of device work.", requires="ET105")
def show_late_starts(trace: Trace, rank: int) -> tuple[Trace, list[Change]]:
    """Put the time by which device work started late, for no known reason, into a node before."""
    late_ns = trace.nodes.attributes.dense("late_ns", 0, np.int64)
    rows = np.flatnonzero((late_ns > 0) & ~_on_host(trace) & (trace.nodes.type == NodeType.COMP))
    if len(rows) == 0:
        return trace, []
    changes = [
        Change("nodes added for late starts", len(rows)),
        Change("ns of late starts", int(late_ns[rows].sum())),
    ]
    return _numbered(_before(trace, rows, late_ns[rows]), rank), changes


def _on_host(trace: Trace) -> Mask:
    mask: Mask = trace.nodes.attributes.dense("is_cpu_op", False, np.bool_)
    return mask


def _numbered(trace: Trace, rank: int) -> Trace:
    return renumber(TraceSet({rank: trace})).traces[rank]


def _split(trace: Trace, parts: TimeParts, chosen: Rows) -> Trace:
    """The trace with a node for each of the chosen parts, before or behind the one that held it."""
    nodes, count = trace.nodes, len(trace.nodes)
    holder, owner, ns = parts.node[chosen], parts.owner[chosen], parts.ns[chosen]
    leads = _leads(parts)[chosen]
    left = replace(parts, ns=parts.ns.copy())
    left.ns[chosen] = 0
    short, led = left.by_node(count), np.zeros(count, np.int64)
    np.add.at(led, holder[leads], ns[leads])
    own_start = nodes.attributes.dense("own_start_ns", 0, np.int64)
    begin = np.where(nodes.attributes.present("own_start_ns"), own_start, nodes.start_ns)
    new = count + np.arange(len(chosen))
    first = np.append(True, (holder[1:] != holder[:-1]) | (leads[1:] != leads[:-1]))
    until = np.cumsum(ns)
    within = until - ns - (until - ns)[np.flatnonzero(first)][np.cumsum(first) - 1]
    start = begin[holder] + within + np.where(leads, 0, (led + short)[holder])
    longer = _appended(nodes, start, ns, GAP_NAME)
    named = np.flatnonzero(owner != GAP)
    longer.name_code[new[named]] = nodes.name_code[owner[named]]
    longer.duration_ns[:count] = short
    later = np.flatnonzero(led)
    set_attribute(longer.attributes, "own_start_ns", Kind.INT64, later, (begin + led)[later])
    _describe(longer, holder, new, new[named], nodes.id[owner[named]])
    set_time_parts(longer, _of_new(left, parts, chosen, new))
    # What waited for the node waits for the last of its parts.
    last = np.arange(count)
    last[holder[~leads]] = new[~leads]
    behind = np.where(first, holder, new - 1)[~leads]
    linked = _linked(trace, longer, last, new[~leads], longer.id[behind], EdgeKind.PROGRAM)
    return _led(linked, holder[leads], new[leads], first[leads])


def _led(trace: Trace, holder: Rows, new: Rows, first: Mask) -> Trace:
    """The trace with nodes `new` between what `holder` waits for and that; `first` ones begin."""
    waiting = _waiting_alike(trace, holder[first], new[first])
    ends = np.append(first[1:], True)[: len(first)]
    target = np.append(new[~first], holder[ends])
    source = np.append(new[~first] - 1, new[ends])
    rows = np.arange(len(trace.nodes))
    return _linked(waiting, waiting.nodes, rows, target, waiting.nodes.id[source], EdgeKind.PROGRAM)


def _leads(parts: TimeParts) -> Mask:
    """Which parts lie before the own ones of the nodes that hold them.

    They end a node before, and what the node launches waits for them.
    """
    own = np.flatnonzero(parts.own)
    return np.asarray(
        np.arange(len(parts.node)) < own[np.searchsorted(parts.node[own], parts.node)]
    )


def _of_new(left: TimeParts, parts: TimeParts, chosen: Rows, new: Rows) -> TimeParts:
    """The parts after the split: what nodes kept, and one for each new node."""
    return TimeParts(
        np.append(left.node, new),
        np.append(left.owner, parts.owner[chosen]),
        np.append(left.ns, parts.ns[chosen]),
    )


def _describe(nodes: Nodes, like: Rows, new: Rows, owned: Rows, owners: npt.NDArray[Any]) -> None:
    """Give new host nodes the thread of others, and those of an owner its id."""
    nodes.attributes.add("is_cpu_op", Kind.BOOL, np.ones(len(new), np.bool_), new)
    for column in nodes.attributes.named("thread"):
        thread = nodes.attributes.dense("thread", 0, np.int64)[like]
        has = nodes.attributes.present("thread")[like]
        nodes.attributes.add("thread", column.key.kind or Kind.INT64, thread[has], new[has])
        break
    nodes.attributes.add("rest_of", Kind.UINT64, owners, owned)


def _before(trace: Trace, rows: Rows, late_ns: Rows) -> Trace:
    """The trace with a node before each of `rows`, which waits for all that this one waits for."""
    source = copied(trace)
    drop_attribute(source.nodes.attributes, "late_ns", rows)
    count, new = len(trace.nodes), len(trace.nodes) + np.arange(len(rows))
    start = trace.nodes.start_ns[rows] - late_ns
    nodes = _appended(source.nodes, start, late_ns, LATE_NAME)
    nodes.attributes.add("is_cpu_op", Kind.BOOL, np.zeros(len(new), np.bool_), new)
    linked = _linked(source, nodes, np.arange(count), rows, nodes.id[new], EdgeKind.STREAM)
    return _waiting_alike(linked, rows, new)


def _waiting_alike(trace: Trace, rows: Rows, new: Rows) -> Trace:
    """Let each new node wait for all that the row after it waits for, but itself."""
    edges = trace.edges
    after = np.full(len(trace.nodes), -1, np.int64)
    after[rows] = new
    target = after[edges.target]
    copy = (target >= 0) & (edges.kind != EdgeKind.CALL)
    copy &= edges.source != trace.nodes.id[np.maximum(target, 0)]
    places = np.append(np.arange(len(edges)), np.flatnonzero(copy))
    targets = np.append(edges.target, target[copy])
    order = Edges.in_rows(targets, edges.source[places], edges.kind[places])
    places = places[order]
    changed = Edges.from_rows(
        len(trace.nodes), targets[order], edges.source[places], edges.kind[places],
        edges.inferred[places],
    )  # fmt: skip
    return rebuilt(trace, np.arange(len(trace.nodes)), changed, places)


def _appended(nodes: Nodes, start_ns: Rows, duration_ns: Rows, name: str) -> Nodes:
    first_id = int(nodes.id.max()) + 1
    return appended(nodes, start_ns, duration_ns, NodeType.COMP, name, first_id)


def _linked(
    trace: Trace, nodes: Nodes, last: Rows, target: Rows, source: npt.NDArray[Any], kind: EdgeKind
) -> Trace:
    """The nodes with the edges of a trace, which lead from `last[r]` where they led from row r.

    Calls stay where they were. Edges of a kind are added from ids `source` to rows `target`.
    """
    edges, rows = trace.edges, trace.source_rows()
    moved = (rows >= 0) & (edges.kind != EdgeKind.CALL)
    ids = np.where(moved, nodes.id[last[np.maximum(rows, 0)]], edges.source)
    targets, sources = np.append(edges.target, target), np.append(ids, source)
    kinds = np.append(edges.kind, np.full(len(target), kind, np.uint8))
    inferred = np.append(edges.inferred, np.zeros(len(target), np.bool_))
    like = np.append(np.arange(len(edges)), np.full(len(target), -1))
    order = Edges.in_rows(targets, sources, kinds)
    columns = targets[order], sources[order], kinds[order], inferred[order]
    changed = Edges.from_rows(len(nodes), *columns)
    whole = Trace(nodes, Edges.empty(len(nodes)), trace.metadata)
    return _with_evidence(trace, whole, changed, like[order])


def _with_evidence(trace: Trace, whole: Trace, edges: Edges, like: Rows) -> Trace:
    """The nodes of `whole` with edges that rest on what those of `trace` do."""
    said = edge_evidence.entries(trace)
    kept = {new: said[old] for new, old in enumerate(like.tolist()) if old in said}
    result = rebuilt(whole, np.arange(len(whole.nodes)), edges)
    edge_evidence.set_entries(result.nodes, edges, kept)
    return result
