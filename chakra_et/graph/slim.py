"""Transitive slimming: edges that say nothing that other edges do not say.

The definition, in `redundant_edges`, is that of `docs/edges.md`. The algorithm, in `implied`, makes
use of threads and streams being chains: what reaches a node of a chain reaches all that follow, so
that the furthest node of each chain from which a node can be reached tells of all the others. This
row of numbers changes only where an edge comes in from another chain.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.graph.adjacency import edge_rows
from chakra_et.graph.order import topological_order
from chakra_et.model import EdgeKind, Trace

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ORDER: Final = (EdgeKind.PROGRAM, EdgeKind.STREAM)
"""Kinds of edges that say what comes after what on one thread or stream."""
FACTS: Final = (EdgeKind.CALL, EdgeKind.LAUNCH, EdgeKind.DATA, EdgeKind.GROUP, *ORDER)
"""Kinds of which every edge states a fact that no path states, so that none is redundant."""
WAITS: Final = (EdgeKind.THREAD, EdgeKind.EVENT)
"""Kinds of which a stated edge says no more than a path of edges of its kind says."""
_CELLS: Final = 1 << 23
"""How many numbers are held at once: a chain costs a column, a change of a row costs a row."""


def redundant_edges(trace: Trace) -> Mask:
    """Which edges of a trace others make redundant; without all of them, the same is reached.

    Linear in nodes and edges, for each of the chains from which a redundant edge may come.
    Edges on or behind cycles, and edges to nodes that are not there, are never redundant.
    """
    edges = edge_rows(trace)
    kind, inferred = trace.edges.kind[edges.place], trace.edges.inferred[edges.place]
    redundant = np.zeros(len(trace.edges), np.bool_)
    order = topological_order(len(trace.nodes), edges.source, edges.target)
    rank = np.full(len(trace.nodes), len(trace.nodes), np.int64)
    rank[order] = np.arange(len(order))
    source, target = rank[edges.source], rank[edges.target]
    sound = target < len(trace.nodes)
    in_order = np.isin(kind, ORDER) & sound
    chain, linked = chains(len(trace.nodes), source, target, in_order)
    for same in WAITS:
        asked = sound & ~inferred & (kind == same)
        within = asked | in_order
        redundant[edges.place] |= implied(chain, source, target, linked, within, asked)
    within = sound & (kind != EdgeKind.CALL)
    asked = sound & inferred & ~np.isin(kind, FACTS)
    redundant[edges.place] |= implied(chain, source, target, linked, within, asked)
    return redundant


def chains(count: int, source: Rows, target: Rows, in_order: Mask) -> tuple[Rows, Mask]:
    """Nodes as chains along the edges `in_order`: the chain of each node, and the edges along them.

    Nodes are numbered so that edges lead forward. An edge of the mask is along a chain if it is
    the first from its source and the first into its target.
    """
    rows = np.flatnonzero(in_order)
    rows = rows[np.lexsort((source[rows], target[rows]))]
    rows = rows[np.unique(source[rows], return_index=True)[1]]
    rows = rows[np.unique(target[rows], return_index=True)[1]]
    linked = np.zeros(len(source), np.bool_)
    linked[rows] = True
    first = np.arange(count)
    first[target[rows]] = source[rows]
    # Each step doubles how far a node looks back.
    while not np.array_equal(first, further := first[first]):
        first = further
    return np.cumsum(first == np.arange(count))[first] - 1, linked


def implied(
    chain: Rows, source: Rows, target: Rows, linked: Mask, within: Mask, asked: Mask
) -> Mask:
    """Which of the edges `asked` a path of other edges `within` implies.

    `chain` and `linked` are as `chains` gives them. No two edges may join the same two nodes.
    """
    result = np.zeros(len(source), np.bool_)
    if not asked.any():
        return result
    across = np.flatnonzero(within & ~linked)
    outdone = _outdone(chain, source[across], target[across])
    result[across[outdone]] = asked[across[outdone]]
    across = across[~outdone]
    asked = asked & ~result
    if not asked.any():
        return result
    before = np.full(len(chain), -1, np.int64)
    before[target[linked]] = source[linked]
    heads = _heads(chain, before, source[across], target[across], asked[across])
    wanted = np.unique(chain[source[asked]])
    width = max(_CELLS // (len(heads.base) + 1), 1)
    for begin in range(0, len(wanted), width):
        found = _reach(chain, heads, wanted[begin : begin + width])
        result[across[found]] = True
    return result


def _outdone(chain: Rows, source: Rows, target: Rows) -> Mask:
    """Which edges between two chains one edge between the same two implies.

    It comes from the same node or a later one, and leads to the same or an earlier one. Most
    edges that can be left out are of this kind, and are found without walking.
    """
    order = np.lexsort((-source, target, chain[target], chain[source]))
    pair = np.cumsum(_begins(chain[source][order], chain[target][order])) - 1
    # Later pairs of chains count more than any node, so that a running maximum begins anew.
    key = pair * (len(chain) + 1) + source[order] + 1
    before = np.append(-1, np.maximum.accumulate(key)[:-1])[: len(key)]
    result = np.zeros(len(source), np.bool_)
    result[order] = key <= before
    return result


def _begins(*columns: Rows) -> Mask:
    """Where a row of columns differs from the one before."""
    differs = np.ones(len(columns[0]), np.bool_)
    differs[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return differs


@dataclass
class _Heads:
    """Nodes into which edges lead from other chains, in rows: what reaches them is found anew.

    `base` holds these nodes, ascending. What leads into head h stands in places
    `offsets[h]:offsets[h + 1]` of the other columns: first what comes before it on its chain, then
    its edges. `node` is where an entry comes from, `row` the last head at or before that node
    on its chain (0 for none, else one more than its place), `edge` the edge (-1 for none) and
    `asked` whether it is asked about. `light` is the last node from which a light edge had come.
    """

    base: Rows
    offsets: Rows
    node: Rows
    row: Rows
    light: Rows
    edge: Rows
    asked: Mask


def _heads(chain: Rows, before: Rows, source: Rows, target: Rows, asked: Mask) -> _Heads:
    """Sort edges across chains by target, and set light ones apart.

    `before` is the node before each one on its chain, -1 for none.

    An edge is light if it is the only one into its target, and comes from the same chain as the
    edge into the head before, to which nothing else had come in between. Launches are: such an edge
    changes one number of a row, its source.
    """
    by_target = np.lexsort((source, target, chain[target]))
    s, t, ask = source[by_target], target[by_target], asked[by_target]
    key = _Keys(chain, chain[t], t)
    same = np.append(False, t[1:] == t[:-1])
    single = ~same & ~np.append(same[1:], False)
    version = key.last(s)
    light = np.zeros(len(s), np.bool_)
    light[1:] = single[1:] & single[:-1] & (chain[t][1:] == chain[t][:-1])
    light[1:] &= (chain[s][1:] == chain[s][:-1]) & (version[1:] == version[:-1]) & (s[1:] > s[:-1])
    light &= ~ask
    heavy = np.flatnonzero(~light)
    first = heavy[~same[heavy]]
    base = np.sort(t[first])
    # For each entry of `s`, the heavy head that the light ones after it build on.
    running = np.maximum.accumulate(np.where(light, -1, np.arange(len(s))))
    number = np.searchsorted(base, t[running]) + 1
    node = np.concatenate((before[base], s[heavy]))
    into = np.concatenate((base, t[heavy]))
    edge = np.concatenate((np.full(len(base), -1, np.int64), by_target[heavy]))
    last = np.where(node >= 0, key.last(node), -1)
    known = last >= 0
    row = np.where(known, number[last], 0)
    from_light = known & light[last]
    order = np.lexsort((edge, into))
    return _Heads(
        base,
        np.searchsorted(into[order], np.append(base, len(chain))),
        node[order],
        row[order],
        np.where(from_light, s[last], -1)[order],
        edge[order],
        np.append(np.zeros(len(base), np.bool_), ask[heavy])[order],
    )


class _Keys:
    """Chain and node as one number: finds the last entry of a chain up to a node."""

    def __init__(self, chain: Rows, chains: Rows, nodes: Rows) -> None:
        self.chain, self.chains = chain, chains
        self.keys = chains * len(chain) + nodes

    def last(self, nodes: Rows) -> Rows:
        """Places of the last entry at or before each node on its chain, -1 for none."""
        wanted = self.chain[nodes] * len(self.chain) + nodes
        place = np.searchsorted(self.keys, wanted, "right") - 1
        there = (place >= 0) & (self.chains[place] == self.chain[nodes])
        return np.where(there, place, -1)


def _reach(chain: Rows, heads: _Heads, wanted: Rows) -> list[int]:
    """The asked edges that are implied, of those that come from the chains `wanted`."""
    column = np.full(int(chain.max()) + 2, len(wanted), np.int64)
    column[wanted] = np.arange(len(wanted))
    # Row 0 is that of a chain before its first head; the last column is for all other chains.
    reached = [[-1] * (len(wanted) + 1)]
    own = column[np.where(heads.node >= 0, chain[heads.node], -1)]
    asked = (heads.asked & (own < len(wanted))).tolist()
    other = column[np.where(heads.light >= 0, chain[heads.light], -1)].tolist()
    columns, node, light = own.tolist(), heads.node.tolist(), heads.light.tolist()
    offsets, rows, edge = heads.offsets.tolist(), heads.row.tolist(), heads.edge.tolist()
    found: list[int] = []
    for begin, end in pairwise(offsets):
        views = []
        for entry in range(begin, end):
            view = reached[rows[entry]].copy()
            view[other[entry]] = max(view[other[entry]], light[entry])
            view[columns[entry]] = max(view[columns[entry]], node[entry])
            views.append(view)
        for entry in range(begin + 1, end):
            if asked[entry]:
                place = columns[entry]
                rest = views[: entry - begin] + views[entry - begin + 1 :]
                if any(view[place] >= node[entry] for view in rest):
                    found.append(edge[entry])
        reached.append(list(map(max, *views)))
    return found
