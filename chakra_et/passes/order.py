"""One order of collectives for all ranks."""

from __future__ import annotations

import numpy as np

from chakra_et.columns import Rows
from chakra_et.model import EdgeKind, Edges, Trace, TraceSet
from chakra_et.passes.base import Change, PassResult, run_pass, speaking
from chakra_et.passes.clean import renumber
from chakra_et.passes.edit import rebuilt
from chakra_et.validators.joined import Joined, complete_groups
from chakra_et.validators.ordering import first_free
from chakra_et.validators.view import RunView, TraceView


@run_pass(
    "order-collectives",
    "Collectives of several groups in one order on all ranks.",
    requires="ET105 ET510",
    ensures="ET719",
)
def order_collectives(traces: TraceSet) -> PassResult:
    """Let each collective of a rank wait for the one before it, in an order that suits all ranks.

    Nodes are numbered anew. Only where ranks could otherwise issue collectives of two groups in
    different orders, and for consumers that run one collective at a time anyway.
    """
    if not speaking(traces, frozenset({"ET719"})):
        return PassResult(traces, [])
    run = RunView({rank: TraceView(trace, rank) for rank, trace in traces.items()})
    joined = Joined(run, complete_groups(run))
    place = np.empty(joined.count, np.int64)
    source, target = joined.edges()
    order = first_free(joined.count, source, target, _wanted(run, joined))
    place[order] = np.arange(joined.count)
    changed, changes = dict(traces), []
    for rank, parts in joined.hubs.items():
        if not parts:
            continue
        rows = np.concatenate([rows for rows, _ in parts])
        hubs = np.concatenate([hubs for _, hubs in parts])
        rows = rows[np.argsort(place[hubs])]
        changed[rank] = _chained(traces[rank], rows)
        new = len(changed[rank].edges) - len(traces[rank].edges)
        if new:
            changes.append(Change("edges added between collectives of several groups", new, rank))
    # Ids have to ascend in the new order too, as they decide between nodes that are ready.
    numbered = renumber(TraceSet(changed))
    return PassResult(numbered.traces, changes + numbered.changes)


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


def _chained(trace: Trace, rows: Rows) -> Trace:
    """A trace in which each of `rows` waits for the one before it."""
    edges = trace.edges
    count = len(rows) - 1
    target = np.concatenate([edges.target, rows[1:]])
    source = np.concatenate([edges.source, trace.nodes.id[rows[:-1]]])
    kind = np.concatenate([edges.kind, np.full(count, EdgeKind.GROUP, np.uint8)])
    inferred = np.concatenate([edges.inferred, np.ones(count, np.bool_)])
    like = np.concatenate([np.arange(len(edges)), np.full(count, -1)])
    order = Edges.in_rows(target, source, kind)
    columns = target[order], source[order], kind[order], inferred[order]
    chained = Edges.from_rows(len(trace.nodes), *columns)
    return rebuilt(trace, np.arange(len(trace.nodes)), chained, like[order])
