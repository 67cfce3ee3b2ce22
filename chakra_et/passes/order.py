"""One order of collectives for all ranks."""

from __future__ import annotations

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.graph import redundant_edges
from chakra_et.model import EdgeKind, Edges, Trace, TraceSet
from chakra_et.passes.base import Change, PassResult, run_pass, speaking
from chakra_et.passes.clean import renumber
from chakra_et.passes.edit import rebuilt
from chakra_et.validators.joined import Joined, complete_groups
from chakra_et.validators.ordering import first_free
from chakra_et.validators.sequences import sequences
from chakra_et.validators.view import RunView, TraceView


@run_pass(
    "order-collectives",
    "Collectives of a group, and of several, in one order on all ranks.",
    requires="ET105 ET510",
    ensures="ET719",
)
def order_collectives(traces: TraceSet) -> PassResult:
    """Let each collective of a rank wait for the one before it, in an order that suits all ranks.

    In one group it is that in which they were asked for. Of several groups, and then nodes are
    numbered anew, only where ranks could otherwise issue collectives of two in different orders.
    For consumers that run one collective at a time anyway, of those that are ready.
    """
    traces, changes = _one_by_one(traces)
    if not speaking(traces, frozenset({"ET719"})):
        return PassResult(traces, changes)
    run = RunView({rank: TraceView(trace, rank) for rank, trace in traces.items()})
    joined = Joined(run, complete_groups(run))
    place = np.empty(joined.count, np.int64)
    source, target = joined.edges()
    order = first_free(joined.count, source, target, _wanted(run, joined))
    place[order] = np.arange(joined.count)
    changed = dict(traces)
    for rank, parts in joined.hubs.items():
        if not parts:
            continue
        rows = np.concatenate([rows for rows, _ in parts])
        hubs = np.concatenate([hubs for _, hubs in parts])
        rows = rows[np.argsort(place[hubs])]
        changed[rank] = _chained(traces[rank], rows[:-1], rows[1:])
        new = len(changed[rank].edges) - len(traces[rank].edges)
        if new:
            changes.append(Change("edges added between collectives of several groups", new, rank))
    # Ids have to ascend in the new order too, as they decide between nodes that are ready.
    numbered = renumber(TraceSet(changed))
    return PassResult(numbered.traces, changes + numbered.changes)


def _one_by_one(traces: TraceSet) -> tuple[TraceSet, list[Change]]:
    """Each collective of a group waits for the one before it: who is ready first is chance."""
    changed, changes = dict(traces), []
    pairs: dict[int, list[tuple[Rows, Rows]]] = {rank: [] for rank in traces}
    run = RunView({rank: TraceView(trace, rank) for rank, trace in traces.items()})
    for group in sequences(run).values():
        for one in group if len(group) > 1 else ():
            pairs[one.rank].append((one.rows[:-1], one.rows[1:]))
    for rank, found in pairs.items():
        if found:
            first, then = (np.concatenate(side) for side in zip(*found, strict=True))
            needed = _unordered(traces[rank], first, then)
            if needed.any():
                changed[rank] = _chained(traces[rank], first[needed], then[needed])
                new = int(np.count_nonzero(needed))
                changes.append(Change("edges added between collectives of a group", new, rank))
    return TraceSet(changed), changes


def _unordered(trace: Trace, first: Rows, then: Rows) -> Mask:
    """Of which pairs no path leads from the first to the second; nor back, as ids ascend."""
    # Of a guess, any path says as much.
    edges, place = _longer(trace, first, then, EdgeKind.EVENT)
    needless = place[redundant_edges(Trace(trace.nodes, edges, trace.metadata))]
    joined = trace.source_rows() * len(trace.nodes) + trace.edges.target
    needed: Mask = ~np.isin(first * len(trace.nodes) + then, joined)
    needed &= trace.nodes.id[first] < trace.nodes.id[then]
    needed[needless[needless >= len(trace.edges)] - len(trace.edges)] = False
    return needed


def _wanted(run: RunView, joined: Joined) -> Rows:
    """The place that each node would have by its start or id, as far as edges allow."""
    wish = np.concatenate(
        [
            np.where(view.timed, view.nodes.start_ns, view.nodes.id.astype(np.int64))
            for view in run.views.values()
        ]
        + [np.zeros(joined.count - joined.nodes, np.int64)]
    )
    place = np.empty(joined.count, np.int64)
    place[np.argsort(wish, kind="stable")] = np.arange(joined.count)
    return place


def _chained(trace: Trace, first: Rows, then: Rows) -> Trace:
    """A trace in which each row of `then` waits for that of `first`."""
    edges, place = _longer(trace, first, then, EdgeKind.GROUP)
    like = np.where(place < len(trace.edges), place, -1)
    return rebuilt(trace, np.arange(len(trace.nodes)), edges, like)


def _longer(trace: Trace, first: Rows, then: Rows, kind_of_new: EdgeKind) -> tuple[Edges, Rows]:
    """The edges with one more for each pair, and where each stood before: new ones behind all."""
    edges, count = trace.edges, len(then)
    target = np.concatenate([edges.target, then])
    source = np.concatenate([edges.source, trace.nodes.id[first]])
    kind = np.concatenate([edges.kind, np.full(count, kind_of_new, np.uint8)])
    inferred = np.concatenate([edges.inferred, np.ones(count, np.bool_)])
    order = Edges.in_rows(target, source, kind)
    columns = target[order], source[order], kind[order], inferred[order]
    return Edges.from_rows(len(trace.nodes), *columns), order
