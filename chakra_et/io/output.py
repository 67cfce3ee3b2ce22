"""Outputs that are whole or not there.

What packs them, and what few of them need, is imported where it is used: a command starts sooner.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from chakra_et.errors import OutputError
from chakra_et.io.json_text import to_json
from chakra_et.io.leftovers import clean, hold, temporary_prefix
from chakra_et.io.protected import refuse_input
from chakra_et.io.remote import remote_state, upload
from chakra_et.urls import url_of

_STANDARD_OUTPUT: Final = (
    Path("-"), Path("/dev/stdout"), Path("/dev/fd/1"), Path("/proc/self/fd/1"),
)  # fmt: skip
_IN_MEMORY_BYTES: Final = 1 << 26


@contextmanager
def atomic_output(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write that appears under `path` when the block ends without an error.

    Until then it has a temporary name in the same directory; after an error nothing stays behind.
    A symbolic link stays, and the file that it leads to is replaced. What is no regular file (a
    device, a FIFO, `-` for standard output) is written to when all is there. A name that ends in
    `.gz` or `.zst` is compressed. Raises OutputError when writing fails, and for an input;
    BrokenPipeError where nobody reads standard output any more.
    """
    target = Path(path)
    try:
        if target.is_dir():
            raise OutputError("this is a directory", path=target, remedy="Name a file in it.")
        refuse_input(target)
        making = _written_through if _is_special(target) else _replaced
        if url_of(target) is not None:
            making = _uploaded
        with making(target) as raw, _compressed(raw, target) as stream:
            yield stream
    except BrokenPipeError:
        if is_standard_output(target):
            # Whoever reads it has enough, as `head` does: the program ends, without a word.
            raise
        raise OutputError(
            "the reader of this pipe ended early",
            path=target,
            remedy="Start it again, or write to a file.",
        ) from None
    except OSError as error:
        raise _cannot_be_written(target, error) from error


def write_behind(stream: IO[bytes], blocks: Iterable[bytes]) -> None:
    """Write each block while the next one is made: writing leaves the interpreter to others."""
    with ThreadPoolExecutor(1) as pool:
        written: Future[int] | None = None
        for block in blocks:
            if written is not None:
                written.result()
            written = pool.submit(stream.write, block)
        if written is not None:
            written.result()


def is_standard_output(path: str | Path) -> bool:
    """Whether an output goes to standard output, so that nothing else should."""
    return Path(path) in _STANDARD_OUTPUT


def _is_special(path: Path) -> bool:
    """Whether a path is no regular file, nor the name of one to be, but takes bytes."""
    return is_standard_output(path) or (path.exists() and not path.is_file())


