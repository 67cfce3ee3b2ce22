"""Temporary names beside outputs, and what runs that were killed have left under such names."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from chakra_et.patterns import lazy_pattern

try:
    import fcntl
except ImportError:  # Windows: nothing is locked, and nothing is taken away.
    fcntl = None  # type: ignore[assignment]

_OURS: Final = lazy_pattern(r"\.chakra-(\d+)-.")


def temporary_prefix() -> str:
    """How the names of this process's temporary files begin; short, however long the output's."""
    return f".chakra-{os.getpid()}-"


def hold(descriptor: int) -> None:
    """Mark an open temporary file or directory as in use, as long as it stays open."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def clean(directory: Path) -> None:
    """Take away what a run that was killed left in a directory.

    Such a thing has a name of ours with the number of a process that is no more, and nobody holds
    it: the process may live on another machine, or in another container.
    """
    if fcntl is None:
        return
    with suppress(OSError):
        for path in directory.iterdir():
            found = _OURS.match(path.name)
            if found and not _lives(int(found[1])) and _is_free(path):
                _remove(path)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _is_free(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
