"""Chains: the order in which a thread, or a stream, does its work, by the edges that tell it."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.model import EdgeKind, Edges, Trace, set_time_parts, time_parts

CHAINS: Final = (EdgeKind.PROGRAM, EdgeKind.STREAM)
"""Kinds of edges that say what comes next."""


def program_order(trace: Trace) -> Rows:
    """The rows of a trace in the order in which threads and streams run them.

    Nodes of different chains are in the order of their starts.
    """
    source, target = trace.source_rows(), trace.edges.target
    links = np.isin(trace.edges.kind, CHAINS) & (source >= 0)
    after: dict[int, int] = {}
    for s, t in zip(source[links].tolist(), target[links].tolist(), strict=True):
        after.setdefault(s, t)
    key = trace.nodes.start_ns.copy()
    place = np.zeros(len(key), np.int64)
    heads = np.setdiff1d(np.arange(len(key)), np.array(list(after.values()), np.int64))
    for head in heads.tolist():
        row: int | None = head
        latest, number = int(key[head]), 0
        while row is not None:
            latest = max(latest, int(key[row]))
            key[row], place[row] = latest, number
            number += 1
            row = after.get(row)
    return np.lexsort((place, key))


def in_program_order(trace: Trace) -> Trace:
    """The same trace with its nodes in that order."""
    order = program_order(trace)
    new_row = np.empty_like(order)
    new_row[order] = np.arange(len(order))
    edges = trace.edges
    moved = new_row[edges.target]
    places = np.argsort(moved, kind="stable")
    parts = time_parts(trace.nodes).moved(new_row)
    nodes = trace.nodes.take(order)
    set_time_parts(nodes, parts)
    made = Edges.from_rows(
        len(order), moved[places], edges.source[places], edges.kind[places], edges.inferred[places]
    )
    return Trace(nodes, made, trace.metadata)
