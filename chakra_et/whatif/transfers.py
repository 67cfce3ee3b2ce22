"""Transfers that worker threads of a host make: asked for, waited for, merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.definitions import Kind
from chakra_et.errors import ChakraError
from chakra_et.model import EdgeKind, Trace, TraceSet
from chakra_et.passes.edit import set_attribute, with_edges, without_nodes
from chakra_et.replay.columns import columns_of
from chakra_et.replay.selectors import select
from chakra_et.tables.places import Places
from chakra_et.whatif.edit import Change, Edit, with_parts
from chakra_et.whatif.recorded.transfers import common_times
from chakra_et.whatif.values import number


@dataclass(frozen=True)
class Asked:
    """Transfers of one trace: by row the host operation that asked for each, or -1."""

    places: Places
    by: Rows

    @classmethod
    def of(cls, trace: Trace) -> Asked:
        """The operations that asked worker threads, or launched."""
        places = Places(trace)
        source, target, kind = trace.source_rows(), trace.edges.target, trace.edges.kind
        by = np.full(len(trace.nodes), NO_ROW, np.int64)
        asks = np.isin(kind, (EdgeKind.THREAD, EdgeKind.LAUNCH)) & (source >= 0)
        asks &= places.communication[target] & places.on_host[np.maximum(source, 0)]
        by[target[asks]] = source[asks]
        return cls(places, by)


def waited_for_at_once(trace: Trace) -> Trace | None:
    """The trace in which whoever asks for a transfer waits for it before going on.

    None where a transfer has nobody who asked, or who goes on.
    """
    asked = Asked.of(trace)
    transfers = np.flatnonzero(asked.places.communication)
    source, target, kind = trace.source_rows(), trace.edges.target, trace.edges.kind
    follows = np.full(len(trace.nodes), NO_ROW, np.int64)
    program = (kind == EdgeKind.PROGRAM) & (source >= 0)
    follows[source[program]] = target[program]
    goes_on = np.where(asked.by[transfers] >= 0, follows[asked.by[transfers]], NO_ROW)
    if not len(transfers) or (goes_on < 0).any():
        return None
    return with_waits(trace, transfers, goes_on)


def with_waits(
    trace: Trace, sources: Rows, targets: Rows, kind: EdgeKind = EdgeKind.THREAD
) -> Trace:
    """The trace in which nodes wait for some others, too; where they do so already, as before."""
    edges, more = trace.edges, len(sources)
    return with_edges(
        trace,
        np.append(edges.target, targets),
        np.append(edges.source, trace.nodes.id[sources]),
        np.append(edges.kind, np.full(more, kind, np.uint8)),
        np.append(edges.inferred, np.ones(more, np.bool_)),
        np.append(np.arange(len(edges)), np.full(more, NO_ROW)),
    )


_ALIKE: Final = ("comm_type", "comm_src", "comm_dst")


def merge(text: str, selector: str, value: str) -> Edit:
    """Each N transfers one after the other become one, which is asked for with the last of them.

    It moves the bytes of all, and takes as long as all of them. Those of a group, of one type and
    of one step, or outermost annotation, are merged; messages, where they go to the same rank.
    """
    size = number(text, value, least=1)
    if size != int(size):
        raise ChakraError(f"{text}: expected a whole number", remedy="Write merge:SELECTOR=2.")

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        made, gone, before_ns, after_ns = {}, 0, 0, 0
        common = common_times(traces)
        for rank, trace in traces.items():
            chosen = select(trace, selector)
            moves = {row: ns for (of, row), ns in common.items() if of == rank}
            made[rank], count, was, now = _merged(trace, chosen, int(size), moves)
            gone, before_ns, after_ns = gone + count, before_ns + was, after_ns + now
        return TraceSet(made), Change(text, gone, before_ns, after_ns, "merged")

    return Edit(text, apply)


def _merged(
    trace: Trace, chosen: Mask, size: int, moves: dict[int, int]
) -> tuple[Trace, int, int, int]:
    """The trace with some transfers merged, how many are gone, and how long all merged ones took
    and take now.

    `moves` has what transfers take without waiting for others, which is done once, before the last.
    A node that waited for one that is gone waits for the one that has its bytes.
    """
    asked = Asked.of(trace)
    rows = np.flatnonzero(chosen & asked.places.communication)
    into = _into(trace, asked, rows, size)
    gone = into != rows
    if not gone.any():
        return trace, 0, 0, 0
    columns = columns_of(trace)
    nodes = trace.nodes.copied()
    total, kept = np.zeros(len(nodes), np.int64), rows[~gone]
    np.add.at(total, into, nodes.attributes.dense("comm_size", 0, np.int64)[rows])
    set_attribute(nodes.attributes, "comm_size", Kind.INT64, kept, total[kept])
    parts = columns.parts
    ns, moved = parts.ns.copy(), parts.by_node(len(nodes))
    alone = np.array([moves.get(row, int(moved[row])) for row in rows.tolist()], np.int64)
    of_others = np.zeros(len(nodes), np.int64)
    np.add.at(of_others, into[gone], alone[gone])
    ns[parts.own] += of_others[parts.node[parts.own]]
    # Whoever asked for what is gone does not ask any more.
    silent = np.zeros(len(nodes) + 1, np.bool_)
    silent[asked.by[rows[gone]]] = True
    silent[NO_ROW] = False
    ns[silent[parts.owner]] = 0
    quiet = with_parts(Trace(nodes, trace.edges, trace.metadata), columns, ns)
    waiting = _with_their_waits(quiet, rows[gone], into[gone])
    dropped = np.zeros(len(nodes), np.bool_)
    dropped[rows[gone]] = True
    both = np.isin(into, into[gone])
    after = int(moved[rows[both & ~gone]].sum() + of_others.sum())
    return without_nodes(waiting, dropped), int(gone.sum()), int(moved[rows[both]].sum()), after


def _into(trace: Trace, asked: Asked, rows: Rows, size: int) -> Rows:
    """For each transfer the last one of those that it is merged with."""
    step = asked.places.outermost(asked.places.annotation)
    begun = np.where(asked.by[rows] >= 0, step[asked.by[rows]], NO_ROW).tolist()
    table = trace.nodes.attributes
    columns = (trace.nodes.type, *(table.dense(name, -1, np.int64) for name in _ALIKE))
    alike = zip(*(column[rows].tolist() for column in columns), strict=True)
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, (row, of) in enumerate(zip(rows.tolist(), alike, strict=True)):
        name = str(table.get(row, "pg_name") or "")
        groups.setdefault((name, begun[place], *of), []).append(place)
    into: Rows = rows.copy()
    for places in groups.values():
        for first in range(0, len(places), size):
            some = places[first : first + size]
            into[some] = rows[some[-1]]
    return into


def _with_their_waits(trace: Trace, gone: Rows, into: Rows) -> Trace:
    """What waited for a transfer that goes waits for the one that it is merged into, if later."""
    merged = np.full(len(trace.nodes), NO_ROW, np.int64)
    merged[gone] = into
    source, target = trace.source_rows(), trace.edges.target
    sources = np.where(source >= 0, merged[np.maximum(source, 0)], NO_ROW)
    waits = (sources >= 0) & (sources < target) & ~np.isin(target, gone)
    waits &= ~Places(trace).communication[target]
    return with_waits(trace, sources[waits], target[waits])
