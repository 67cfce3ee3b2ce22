"""Inputs as streams of plain bytes, whatever they are compressed with or packed into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from chakra_et.errors import ChakraError, FormatError
from chakra_et.io.beginnings import is_tar, is_zip
from chakra_et.io.compression import Gzip, Zstd
from chakra_et.io.guard import note_progress
from chakra_et.io.memory import require
from chakra_et.io.protected import note_input
from chakra_et.io.remote import open_remote
from chakra_et.io.repairs import Repairs
from chakra_et.io.spool import is_opened, spooled
from chakra_et.io.stream import BLOCK_BYTES, Stream
from chakra_et.io.text_buffer import Filling, TextBuffer, blockwise
from chakra_et.urls import url_of

_LAYERS: Final = 4
"""How many times a file may be packed or compressed."""
_START_BYTES: Final = 512
"""By so many bytes a layer is told."""
_BOMB_BYTES: Final = 1 << 24
"""From so much on, a file is looked at whether it unpacks to far more than traces do."""
_BOMB_RATIO: Final = 300
_CHECK_BYTES: Final = 1 << 26
"""So often, while a file is read, is looked whether memory is left."""
_WHOLE_FACTOR: Final = 2
"""What is read whole is joined, and what is made of it takes 2.4 times its size at least."""
_USUAL_RATIO: Final = 10
"""Traces shrink to a tenth, at best to a fortieth; more than this is no trace."""


def blocks(path: str | Path, repairs: Repairs | None = None) -> Iterator[bytes]:
    """The plain content of a file, block by block; compression is told by content.

    `path` may lead into an archive: `run.zip/host.json`; an archive with one file in it stands for
    that file. Raises ChakraError if the file cannot be read, FormatError if it is damaged or ends
    too early. With `repairs` such an end is counted there, and what comes before it is given.
    """
    note_input(path)
    return _blocks(path, repairs)


def filling(path: str | Path, repairs: Repairs | None = None) -> Filling:
    """What puts the plain content of a file into a buffer. Raises as `blocks` does.

    What lies on the disk as it is goes there straight away.
    """
    note_input(path)

    def fill(text: TextBuffer) -> Iterator[None]:
        file_path, member = located(Path(path))
        with _opened(file_path) as file:
            if _is_unpacked(file_path, file, member):
                yield from _filled(Path(path), file, text)
            else:
                yield from blockwise(_blocks_of(Path(path), file, member, repairs))(text)

    return fill


def _filled(path: Path, file: BinaryIO, text: TextBuffer) -> Iterator[None]:
    """Put an open file into a buffer, as much with each step as is wanted."""
    watch = _Watch(path)
    file.seek(0)
    while True:
        with text.room() as room:
            count = file.readinto(room)  # type: ignore[attr-defined]
        if not count:
            return
        text.filled(count)
        watch.passed(count)
        yield


def _blocks(path: str | Path, repairs: Repairs | None) -> Iterator[bytes]:
    file_path, member = located(Path(path))
    with _opened(file_path) as file:
        yield from _blocks_of(Path(path), file, member, repairs)


class _Watch:
    """Counts what was read of a file, and looks now and then whether memory is left."""

    def __init__(self, path: Path) -> None:
        self.total = 0
        self._path = path
        self._checked = 0

    def passed(self, count: int) -> None:
        """So many bytes more were read. Raises ChakraError where memory is short."""
        self.total += count
        note_progress(self.total)
        if self.total >= self._checked + _CHECK_BYTES:
            self._checked = self.total
            require(self._path, 0)


def _blocks_of(
    path: Path, file: BinaryIO, member: str | None, repairs: Repairs | None
) -> Iterator[bytes]:
    """The plain content of an open file, or of a member of it."""
    size = file.seek(0, 2)
    file.seek(0)
    watch = _Watch(path)
    for block in _plain(path, file, member, repairs):
        total = watch.total + len(block)
        if total > _BOMB_BYTES and total > _BOMB_RATIO * size:
            raise FormatError(
                f"the file unpacks to more than {_BOMB_RATIO} times its size",
                path=path,
                remedy="Traces do not compress that well. If this is one, unpack it first.",
            )
        watch.passed(len(block))
        yield block


def head(path: str | Path, count: int) -> bytes:
    """The first `count` plain bytes of a file, or as many as there are.

    A file is no input yet for being looked at.
    """
    file_path, member = located(Path(path))
    with _opened(file_path) as file:
        if _is_unpacked(file_path, file, member):
            file.seek(0)
            return file.read(count)
        taken = bytearray()
        for block in _blocks_of(Path(path), file, member, Repairs(Path(path))):
            taken += block
            if len(taken) >= count:
                break
    return bytes(taken[:count])


def read_all(path: str | Path) -> bytes:
    """The whole plain content of a file.

    Raises ChakraError where that is more than memory has room for, with what will be made of it.
    """
    note_input(path)
    file_path, member = located(Path(path))
    with _opened(file_path) as file:
        if _is_unpacked(file_path, file, member):
            return _whole(path, file)
        parts: list[bytes] = []
        total = checked = 0
        for block in _blocks_of(Path(path), file, member, None):
            parts.append(block)
            total += len(block)
            if total >= checked + _CHECK_BYTES:
                checked = total
                require(path, _WHOLE_FACTOR * total)
    return b"".join(parts)


def _is_unpacked(file_path: Path, file: BinaryIO, member: str | None) -> bool:
    """Whether a file lies on the disk as it is."""
    if member is not None or is_opened(file_path) or url_of(file_path) is not None:
        return False
    start = file.read(_START_BYTES)
    return not (is_zip(start) or Gzip.begins(start) or Zstd.begins(start) or is_tar(start))


def _whole(path: str | Path, file: BinaryIO) -> bytes:
    """The content of an open file, without a copy."""
    size = file.seek(0, 2)
    file.seek(0)
    require(path, (1 + _WHOLE_FACTOR) * size)
    note_progress(size)
    return file.read()


def plain_bytes(path: str | Path) -> int:
    """About how many bytes a file holds, where it is compressed by its usual ratio."""
    file_path, member = located(Path(path))
    with _opened(file_path) as file:
        start = file.read(4)
        size = file.seek(0, 2)
    packed = member is not None or is_zip(start) or Gzip.begins(start) or Zstd.begins(start)
    return size * _USUAL_RATIO if packed else size


def first_bytes(path: str | Path, count: int) -> bytes:
    """How a file, or the archive that it is in, begins as it lies on the disk."""
    with _opened(located(Path(path))[0]) as file:
        return file.read(count)


def both_ends(path: str | Path, count: int) -> bytes:
    """The first and the last `count` bytes of a file, or of the archive that it is in."""
    file_path, _ = located(Path(path))
    with _opened(file_path) as file:
        start = file.read(count)
        file.seek(max(len(start), file.seek(0, 2) - count))
        return start + file.read(count)


def located(path: Path) -> tuple[Path, str | None]:
    """The file on disk, and the member of it that the path names, if it leads into a file."""
    if not is_opened(path) and not url_of(path) and not path.exists():
        for parent in path.parents:
            if parent.is_file():
                return parent, path.relative_to(parent).as_posix()
    return path, None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        if is_opened(path):
            yield spooled(path)
            return
        if (url := url_of(path)) is not None:
            with open_remote(url) as file:
                yield file
            return
        with path.open("rb") as file:
            if not file.seekable():
                raise ChakraError(
                    "expected a file, got a pipe: it is read more than once",
                    path=path,
                    remedy="Write its content to a file.",
                )
            yield file
    except FileNotFoundError as error:
        raise ChakraError("no such file", path=path, remedy="Check the path.") from error
    except IsADirectoryError as error:
        raise ChakraError(
            "expected a file, got a directory", path=path, remedy="Name a file in it."
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise ChakraError(f"cannot be read: {reason}", path=path) from error


def _plain(
    path: Path, file: BinaryIO, member: str | None, repairs: Repairs | None
) -> Iterator[bytes]:
    """The content under all layers of compression and packing."""
    if is_zip(file.read(4)):
        from chakra_et.io.archive import open_zip

        file.seek(0)
        stream, member = Stream(open_zip(path, file, member, repairs)), None
    else:
        file.seek(0)
        stream = Stream(iter(lambda: file.read(BLOCK_BYTES), b""))
    for _ in range(_LAYERS):
        start = stream.peek(_START_BYTES)
        if Gzip.begins(start):
            stream = Stream(iter(Gzip(path, stream, repairs)))
        elif Zstd.begins(start):
            stream = Stream(iter(Zstd(path, stream, repairs)))
        elif is_tar(start):
            from chakra_et.io.archive import open_tar

            stream, member = Stream(open_tar(path, stream, member, repairs)), None
        elif is_zip(start):
            raise FormatError(
                "a zip archive within another file", path=path, remedy="Unpack the outer one first."
            )
        elif member is not None:
            raise ChakraError("no such file: this is not an archive", path=path)
        else:
            yield from stream
            return
    raise FormatError(f"compressed more than {_LAYERS} times", path=path, remedy="Unpack it first.")
