"""Which communications of a rank have ended when another one is asked for, by the edges."""

from __future__ import annotations

from chakra_et.columns import Rows
from chakra_et.graph.adjacency import Adjacency, edge_rows
from chakra_et.graph.order import topological_order
from chakra_et.model import Trace

_NONE: frozenset[int] = frozenset()


def awaited(trace: Trace, rows: Rows) -> list[tuple[int, ...]]:
    """For each of some communications, in order of issue, the places of those that it waits for.

    Those that these wait for in turn are left out. Linear in nodes and edges, if few are under
    way at once.
    """
    count = len(trace.nodes)
    edges = edge_rows(trace)
    before = Adjacency.of(count, edges.target, edges.source)
    offsets, items = before.offsets.tolist(), before.items.tolist()
    place = [-1] * count
    for number, row in enumerate(rows.tolist()):
        place[row] = number
    # What a node waits for: itself if it communicates, else what those before it wait for.
    behind: list[frozenset[int]] = [_NONE] * count
    waits: list[tuple[int, ...]] = [()] * len(rows)
    for row in topological_order(count, edges.source, edges.target).tolist():
        found = _united([behind[other] for other in items[offsets[row] : offsets[row + 1]]], waits)
        number = place[row]
        if number < 0:
            behind[row] = found
            continue
        # What was asked for later cannot be waited for: the order of issue decides.
        waits[number] = tuple(sorted(other for other in found if other < number))
        behind[row] = frozenset({number})
    return waits


def _united(sets: list[frozenset[int]], waits: list[tuple[int, ...]]) -> frozenset[int]:
    """The union, without what others of it wait for; most nodes share the set of the one before."""
    first = max(sets, key=len, default=_NONE)
    if all(other <= first for other in sets):
        return first
    union = first.union(*sets)
    return union.difference(*(waits[number] for number in union))
