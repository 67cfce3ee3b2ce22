"""Where in the caller's code a workload was described, for errors that point there."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Final

from chakra_et.errors import ChakraError

_HERE: Final = str(Path(__file__).parent)

Place = tuple[str, int]
"""A file and a line."""


def caller() -> Place:
    """The innermost line that is not of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


class BuildError(ChakraError):
    """A workload was described wrongly; the error names the line that did it."""

    @classmethod
    def here(cls, problem: str, remedy: str, place: Place | None = None) -> BuildError:
        """The error of a line: that of the caller, unless another one is given."""
        file, line = place or caller()
        return cls(problem, path=file, place=f"line {line}", remedy=remedy)
