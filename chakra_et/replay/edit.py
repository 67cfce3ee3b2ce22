"""Edits of a trace for what-ifs that no duration expresses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chakra_et.errors import ChakraError
from chakra_et.model import EdgeKind, Edges, Nodes, Trace, edge_evidence


def move_after(trace: Trace, node: int, other: int) -> Trace:
    """A trace in which the host node `node` comes right after `other` on its thread (both are ids).

    What followed it follows what came before it, and no caller holds it. If the node is a call that
    waits for a stream or a device, a replay finds anew what it waits for. Raises KeyError for an
    unknown id, and ChakraError for nodes that have no place on a thread.
    """
    moved, anchor = trace.nodes.by_id(node).row, trace.nodes.by_id(other).row
    source, target = trace.source_rows(), trace.edges.target
    program = trace.edges.kind == EdgeKind.PROGRAM
    pairs = list(zip(source[program].tolist(), target[program].tolist(), strict=True))
    after = dict(pairs)
    before = {t: s for s, t in pairs}
    if moved == anchor or not all(row in after or row in before for row in (moved, anchor)):
        raise ChakraError(
            f"node {node} cannot be moved after node {other}",
            remedy="Name two host nodes of one thread.",
        )
    if before.get(moved) == anchor:
        return trace
    gone = program & ((source == moved) | (target == moved) | (source == anchor))
    gone |= (trace.edges.kind == EdgeKind.CALL) & (target == moved)
    links = [
        (before.get(moved), after.get(moved)),
        (anchor, moved),
        (moved, after.get(anchor)),
    ]
    return _linked(trace, ~gone, [(s, t) for s, t in links if s is not None and t is not None])


def _linked(trace: Trace, kept: npt.NDArray[np.bool_], links: list[tuple[int, int]]) -> Trace:
    """The trace with the edges `kept`, and edges of program order between rows."""
    edges, nodes = trace.edges, trace.nodes
    sources = nodes.id[np.array([s for s, _ in links], np.int64)]
    changed = Edges.collect(
        len(nodes),
        np.append(edges.target[kept], np.array([t for _, t in links], np.int64)),
        np.append(edges.source[kept], sources),
        np.append(edges.kind[kept], np.full(len(links), EdgeKind.PROGRAM, np.uint8)),
        np.append(edges.inferred[kept], np.zeros(len(links), np.bool_)),
    )
    return Trace(_kept_nodes(trace, kept, links), changed, trace.metadata)


def _kept_nodes(trace: Trace, kept: npt.NDArray[np.bool_], links: list[tuple[int, int]]) -> Nodes:
    """The nodes, those with other edges than before without what these rested on."""
    nodes = trace.nodes.take(np.arange(len(trace.nodes)))
    changed = np.append(trace.edges.target[~kept], np.array([t for _, t in links], np.int64))
    for column in nodes.attributes.named(edge_evidence.NAME):
        nodes.attributes.remove(column, np.intersect1d(column.rows, changed))
    return nodes
