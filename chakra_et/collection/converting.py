"""Converting what was recorded, beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from chakra_et.conversions import Conversions

TRACES: Final = "et"
"""The directory of the traces, in that of the recordings."""


def convert_recording(
    directory: Path, force: bool = False, step: Callable[[int, int], None] | None = None
) -> Conversions:
    """Convert all ranks of a recording. Raises ChakraError as `convert_files` does.

    `step` is told how many ranks are done, of how many.
    """
    from chakra_et.directory import convert_files

    return convert_files(directory, directory / TRACES, force=force, step=step)
