"""The attribute `edge_evidence`: for each edge into a node, what it rests on, as text.

Entries stand in the order of the edges, calls first. An empty one is the usual evidence of its
kind of edge. A node has no such attribute where all entries are empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from chakra_et.codes import distinct
from chakra_et.columns import Rows
from chakra_et.definitions import Kind
from chakra_et.model.attribute_column import AttributeColumn
from chakra_et.model.edges import Edges
from chakra_et.model.nodes import Nodes
from chakra_et.model.trace import Trace

NAME: Final = "edge_evidence"


def entries(trace: Trace) -> dict[int, str]:
    """What the attribute says of which edges, by their places in the trace's edges.

    Texts of another number of entries than the node has edges say nothing.
    """
    said: dict[int, str] = {}
    offsets = trace.edges.offsets
    for column in _columns(trace.nodes):
        for row, words in _words(column):
            begin, end = int(offsets[row]), int(offsets[row + 1])
            if len(words) == end - begin:
                said.update((begin + i, word) for i, word in enumerate(words) if word)
    return said


def set_entries(nodes: Nodes, edges: Edges, said: Mapping[int, str]) -> None:
    """Give nodes the attribute that says this of edges, in place of what they had."""
    for column in _columns(nodes):
        nodes.attributes.remove(column, column.rows)
    places = np.fromiter(said, np.int64, len(said))
    rows = distinct(np.searchsorted(edges.offsets, places, "right") - 1)
    spans = zip(edges.offsets[rows].tolist(), edges.offsets[rows + 1].tolist(), strict=True)
    texts = [",".join(said.get(edge, "") for edge in range(*span)) for span in spans]
    if texts:
        nodes.attributes.add(NAME, Kind.STRING, texts, rows)


def carry(trace: Trace, like: Rows, nodes: Nodes, edges: Edges) -> None:
    """Let other nodes and edges have what a trace says of its own: edge e has what is said of edge
    `like[e]`, where that is not negative.
    """
    said = entries(trace)
    places = np.flatnonzero(like >= 0)
    told = np.zeros(len(trace.edges), np.bool_)
    told[list(said)] = True
    places = places[told[like[places]]]
    kept = zip(places.tolist(), like[places].tolist(), strict=True)
    set_entries(nodes, edges, {new: said[old] for new, old in kept})


def misfits(trace: Trace) -> Rows:
    """The nodes whose attribute has another number of entries than they have edges."""
    counts = np.diff(trace.edges.offsets)
    wrong = [
        row
        for column in _columns(trace.nodes)
        for row, words in _words(column)
        if len(words) != counts[row]
    ]
    return np.array(sorted(wrong), np.int64)


def _columns(nodes: Nodes) -> list[AttributeColumn]:
    return [column for column in nodes.attributes.named(NAME) if column.key.kind is Kind.STRING]


def _words(column: AttributeColumn) -> Iterator[tuple[int, list[str]]]:
    for row, text in zip(column.rows.tolist(), column.values, strict=True):
        yield row, text.split(",")
