"""Small traces, each for one thing: what feeders and simulators are tried with.

A case is a program for any number of ranks. `native` says that ASTRA-sim runs it as it is; the
others hold what it does not know: they are for other readers, or for `chakra fix --for astra-sim`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from chakra_et.build import Program, Rank, Workload
from chakra_et.definitions import ATTRIBUTES, CollectiveType, Kind, NodeType
from chakra_et.errors import ChakraError
from chakra_et.model.attribute_values import INTEGER_KINDS

GROUP: Final = "rank"
"""The axis on which all ranks of a case lie, and so the group of all."""


@dataclass(frozen=True)
class Case:
    """One small workload: what it shows, and what a rank does for some bytes and nanoseconds."""

    about: str
    run: Callable[[Rank, int, int], None]
    native: bool = True

    def workload(self, ranks: int) -> Workload:
        """The ranks, in a row."""
        return Workload({GROUP: ranks})

    def program(self, size_bytes: int, duration_ns: int) -> Program:
        """What a rank does; `size_bytes` is a rank's input of each communication."""
        return lambda rank: self.run(rank, size_bytes, duration_ns)


def case(name: str) -> Case:
    """A case by its name. Raises ChakraError for one that is none."""
    if name not in CASES:
        raise ChakraError(f"no case {name!r}", remedy=f"It is one of {', '.join(CASES)}, or all.")
    return CASES[name]


# ---------------------------------------------------------------------------------------------
# Nodes and edges


def _compute(rank: Rank, size: int, duration: int) -> None:
    """A chain of computations."""
    done = None
    for number in range(4):
        done = rank.compute(
            f"compute {number}", flops=size, moved_bytes=size, duration_ns=duration, after=done
        )


def _graph(rank: Rank, size: int, duration: int) -> None:
    """One computation before many, and one behind all of them."""
    first = rank.compute("first", flops=size, moved_bytes=size, duration_ns=duration)
    middle = [
        rank.compute(f"middle {n}", flops=size, moved_bytes=size, duration_ns=duration, after=first)
        for n in range(8)
    ]
    rank.compute("last", flops=size, moved_bytes=size, duration_ns=duration, after=middle)


def _every_type(rank: Rank, size: int, duration: int) -> None:
    """Every type of node but INVALID, one behind the other."""
    done: Any = rank.node(NodeType.METADATA, "METADATA", cpu=True)
    done = rank.compute("COMP", flops=size, moved_bytes=size, duration_ns=duration, after=done)
    done = rank.load("MEM_LOAD", size, after=done, attributes={"tensor_loc": 1})
    done = rank.store("MEM_STORE", size, after=done, attributes={"tensor_loc": 2})
    done = rank.node(NodeType.STORAGE, "STORAGE", moved_bytes=size, after=done)
    done = rank.node(NodeType.DATA_OP, "DATA_OP", moved_bytes=size, after=done)
    done = rank.compute("host", duration_ns=duration, cpu=True, after=done)
    sent = rank.send(rank.peer(rank=1), size, name="COMM_SEND", after=done)
    got = rank.receive(rank.peer(rank=-1), size, name="COMM_RECV", after=done)
    rank.all_reduce(GROUP, size, name="COMM_COLL", after=[sent, got])


