"""Work of another run that a graph has no node for: on a thread it becomes a node of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.definitions import Kind, NodeType
from chakra_et.model import EdgeKind, Edges, Nodes, Trace
from chakra_et.passes.edit import appended

NAME: Final = "work of the other run"
"""The name of nodes for operations that only the other run has."""


_HOST_ORDER: Final = (EdgeKind.PROGRAM, EdgeKind.THREAD)
"""Edges that lead on from the end of what a thread does: another thread waits for all of it."""


@dataclass(frozen=True)
class Run:
    """Operations that follow each other on a thread of the other run and have no place here.

    `beside` is the row here that they come after, or before if they are the first of the thread.
    """

    beside: int
    before: bool
    ns: int


def inserted(trace: Trace, runs: list[Run]) -> Trace:
    """The trace with a node for each run, at its place in the order of its thread."""
    if not runs:
        return trace
    nodes = _with_nodes(trace.nodes, runs)
    count = len(trace.nodes)
    new = {(run.beside, run.before): count + i for i, run in enumerate(runs)}
    rows, target = trace.source_rows(), trace.edges.target
    source = trace.edges.source.copy()
    links = []
    for edge in np.flatnonzero(np.isin(trace.edges.kind, _HOST_ORDER)).tolist():
        after = new.get((int(rows[edge]), False))
        if after is not None:
            source[edge] = nodes.id[after]
        before = new.get((int(target[edge]), True))
        if before is not None and trace.edges.kind[edge] == EdgeKind.PROGRAM:
            links.append((before, int(source[edge])))
            source[edge] = nodes.id[before]
    linked = {row for row, _ in links}
    for (beside, first), row in new.items():
        if not first:
            links.append((row, int(nodes.id[beside])))
        elif row not in linked:
            links.append((beside, int(nodes.id[row])))
    return Trace(nodes, _with_links(trace.edges, source, links, len(nodes)), trace.metadata)


def _with_links(
    edges: Edges, source: npt.NDArray[np.uint64], links: list[tuple[int, int]], count: int
) -> Edges:
    """The edges with other sources, and edges of program order from ids to rows besides."""
    return Edges.collect(
        count,
        np.append(edges.target, np.array([row for row, _ in links], np.int64)),
        np.append(source, np.array([node for _, node in links], np.uint64)),
        np.append(edges.kind, np.full(len(links), EdgeKind.PROGRAM, np.uint8)),
        np.append(edges.inferred, np.zeros(len(links), np.bool_)),
    )


def _with_nodes(nodes: Nodes, runs: list[Run]) -> Nodes:
    """The nodes, and behind them one for each run, on the thread of the row beside it."""
    beside = np.array([run.beside for run in runs], np.int64)
    length = np.array([run.ns for run in runs], np.int64)
    start = nodes.start_ns[beside]
    first_id = int(nodes.id.max()) + 1
    longer = appended(nodes, start, length, NodeType.COMP, NAME, first_id)
    new = len(nodes) + np.arange(len(runs))
    longer.attributes.add("is_cpu_op", Kind.BOOL, np.ones(len(new), np.bool_), new)
    thread = nodes.attributes.dense("thread", 0, np.int64)[beside]
    has = nodes.attributes.present("thread")[beside]
    for column in nodes.attributes.named("thread")[:1]:
        longer.attributes.add("thread", column.key.kind or Kind.INT64, thread[has], new[has])
    return longer
