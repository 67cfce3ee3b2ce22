"""Parts of traces: around a node, or within steps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chakra_et.columns import Mask
from chakra_et.errors import ChakraError
from chakra_et.graph import Adjacency, edge_rows
from chakra_et.linker.window import window
from chakra_et.model import Trace
from chakra_et.replay.columns import columns_of
from chakra_et.tables.places import Places


def around(trace: Trace, node_id: int, hops: int) -> Mask:
    """The nodes that so many edges at most lead to, or from, a node. Raises ChakraError."""
    row = int(trace.nodes.rows_of(np.array([node_id % (1 << 64)], np.uint64))[0])
    if row < 0 or node_id >= 1 << 64:
        raise ChakraError(f"no node has the id {node_id}", remedy="Ids are those of chakra info.")
    edges = edge_rows(trace)
    count = len(trace.nodes)
    ends = np.concatenate((edges.source, edges.target))
    others = np.concatenate((edges.target, edges.source))
    near = Adjacency.of(count, ends, others)
    chosen = np.zeros(count, np.bool_)
    chosen[row] = True
    front = np.array([row], np.int64)
    for _ in range(hops):
        reached = np.unique(np.concatenate([near.at(item) for item in front.tolist()]))
        front = reached[~chosen[reached]]
        if len(front) == 0:
            break
        chosen[front] = True
    return chosen


def within_steps(traces: Mapping[int, Trace], steps: str) -> dict[int, Mask]:
    """What began within the profiler's steps (`2..3`), and the work that it launched.

    Raises ChakraError where steps are no numbers, or no rank has one of them.
    """
    wanted = window(steps, None)
    assert wanted is not None
    chosen = {}
    for rank, trace in traces.items():
        nodes, places, columns = trace.nodes, Places(trace), columns_of(trace)
        codes = [code for code, name in enumerate(nodes.names) if wanted.chosen(name)]
        opened = np.isin(nodes.name_code, codes) & places.on_host
        timed = opened & columns.timed
        inside = places.nearest(opened) >= 0
        if timed.any():
            begin, end = columns.start[timed].min(), columns.end[timed].max()
            began = (columns.start >= begin) & (columns.start < end) & columns.timed
            inside = np.where(places.on_host, began, inside | (began & (places.launcher < 0)))
        chosen[rank] = inside & places.ran
    if not any(mask.any() for mask in chosen.values()):
        names = sorted({n for t in traces.values() for n in t.nodes.names if "ProfilerStep#" in n})
        there = f"There are {', '.join(names[:8])}." if names else "The trace has no steps."
        raise ChakraError(f"nothing lies within steps {steps}", remedy=there)
    return chosen
