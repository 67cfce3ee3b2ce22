"""Whatever escapes a reader becomes an error that names the file and the place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

import msgspec

from chakra_et.errors import ChakraError, FormatError
from chakra_et.io.memory import more_memory

_REMEDY: Final = "The file is damaged or of an unknown form; if it is intact, please report it."


class Progress(msgspec.Struct):
    """How many bytes of a file, without compression, were handed to its reader."""

    given: int | None = None


_PROGRESS: Final[ContextVar[Progress | None]] = ContextVar("progress", default=None)


def note_progress(given: int) -> None:
    """Say how far the file is read that is being read."""
    progress = _PROGRESS.get()
    if progress is not None:
        progress.given = given


@contextmanager
def reading(path: str | Path, what: str) -> Iterator[None]:
    """Read a file within this: errors that are none of ours name it, and how far it was read."""
    progress = Progress()
    token = _PROGRESS.set(progress)
    try:
        yield
    except ChakraError:
        raise
    except MemoryError as error:
        raise ChakraError(
            "memory ran out",
            path=path,
            place=_place(progress),
            remedy=more_memory(),
        ) from error
    except RecursionError as error:
        raise FormatError("nested too deep", path=path, place=_place(progress)) from error
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise FormatError(
            f"cannot be read as {what}: {reason[:300]}",
            path=path,
            place=_place(progress),
            remedy=_REMEDY,
        ) from error
    finally:
        _PROGRESS.reset(token)


def _place(progress: Progress) -> str | None:
    return None if progress.given is None else f"before byte {progress.given}"
