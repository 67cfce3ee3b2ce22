"""Chains: the order in which a thread, or a stream, does its work, by the edges that tell it."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.codes import codes
from chakra_et.columns import Rows
from chakra_et.graph.lanes import lanes
from chakra_et.model import EdgeKind, Trace

CHAINS: Final = (EdgeKind.PROGRAM, EdgeKind.STREAM)
"""Kinds of edges that say what comes next."""


def program_order(trace: Trace) -> Rows:
    """The rows of a trace in the order in which threads and streams run them.

    Nodes of different chains are in the order of their starts.
    """
    source, target = trace.source_rows(), trace.edges.target
    links = np.isin(trace.edges.kind, CHAINS) & (source >= 0)
    return in_order(trace.nodes.start_ns, source[links], target[links])


def in_order(start_ns: Rows, source: Rows, target: Rows) -> Rows:
    """The same of nodes with some starts; links of chains lead from `source` to `target`."""
    lane, place = lanes(len(start_ns), source, target)
    return np.lexsort((place, _latest(start_ns, lane, place)))


def _latest(start_ns: Rows, lane: Rows, place: Rows) -> Rows:
    """The rank of the latest start among each node and what comes before it in its lane."""
    along = np.lexsort((place, lane))
    number = np.cumsum(np.diff(lane[along], prepend=-1) != 0) * len(along)
    found = np.empty(len(along), np.int64)
    found[along] = np.maximum.accumulate(codes(start_ns)[along] + number) - number
    return found
