"""Inputs that come through pipes, kept in files while they are read: reading takes several goes."""

from __future__ import annotations

import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from chakra_et.errors import ChakraError

STANDARD: Final = Path("-")
"""Stands for standard input or standard output."""


@contextmanager
def spooled(paths: Iterable[Path]) -> Iterator[list[Path]]:
    """The paths, with a file in place of each pipe and of `-`, which is standard input.

    The files go away when the block ends. Raises ChakraError where they cannot be written.
    """
    given = list(paths)
    with tempfile.TemporaryDirectory(prefix="chakra-") as folder:
        files = [
            _spool(path, Path(folder), place) if _is_pipe(path) else path
            for place, path in enumerate(given)
        ]
        try:
            yield files
        except ChakraError as error:
            if error.path in files:
                error.path = given[files.index(error.path)]
            raise


def _is_pipe(path: Path) -> bool:
    if path == STANDARD:
        return True
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except OSError:
        return False


def _spool(path: Path, folder: Path, place: int) -> Path:
    name = "standard-input" if path == STANDARD else path.name
    target = folder / (name if place == 0 else f"{name}.{place}")
    try:
        with target.open("wb") as file:
            if path == STANDARD:
                shutil.copyfileobj(sys.stdin.buffer, file)
            else:
                with path.open("rb") as source:
                    shutil.copyfileobj(source, file)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ChakraError(f"cannot be read: {reason}", path=path) from error
    return target
