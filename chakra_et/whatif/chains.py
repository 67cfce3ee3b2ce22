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
    first = np.full(len(trace.nodes), NO_ROW, np.int64)
    # Of two links from one node the first counts.
    first[source[links][::-1]] = target[links][::-1]
    heads = np.ones(len(first), np.bool_)
    heads[first[first >= 0]] = False
    after, key, place = first.tolist(), trace.nodes.start_ns.tolist(), [0] * len(first)
    for row in np.flatnonzero(heads).tolist():
        latest, number = key[row], 0
        # A chain that runs into a circle is left; a replay says what is wrong with it.
        while row >= 0 and number <= len(key):
            latest = key[row] = max(latest, key[row])
            place[row] = number
            number += 1
            row = after[row]
    return np.lexsort((np.array(place, np.int64), np.array(key, np.int64)))
