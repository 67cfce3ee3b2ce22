"""Errors that a user can act on: each names the file, the place, and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from chakra_et.shown import shortened, shown, shown_lines
from chakra_et.urls import shown_path

_LONGEST_PLACE: Final = 400
"""Characters of a place that an error shows: keys in a file may be of any length."""


class ChakraError(Exception):
    """Something is wrong with an input, an output or a request; no traceback is needed.

    The message reads `FILE: PLACE: what is wrong. Remedy`. The command line prints it and ends
    with `exit_code`.
    """

    exit_code = 2

    def __init__(
        self,
        problem: str,
        *,
        path: str | Path | None = None,
        place: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.problem = problem
        self.path = None if path is None else Path(path)
        self.place = place
        self.remedy = remedy
        super().__init__(problem)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.problem, self.path, self.place, self.remedy)

    def __str__(self) -> str:
        path = None if self.path is None else shown_path(self.path)
        place = None if self.place is None else shortened(self.place, _LONGEST_PLACE)
        where = [shown(part) for part in (path, place) if part is not None]
        text = shown_lines(": ".join([*where, self.problem.rstrip(".")]) + ".")
        return text if self.remedy is None else f"{text} {shown(self.remedy)}"


def _again(
    kind: type[ChakraError],
    problem: str,
    path: Path | None,
    place: str | None,
    remedy: str | None,
) -> ChakraError:
    """An error that comes from another process."""
    return kind(problem, path=path, place=place, remedy=remedy)


class FormatError(ChakraError):
    """The bytes of an input are not what they should be."""


class OutputError(ChakraError):
    """An output cannot be written."""


class LinkError(ChakraError):
    """A host trace and a device trace do not belong together."""
