"""The tolerant reader: one long array in a JSON document that is damaged somewhere.

It stands behind `JsonArray`, which reads sound documents. The text is taken in blocks that end
where an element seems to begin. A sound block is decoded in one go; in a damaged one the elements
are told apart one by one (`apart.py`), mended, or left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from chakra_et.errors import FormatError
from chakra_et.io.ahead import FILL_BYTES, Ahead
from chakra_et.io.apart import DEEP, OPEN_END, UNREADABLE, Apart, Segment
from chakra_et.io.mend import Mender, MendError
from chakra_et.io.openings import Openings, first_key
from chakra_et.io.repairs import QUOTED, Repairs
from chakra_et.patterns import lazy_pattern

T = TypeVar("T")

AROUND_BYTES: Final = 1 << 26
"""More text than this around an array is not looked through."""

SHAPE: Final = "record of an unexpected shape"
SECOND: Final = "another document in the same file"
AFTER: Final = "text after the document"

_BARE: Final = lazy_pattern(rb"\s*\[")
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_KEYS_OF_ELEMENTS: Final = 2
_LOOK_BYTES: Final = 1 << 10
_ERRORS: Final = (msgspec.DecodeError, RecursionError, ValueError)


class MendedArray(Generic[T]):
    """The elements of every array `key`, as far as they can be read; the face is `JsonArray`'s.

    `keys` are the keys that an element can have; `first` those with which one begins, unless the
    first element begins with another one; `document` is what the outermost object begins with.
    What is left out is counted in `repairs` with its bytes: these, the elements, and the blanks and
    commas between them are all that stands between the brackets.
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
        self._ahead = Ahead(blocks)
        self._decoder, self._lax_decoder = decoders
        self._repairs = repairs
        self._mender = Mender(keys)
        self._start = re.compile(rb'"' + key.encode() + rb'"\s{0,64}:\s{0,64}\[')
        self._keys, self._first = keys, first
        self._openings = Openings(document)
        self._apart = Apart(
            self._ahead, self._openings, self._mender, repairs, self._is_element, self._start
        )
        self._damaged_to = 0  # as an offset: up to there elements are told apart one by one
        self._count = 0

    @property
    def looked_at(self) -> int:
        """How many bytes were looked at while elements were told apart: the measure of work."""
        return self._apart.looked_at

    def __iter__(self) -> Iterator[list[T]]:
        while (prefix := self._seek()) is not None:
            self.starts.append(self._count)
            if self.found:
                self._repairs.mend(SECOND, self._ahead.offset(self._ahead.at))
            for piece in self._elements():
                if piece:
                    self._count += len(piece)
                    yield piece
            if not self.found:
                self.rest = prefix + b"]"
            self.found = True
        if len(self.starts) < 2:
            self.rest += self._ahead.text[self._ahead.at :][:AROUND_BYTES]

    def _seek(self) -> bytes | None:
        """Everything up to the next array, passed; None if there is no other one."""
        ahead = self._ahead
        searched = 0
        while True:
            if not self.found and (bare := _BARE.match(ahead.text, ahead.at)):
                return ahead.take(bare.end())
            if match := self._start.search(ahead.text, ahead.at + searched):
                return ahead.take(match.end())
            searched = max(0, ahead.left - 256)
            if ahead.left > AROUND_BYTES:
                if not self.found:
                    raise FormatError(
                        f"no array of records within the first {AROUND_BYTES >> 20} MiB",
                        path=self._path,
                        remedy="Check that this is a trace.",
                    )
                self._repairs.mend(AFTER, ahead.offset(ahead.at))
                return None
            if not ahead.fill(max(2 * ahead.left, FILL_BYTES)):
                return None

    def _elements(self) -> Iterator[list[T]]:
        """The elements up to the end of the array, of the file, or to another document."""
        ahead = self._ahead
        ahead.fill(_LOOK_BYTES)
        first = first_key(ahead.text, ahead.at)
        self._openings.learn(*([first] if first in self._keys else self._first))
        self._apart.begin()
        closed = False
        while not closed:
            ahead.fill(FILL_BYTES)
            whole = self._whole() if ahead.offset(ahead.at) >= self._damaged_to else None
            if whole is not None:
                yield whole
                continue
            segments, closed = self._apart.run(self._damaged_to)
            yield self._decode(segments)

    def _whole(self) -> list[T] | None:
        """The elements up to the last one that seems to begin in the text, if all are sound."""
        ahead = self._ahead
        cut = self._openings.last(ahead.text, ahead.at)
        if cut <= ahead.at:
            self._damaged_to = ahead.offset(len(ahead.text))
            return None
        inside = ahead.text[ahead.at : cut].strip(b" \t\r\n")
        try:
            # Without a comma at its end, the array ends here, or the comma is missing.
            found = self._decoder.decode(b"[" + inside[:-1] + b"]") if inside[-1:] == b"," else None
        except _ERRORS:
            found = None
        if found is None:
            self._damaged_to = ahead.offset(cut)
        else:
            ahead.at = cut
        return found

    def _is_element(self, text: bytes) -> bool:
        """Whether a text is an element in JSON and shape, and no object inside of one."""
        try:
            self._decoder.decode(b"[" + text + b"]")
            return len(self._keys.intersection(_OBJECT.decode(text))) >= _KEYS_OF_ELEMENTS
        except _ERRORS:
            return False

    def _decode(self, segments: list[Segment]) -> list[T]:
        try:
            return self._decoder.decode(b"[" + b",".join([item.text for item in segments]) + b"]")
        except _ERRORS:
            return [item for segment in segments for item in self._decode_one(segment)]

    def _decode_one(self, segment: Segment) -> list[T]:
        try:
            return self._decoder.decode(b"[" + segment.text + b"]")
        except _ERRORS:
            pass
        try:
            text, _, done = self._mender.mend(segment.text)
            items = self._lax_decoder.decode(b"[" + text + b"]")
        except MendError as error:
            kind = DEEP if "deep" in str(error) else UNREADABLE
            self._repairs.leave_out(kind, segment.offset, size=segment.size)
            return []
        except _ERRORS:
            self._repairs.leave_out(SHAPE, segment.offset, size=segment.size)
            return []
        for kind, place in done or [(QUOTED, 0)]:
            self._repairs.mend(kind, segment.offset + place)
        return items


__all__ = ["AFTER", "AROUND_BYTES", "OPEN_END", "QUOTED", "SECOND", "SHAPE", "MendedArray"]
