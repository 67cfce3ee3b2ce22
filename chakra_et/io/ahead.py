"""The text of a document while it is read: the part in memory, and a place in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

FILL_BYTES: Final = 1 << 18
"""How much is read at least, so that what stays in memory is copied seldom."""


class Ahead:
    """Text from some place of a document on; it grows at its end, and `at` moves through it."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self.text = b""
        self.at = 0
        self.ended = False
        """Whether the document ends where the text does."""
        self._blocks = blocks
        self._offset = 0  # of the text in the document
        self._characters: str | None = None

    @property
    def left(self) -> int:
        """How many bytes are behind the place."""
        return len(self.text) - self.at

    @property
    def characters(self) -> str:
        """The text with one character for each byte; all marks of JSON are ASCII."""
        if self._characters is None:
            self._characters = self.text.decode("latin-1")
        return self._characters

    def offset(self, at: int) -> int:
        """Where a place in the text is in the document."""
        return self._offset + at

    def fill(self, wanted: int) -> bool:
        """Read on until more than so many bytes are left, or the document ends; whether any came.

        What is before the place is dropped then.
        """
        if self.left >= wanted or self.ended:
            return False
        parts, size = [self.text[self.at :]], self.left
        while size < wanted + FILL_BYTES:
            block = next(self._blocks, None)
            if block is None:
                self.ended = True
                break
            parts.append(block)
            size += len(block)
        self._offset += self.at
        self.text, self.at, self._characters = b"".join(parts), 0, None
        return len(parts) > 1

    def take(self, to: int) -> bytes:
        """Move to a place; what was passed."""
        taken, self.at = self.text[self.at : to], to
        return taken
