"""The tolerant reader: one long array in a JSON document that is damaged somewhere.

It stands behind `JsonArray`, which reads sound documents. The text is taken in blocks that end
where an element seems to begin. A sound block is decoded in one go; in a damaged one the elements
are told apart one by one, mended, or left out, and reading goes on at the next opening.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from chakra_et.errors import FormatError
from chakra_et.io.mend import COMMA, Mender, MendError
from chakra_et.io.mend import STRAY as STRAY_COMMA
from chakra_et.io.repairs import Repairs

T = TypeVar("T")

BLOCK_BYTES: Final = 1 << 18
ELEMENT_BYTES: Final = 1 << 26
"""A longer element is left out."""
AROUND_BYTES: Final = 1 << 26
"""More text than this around an array is not looked through."""

UNREADABLE: Final = "record beyond repair"
CUT: Final = "record that was cut off"
SHAPE: Final = "record of another shape"
DEEP: Final = "record nested too deep"
LONG: Final = "record longer than 64 MiB"
STRAY: Final = "text between records"
OPEN_END: Final = "array that does not end"
SECOND: Final = "another document in the same file"
QUOTED: Final = "number in quotes"
AFTER: Final = "text behind the document"

_WALKER: Final = json.JSONDecoder(strict=False)
_BARE: Final = re.compile(rb"\s*\[")
_BETWEEN: Final = re.compile(rb"[\s,]*")
_END: Final = re.compile(rb'\}\s{0,64}(\])\s{0,64}(?:,\s{0,64}"[^"]{1,64}"\s{0,64}:|\}\s{0,64}\Z)')
_PATIENCE: Final = 64
_NOW_AND_THEN: Final = 16
"""After 64 elements in a row that are left out, only each 16th is tried to be mended."""
_FIRST: Final = re.compile(rb'\s{0,64}\{\s{0,64}"(\w{1,64})"')
_LOOK_BYTES: Final = 1 << 10
_REACHES: Final = 4
"""An element may hold 2**4 - 2 things that look like openings of elements."""
_ERRORS: Final = (msgspec.DecodeError, RecursionError, ValueError)


def _opening(*keys: str) -> re.Pattern[bytes]:
    """How an object begins whose first key is one of these."""
    names = "|".join(map(re.escape, keys)).encode()
    return re.compile(rb'\{\s{0,64}"(?:' + names + rb')"\s{0,64}:')


class MendedArray(Generic[T]):
    """The elements of every array `key`, as far as they can be read; the face is `JsonArray`'s.

    `keys` are the keys that an element can have; `first` those with which one begins, unless the
    first element begins with another one; `document` is what the outermost object begins with.
    """

    def __init__(
        self,
        path: str | Path,
        blocks: Iterator[bytes],
        key: str,
        decoders: tuple[msgspec.json.Decoder[list[T]], msgspec.json.Decoder[list[T]]],
        repairs: Repairs,
        *,
        keys: frozenset[str],
        first: tuple[str, ...],
        document: str,
    ) -> None:
        self.rest = b""
        self.found = False
        self.starts: list[int] = []
        """How many elements stood before each document of the file."""
        self._path = path
        self._blocks = blocks
        self._decoder, self._lax_decoder = decoders
        self._repairs = repairs
        self._mender = Mender(keys)
        self._start = re.compile(rb'"' + key.encode() + rb'"\s{0,64}:\s{0,64}\[')
        self._keys = keys
        self._document_key = document
        self._document = _opening(document)
        self._learn(first)
        self._text = b""
        self._offset = 0
        self._ended = False
        self._count = 0
        self._failures = 0  # elements in a row that were left out

    def __iter__(self) -> Iterator[list[T]]:
        while (prefix := self._seek()) is not None:
            self.starts.append(self._count)
            if self.found:
                self._repairs.mend(SECOND, self._offset)
            for piece in self._elements():
                if piece:
                    self._count += len(piece)
                    yield piece
            if not self.found:
                self.rest = prefix + b"]"
            self.found = True
        if len(self.starts) < 2:
            self.rest += self._text[:AROUND_BYTES]

    def _learn(self, first: tuple[str, ...]) -> None:
        """Take elements to begin with one of these keys."""
        self._opening = _opening(*first)
        self._border = _opening(*first, self._document_key)

    def _fill(self, wanted: int) -> bool:
        """Read on until the text has this length, or the file ends; whether anything came."""
        parts, size = [self._text], len(self._text)
        while size < wanted:
            block = next(self._blocks, None)
            if block is None:
                self._ended = True
                break
            parts.append(block)
            size += len(block)
        self._text = b"".join(parts)
        return len(parts) > 1

    def _drop(self, count: int) -> bytes:
        taken, self._text = self._text[:count], self._text[count:]
        self._offset += count
        return taken

    def _seek(self) -> bytes | None:
        """Everything up to the next array, taken off the text; None if there is no other one."""
        searched = 0
        while True:
            if not self.found and (bare := _BARE.match(self._text)):
                return self._drop(bare.end())
            if match := self._start.search(self._text, searched):
                return self._drop(match.end())
            searched = max(0, len(self._text) - 256)
            if len(self._text) > AROUND_BYTES:
                if not self.found:
                    raise FormatError(
                        f"no array of records within the first {AROUND_BYTES >> 20} MiB",
                        path=self._path,
                        remedy="Is this a trace at all?",
                    )
                self._repairs.mend(AFTER, self._offset)
                return None
            if not self._fill(max(2 * len(self._text), BLOCK_BYTES)):
                return None

    def _elements(self) -> Iterator[list[T]]:
        """The elements up to the end of the array, of the file, or to another document."""
        wanted = BLOCK_BYTES
        self._fill(_LOOK_BYTES)
        first = _FIRST.match(self._text)
        if first and first[1].decode() in self._keys:
            self._learn((first[1].decode(),))
        while True:
            self._fill(wanted)
            cut = len(self._text) if self._ended else self._last_opening()
            if cut > 0:
                wanted = BLOCK_BYTES
                offset = self._offset
                block = self._drop(cut)
                whole = self._whole(block)
                if whole is not None:
                    yield whole
                else:
                    segments, stop = self._apart(block, offset)
                    yield self._decode(segments)
                    if stop is not None:
                        self._text = block[stop:] + self._text
                        self._offset = offset + stop
                        return
            elif len(self._text) > ELEMENT_BYTES:
                self._repairs.leave_out(LONG, self._offset)
                self._drop(len(self._text) - 256)
                wanted = BLOCK_BYTES
            else:
                wanted = min(2 * max(len(self._text), BLOCK_BYTES), ELEMENT_BYTES + 1)
            if self._ended and not self._text:
                self._repairs.mend(OPEN_END, self._offset)
                return

    def _last_opening(self) -> int:
        """Where the last element seems to begin; 0 if only one does."""
        reach = 1 << 14
        while True:
            low = max(1, len(self._text) - reach)
            places = [m.start() for m in self._opening.finditer(self._text, low)]
            for place in reversed(places):
                if self._opens(self._text, place):
                    return place
            if low == 1:
                return 0
            reach *= 4

    @staticmethod
    def _opens(text: bytes, place: int) -> bool:
        """An object behind a colon is the value of a key, not an element."""
        return not text[max(0, place - 64) : place].rstrip().endswith(b":")

    def _whole(self, block: bytes) -> list[T] | None:
        inside = block.strip(b" \t\r\n")
        if not inside.endswith(b","):  # the array ends here, or a comma is missing
            return None
        inside = inside[:-1]
        try:
            return self._decoder.decode(b"[" + inside + b"]")
        except _ERRORS:
            return None

    def _apart(self, block: bytes, offset: int) -> tuple[list[tuple[bytes, int]], int | None]:
        """The elements of a damaged block, and where the array ends if it ends in the block."""
        segments: list[tuple[bytes, int]] = []
        at, commas = 0, 0
        while True:
            at = self._between(block, at, commas, offset)
            if at >= len(block):
                return segments, None
            if block[at : at + 1] == b"]":
                return segments, at + 1
            if self._document.match(block, at):
                self._repairs.mend(OPEN_END, offset + at)
                return segments, at
            if block[at : at + 1] != b"{":
                self._repairs.mend(STRAY, offset + at)
                at, commas = self._next_opening(block, at), 0
                continue
            segment, at, again = self._element(block, at, offset)
            commas = 0
            if segment is not None:
                segments.append(segment)
                commas = 1
            if again:
                return segments, at

    def _between(self, block: bytes, at: int, commas: int, offset: int) -> int:
        """Where the next thing begins; commas that are missing or too many are counted."""
        between = _BETWEEN.match(block, at)
        if between is None:
            return at
        here, end = between[0].count(b","), between.end()
        if block[end : end + 1] == b"]" or (end == len(block) and self._ended):
            commas = 0
        if here < commas:
            self._repairs.mend(COMMA, offset + at)
        elif here > commas and not (end == len(block) and self._ended):
            self._repairs.mend(STRAY_COMMA, offset + at)
        return end

    def _next_opening(self, block: bytes, at: int) -> int:
        return next(self._borders(block, at))

    def _element(
        self, block: bytes, at: int, offset: int
    ) -> tuple[tuple[bytes, int] | None, int, bool]:
        """The element at `at`, sound or mended, and where to go on; None if it is left out.

        The last value tells that another document begins there.
        """
        borders = self._borders(block, at)
        border = first = next(borders)
        kind = UNREADABLE
        for reach in range(_REACHES if self._failures < _PATIENCE else 1):
            try:
                found = self._sound_or_mended(block[at:border], offset + at)
            except MendError as error:
                kind = DEEP if "deep" in str(error) else UNREADABLE
                if not error.incomplete:
                    break
                if border == len(block) or self._document.match(block, border):
                    kind = CUT
                    break
                for _ in range(1 << reach):
                    border = next(borders, border)
            else:
                self._failures = 0
                return (found[0], offset + at), at + found[1], False
        self._failures += 1
        self._repairs.leave_out(kind, offset + at)
        if self._document.match(block, first):
            self._repairs.mend(OPEN_END, offset + first)
            return None, first, True
        return None, self._end_behind(block, at, first), False

    def _borders(self, block: bytes, at: int) -> Iterator[int]:
        for match in self._border.finditer(block, at + 1):
            if self._document.match(block, match.start()):
                yield match.start()
                return
            if self._opens(block, match.start()):
                yield match.start()
        yield len(block)

    @staticmethod
    def _end_behind(block: bytes, at: int, border: int) -> int:
        """Where to go on behind an element that is left out: the array may end before `border`."""
        end = _END.search(block, at) if border == len(block) else None
        return end.start(1) if end else border

    def _sound_or_mended(self, text: bytes, offset: int) -> tuple[bytes, int]:
        """An element as JSON, and where it ends in the text. Raises MendError."""
        try:
            # Latin-1 keeps one character for each byte; all marks of JSON are ASCII.
            _, end = _WALKER.raw_decode(text.decode("latin-1"))
        except RecursionError:
            raise MendError("nested too deep") from None
        except ValueError:
            if self._failures >= _PATIENCE and self._failures % _NOW_AND_THEN:
                raise MendError("one of many that are beyond repair") from None
            mended, end, done = self._mender.mend(text)
            for kind, place in done:
                self._repairs.mend(kind, offset + place)
            return mended, end
        return text[:end], end

    def _decode(self, segments: list[tuple[bytes, int]]) -> list[T]:
        try:
            return self._decoder.decode(b"[" + b",".join([text for text, _ in segments]) + b"]")
        except _ERRORS:
            return [item for text, offset in segments for item in self._decode_one(text, offset)]

    def _decode_one(self, text: bytes, offset: int) -> list[T]:
        try:
            return self._decoder.decode(b"[" + text + b"]")
        except _ERRORS:
            pass
        try:
            text, _, done = self._mender.mend(text)
            items = self._lax_decoder.decode(b"[" + text + b"]")
        except MendError as error:
            self._repairs.leave_out(DEEP if "deep" in str(error) else UNREADABLE, offset)
            return []
        except _ERRORS:
            self._repairs.leave_out(SHAPE, offset)
            return []
        for kind, place in done or [(QUOTED, 0)]:
            self._repairs.mend(kind, offset + place)
        return items
