"""How a feeder is to behave, and the states of a node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal, get_args

from chakra_et.feeder.errors import Code, FeederError
from chakra_et.model import EdgeKind

Order = Literal["id", "start"]
Fault = Literal["fail", "drop", "wait"]

EVERY_KIND: Final = frozenset(EdgeKind)


class State(IntEnum):
    """Where a node is on its way."""

    UNKNOWN = 0
    WAITING = 1
    READY = 2
    TAKEN = 3
    DONE = 4

    @property
    def label(self) -> str:
        """The word used in reports and errors."""
        return self.name.lower()


class Next(IntEnum):
    """Why there is, or is not, a node to take."""

    NODE = 0
    PENDING = 1
    FINISHED = 2
    BLOCKED = 3
    FAILED = 4


@dataclass(frozen=True)
class Options:
    """The choices of docs/feeder.md. The defaults suit a well-formed trace.

    order: "id", or "start" for recorded start times (ties by id).
    missing_parent, self_edge: "fail", "drop" the edge, or let the node "wait" for ever.
    gate: the kinds of edges that make a node wait.
    inferred: whether edges that had to be guessed make a node wait.
    skip_metadata: metadata nodes are done by themselves.
    window: nodes held at once; 0 holds the whole trace.
    strict_window: fail rather than hold more than the window.
    repeat: how often to run the trace; 0 is for ever.
    max_record: bytes that one node may have.
    """

    order: Order = "id"
    missing_parent: Fault = "fail"
    self_edge: Fault = "fail"
    gate: frozenset[EdgeKind] = EVERY_KIND
    inferred: bool = True
    skip_metadata: bool = False
    window: int = 0
    strict_window: bool = False
    repeat: int = 1
    max_record: int = 1 << 28

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("order", self.order, get_args(Order)),
            ("missing_parent", self.missing_parent, get_args(Fault)),
            ("self_edge", self.self_edge, get_args(Fault)),
        ):
            if value not in allowed:
                raise _invalid(f"{name} is {value!r}, not one of {', '.join(allowed)}")
        for name, number in (("window", self.window), ("repeat", self.repeat)):
            if number < 0:
                raise _invalid(f"{name} is {number}, less than 0")

    @property
    def every_edge_gates(self) -> bool:
        """Whether no edge is left out."""
        return self.inferred and self.gate >= EVERY_KIND

    def gates(self, kind: EdgeKind, inferred: bool) -> bool:
        """Whether an edge of this kind makes a node wait."""
        return kind in self.gate and (self.inferred or not inferred)


def gating(
    node_id: int, edges: Iterable[tuple[int, EdgeKind, bool]], options: Options
) -> list[int]:
    """The parents that a node with these edges waits for, dropped self edges left out."""
    parents = (parent for parent, kind, guess in edges if options.gates(kind, guess))
    return [p for p in parents if p != node_id or options.self_edge != "drop"]


def edge_kinds(names: Iterable[EdgeKind | str]) -> frozenset[EdgeKind]:
    """A set of edge kinds from their names."""
    kinds = set()
    for name in names:
        try:
            kinds.add(name if isinstance(name, EdgeKind) else EdgeKind[name.upper()])
        except KeyError:
            known = ", ".join(kind.label for kind in EdgeKind)
            raise _invalid(f"no edge kind {name!r}; there are {known}") from None
    return frozenset(kinds)


def _invalid(problem: str) -> FeederError:
    return FeederError(Code.INVALID_OPTION, problem)
