"""Inputs as streams of plain bytes, whatever they are compressed with."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Final

import zstandard

from chakra_et.errors import ChakraError, FormatError

BLOCK_BYTES: Final = 1 << 20


def blocks(path: str | Path) -> Iterator[bytes]:
    """The decompressed content of a file, block by block; compression is told by content.

    Raises ChakraError if the file cannot be read, FormatError if compressed data is damaged
    or ends too early.
    """
    with _opened(path) as file:
        start = file.read(4)
        file.seek(0)
        if start.startswith(_Gzip.magic):
            yield from _Gzip(path, file)
        elif start == _Zstd.magic:
            yield from _Zstd(path, file)
        else:
            while block := file.read(BLOCK_BYTES):
                yield block


def head(path: str | Path, count: int) -> bytes:
    """The first `count` decompressed bytes of a file, or fewer where it is shorter."""
    taken = bytearray()
    for block in blocks(path):
        taken += block
        if len(taken) >= count:
            break
    return bytes(taken[:count])


def read_all(path: str | Path) -> bytes:
    """The whole decompressed content of a file."""
    return b"".join(blocks(path))


@contextmanager
def _opened(path: str | Path) -> Iterator[BinaryIO]:
    try:
        with Path(path).open("rb") as file:
            yield file
    except FileNotFoundError as error:
        raise ChakraError("no such file", path=path, remedy="Check the path.") from error
    except IsADirectoryError as error:
        raise ChakraError(
            "this is a directory where a file is wanted", path=path, remedy="Name a file in it."
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise ChakraError(f"cannot be read: {reason}", path=path) from error


class _Members:
    """The plain bytes of a file of one or more compressed members."""

    name: ClassVar[str]
    magic: ClassVar[bytes]
    input_bytes: ClassVar[int] = BLOCK_BYTES
    broken: ClassVar[type[Exception]]

    def __init__(self, path: str | Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file

    def _member(self) -> Any:
        """A decompressor for the next member."""
        raise NotImplementedError

    def _decompress(self, member: Any, data: bytes) -> tuple[bytes, bytes]:
        """Plain bytes, bounded in number, and what of `data` has not been used yet."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[bytes]:
        data = self._file.read(self.input_bytes)
        while data:
            member = self._member()
            while not member.eof:
                if not data and not (data := self._file.read(self.input_bytes)):
                    raise FormatError(
                        f"the {self.name} data ends too early",
                        path=self._path,
                        place=f"byte {self._file.tell()}",
                        remedy="The file was cut, or is still being written; copy it again.",
                    )
                try:
                    plain, data = self._decompress(member, data)
                except self.broken as error:
                    raise FormatError(
                        f"damaged {self.name} data: {error}",
                        path=self._path,
                        place=f"before byte {self._file.tell()}",
                        remedy="Copy the file again.",
                    ) from error
                if plain:
                    yield plain
            data = (data or self._file.read(self.input_bytes)).lstrip(b"\0")
            if data and not data.startswith(self.magic):
                raise FormatError(
                    f"something else follows the {self.name} data",
                    path=self._path,
                    place=f"byte {self._file.tell() - len(data)}",
                    remedy="Cut it off, or compress the file again.",
                )


class _Gzip(_Members):
    name, magic, broken = "gzip", b"\x1f\x8b", zlib.error

    def _member(self) -> Any:
        return zlib.decompressobj(wbits=31)

    def _decompress(self, member: Any, data: bytes) -> tuple[bytes, bytes]:
        plain = member.decompress(data, BLOCK_BYTES)
        return plain, member.unused_data if member.eof else member.unconsumed_tail


class _Zstd(_Members):
    name, magic, broken = "zstd", b"\x28\xb5\x2f\xfd", zstandard.ZstdError
    input_bytes = 1 << 14  # the decoder returns all that its input expands to

    def _member(self) -> Any:
        return zstandard.ZstdDecompressor().decompressobj()

    def _decompress(self, member: Any, data: bytes) -> tuple[bytes, bytes]:
        plain = member.decompress(data)
        return plain, member.unused_data if member.eof else b""
