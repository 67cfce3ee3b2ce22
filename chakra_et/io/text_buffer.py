"""The part of a document that is in memory while it is read from its beginning to its end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

SPARE_BYTES: Final = 64
"""So many zeros stand behind the text, where readers need not look for its end."""
_ZEROS: Final = bytes(SPARE_BYTES)


class TextBuffer:
    """Text that grows at its end and is dropped at its beginning, in one array that is used again.

    Places count from the beginning of what is in memory. `offset` is where that is in the document.
    """

    def __init__(self) -> None:
        self.offset = 0
        self.wanted = 0
        """How much text there should be, when more is asked for."""
        self._data = bytearray(SPARE_BYTES)
        self._begin = self._end = 0

    def __len__(self) -> int:
        return self._end - self._begin

    def room(self) -> memoryview:
        """Where the text goes on, as far as it is wanted."""
        if self._begin + self.wanted + SPARE_BYTES > len(self._data):
            left = self.part()
            if self.wanted + SPARE_BYTES > len(self._data):
                self._data = bytearray(self.wanted + SPARE_BYTES)
            self._data[: len(left)] = left
            self._begin, self._end = 0, len(left)
        return memoryview(self._data)[self._end : self._begin + self.wanted]

    def filled(self, count: int) -> None:
        """So many bytes were put into the room."""
        self._end += count
        self._data[self._end : self._end + SPARE_BYTES] = _ZEROS

    def add(self, block: bytes) -> None:
        """Put a block behind the text."""
        self.wanted = max(self.wanted, len(self) + len(block))
        with self.room() as room:
            room[: len(block)] = block
        self.filled(len(block))

    def drop(self, count: int) -> None:
        """Forget what stands before a place."""
        self._begin += count
        self.offset += count

    def part(self, low: int = 0, high: int | None = None) -> bytes:
        """The text between two places."""
        high = len(self) if high is None else min(high, len(self))
        return bytes(self._data[self._begin + low : self._begin + high])

    def view(self) -> memoryview:
        """The text and the zeros behind it; it does not grow before this is released."""
        return memoryview(self._data)[self._begin : self._end + SPARE_BYTES]

    def last(self, word: bytes, low: int, high: int) -> int:
        """Where a word begins last between two places, below 0 where it does not."""
        return self._data.rfind(word, self._begin + low, self._begin + high) - self._begin

    def match(self, pattern: re.Pattern[bytes], at: int = 0) -> re.Match[bytes] | None:
        """A pattern at a place; what the match tells of places is not to be used."""
        return pattern.match(self._data, self._begin + at, self._end)

    def behind(self, pattern: re.Pattern[bytes], at: int = 0) -> int | None:
        """Where a pattern at a place ends."""
        match = self.match(pattern, at)
        return None if match is None else match.end() - self._begin

    def behind_next(self, pattern: re.Pattern[bytes], at: int) -> int | None:
        """Where the first pattern from a place on ends."""
        match = pattern.search(self._data, self._begin + at, self._end)
        return None if match is None else match.end() - self._begin


Filling: TypeAlias = Callable[[TextBuffer], Iterator[None]]
"""What puts a document into a buffer: more of it with each step, until the document ends."""


def blockwise(blocks: Iterable[bytes]) -> Filling:
    """What puts a document of blocks into a buffer, one with each step."""

    def fill(text: TextBuffer) -> Iterator[None]:
        for block in blocks:
            text.add(block)
            yield

    return fill
