"""Standard input and other pipes that a shell has opened, kept so that they can be read again."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any, BinaryIO, Final

from chakra_et.patterns import lazy_pattern

_IN_MEMORY_BYTES: Final = 1 << 26
_STANDARD_INPUT: Final = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_OPENED: Final = lazy_pattern(r"/dev/fd/\d+|/proc/self/fd/\d+")
_KEPT: Final[dict[str, Any]] = {}


def is_opened(path: Path) -> bool:
    """Whether a path stands for something that this process was started with."""
    return str(path) in _STANDARD_INPUT or _OPENED.fullmatch(str(path)) is not None


def spooled(path: Path) -> BinaryIO:
    """All that comes through such a path, at its start; it is read to its end the first time."""
    name = str(path)
    if name not in _KEPT:
        import tempfile

        kept = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115
        if name in _STANDARD_INPUT:
            shutil.copyfileobj(sys.stdin.buffer, kept)
        else:
            with path.open("rb") as pipe:
                shutil.copyfileobj(pipe, kept)
        _KEPT[name] = kept
    found: BinaryIO = _KEPT[name]
    found.seek(0)
    return found
