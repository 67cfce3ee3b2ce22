"""Chains: the order in which a thread, or a stream, does its work, by the edges that tell it."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import NO_ROW, Rows
from chakra_et.model import EdgeKind, Trace

CHAINS: Final = (EdgeKind.PROGRAM, EdgeKind.STREAM)
"""Kinds of edges that say what comes next."""


def program_order(trace: Trace) -> Rows:
    """The rows of a trace in the order in which threads and streams run them.

    Nodes of different chains are in the order of their starts.
    """
    source, target = trace.source_rows(), trace.edges.target
    links = np.isin(trace.edges.kind, CHAINS) & (source >= 0)
    after = np.full(len(trace.nodes), NO_ROW, np.int64)
    # Of two links from one node the first counts.
    after[source[links][::-1]] = target[links][::-1]
    before = np.full(len(after), NO_ROW, np.int64)
    before[after[after >= 0]] = np.flatnonzero(after >= 0)
    key, place = trace.nodes.start_ns.copy(), (before >= 0).astype(np.int64)
    # Twice as far back along the chain each time; one that runs into a circle is left there.
    for _ in range(len(after).bit_length()):
        follows = np.flatnonzero(before >= 0)
        if not len(follows):
            break
        back = before[follows]
        key[follows] = np.maximum(key[follows], key[back])
        place[follows] += place[back]
        before[follows] = before[back]
    return np.lexsort((place, key))
