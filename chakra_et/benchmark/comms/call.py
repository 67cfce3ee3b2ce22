"""A collective or a message of one rank, as it is run; and all that a rank runs."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from chakra_et.definitions import CollectiveType
from chakra_et.recording.libraries import element_bytes

SEND: Final = "SEND"
RECV: Final = "RECV"
DELAY: Final = "DELAY"
"""What takes the place of a call that fewer ranks cannot make: it only takes its recorded time."""
MESSAGES: Final = (SEND, RECV)
BACKENDS: Final = {"cpu": "gloo", "cuda": "nccl", "dry": ""}
"""What communicates, by where operators run."""
REDUCE_SCATTERS: Final = frozenset(
    {CollectiveType.REDUCE_SCATTER.name, CollectiveType.REDUCE_SCATTER_BLOCK.name}
)
"""Collectives of which each rank gets the sum of its part."""
ROOTED: Final = frozenset(
    {
        CollectiveType.BROADCAST.name,
        CollectiveType.REDUCE.name,
        CollectiveType.GATHER.name,
        CollectiveType.SCATTER.name,
    }
)
"""Collectives in which one rank, the root, hands out or gets what is moved."""


class Group(msgspec.Struct, frozen=True):
    """A process group: the name that the recording gives it, and global ranks, ascending."""

    name: str
    ranks: tuple[int, ...]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One collective or message of one rank.

    Sizes are numbers of elements. `tensors` are those of this rank's input, `comm_size` in all;
    several belong to a collective of several tensors at once (`coalesced`), of which each is a
    collective of its own. `sends` and `takes` say how much goes to and comes from each member,
    where that is not the same for all.
    """

    node: int
    """The id of its node in the trace."""
    kind: str
    """The name of a `CollectiveType`, `SEND`, `RECV` or `DELAY`."""
    group: Group
    place: int
    """Its number among the collectives of the group, or the messages of two ranks and a tag."""
    dtype: str = "float32"
    """The name that PyTorch has for the type of the elements."""
    dtype_told: bool = False
    """Whether the recording tells it; else it stands for bytes."""
    tensors: tuple[int, ...] = ()
    coalesced: bool = False
    sends: tuple[int, ...] = ()
    takes: tuple[int, ...] = ()
    root: int | None = None
    """A global rank."""
    peer: int | None = None
    """The other side of a message, as a global rank."""
    tag: int = 0
    is_async: bool | None = None
    """Whether the recording asked for it without waiting; None if it does not say."""
    after: tuple[int, ...] = ()
    """Places in the rank's list of earlier calls that have ended when this one is asked for."""
    start_ns: int | None = None
    """When it was asked for, after the first call of the rank."""
    recorded_ns: int | None = None
    """How long it took."""
    recorded_as: str = ""
    """What a delay stands for."""
    shrunk_from: int = 0
    """How many ranks the group had, where it has fewer now."""

    @property
    def elements(self) -> int:
        """The elements of this rank's input."""
        return sum(self.tensors)

    @property
    def size_bytes(self) -> int:
        """The bytes of this rank's input."""
        return self.elements * width(self.dtype)

    def of_type(self, dtype: str) -> Call:
        """The same bytes as elements of another type; itself where they are no whole number."""
        if dtype == self.dtype or self.size_bytes % width(dtype):
            return self
        return replace(self, dtype=dtype, tensors=(self.size_bytes // width(dtype),))

    def as_bytes(self) -> Call:
        """The same bytes, as elements of one byte."""
        scaled = {
            part: tuple(elements * width(self.dtype) for elements in getattr(self, part))
            for part in ("tensors", "sends", "takes")
        }
        return replace(self, dtype="uint8", **scaled)

    @property
    def is_message(self) -> bool:
        """Whether it is one side of a message."""
        return self.kind in MESSAGES

    @property
    def meeting(self) -> tuple[object, ...]:
        """What all sides of one collective or message have in common."""
        return (self.group.name, self.group.ranks, self.place, self.is_message, self.tag)

    def text(self, rank: int) -> str:
        """The call for people."""
        what = self.recorded_as or self.kind
        if self.is_message:
            side = "to" if self.kind == SEND else "from"
            what = f"{what} {side} rank {self.peer} with tag {self.tag}"
        size = f"{self.elements} x {self.dtype}"
        name = f" in group {self.group.name!r}" if self.group.name else ""
        return f"rank {rank}: {what} of {size}{name} (node {self.node})"


class Plan(msgspec.Struct, frozen=True):
    """What one process runs, as one of the ranks of a recording."""

    rank: int
    """The rank of the recording."""
    members: tuple[int, ...]
    """The rank of the recording that each process runs."""
    calls: tuple[Call, ...]
    groups: tuple[Group, ...]
    """Every group of the run, in one order for all."""


class Skipped(msgspec.Struct, frozen=True):
    """Communication that cannot be run, with the reason."""

    reason: str
    count: int
    recorded_ns: int


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How calls are run."""

    backend: str = "auto"
    warmup: int = 1
    iterations: int = 3
    timeout_s: float = 60.0
    one_by_one: bool = False
    """Whether each collective is waited for before the next is asked for."""
    gaps: bool = False
    """Whether each call is asked for no earlier than recorded, after the first one."""


class RankOutcome(msgspec.Struct, kw_only=True):
    """What one rank saw."""

    rank: int
    backend: str
    durations_ns: list[list[int]]
    """For each iteration, how long each call took, from when it was asked for to its end.

    0 where nobody saw it."""
    spans_ns: list[int]
    checked: int
    """Calls whose results were compared with what they must be."""
    wrong: list[str]
    wrong_count: int
    as_bytes: int
    """Calls of types that the backend does not have, which moved as many bytes."""
    buffer_bytes: int
    """The most memory that buffers took."""


def width(dtype: str) -> int:
    """The bytes of one element of a type that PyTorch names."""
    return element_bytes(dtype) or 1
