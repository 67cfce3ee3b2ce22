"""Gzip and zstd: files of one or more compressed members."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from chakra_et.io.repairs import Repairs, UnsoundError
from chakra_et.io.stream import BLOCK_BYTES, Stream
from chakra_et.patterns import lazy_pattern

MAGIC_BYTES: Final = 4
_SMALL_BYTES: Final = 1 << 8
_SKIPPABLE: Final = lazy_pattern(rb"[\x50-\x5f]\x2a\x4d\x18")
"""The magic numbers of zstd frames that hold no content; some compressors begin with one."""


class Members:
    """The plain bytes of a file of one or more compressed members."""

    name: ClassVar[str]
    magic: ClassVar[bytes]
    input_bytes: ClassVar[int] = BLOCK_BYTES

    @staticmethod
    def broken() -> type[Exception]:
        """What a decompressor raises for damaged data."""
        raise NotImplementedError

    def __init__(self, path: Path, file: Stream, repairs: Repairs | None) -> None:
        self._path = path
        self._file = file
        self._repairs = repairs
        self._given = 0

    def _member(self) -> Any:
        """A decompressor for the next member."""
        raise NotImplementedError

    def _decompress(self, member: Any, data: bytes) -> tuple[bytes, bytes]:
        """Plain bytes, bounded in number, and what of `data` has not been used yet."""
        raise NotImplementedError

    def _read(self) -> bytes:
        # What is decompressed together is lost together where the data is damaged.
        return self._file.read(self.input_bytes if self._repairs is None else _SMALL_BYTES)

    @classmethod
    def begins(cls, data: bytes) -> bool:
        """Whether a member begins with these bytes, of which MAGIC_BYTES are enough."""
        return data.startswith(cls.magic)

    def _beginning(self, data: bytes) -> bytes:
        """`data` without the zeros that pad members, and read on as far as a magic number needs."""
        data = data.lstrip(b"\0")
        while len(data) < MAGIC_BYTES and (more := self._read()):
            data = (data + more).lstrip(b"\0")
        return data

    def __iter__(self) -> Iterator[bytes]:
        data = self._read()
        while data:
            member = self._member()
            while not member.eof:
                if not data and not (data := self._read()):
                    cut = "The file was cut, or is still being written; copy it again."
                    return self._stop(f"the {self.name} data ends too early", cut)
                try:
                    plain, data = self._decompress(member, data)
                except self.broken() as error:
                    return self._stop(f"damaged {self.name} data", "Copy the file again.", error)
                if plain:
                    self._given += len(plain)
                    yield plain
            data = self._beginning(data)
            if data and not self.begins(data):
                cut = "Cut it off, or compress the file again."
                kind = f"unexpected data after the {self.name} data"
                return self._stop(kind, cut, at=self._file.tell() - len(data))

    def _stop(
        self, kind: str, remedy: str, cause: Exception | None = None, at: int | None = None
    ) -> None:
        """End here, if that may be counted as a repair."""
        if self._repairs is None or self._repairs.strict:
            problem = kind if cause is None else f"{kind}: {cause}"
            place = f"byte {self._file.tell() if at is None else at}"
            raise UnsoundError(problem, path=self._path, place=place, remedy=remedy) from cause
        self._repairs.mend(kind, self._given)


class Gzip(Members):
    """Members as in RFC 1952."""

    name, magic = "gzip", b"\x1f\x8b"

    @staticmethod
    def broken() -> type[Exception]:
        return zlib.error

    def _member(self) -> Any:
        return zlib.decompressobj(wbits=31)

    def _decompress(self, member: Any, data: bytes) -> tuple[bytes, bytes]:
        plain = member.decompress(data, BLOCK_BYTES)
        return plain, member.unused_data if member.eof else member.unconsumed_tail


class Zstd(Members):
    """Frames as in RFC 8878."""

    name, magic = "zstd", b"\x28\xb5\x2f\xfd"
    # The decoder returns all that its input expands to, up to 128 KiB for each 4 bytes.
    input_bytes = 1 << 11

    @classmethod
    def begins(cls, data: bytes) -> bool:
        """Whether a frame begins with these bytes, be it one without content."""
        return super().begins(data) or bool(_SKIPPABLE.match(data))

    @staticmethod
    def broken() -> type[Exception]:
        import zstandard

        return zstandard.ZstdError

    def _member(self) -> Any:
        import zstandard

        return zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()

    def _decompress(self, member: Any, data: bytes) -> tuple[bytes, bytes]:
        plain = member.decompress(data)
        return plain, member.unused_data if member.eof else b""