@contextmanager
def _replaced(target: Path) -> Iterator[IO[bytes]]:
    """A temporary file that takes the place of `target`, or of what that link leads to."""
    place = Path(os.path.realpath(target))
    if not place.parent.name.startswith(temporary_prefix()):
        # A directory of this run's own is new: nobody else can have left something there.
        clean(place.parent)
    temporary = place.with_name(f"{temporary_prefix()}{os.urandom(8).hex()}.tmp")
    # The system takes the bits of the umask away, which a program can only read by changing it.
    mode = _mode(place)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666 if mode is None else mode)
    try:
        hold(descriptor)
        with os.fdopen(descriptor, "wb") as raw:
            yield raw
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _uploaded(target: Path) -> Iterator[IO[bytes]]:
    """A temporary file that is copied to the store that `target` names when it is whole."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder, "output")
        with temporary.open("wb") as raw:
            yield raw
        upload(temporary, url_of(target) or "")


@contextmanager
def _written_through(target: Path) -> Iterator[IO[bytes]]:
    """A buffer that is copied to `target` when it is whole."""
    import tempfile

    with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as raw:
        yield raw
        raw.seek(0)
        if is_standard_output(target):
            sys.stdout.flush()
            shutil.copyfileobj(raw, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:
            with target.open("wb") as out:
                shutil.copyfileobj(raw, out)


def size_of(path: Path) -> int | None:
    """The bytes of a file that was written; None for what keeps none, such as a pipe."""
    url = url_of(path)
    if url is not None:
        return remote_state(url)[0]
    return None if _is_special(path) else path.stat().st_size


def write_json(content: Any, path: Path) -> None:
    """Write what msgspec can encode, in a form for people. Raises OutputError."""
    with atomic_output(path) as stream:
        stream.write(to_json(content))


def make_directory(path: Path) -> None:
    """Make a directory in one that is there, unless it is there itself. Raises OutputError.

    Only one is made: where more are missing, the path is mistyped as a rule.
    """
    if is_standard_output(path):
        raise OutputError(
            "expected a directory for the files of several ranks",
            path=path,
            remedy="Name one, or convert a single rank.",
        )
    if url_of(path) is not None:
        return  # Stores have no directories, or make them.
    try:
        path.mkdir(exist_ok=True)
    except FileNotFoundError as error:
        raise OutputError(
            f"cannot be created: there is no directory {path.parent}",
            path=path,
            remedy="Check the path, or make that directory first.",
        ) from error
    except OSError as error:
        raise OutputError(
            f"cannot be written: {error.strerror or error}",
            path=path,
            remedy="Choose a directory that can be created.",
        ) from error


@contextmanager
def staging_directory(target: Path) -> Iterator[Path]:
    """A directory within `target` for files that are to be moved there when all are whole.

    It goes away with what is left in it, and so does `target` if it was made in vain. An
    OutputError names the file by the place that it was to get.
    """
    import tempfile

    made = not target.exists()
    make_directory(target)
    try:
        clean(target)
        try:
            staging = tempfile.TemporaryDirectory(prefix=temporary_prefix(), dir=target)
        except OSError as error:
            raise _cannot_be_written(target, error) from error
        with staging as name, _held(name), _named_within(target, Path(name)):
            yield Path(name)
    except BaseException:
        if made:
            with suppress(OSError):
                target.rmdir()
        raise


@contextmanager
def _held(directory: str) -> Iterator[None]:
    """Mark a directory as in use."""
    if os.name == "nt":
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        hold(descriptor)
        yield
    finally:
        os.close(descriptor)


def move_output(source: Path, target: Path) -> None:
    """Give a finished file its name, in place of a file that has it.

    What is no regular file is written to. Raises OutputError, and for an input.
    """
    refuse_input(target)
    try:
        if _is_special(target):
            with source.open("rb") as raw, target.open("wb") as out:
                shutil.copyfileobj(raw, out)
            source.unlink()
            return
        place = Path(os.path.realpath(target))
        mode = _mode(place)
        if mode is not None:
            source.chmod(mode)
        if source.stat().st_dev == place.parent.stat().st_dev:
            source.replace(place)
        else:
            shutil.move(source, place)
    except OSError as error:
        raise _cannot_be_written(target, error) from error


@contextmanager
def _named_within(target: Path, stage: Path) -> Iterator[None]:
    """Within it, errors of files in a stage name the target, where people look for them."""
    try:
        yield
    except OutputError as error:
        if error.path is None or not error.path.is_relative_to(stage):
            raise
        error.path = target / error.path.relative_to(stage)
        raise
    except OSError as error:
        # What is written to an open file names none.
        if error.filename is None or Path(error.filename).is_relative_to(stage):
            raise _cannot_be_written(target, error) from error
        raise


def _cannot_be_written(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"cannot be written: {error.strerror or error}",
        path=path,
        remedy="Choose a directory that exists, is writable and has room.",
    )


@contextmanager
def _compressed(raw: IO[bytes], target: Path) -> Iterator[IO[bytes]]:
    if target.suffix == ".gz":
        import gzip

        # No time stamp and no name inside: equal traces give equal files.
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as stream:
            yield stream  # type: ignore[misc]
    elif target.suffix == ".zst":
        import zstandard

        with zstandard.ZstdCompressor(level=3).stream_writer(raw, closefd=False) as writer:
            yield writer
    else:
        yield raw


def _mode(target: Path) -> int | None:
    """The permissions of a file that is there."""
    return target.stat().st_mode & 0o777 if target.exists() else None
