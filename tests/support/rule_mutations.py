"""Ways to break a sound trace at a random place, each with the rule that has to speak."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from chakra_et.definitions import CollectiveType, Kind, NodeType
from chakra_et.model import EdgeKind, Edges, Trace, TraceSet
from chakra_et.passes.edit import copied, drop_attribute, set_attribute, without_nodes
from chakra_et.validators.sequences import issue_order
from chakra_et.validators.view import TraceView


class NotHereError(Exception):
    """A trace in which there is nothing to break in that way."""


@dataclass(frozen=True)
class Mutation:
    """A change of one rank's trace, in place, and the rule that sees it."""

    rule: str
    change: Callable[[Trace, Random], int | None]
    """Breaks the trace; the id of the node at which the rule has to speak, where it is one."""
    profile: str = "core"
    every: bool = False
    """Whether all ranks are changed alike."""


MUTATIONS: list[Mutation] = []


def breaks(rule: str, profile: str = "core", *, every: bool = False):  # type: ignore[no-untyped-def]
    def add(change: Callable[[Trace, Random], int | None]):  # type: ignore[no-untyped-def]
        MUTATIONS.append(Mutation(rule, change, profile, every))
        return change

    return add


def pick(rows: np.ndarray, chance: Random) -> int:  # type: ignore[type-arg]
    if len(rows) == 0:
        raise NotHereError
    return int(rows[chance.randrange(len(rows))])


def with_edge(trace: Trace, row: int, source: int, kind: EdgeKind = EdgeKind.DATA) -> None:
    """Let node `row` wait for an id too; nothing is said of what its edges rest on any more."""
    drop_attribute(trace.nodes.attributes, "edge_evidence", np.array([row]))
    edges = trace.edges
    at = int(edges.offsets[row + 1])
    offsets = edges.offsets.copy()
    offsets[row + 1 :] += 1
    trace.edges = Edges(
        offsets,
        np.insert(edges.source, at, source),
        np.insert(edges.kind, at, kind),
        np.insert(edges.inferred, at, True),
    )


def of_type(trace: Trace, *types: NodeType) -> np.ndarray:  # type: ignore[type-arg]
    return np.flatnonzero(np.isin(trace.nodes.type, types))


@breaks("ET101")
def same_id(trace: Trace, chance: Random) -> int:
    # An id that nobody waits for, so that nothing else breaks.
    leaves = np.flatnonzero(~np.isin(trace.nodes.id, trace.edges.source))
    other = pick(leaves[leaves > 0], chance)
    one = chance.randrange(other)
    trace.nodes.id[other] = trace.nodes.id[one]
    trace.nodes.__dict__.pop("_id_order", None)
    return int(trace.nodes.id[one])


@breaks("ET102")
def missing_parent(trace: Trace, chance: Random) -> int:
    row = chance.randrange(len(trace.nodes))
    with_edge(trace, row, int(trace.nodes.id.max()) + chance.randrange(1, 99))
    return int(trace.nodes.id[row])


@breaks("ET103")
def waits_for_itself(trace: Trace, chance: Random) -> int:
    row = chance.randrange(len(trace.nodes))
    with_edge(trace, row, int(trace.nodes.id[row]))
    return int(trace.nodes.id[row])


@breaks("ET104")
def edge_twice(trace: Trace, chance: Random) -> int:
    edges = np.flatnonzero(trace.edges.kind != EdgeKind.CALL)
    edge = pick(edges, chance)
    row = int(trace.edges.target[edge])
    with_edge(trace, row, int(trace.edges.source[edge]))
    return int(trace.nodes.id[row])


@breaks("ET105")
def back_edge(trace: Trace, chance: Random) -> None:
    edge = pick(np.arange(len(trace.edges)), chance)
    row = int(trace.nodes.rows_of(trace.edges.source[edge : edge + 1])[0])
    with_edge(trace, row, int(trace.nodes.id[trace.edges.target[edge]]))


@breaks("ET204")
def no_type(trace: Trace, chance: Random) -> int:
    row = pick(of_type(trace, NodeType.COMP), chance)
    trace.nodes.type[row] = chance.choice([0, 10, 99])
    return int(trace.nodes.id[row])


@breaks("ET301")
def negative_duration(trace: Trace, chance: Random) -> int:
    row = chance.randrange(len(trace.nodes))
    trace.nodes.duration_ns[row] = -chance.randrange(1, 10**9)
    return int(trace.nodes.id[row])


@breaks("ET302")
def overflown_duration(trace: Trace, chance: Random) -> int:
    row = pick(of_type(trace, NodeType.COMP), chance)
    trace.nodes.duration_ns[row] = chance.randrange(10**14, 10**18)
    return int(trace.nodes.id[row])


@breaks("ET304")
def kernel_before_launch(trace: Trace, chance: Random) -> int:
    edge = pick(np.flatnonzero(trace.edges.kind == EdgeKind.LAUNCH), chance)
    row, call = int(trace.edges.target[edge]), int(trace.source_rows()[edge])
    trace.nodes.start_ns[row] = trace.nodes.start_ns[call] - chance.randrange(1, 1000)
    return int(trace.nodes.id[row])


@breaks("ET201")
def size_as_text(trace: Trace, chance: Random) -> int:
    row = pick(of_type(trace, NodeType.COMM_COLL, NodeType.COMM_SEND), chance)
    set_attribute(trace.nodes.attributes, "comm_size", Kind.STRING, np.array([row]), ["4"])
    return int(trace.nodes.id[row])