def _edge_kinds(rank: Rank, size: int, duration: int) -> None:
    """A call, a stream's order, and data."""
    x = rank.tensor("x", (size // 2,))
    caller = rank.compute("caller", duration_ns=duration, outputs=[x])
    with rank.on(stream=0):
        rank.compute("on a stream", duration_ns=duration)
        rank.compute("behind it", duration_ns=duration)
        rank.compute("reads", duration_ns=duration, inputs=[x])
    rank.node(NodeType.COMP, "called", duration_ns=duration, called_by=caller)


_VALUES: Final[dict[Kind, Any]] = {
    **dict.fromkeys(INTEGER_KINDS, 1),
    Kind.DOUBLE: 0.5,
    Kind.FLOAT: 0.5,
    Kind.BOOL: True,
    Kind.STRING: "text",
    Kind.BYTES: b"bytes",
}


def _attributes(rank: Rank, size: int, duration: int) -> None:
    """A node for every attribute of the registry, and one for every kind of value."""
    done = None
    for name, attribute in ATTRIBUTES.items():
        if name not in _BUILT:
            done = rank.compute(
                name, duration_ns=duration, after=done,
                attributes={name: (attribute.kind, _value(attribute.kind))},
            )  # fmt: skip
    for kind in Kind:
        done = rank.compute(
            kind.name, duration_ns=duration, after=done,
            attributes={f"of_kind_{kind.name.lower()}": (kind, _value(kind))},
        )  # fmt: skip


_BUILT: Final = frozenset({
    "is_cpu_op", "duration_ns", "start_time_ns", "edge_kinds", "edge_evidence", "same_kernel",
    "own_start_ns", "inputs", "outputs",
})  # fmt: skip
"""Attributes that say something of the node's other parts: the writer's, not to be made up."""


def _value(kind: Kind) -> Any:
    return _VALUES[kind] if kind in _VALUES else (_VALUES[Kind(kind - 1)],) * 2


# ---------------------------------------------------------------------------------------------
# Communication


def _collective(type: CollectiveType) -> Callable[[Rank, int, int], None]:
    def run(rank: Rank, size: int, duration: int) -> None:
        before = rank.compute("before", flops=size, moved_bytes=size, duration_ns=duration)
        given = 0 if type is CollectiveType.BARRIER else size
        done = rank.collective(type, GROUP, given, after=before)
        rank.compute("after", flops=size, moved_bytes=size, duration_ns=duration, after=done)

    return run


def _ring(rank: Rank, size: int, duration: int) -> None:
    """To the next rank, as often as there are others."""
    done = None
    for _ in range(rank.size(GROUP) - 1):
        rank.send(rank.peer(rank=1), size, after=done)
        done = rank.receive(rank.peer(rank=-1), size, after=done)


def _chain(rank: Rank, size: int, duration: int) -> None:
    """From the first rank to the last, with work on each."""
    got = rank.receive(rank.peer(rank=-1), size) if rank.id > 0 else None
    done = rank.compute("work", flops=size, moved_bytes=size, duration_ns=duration, after=got)
    if rank.id < rank.size(GROUP) - 1:
        rank.send(rank.peer(rank=1), size, after=done)


def _tree(rank: Rank, size: int, duration: int) -> None:
    """From children to parents, up to rank 0: rank r is the parent of 2 r + 1 and 2 r + 2."""
    children = [c for c in (2 * rank.id + 1, 2 * rank.id + 2) if c < rank.size(GROUP)]
    got = [rank.receive(child, size) for child in children]
    done = rank.compute("work", flops=size, moved_bytes=size, duration_ns=duration, after=got)
    if rank.id > 0:
        rank.send((rank.id - 1) // 2, size, after=done)


def _pairs(rank: Rank, size: int, duration: int) -> None:
    """A message from every rank to every other one."""
    others = range(1, rank.size(GROUP))
    part = max(size // rank.size(GROUP), 1)
    for distance in others:
        rank.send(rank.peer(rank=distance), part)
    got = [rank.receive(rank.peer(rank=-distance), part) for distance in others]
    rank.compute("work", flops=size, moved_bytes=size, duration_ns=duration, after=got)


def _halo(rank: Rank, size: int, duration: int) -> None:
    """Borders to both neighbours, work on the inside meanwhile, then on the borders; twice."""
    done: Any = None
    for _ in range(2):
        sides = [rank.peer(rank=1)] + [rank.peer(rank=-1)] * (rank.size(GROUP) > 2)
        for side in sides:
            rank.send(side, size, after=done)
        got = [rank.receive(side, size, after=done) for side in reversed(sides)]
        inside = rank.compute(
            "inside", flops=size, moved_bytes=size, duration_ns=duration, after=done
        )
        done = rank.compute(
            "borders", flops=size, moved_bytes=size, duration_ns=duration, after=[inside, *got]
        )


_NATIVE: Final = frozenset(
    {
        CollectiveType.ALL_REDUCE, CollectiveType.ALL_GATHER, CollectiveType.ALL_TO_ALL,
        CollectiveType.REDUCE_SCATTER,
    }
)  # fmt: skip
CASES: Final[dict[str, Case]] = {
    "compute": Case("computations, one behind the other", _compute),
    "graph": Case("one before many, one behind all", _graph),
    "node-types": Case("every type of node that does something", _every_type, native=False),
    "edge-kinds": Case("a call, a stream's order, data", _edge_kinds),
    "attributes": Case("every attribute and every kind of value", _attributes, native=False),
    **{
        type.name.lower().replace("_", "-"): Case(
            f"{type.name} of all ranks, between two computations", _collective(type),
            native=type in _NATIVE,
        )
        for type in CollectiveType
    },
    "ring": Case("messages to the next rank, as often as there are others", _ring),
    "chain": Case("messages from the first rank to the last", _chain),
    "tree": Case("messages from children to parents", _tree),
    "pairs": Case("messages from every rank to every other", _pairs),
    "halo": Case("messages to both neighbours, beside computation", _halo),
}  # fmt: skip
