"""Outputs that are whole or not there."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import msgspec
import zstandard

from chakra_et.errors import OutputError


@contextmanager
def atomic_output(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write that appears under `path` when the block ends without an error.

    Until then it has a temporary name in the same directory; after an error nothing stays behind.
    A name that ends in `.gz` or `.zst` is compressed. Raises OutputError when writing fails.
    """
    target = Path(path)
    temporary: str | None = None
    try:
        if target.is_dir():
            raise OutputError("this is a directory", path=target, remedy="Name a file in it.")
        descriptor, temporary = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".tmp", dir=target.parent
        )
        with os.fdopen(descriptor, "wb") as raw, _compressed(raw, target) as stream:
            yield stream
        Path(temporary).chmod(_permissions(target))
        Path(temporary).replace(target)
        temporary = None
    except OSError as error:
        raise _cannot_be_written(target, error) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def write_json(content: Any, path: Path) -> None:
    """Write what msgspec can encode, in a form for people. Raises OutputError."""
    with atomic_output(path) as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def make_directory(path: Path) -> None:
    """Make a directory and those above it, unless they are there. Raises OutputError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot be written: {error.strerror or error}",
            path=path,
            remedy="Choose a directory that can be made.",
        ) from error


@contextmanager
def staging_directory(target: Path) -> Iterator[Path]:
    """A directory within `target` for files that are to be moved there when all are whole.

    It goes away with what is left in it, and so does `target` if it was made in vain.
    """
    made = not target.exists()
    make_directory(target)
    try:
        try:
            staging = tempfile.TemporaryDirectory(prefix=".chakra-", dir=target)
        except OSError as error:
            raise _cannot_be_written(target, error) from error
        with staging as name:
            yield Path(name)
    except BaseException:
        if made:
            with suppress(OSError):
                target.rmdir()
        raise


def move_output(source: Path, target: Path) -> None:
    """Give a finished file its name, in place of a file that has it. Raises OutputError."""
    try:
        source.chmod(_permissions(target))
        source.replace(target)
    except OSError as error:
        raise _cannot_be_written(target, error) from error


def _cannot_be_written(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"cannot be written: {error.strerror or error}",
        path=path,
        remedy="Choose a directory that exists, is writable and has room.",
    )


@contextmanager
def _compressed(raw: IO[bytes], target: Path) -> Iterator[IO[bytes]]:
    if target.suffix == ".gz":
        # No time stamp and no name inside: equal traces give equal files.
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as stream:
            yield stream  # type: ignore[misc]
    elif target.suffix == ".zst":
        with zstandard.ZstdCompressor(level=3).stream_writer(raw, closefd=False) as writer:
            yield writer
    else:
        yield raw


def _permissions(target: Path) -> int:
    """Those of the file that is replaced, else what the process gives new files."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
