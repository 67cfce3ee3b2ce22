"""What a feeder does, whether it holds the whole trace or a window of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

from chakra_et.feeder.options import Next, State


class Counts(NamedTuple):
    """How many nodes are where. `held` are those in memory that are not done."""

    waiting: int
    ready: int
    taken: int
    done: int
    held: int
    peak_held: int
    all_read: bool


class Engine(ABC):
    """The protocol of docs/feeder.md for one round."""

    stop: Next = Next.FINISHED
    """Why the last run() ended."""

    finished: bool
    """Whether every node is done."""

    @abstractmethod
    def run(self) -> Iterator[Any]:
        """Take node after node; each is done when the next is asked for."""

    @abstractmethod
    def next(self) -> tuple[Next, Any]:
        """Take the first ready node."""

    @abstractmethod
    def take(self, node_id: int) -> Any:
        """Take a ready node."""

    @abstractmethod
    def done(self, node_id: int) -> None:
        """Finish a taken node."""

    @abstractmethod
    def push_back(self, node_id: int) -> None:
        """Make a taken node ready again."""

    @abstractmethod
    def ready(self, limit: int | None) -> list[int]:
        """Ready ids, in order."""

    @abstractmethod
    def state(self, node_id: int) -> State:
        """Where a node is on its way."""

    @abstractmethod
    def node(self, node_id: int) -> Any:
        """The view of a node, or None."""

    @abstractmethod
    def children(self, node_id: int) -> list[int]:
        """Ids of the nodes that wait, or waited, for this one, as far as they are known."""

    @abstractmethod
    def gates(self, node_id: int) -> list[int]:
        """Ids of the parents that this node waits, or waited, for."""

    @abstractmethod
    def in_state(self, state: State) -> list[int]:
        """Ids of all nodes in a state, ascending."""

    @abstractmethod
    def all_ids(self) -> list[int]:
        """Ids of all nodes held, ascending."""

    @abstractmethod
    def counts(self) -> Counts:
        """How many nodes are where."""

    @abstractmethod
    def restart(self) -> None:
        """Every node is as at the start."""