@breaks("ET203")
def attribute_twice(trace: Trace, chance: Random) -> int:
    row = pick(np.flatnonzero(trace.nodes.attributes.present("comm_size")), chance)
    size = trace.nodes.attributes.get(row, "comm_size")
    trace.nodes.attributes.add("comm_size", Kind.INT64, [size], np.array([row]))
    return int(trace.nodes.id[row])


def without(name: str, *types: NodeType):  # type: ignore[no-untyped-def]
    def change(trace: Trace, chance: Random) -> int:
        row = pick(of_type(trace, *types), chance)
        drop_attribute(trace.nodes.attributes, name, np.array([row]))
        return int(trace.nodes.id[row])

    return change


breaks("ET205")(without("comm_type", NodeType.COMM_COLL))
breaks("ET206")(without("comm_size", NodeType.COMM_COLL))
breaks("ET209")(without("comm_dst", NodeType.COMM_SEND))
breaks("ET209")(without("comm_src", NodeType.COMM_RECV))
breaks("ET210")(without("comm_tag", NodeType.COMM_SEND))
breaks("ET211")(without("comm_size", NodeType.COMM_RECV))


def with_value(name: str, kind: Kind, choose: Callable[[Random], object], *types: NodeType):  # type: ignore[no-untyped-def]
    def change(trace: Trace, chance: Random) -> int:
        row = pick(of_type(trace, *types), chance)
        set_attribute(trace.nodes.attributes, name, kind, np.array([row]), [choose(chance)])
        return int(trace.nodes.id[row])

    return change


breaks("ET207")(
    with_value("comm_type", Kind.INT64, lambda c: c.randrange(10, 99), NodeType.COMM_COLL)
)
breaks("ET208")(
    with_value("comm_size", Kind.INT64, lambda c: -c.randrange(1, 10**6), NodeType.COMM_COLL)
)
breaks("ET212")(with_value("is_cpu_op", Kind.BOOL, lambda c: True, NodeType.COMM_COLL))


@breaks("ET402")
def unknown_group(trace: Trace, chance: Random) -> int:
    row = pick(of_type(trace, NodeType.COMM_COLL), chance)
    if not trace.groups:
        raise NotHereError
    set_attribute(trace.nodes.attributes, "pg_name", Kind.STRING, np.array([row]), ["77"])
    return int(trace.nodes.id[row])


breaks("ET506")(
    with_value("comm_size", Kind.INT64, lambda c: c.randrange(1, 99), NodeType.COMM_SEND)
)
breaks("ET505")(
    with_value("comm_tag", Kind.INT32, lambda c: c.randrange(1, 99), NodeType.COMM_RECV)
)
breaks("ET508")(
    with_value("comm_dst", Kind.INT32, lambda c: c.randrange(8, 99), NodeType.COMM_SEND)
)


@breaks("ET403")
def foreign_group(trace: Trace, chance: Random) -> int:
    rank = trace.rank
    row = pick(of_type(trace, NodeType.COMM_COLL), chance)
    if rank is None or not trace.groups:
        raise NotHereError
    others = tuple(r for r in range(trace.world_size or 2) if r != rank)
    extra = type(trace.groups[0])(name="77", ranks=others, size=len(others))
    trace.groups = [*trace.groups, extra]
    set_attribute(trace.nodes.attributes, "pg_name", Kind.STRING, np.array([row]), ["77"])
    return int(trace.nodes.id[row])


@breaks("ET504")
def other_size(trace: Trace, chance: Random) -> None:
    """A size of its own, where all ranks need the same."""
    types = trace.nodes.attributes.dense("comm_type", -1, np.int64)
    rows = of_type(trace, NodeType.COMM_COLL)
    row = pick(rows[types[rows] == CollectiveType.ALL_REDUCE], chance)
    size = np.array([chance.randrange(10**7, 10**8)])
    set_attribute(trace.nodes.attributes, "comm_size", Kind.INT64, np.array([row]), size)


@breaks("ET502")
def collective_less(trace: Trace, chance: Random) -> None:
    dropped = np.zeros(len(trace.nodes), np.bool_)
    dropped[pick(of_type(trace, NodeType.COMM_COLL), chance)] = True
    left = without_nodes(trace, dropped)
    trace.nodes, trace.edges = left.nodes, left.edges
    if len(trace.nodes) == 0:
        raise NotHereError


@breaks("ET503")
def collectives_swapped(trace: Trace, chance: Random) -> None:
    """Two collectives of a rank change places in the order of issue."""
    view = TraceView(trace)
    rows = issue_order(view, view.collectives)
    types, sizes = view.integers("comm_type"), view.integers("comm_size")
    pairs = [
        (int(a), int(b))
        for a, b in itertools.pairwise(rows)
        if types[a] != types[b] or (types[a] == CollectiveType.ALL_REDUCE and sizes[a] != sizes[b])
    ]
    if not pairs:
        raise NotHereError
    one, other = chance.choice(pairs)
    table = trace.nodes.attributes
    order = np.array(sorted((one, other)))
    for name, values in (("comm_type", types), ("comm_size", sizes)):
        swapped = np.array([values[other], values[one]])[np.argsort([one, other])]
        set_attribute(table, name, Kind.INT64, order, swapped)


def mutated(
    traces: TraceSet, rank: int, mutation: Mutation, chance: Random
) -> tuple[TraceSet, int | None]:
    """A run of which one rank is broken, or every one alike."""
    at: int | None = None
    seed = chance.random()
    changed = dict(traces)
    for other in traces if mutation.every else [rank]:
        changed[other] = copied(traces[other])
        found = mutation.change(changed[other], Random(seed))
        at = found if other == rank or not mutation.every else at
    return TraceSet(changed), at
