"""What one rank does, written down operation by operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

from chakra_et.build.families import Family
from chakra_et.build.graph import After, Done, Graph
from chakra_et.build.operation import (
    Operation,
    Peer,
    Tags,
    Tensor,
    texts_of,
    values_of,
)
from chakra_et.build.places import BuildError, caller
from chakra_et.definitions import CollectiveType, NodeType

if TYPE_CHECKING:
    from chakra_et.build.workload import Workload

PeerLike: TypeAlias = "Peer | int"


class Rank:
    """The program of one rank, and of all ranks that are copies of it.

    Each operation returns a handle; `after` takes handles (or None) that it waits for. It also
    waits for the writers of its tensors, and, on a stream, for the operation before it there. Waits
    that the order of a stream implies are left out. Sizes are bytes, times ns, work FLOP.

    Ranks whose coordinates differ only where the program never looks are copies, and the program
    runs once for all of them: so call `peer` and name groups by family rather than compute ranks.
    """

    def __init__(self, workload: Workload, number: int, representative: int) -> None:
        self.workload = workload
        self.looked_at: set[str] = set()
        self.families_asked: set[str] = set()
        self.graph = Graph(number, name_tensors=workload.tensors)
        self._rank = representative
        self._messages: dict[tuple[NodeType, PeerLike], int] = {}

    def __len__(self) -> int:
        return len(self.graph)

    # -----------------------------------------------------------------------------------------
    # Who and where

    @property
    def id(self) -> int:
        """The global rank. A program that asks is run for every rank."""
        self.looked_at.update(self.workload.grid.axes)
        return self._rank

    def coordinate(self, axis: str) -> int:
        """Where the rank lies on an axis of the grid."""
        self._axis(axis)
        self.looked_at.add(axis)
        return int(self.workload.grid.coordinate(axis, self._rank))

    def peer(self, **offsets: int) -> Peer:
        """The rank that lies some steps away on axes; behind the last comes the first."""
        grid = self.workload.grid
        steps = {axis: offset % self._axis(axis) for axis, offset in sorted(offsets.items())}
        # On an axis of two, one step forth and one back are the same.
        return Peer(offsets=tuple(s for s in steps.items() if grid.axes[s[0]] > 1 and s[1]))

    def peer_at(self, **places: int) -> Peer:
        """The rank that has other coordinates on some axes, and the same on the rest."""
        for axis, place in places.items():
            if not 0 <= place < self._axis(axis):
                raise BuildError.here(
                    f"place {place} of axis {axis!r}", f"It has {self._axis(axis)} places, from 0."
                )
        return Peer(places=tuple(sorted(places.items())))

    def in_group(self, family: str) -> bool:
        """Whether the rank is in a group of a family."""
        self.families_asked.add(family)
        return bool(self.workload.families[family].group_of[self._rank] >= 0)

    def size(self, family: str) -> int:
        """How many ranks the rank's group of a family has."""
        return self._family(family).size

    def _axis(self, axis: str) -> int:
        axes = self.workload.grid.axes
        if axis not in axes:
            raise BuildError.here(f"no axis {axis!r}", f"There are {', '.join(axes)}.")
        return axes[axis]

    # -----------------------------------------------------------------------------------------
    # Tags and tensors

    def on(
        self,
        *,
        stream: int | str | None = None,
        phase: str | None = None,
        layer: int | None = None,
        micro_batch: int | None = None,
    ) -> AbstractContextManager[None]:
        """Operations in this block are on a stream, and of a phase, layer or micro-batch.

        What is on one stream runs in order. A stream with a number is one of the device, and is
        written to the trace; one with a name only gives the order.
        """
        return _On(self.graph, stream, phase, layer, micro_batch)

    def tensor(self, name: str, shape: Sequence[int], dtype: str = "bf16") -> Tensor:
        """A tensor that operations of this rank can read and write."""
        return Tensor(name, tuple(shape), dtype)

    # -----------------------------------------------------------------------------------------
    # Work

    def compute(
        self,
        name: str,
        *,
        flops: int | None = None,
        moved_bytes: int | None = None,
        inputs: Sequence[Tensor] = (),
        outputs: Sequence[Tensor] = (),
        after: After = None,
        duration_ns: int = 0,
        op_type: str | None = None,
        cpu: bool = False,
        attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """An operation that computes; `cpu` says that it occupies the host."""
        operation = Operation(
            NodeType.COMP, name, op_type, duration_ns, cpu, flops, moved_bytes,
            inputs=texts_of(inputs), outputs=texts_of(outputs), values=values_of(attributes),
        )  # fmt: skip
        return self.append(operation, inputs, outputs, after)

    def load(self, name: str, size_bytes: int, **options: Any) -> int:
        """Move bytes from memory; options are those of `node`."""
        return self.node(NodeType.MEM_LOAD, name, moved_bytes=size_bytes, **options)

    def store(self, name: str, size_bytes: int, **options: Any) -> int:
        """Move bytes to memory; options are those of `node`."""
        return self.node(NodeType.MEM_STORE, name, moved_bytes=size_bytes, **options)

    def node(
        self,
        type: NodeType,
        name: str,
        *,
        moved_bytes: int | None = None,
        inputs: Sequence[Tensor] = (),
        outputs: Sequence[Tensor] = (),
        after: After = None,
        called_by: int | None = None,
        duration_ns: int = 0,
        cpu: bool = False,
        attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """A node of any type, with any attributes: of the registry, or `(Kind, value)`."""
        operation = Operation(
            type, name, None, duration_ns, cpu, None, moved_bytes,
            inputs=texts_of(inputs), outputs=texts_of(outputs), values=values_of(attributes),
        )  # fmt: skip
        return self.append(operation, inputs, outputs, after, called_by)

    # -----------------------------------------------------------------------------------------
    # Communication

    def collective(
        self,
        type: CollectiveType,
        family: str,
        size_bytes: int,
        *,
        name: str | None = None,
        inputs: Sequence[Tensor] = (),
        outputs: Sequence[Tensor] = (),
        after: After = None,
        duration_ns: int = 0,
        attributes: Mapping[str, Any] | None = None,
    ) -> Done:
        """Take part in a collective of the rank's group in a family.

        `size_bytes` is the size of this rank's input, as `comm_size` is. In a group of one there is
        nothing to do: the call adds no node, and returns what it would have waited for.
        """
        operation = Operation(
            NodeType.COMM_COLL, name or f"{type.name.lower()} {family}", None, duration_ns,
            collective=int(type), size_bytes=_size(size_bytes), family=family,
            inputs=texts_of(inputs), outputs=texts_of(outputs), values=values_of(attributes),
        )  # fmt: skip
        if self._family(family).size == 1:
            return self.graph.pass_on(inputs, outputs, after)
        return self._communicate(operation, inputs, outputs, after)

    def all_reduce(self, family: str, size_bytes: int, **options: Any) -> Done:
        """Sum of all; `size_bytes` is the whole. Options are those of `collective`."""
        return self.collective(CollectiveType.ALL_REDUCE, family, size_bytes, **options)

    def all_gather(self, family: str, size_bytes: int, **options: Any) -> Done:
        """Everybody gets all shards; `size_bytes` is this rank's shard."""
        return self.collective(CollectiveType.ALL_GATHER, family, size_bytes, **options)

    def reduce_scatter(self, family: str, size_bytes: int, **options: Any) -> Done:
        """Everybody gets its shard of the sum; `size_bytes` is the whole."""
        return self.collective(CollectiveType.REDUCE_SCATTER, family, size_bytes, **options)

    def all_to_all(self, family: str, size_bytes: int, **options: Any) -> Done:
        """Everybody gets a part from everybody; `size_bytes` is all that this rank hands out."""
        return self.collective(CollectiveType.ALL_TO_ALL, family, size_bytes, **options)

    def broadcast(self, family: str, size_bytes: int, **options: Any) -> Done:
        """Everybody gets what the first rank of the group has."""
        return self.collective(CollectiveType.BROADCAST, family, size_bytes, **options)

    def barrier(self, family: str, **options: Any) -> Done:
        """Wait for all ranks of the group."""
        return self.collective(CollectiveType.BARRIER, family, 0, **options)

    def send(self, to: PeerLike, size_bytes: int, **options: Any) -> int:
        """Send to one rank. Options: `tag`, `name`, `inputs`, `after`, `duration_ns`, `attributes`.

        Without a tag, messages to one peer are numbered, as are those received from it: then both
        must be in the same order.
        """
        return self._message(NodeType.COMM_SEND, to, size_bytes, **options)

    def receive(self, source: PeerLike, size_bytes: int, **options: Any) -> int:
        """Receive from one rank. Options are those of `send`, with `outputs` for `inputs`."""
        return self._message(NodeType.COMM_RECV, source, size_bytes, **options)

    def _message(
        self,
        type: NodeType,
        peer: PeerLike,
        size_bytes: int,
        *,
        tag: int | None = None,
        name: str | None = None,
        inputs: Sequence[Tensor] = (),
        outputs: Sequence[Tensor] = (),
        after: After = None,
        duration_ns: int = 0,
        attributes: Mapping[str, Any] | None = None,
    ) -> int:
        if tag is None:
            tag = self._messages.get((type, peer), 0)
            self._messages[type, peer] = tag + 1
        operation = Operation(
            type, name or ("send" if type is NodeType.COMM_SEND else "receive"), None, duration_ns,
            size_bytes=_size(size_bytes), tag=tag, peer=self._checked(peer),
            inputs=texts_of(inputs), outputs=texts_of(outputs), values=values_of(attributes),
        )  # fmt: skip
        return self._communicate(operation, inputs, outputs, after)

    def _checked(self, peer: PeerLike) -> Peer:
        world = self.workload.grid.world_size
        if isinstance(peer, int):
            peer = Peer(rank=peer)
            if not 0 <= (peer.rank or 0) < world:
                raise BuildError.here(f"no rank {peer.rank}", f"Ranks go from 0 to {world - 1}.")
        if peer == Peer() or peer.of(self.workload.grid, self._rank) == self._rank:
            raise BuildError.here(
                f"rank {self._rank} would send to itself", "Name another rank, or leave it out."
            )
        return peer

    def _family(self, name: str) -> Family:
        families = self.workload.families
        if name not in families:
            raise BuildError.here(
                f"no groups called {name!r}",
                f"There are {', '.join(families)}.",
            )
        self.families_asked.add(name)
        if families[name].group_of[self._rank] < 0:
            raise BuildError.here(
                f"rank {self._rank} is in no group of {name!r}", "Add it to one, or leave this out."
            )
        return families[name]

    def _communicate(
        self,
        operation: Operation,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        after: After,
    ) -> int:
        return self.graph.communicate(operation, inputs, outputs, after, caller())

    def append(
        self,
        operation: Operation,
        inputs: Sequence[Tensor] = (),
        outputs: Sequence[Tensor] = (),
        after: After = None,
        called_by: int | None = None,
    ) -> int:
        """Append a node of an operation that is made already, as loops do; its handle."""
        return self.graph.append(operation, inputs, outputs, after, called_by)


class _On:
    """Tags that hold inside of a block, beside those that hold around it."""

    __slots__ = ("_around", "_graph", "_inside")

    def __init__(
        self,
        graph: Graph,
        stream: int | str | None,
        phase: str | None,
        layer: int | None,
        micro_batch: int | None,
    ) -> None:
        around = graph.now
        self._graph = graph
        self._inside = Tags(
            around.stream if stream is None else stream,
            around.phase if phase is None else phase,
            around.layer if layer is None else layer,
            around.micro_batch if micro_batch is None else micro_batch,
        )

    def __enter__(self) -> None:
        self._around, self._graph.now = self._graph.now, self._inside

    def __exit__(self, *_: object) -> None:
        self._graph.now = self._around


def _size(size_bytes: int) -> int:
    if not isinstance(size_bytes, int) or size_bytes < 0:
        raise BuildError.here(f"a size of {size_bytes!r} bytes", "Give a whole number, 0 or more.")
    return size_bytes
