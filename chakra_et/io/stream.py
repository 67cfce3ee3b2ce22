"""A stream of bytes over blocks, with a look ahead."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Final

BLOCK_BYTES: Final = 1 << 20


class Stream(io.RawIOBase):
    """Blocks as a file to read from; iterating yields what is left, block by block."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._ahead = b""
        self._taken = 0

    def __iter__(self) -> Iterator[bytes]:
        if self._ahead:
            block, self._ahead = self._ahead, b""
            self._taken += len(block)
            yield block
        for block in self._blocks:
            self._taken += len(block)
            yield block

    def peek(self, count: int) -> bytes:
        """The next bytes, which stay to be read."""
        while len(self._ahead) < count and (block := next(self._blocks, None)) is not None:
            self._ahead += block
        return self._ahead[:count]

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes, b"" at the end."""
        while not self._ahead:
            block = next(self._blocks, None)
            if block is None:
                return b""
            self._ahead = block
        if size < 0 or size >= len(self._ahead):
            taken, self._ahead = self._ahead, b""
        else:
            taken, self._ahead = self._ahead[:size], self._ahead[size:]
        self._taken += len(taken)
        return taken

    def readable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """How many bytes were taken."""
        return self._taken
