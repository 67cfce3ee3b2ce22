"""Transitive slimming: edges that say nothing that other edges do not say.

The definition, in `redundant_edges`, is that of `docs/edges.md`. The algorithm, in `implied`, makes
use of threads and streams being chains: what reaches a node of a chain reaches all that follow, so
that only nodes at which edges leave or enter a chain are looked at; and of edges being short: only
what lies between the ends of one can replace it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.codes import begins, distinct, order_of
from chakra_et.columns import Mask, Rows
from chakra_et.graph.adjacency import edge_rows
from chakra_et.graph.order import topological_order
from chakra_et.kernel import kernel
from chakra_et.model import EdgeKind, Trace

ORDER: Final = (EdgeKind.PROGRAM, EdgeKind.STREAM)
"""Kinds of edges that say what comes after what on one thread or stream."""
FACTS: Final = (EdgeKind.CALL, EdgeKind.LAUNCH, EdgeKind.DATA, EdgeKind.GROUP, *ORDER)
"""Kinds of which every edge states a fact that no path states, so that none is redundant."""
WAITS: Final = (EdgeKind.THREAD, EdgeKind.EVENT)
"""Kinds of which a stated edge says no more than a path of edges of its kind says."""
_BITS: Final = 1 << 12
"""How many sources are followed at once: a bit each for every node that they are followed to."""


def redundant_edges(trace: Trace) -> Mask:
    """Which edges of a trace others make redundant; without all of them, the same is reached.

    Linear in nodes and edges, for each few thousand nodes from which edges that may be redundant
    lead over the same stretch of nodes.
    Edges on or behind cycles, and edges to nodes that are not there, are never redundant.
    """
    edges = edge_rows(trace)
    kind, inferred = trace.edges.kind.take(edges.place), trace.edges.inferred.take(edges.place)
    redundant = np.zeros(len(trace.edges), np.bool_)
    order = topological_order(len(trace.nodes), edges.source, edges.target)
    rank = np.full(len(trace.nodes), len(trace.nodes), np.int64)
    rank[order] = np.arange(len(order))
    source, target = rank.take(edges.source), rank.take(edges.target)
    waits = trace.nodes.attributes.present("sync_on").take(edges.target)
    place = edges.place
    del edges  # There are several for each node.
    sound = target < len(trace.nodes)
    in_order = _of(kind, ORDER) & sound
    chain, linked = chains(len(trace.nodes), source, target, in_order)
    for same in WAITS:
        asked = sound & ~inferred & (kind == same)
        within = asked | in_order
        redundant[place] |= implied(chain, source, target, linked, within, asked)
    within = sound & (kind != EdgeKind.CALL)
    guessed, of_threads = sound & inferred & ~_of(kind, FACTS), kind == EdgeKind.THREAD
    # When a call that waits is made does not follow from what it waits for.
    awaited = (kind == EdgeKind.SYNC) & waits
    for asked, paths in (
        (guessed & ~of_threads, within),
        (guessed & of_threads, within & ~awaited),
    ):
        redundant[place] |= implied(chain, source, target, linked, paths, asked)
    return redundant


def _of(kind: npt.NDArray[np.uint8], kinds: tuple[EdgeKind, ...]) -> Mask:
    """Which edges are of some kinds."""
    chosen = np.zeros(len(EdgeKind), np.bool_)
    chosen[list(kinds)] = True
    found: Mask = chosen[kind]
    return found


def chains(count: int, source: Rows, target: Rows, in_order: Mask) -> tuple[Rows, Mask]:
    """Nodes as chains along the edges `in_order`: the chain of each node, and the edges along them.

    Nodes are numbered so that edges lead forward. An edge of the mask is along a chain if it is
    the first from its source and the first into its target.
    """
    if (module := kernel()) is not None:
        found = module.chains(count, source, target, in_order)
        if found is not None:
            return found[0], found[1].view(np.bool_)
    rows = np.flatnonzero(in_order)
    rows = rows[order_of(target[rows], source[rows])]
    for column in (source, target):
        rows = rows[_is_first(column[rows], count)]
    linked = np.zeros(len(source), np.bool_)
    linked[rows] = True
    first = np.arange(count)
    first[target[rows]] = source[rows]
    # Each step doubles how far a node looks back.
    while not np.array_equal(first, further := first[first]):
        first = further
    return np.cumsum(first == np.arange(count))[first] - 1, linked


def _is_first(values: Rows, count: int) -> Mask:
    """Which of some numbers below `count` do not stand further before."""
    places = np.arange(len(values))
    first = np.empty(count, np.int64)
    first[values[::-1]] = places[::-1]
    found: Mask = first[values] == places
    return found


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
    asked = asked[across] & _beside_others(source[across], target[across], linked, source, target)
    if not asked.any():
        return result
    outdone = _outdone(chain, source[across], target[across])
    result[across[outdone]] = asked[outdone]
    across, asked = across[~outdone], asked[~outdone]
    result[across[_reached(chain, source[across], target[across], asked)]] = True
    return result


def _outdone(chain: Rows, source: Rows, target: Rows) -> Mask:
    """Which edges between two chains one edge between the same two implies.

    It comes from the same node or a later one, and leads to the same or an earlier one. Most
    edges that can be left out are of this kind, and are found without walking.
    """
    order = order_of(chain[source], chain[target], target, -source)
    pair = np.cumsum(begins(chain[source][order], chain[target][order])) - 1
    # Later pairs of chains count more than any node, so that a running maximum begins anew.
    key = pair * (len(chain) + 1) + source[order] + 1
    before = np.append(-1, np.maximum.accumulate(key)[:-1])[: len(key)]
    result = np.zeros(len(source), np.bool_)
    result[order] = key <= before
    return result


def _beside_others(source: Rows, target: Rows, linked: Mask, sources: Rows, targets: Rows) -> Mask:
    """Which edges across chains may have a path beside them.

    One begins with an edge to a node before their target, and ends with one from a node behind
    their source.
    """
    count = int(max(sources.max(initial=-1), targets.max(initial=-1))) + 1
    first, last = np.full(count, count), np.full(count, -1)
    along = np.flatnonzero(linked)
    sources, targets = sources[along], targets[along]
    first[sources], last[targets] = targets, sources
    np.minimum.at(first, source, target)
    np.maximum.at(last, target, source)
    beside: Mask = (first[source] < target) & (last[target] > source)
    return beside


def _reached(chain: Rows, source: Rows, target: Rows, asked: Mask) -> Rows:
    """The asked edges across chains whose source reaches their target by other edges, too.

    Only what lies between the ends of an asked edge can be part of a path beside it.
    """
    if not asked.any():
        return np.zeros(0, np.int64)
    near = np.flatnonzero(_between_ends(source, target, asked))
    near = near[order_of(target[near], source[near])]
    source, target, asked = source[near], target[near], asked[near]
    found: list[int] = []
    wanted = distinct(source[asked])
    for begin in range(0, len(wanted), _BITS):
        bits = wanted[begin : begin + _BITS]
        mine = asked & (source >= bits[0]) & (source <= bits[-1])
        use = np.flatnonzero((source >= bits[0]) & (target <= target[mine].max()))
        found += use[_walk(chain, source[use], target[use], mine[use], bits)].tolist()
    return near[np.array(found, np.int64)]


def _between_ends(source: Rows, target: Rows, asked: Mask) -> Mask:
    """Which edges lie within the stretch of nodes between the ends of asked ones that overlap."""
    by_source = np.argsort(source[asked])
    first = source[asked][by_source]
    until = np.maximum.accumulate(target[asked][by_source])
    starts = np.flatnonzero(np.append(True, first[1:] > until[:-1]))
    ends = until[np.append(starts[1:] - 1, len(until) - 1)]
    stretch = np.searchsorted(first[starts], source, "right") - 1
    within: Mask = (stretch >= 0) & (target <= ends[stretch])
    return within


def _walk(chain: Rows, source: Rows, target: Rows, asked: Mask, bits: Rows) -> list[int]:
    """The places of the asked edges that are implied; edges are sorted by target.

    `bits` are the sources of these. Each node has a set of bits for those that reach it. What
    several edges, or an edge and the chain, bring to one node reaches it without each of them.
    """
    nodes = distinct(np.concatenate((source, target)))
    bit = {node: 1 << place for place, node in enumerate(bits.tolist())}
    offsets = np.append(np.searchsorted(target, nodes), len(target)).tolist()
    places, sources, wanted = (
        np.searchsorted(nodes, source).tolist(),
        source.tolist(),
        asked.tolist(),
    )
    last: dict[int, int] = {}
    known: list[int] = []
    found: list[int] = []
    for node, own, (begin, end) in zip(
        nodes.tolist(), chain[nodes].tolist(), pairwise(offsets), strict=True
    ):
        reaching, again = last.get(own, 0), 0
        for entry in range(begin, end):
            coming = known[places[entry]]
            again |= reaching & coming
            reaching = _both(reaching, coming)
        found += [e for e in range(begin, end) if wanted[e] and bit[sources[e]] & again]
        last[own] = _both(reaching, bit.get(node, 0))
        known.append(last[own])
    return found


def _both(one: int, other: int) -> int:
    """The bits of two sets; one of these itself where it holds the other, to save memory."""
    both = one | other
    return one if both == one else other if both == other else both
