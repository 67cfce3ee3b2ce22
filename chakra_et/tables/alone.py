"""Nodes and edges that one of two runs has alone."""

from __future__ import annotations

import numpy as np

from chakra_et.graph import edge_rows
from chakra_et.model import EdgeKind
from chakra_et.tables.matched import Matched


def nodes_alone(found: Matched) -> list[tuple[str, int, int]]:
    """Names of nodes that stand for none, with how many each side has, most first."""
    alone = np.ones(len(found.right.nodes), np.bool_)
    alone[found.row[found.row >= 0]] = False
    left, right = found.left.nodes.name[found.row < 0], found.right.nodes.name[alone]
    counts: dict[str, list[int]] = {}
    for side, names in enumerate((left.tolist(), right.tolist())):
        for name in names:
            counts.setdefault(name, [0, 0])[side] += 1
    order = sorted(counts.items(), key=lambda item: -sum(item[1]))
    return [(name, one, other) for name, (one, other) in order]


def edges_alone(found: Matched) -> list[tuple[str, int, int]]:
    """Edges by kind that one side has alone, or with another kind or mark."""
    mine, theirs = edge_rows(found.left), edge_rows(found.right)
    size = len(found.right.nodes) + 1
    ends = found.row[mine.source], found.row[mine.target]
    whole = (ends[0] >= 0) & (ends[1] >= 0)
    kinds = [
        2 * side.edges.kind[rows.place].astype(np.int64) + side.edges.inferred[rows.place]
        for side, rows in ((found.left, mine), (found.right, theirs))
    ]
    keys = [
        ((ends[0] * size + ends[1]) * 64 + kinds[0])[whole],
        (theirs.source * size + theirs.target) * 64 + kinds[1],
    ]
    alone = kinds[0][~whole], np.zeros(0, np.int64)
    counts = [
        np.bincount(np.append(key[~np.isin(key, other)] % 64, rest), minlength=64)
        for key, other, rest in zip(keys, keys[::-1], alone, strict=True)
    ]
    rows = [
        (kind.label + "?" * mark, int(counts[0][2 * kind + mark]), int(counts[1][2 * kind + mark]))
        for kind in EdgeKind
        for mark in (0, 1)
    ]
    rows.append(("from ids that no node has", mine.dangling, theirs.dangling))
    return [row for row in rows[:-1] if row[1] or row[2]] + [
        row for row in rows[-1:] if row[1] != row[2]
    ]
