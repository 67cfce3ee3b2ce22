"""Neighbours in compressed rows."""

from __future__ import annotations

import msgspec
import numpy as np

from chakra_et.columns import Rows
from chakra_et.model import Trace


class Adjacency(msgspec.Struct):
    """The neighbours of node n are `items[offsets[n]:offsets[n + 1]]`."""

    offsets: Rows
    items: Rows

    @classmethod
    def of(cls, count: int, node: Rows, neighbour: Rows) -> Adjacency:
        """From pairs in any order; the neighbours of a node keep theirs."""
        order = np.argsort(node, kind="stable")
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(node, minlength=count), out=offsets[1:])
        return cls(offsets, neighbour[order])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def at(self, node: int) -> Rows:
        """The neighbours of one node."""
        neighbours: Rows = self.items[self.offsets[node] : self.offsets[node + 1]]
        return neighbours


class EdgeRows(msgspec.Struct):
    """Edges of a trace as pairs of node rows; `place` says which edge of the trace each one is.

    Edges to ids that no node has, and edges from a node to itself, are left out and counted.
    """

    source: Rows
    target: Rows
    place: Rows
    dangling: int
    to_itself: int


def edge_rows(trace: Trace) -> EdgeRows:
    """The sound edges of a trace."""
    source, target = trace.source_rows(), trace.edges.target
    dangling, to_itself = source < 0, source == target
    place = np.flatnonzero(~dangling & ~to_itself)
    return EdgeRows(
        source.take(place),
        target.take(place),
        place,
        int(np.count_nonzero(dangling)),
        int(np.count_nonzero(to_itself)),
    )
