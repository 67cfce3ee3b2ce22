"""Tensors over time: which views of which storages operations take and return.

A recorder numbers storages by address: memory that was freed gives its number to what comes next.
So a storage here is born when an operation returns a number that none of its inputs had, and what
is read before it is born was there at the start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from chakra_et.benchmark.arguments import Tensor, Value, View, tensors

AT_START: Final = -1
"""The birth of a storage that is there before the first operation."""


@dataclass(frozen=True)
class Ref:
    """A tensor in the inputs or outputs of an operation: the number of its view."""

    view: int


@dataclass
class Storage:
    """Memory: its bytes, the operation that returned it first, and the last that names it."""

    bytes: int
    born: int
    last: int
    device: str
    views: list[int] = field(default_factory=list)


class Memory:
    """Fills views and storages, operation by operation, in the order in which they run."""

    def __init__(self) -> None:
        self.views: list[View] = []
        self.storages: list[Storage] = []
        self.touched: list[set[int]] = []
        """The storages that each operation names."""
        self._dtypes: list[set[str]] = []
        self._number: dict[View, int] = {}
        self._current: dict[int, int] = {}

    def take(self, operation: int, inputs: Value, outputs: Value) -> tuple[Any, Any]:
        """Inputs and outputs of an operation, with references in place of tensors."""
        self.touched.append(set())
        known = {tensor.storage for tensor in tensors(inputs)}
        taken = self._refer(inputs, operation, AT_START)
        for tensor in tensors(outputs):
            if tensor.storage not in known:
                known.add(tensor.storage)
                self._current[tensor.storage] = self._new(tensor, operation)
        return taken, self._refer(outputs, operation, operation)

    def _refer(self, value: Value, operation: int, born: int) -> Any:
        if isinstance(value, Tensor):
            return Ref(self._view(value, operation, born))
        if isinstance(value, list):
            return [self._refer(item, operation, born) for item in value]
        return value

    def _view(self, tensor: Tensor, operation: int, born: int) -> int:
        """The number of a view; a storage that cannot hold it gives way to one born as told."""
        place = self._current.get(tensor.storage)
        if place is None or not self._fits(place, tensor, born):
            place = self._current[tensor.storage] = self._new(tensor, born)
        self._dtypes[place].add(tensor.dtype)
        self.touched[-1].add(place)
        storage = self.storages[place]
        storage.last = operation
        storage.bytes = max(storage.bytes, tensor.end)
        view = View(place, tensor.offset, tensor.shape, tensor.strides, tensor.dtype, tensor.device)
        number = self._number.setdefault(view, len(self.views))
        if number == len(self.views):
            self.views.append(view)
            storage.views.append(number)
        return number

    def _fits(self, place: int, tensor: Tensor, born: int) -> bool:
        """Whether a tensor can lie in a storage that bears its number.

        One that an operation returned does not grow, and is read as what it was returned as: a
        recorder may give one number to several things.
        """
        storage = self.storages[place]
        if tensor.device != storage.device:
            return False
        if storage.born in (AT_START, born):
            return True
        known = born != AT_START or tensor.dtype in self._dtypes[place]
        return known and tensor.end <= storage.bytes

    def _new(self, tensor: Tensor, born: int) -> int:
        self._dtypes.append(set())
        self.storages.append(Storage(tensor.end, born, born, tensor.device))
        return len(self.storages) - 1


def refs(value: Any) -> list[int]:
    """The numbers of all views in a value, in order."""
    if isinstance(value, Ref):
        return [value.view]
    return [found for item in value for found in refs(item)] if isinstance(value, list) else []
