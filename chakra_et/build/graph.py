"""The nodes of a program and what each waits for, as they are appended one by one."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from chakra_et.build.operation import Operation, Tags, Tensor
from chakra_et.build.places import BuildError, Place
from chakra_et.definitions import EdgeKind

Done: TypeAlias = "int | tuple[int, ...]"
"""What others can wait for: an operation, or, of a collective of one rank, what it waited for."""
After: TypeAlias = "Done | Iterable[Done | None] | None"

_ID_BITS: Final = 40
_ID_MASK: Final = (1 << _ID_BITS) - 1
_NO_STREAM: Final = -1
_DATA: Final = int(EdgeKind.DATA)


class Graph:
    """Nodes in columns, numbered from 1: for each an operation and tags, by number, and its edges.

    A handle is a node's number with the number of its program above, so that one of another program
    is told apart. `communication` holds the rows that communicate, `places` the lines that said so.
    """

    def __init__(self, number: int, *, name_tensors: bool) -> None:
        self.operations: dict[Operation, int] = {}
        self.tags: dict[Tags, int] = {}
        self.operation_of = array("i")
        self.tags_of = array("i")
        self.edge_count = array("i")
        self.edge_source = array("q")
        self.edge_kind = array("B")
        self.communication = array("q")
        self.places: list[Place] = []
        self.tensor_names: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
        self._name_tensors = name_tensors
        self._base = number << _ID_BITS
        self._stream_of = array("i", [_NO_STREAM])
        self._last: dict[int, int] = {}
        self._streams: dict[int | str, int] = {}
        self.now = Tags()

    def __len__(self) -> int:
        return len(self.operation_of)

    @property
    def now(self) -> Tags:
        """The tags of what is appended next."""
        return self._now

    @now.setter
    def now(self, tags: Tags) -> None:
        self._now = tags
        self._now_code = self.tags.setdefault(tags, len(self.tags))
        self._now_stream = _NO_STREAM
        if tags.stream is not None:
            self._now_stream = self._streams.setdefault(tags.stream, len(self._streams))

    def append(
        self,
        operation: Operation,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        after: After,
        called_by: int | None = None,
    ) -> int:
        """Append a node; its handle."""
        if operation.duration_ns < 0:
            raise BuildError.here(f"a duration of {operation.duration_ns} ns", "Give 0 or more.")
        stream = self._now_stream
        waits = self._waits(after, inputs, outputs, stream)
        if len(waits) > 1:
            waits = self._slim(waits)
        if called_by is not None:
            waits = {self._own(called_by): EdgeKind.CALL, **waits}
        self.operation_of.append(self.operations.setdefault(operation, len(self.operations)))
        self.tags_of.append(self._now_code)
        self.edge_count.append(len(waits))
        self.edge_source.extend(waits)
        self.edge_kind.extend(waits.values())
        node = len(self.operation_of)
        self._stream_of.append(stream)
        if stream != _NO_STREAM:
            self._last[stream] = node
        handle = self._base + node
        for tensor in outputs:
            tensor.writers = (handle,)
        if self._name_tensors and (inputs or outputs):
            self.tensor_names.append((node - 1, _names(inputs), _names(outputs)))
        return handle

    def communicate(
        self,
        operation: Operation,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        after: After,
        place: Place,
    ) -> int:
        """Append a node that communicates, and where in the caller's code it stands."""
        self.communication.append(len(self))
        self.places.append(place)
        return self.append(operation, inputs, outputs, after)

    def pass_on(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], after: After) -> Done:
        """Append nothing: what waits for it waits for what it would have waited for."""
        waits = tuple(self._base + node for node in self._waits(after, inputs, outputs, _NO_STREAM))
        for tensor in outputs:
            tensor.writers = waits
        return waits

    def _waits(
        self, after: After, inputs: Sequence[Tensor], outputs: Sequence[Tensor], stream: int
    ) -> dict[int, int]:
        """The nodes to wait for, each once, with the kind of the edge."""
        waits: dict[int, int] = {}
        if after is not None:
            for handle in _flat(after):
                waits[self._own(handle)] = _DATA
        base, last = self._base, self._base + len(self.operation_of)
        for tensors in (inputs, outputs):
            for tensor in tensors:
                for handle in tensor.writers:
                    # Most nodes of a large set pass here.
                    waits[handle - base if base < handle <= last else self._own(handle)] = _DATA
        if stream in self._last:
            waits.setdefault(self._last[stream], EdgeKind.STREAM)
        return waits

    def _slim(self, waits: dict[int, int]) -> dict[int, int]:
        """Of the nodes on one stream the last: the others come before it."""
        latest: dict[int, int] = {}
        streams = [self._stream_of[node] for node in waits]
        for node, stream in zip(waits, streams, strict=True):
            if node > latest.get(stream, 0):
                latest[stream] = node
        return {
            node: kind
            for (node, kind), stream in zip(waits.items(), streams, strict=True)
            if stream == _NO_STREAM or latest[stream] == node
        }

    def _own(self, handle: int) -> int:
        node = handle & _ID_MASK
        if handle - node != self._base or not 0 < node <= len(self):
            raise BuildError.here(
                "this waits for an operation of another rank",
                "Ranks wait for each other by messages and collectives alone.",
            )
        return node


def _flat(after: After) -> Iterator[int]:
    if isinstance(after, int):
        yield after
    elif after is not None:
        for part in after:
            yield from _flat(part)


def _names(tensors: Sequence[Tensor]) -> tuple[str, ...]:
    """Names and bytes in turn, as `inputs` and `outputs` want them; views have no name."""
    return tuple(text for t in tensors if t.name for text in (t.name, str(t.size_bytes)))
