"""A part of a graph as it is drawn: boxes, which may stand for several nodes, and arrows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import EdgeKind
from chakra_et.errors import ChakraError
from chakra_et.graph import edge_rows
from chakra_et.model import Trace, TraceSet
from chakra_et.replay.matching import match_communication
from chakra_et.tables.grouping import Keys
from chakra_et.tables.modules import part_names
from chakra_et.tables.places import Places

LIMIT: Final = 200
"""With more boxes than this nobody sees anything."""
COLLECTIVE: Final = "collective"
"""The kind of the lines between members of a collective on several ranks."""


@dataclass(frozen=True)
class Box:
    """A node, or several that are drawn as one. `side` is host, compute, memory, communication."""

    key: str
    name: str
    side: str
    rank: int
    nodes: int
    self_ns: int
    node: int
    """The id of the first of the nodes."""


@dataclass(frozen=True)
class Arrow:
    """Edges of one kind between two boxes; `count` of them, `inferred` if all are."""

    source: str
    target: str
    kind: str
    inferred: bool
    count: int


@dataclass(frozen=True)
class Picture:
    """What is drawn."""

    boxes: list[Box]
    arrows: list[Arrow]


def picture(
    traces: Mapping[int, Trace],
    chosen: Mapping[int, Mask],
    *,
    collapse: str | None = None,
    kinds: Collection[EdgeKind] | None = None,
    limit: int = LIMIT,
) -> Picture:
    """The chosen nodes of each rank, and the edges between them, of some kinds if they are given.

    `collapse` draws as one box an operator with all that it calls and launches ("operator"), or a
    part of the workload ("module"); communication keeps boxes of its own. Raises ChakraError where
    that gives more than `limit` boxes (0 for any number).
    """
    groups = {rank: _groups(trace, chosen[rank], collapse) for rank, trace in traces.items()}
    count = sum(len(np.unique(group[group >= 0])) for group in groups.values())
    if limit and count > limit:
        raise ChakraError(
            f"this is a picture of {count} nodes, and nobody sees anything in more than {limit}",
            remedy="Narrow it with --around NODE --hops N or --steps A..B, or --collapse operator "
            "or module; --limit N draws more.",
        )
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    for rank, trace in traces.items():
        boxes += _boxes(rank, trace, groups[rank], collapse)
        arrows += _arrows(rank, trace, groups[rank], kinds)
    if len(traces) > 1 and kinds is None:
        arrows += _ties(traces, groups)
    return Picture(boxes, arrows)


def _groups(trace: Trace, chosen: Mask, collapse: str | None) -> Rows:
    """For each node the row that stands for its box, the first of its nodes; -1 if left out."""
    rows = np.arange(len(trace.nodes))
    if collapse is None:
        return np.where(chosen, rows, -1)
    places = Places(trace)
    if collapse == "operator":
        owner = places.outermost(places.operator)
        key = np.where(places.communication | (owner < 0), rows, owner)
    else:
        names = part_names(trace, places)
        _, key = np.unique(names.astype(str), return_inverse=True)
        key = 2 * key.ravel() + places.communication
    first = np.full(int(key.max(initial=-1)) + 1, len(rows), np.int64)
    np.minimum.at(first, key[chosen], rows[chosen])
    if collapse == "operator":
        # The operator itself stands for its box, where it is chosen.
        first = np.where(chosen[: len(first)], rows[: len(first)], first)
    return np.where(chosen, first[key] if len(key) else key, -1)


def _boxes(rank: int, trace: Trace, group: Rows, collapse: str | None) -> list[Box]:
    places, nodes = Places(trace), trace.nodes
    rows = np.flatnonzero(group >= 0)
    keys = Keys.of(group[rows])
    own = keys.sum(np.where(places.carried, 0, nodes.self_ns)[rows])
    parts = collapse == "module"
    names = part_names(trace, places) if parts else nodes.name
    columns = zip(
        group[rows][keys.first].tolist(), keys.count().tolist(), own.tolist(), strict=True
    )
    return [
        Box(
            key=f"r{rank}n{nodes.id[row]}",
            name=names[row] + ": communication" * (parts and bool(places.communication[row])),
            side=places.kind[row],
            rank=rank,
            nodes=count,
            self_ns=took,
            node=int(nodes.id[row]),
        )
        for row, count, took in columns
    ]


def _arrows(
    rank: int, trace: Trace, group: Rows, kinds: Collection[EdgeKind] | None
) -> list[Arrow]:
    edges = edge_rows(trace)
    kind = trace.edges.kind[edges.place].astype(np.int64)
    source, target = group[edges.source], group[edges.target]
    use = (source >= 0) & (target >= 0) & (source != target)
    if kinds is not None:
        use &= np.isin(kind, [int(one) for one in kinds])
    source, target, kind = source[use], target[use], kind[use]
    guessed = trace.edges.inferred[edges.place][use].astype(np.int64)
    keys = Keys.of(source, target, kind) if len(source) else None
    if keys is None:
        return []
    ids = trace.nodes.id
    columns = zip(
        keys.first.tolist(), keys.count().tolist(), keys.sum(guessed).tolist(), strict=True
    )
    return [
        Arrow(
            source=f"r{rank}n{ids[source[first]]}",
            target=f"r{rank}n{ids[target[first]]}",
            kind=EdgeKind(int(kind[first])).label,
            inferred=inferred == count,
            count=count,
        )
        for first, count, inferred in columns
    ]


def _ties(traces: Mapping[int, Trace], groups: Mapping[int, Rows]) -> list[Arrow]:
    """Lines between the members of collectives and messages of which several are drawn."""
    found: dict[tuple[str, str], int] = {}
    for match in match_communication(TraceSet(traces)).matches:
        keys = [
            f"r{rank}n{traces[rank].nodes.id[groups[rank][row]]}"
            for rank, row in match.members.items()
            if groups[rank][row] >= 0
        ]
        for pair in pairwise(keys):
            found[pair] = found.get(pair, 0) + 1
    return [Arrow(*pair, COLLECTIVE, False, count) for pair, count in found.items()]
