"""Buffers that calls take and give back: as many as are under way at once, not one for each."""

# mypy: disable-error-code="import-not-found,no-untyped-call"

from __future__ import annotations

from typing import Any

import torch

from chakra_et.benchmark.comms.call import width
from chakra_et.errors import ChakraError


class Buffers:
    """Memory of a device, handed out by size and used again."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._free: list[Any] = []
        self.held_bytes = 0
        """How much there is, in use or not."""
        self.most_bytes = 0

    def take(self, elements: int, dtype: str) -> Any:
        """A tensor of one dimension, of whatever content. Raises ChakraError without memory."""
        size = elements * width(dtype)
        fitting = [b for b in self._free if b.numel() >= size]
        if fitting:
            buffer = min(fitting, key=lambda b: int(b.numel()))
            self._drop(buffer)
        else:
            # A larger one takes the place of one that is too small.
            if self._free:
                self._let_go(max(self._free, key=lambda b: int(b.numel())))
            buffer = self._new(size)
        return buffer[:size].view(getattr(torch, dtype))

    def give_back(self, tensors: list[Any]) -> None:
        """Tensors that `take` gave, and that nobody needs any more."""
        for tensor in tensors:
            storage = tensor.untyped_storage()
            self._free.append(torch.empty(0, dtype=torch.uint8, device=self._device).set_(storage))

    def blank(self) -> None:
        """Zero all that is free: bits of small numbers may be slow to add up as another type."""
        for buffer in self._free:
            buffer.zero_()

    def _drop(self, buffer: Any) -> None:
        self._free = [b for b in self._free if b is not buffer]

    def _let_go(self, buffer: Any) -> None:
        self._drop(buffer)
        self.held_bytes -= buffer.numel()

    def _new(self, size: int) -> Any:
        try:
            buffer = torch.zeros(size, dtype=torch.uint8, device=self._device)
        except (RuntimeError, MemoryError) as error:
            raise ChakraError(
                f"no memory for a buffer of {size} bytes beside {self.held_bytes} bytes: {error}",
                remedy="Run on fewer ranks (--shrink), or on a machine with more memory.",
            ) from None
        self.held_bytes += size
        self.most_bytes = max(self.most_bytes, self.held_bytes)
        return buffer
