"""Workload texts as lines of words: what the readers of all dialects share."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NoReturn

from chakra_et.errors import FormatError
from chakra_et.io.source import read_all

REMEDY: Final = "docs/generate.md explains the columns."
_MOST: Final = 1 << 53


class TextLines:
    """The lines of a file, which may be compressed: the number of each, and its words.

    Raises FormatError for what is no text; so do `number` and `fail`, with the line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = read_all(path).decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"not a text: {error}", path=path, remedy=REMEDY) from error
        lines = ((number, line.split()) for number, line in enumerate(text.splitlines(), 1))
        self.lines = [(number, words) for number, words in lines if words]

    def number(self, line: int, word: str, what: str) -> int:
        """A whole number from 0 on."""
        if not word.isascii() or not word.isdecimal():
            self.fail(line, f"{what} is {word[:30]!r}, not a whole number of 0 or more")
        if len(word) > len(str(_MOST)) or int(word) > _MOST:
            self.fail(line, f"{what} is {word[:30]}, more than {_MOST}")
        return int(word)

    def fail(self, line: int, problem: str, remedy: str = REMEDY) -> NoReturn:
        """Raise FormatError for a line."""
        raise FormatError(problem, path=self.path, place=f"line {line}", remedy=remedy)
