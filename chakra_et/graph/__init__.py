"""Graph algorithms on columns: neighbours, order, cycles, reach, slimming."""

from chakra_et.graph.adjacency import Adjacency, EdgeRows, edge_rows
from chakra_et.graph.order import find_cycle, topological_order
from chakra_et.graph.reach import last_awaited
from chakra_et.graph.transitive_reduction import redundant_edges

__all__ = [
    "Adjacency",
    "EdgeRows",
    "edge_rows",
    "find_cycle",
    "last_awaited",
    "redundant_edges",
    "topological_order",
]
