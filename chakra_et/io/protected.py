"""Inputs are protected: no output replaces a file that was read for it, under whatever name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final, TypeAlias

from chakra_et.errors import OutputError
from chakra_et.urls import url_of

_Identity: TypeAlias = "tuple[int, int] | str"
_INPUTS: Final[ContextVar[dict[_Identity, Path] | None]] = ContextVar("inputs", default=None)


@contextmanager
def inputs_protected(*paths: str | Path | None) -> Iterator[None]:
    """Within it, `paths` and whatever else is read are inputs, which no output may replace."""
    inputs = _INPUTS.get()
    token = _INPUTS.set({} if inputs is None else inputs)
    try:
        for path in paths:
            if path is not None:
                note_input(path)
        yield
    finally:
        _INPUTS.reset(token)


@contextmanager
def copies_read() -> Iterator[None]:
    """Within it, what is read is a copy that will be gone: no input, even if a number is reused."""
    token = _INPUTS.set(None)
    try:
        yield
    finally:
        _INPUTS.reset(token)


def note_input(path: str | Path) -> None:
    """Take a file, or the archive that a path leads into, for an input."""
    inputs = _INPUTS.get()
    if inputs is None:
        return
    for place in (Path(path), *Path(path).parents):
        found = _identity(place)
        if found is not None:
            if isinstance(found, str) or place.is_file():
                inputs[found] = Path(path)
            return


def refuse_input(path: str | Path) -> None:
    """Raise OutputError if an output of this name would replace an input."""
    inputs = _INPUTS.get()
    source = inputs.get(found) if inputs and (found := _identity(Path(path))) else None
    if source is None:
        return
    same = "" if source == Path(path) else f" (it is {source})"
    raise OutputError(
        f"the output would overwrite this input{same}",
        path=path,
        remedy="Choose another name for the output.",
    )


def _identity(path: Path) -> _Identity | None:
    """What a file is known by, whatever leads to it; None if there is none.

    A remote file is known by its URL.
    """
    url = url_of(path)
    if url is not None:
        return url
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
