"""One long array inside a JSON document, decoded piece by piece.

Traces are JSON objects around one array with nearly all of the bytes. The array is cut where an
element seems to begin, told by how elements before it began, and the decoder proves each cut: a
piece in brackets is valid JSON only if it holds whole elements. So the guess costs nothing when it
is right and cannot do harm when it is wrong; then the elements of that piece are walked one by one,
and how they begin is learned. Each byte is looked at a bounded number of times.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sized
from pathlib import Path
from typing import Final, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgspec

from chakra_et.io.repairs import UnsoundError
from chakra_et.io.text_buffer import Filling, TextBuffer
from chakra_et.patterns import lazy_pattern

P = TypeVar("P", bound=Sized)
P_co = TypeVar("P_co", bound=Sized, covariant=True)

PIECE_BYTES: Final = 1 << 19
"""Bounds how many objects are alive at once: those of a piece are made, read and dropped."""
_LIMIT_BYTES: Final = 1 << 24
"""A longer element, or a longer text before the array, is unsound."""
_NEAR_BYTES: Final = 1 << 14
_OPENINGS: Final = 16
"""So many ways in which elements begin are remembered, the latest ones."""
_LONGEST_WORD: Final = 16
_OPENING: Final = lazy_pattern(rb'\s*(\{\s*"[^"\\]{0,200}")')
_BARE: Final = lazy_pattern(rb"\s*\[")
_END: Final = lazy_pattern(rb"\s*\]")
_BLANKS: Final = lazy_pattern(rb"\s*")
_COMMA: Final = lazy_pattern(rb"\s*,\s*")
# Numbers stay text: Python refuses to convert one of thousands of digits.
WALKER: Final = json.JSONDecoder(strict=False, parse_int=str, parse_float=str)
"""Tells where a value ends; what it gives is of no use."""


class _Walked(NamedTuple):
    """Where the elements that were walked end, and whether the array does there."""

    end: int
    closed: bool


class Decoder(Protocol[P_co]):
    """What makes a piece of an array, given as an array of its own, a list or columns."""

    def decode(self, text: bytes, /) -> P_co:
        """The elements. Raises msgspec.DecodeError or RecursionError for what is no such JSON."""


@runtime_checkable
class ElementDecoder(Protocol[P_co]):
    """What makes a piece of elements as they stand in memory, without a copy of them."""

    def decode_elements(self, text: memoryview, count: int, /) -> P_co:
        """The elements in the first `count` bytes of a text, which has zeros at its end.

        Commas stand between them. Raises as `Decoder.decode`.
        """


class InBrackets(Generic[P]):
    """A decoder of arrays as one of elements."""

    def __init__(self, decoder: Decoder[P]) -> None:
        self._decoder = decoder

    def decode_elements(self, text: memoryview, count: int, /) -> P:
        """The elements, as an array of their own."""
        return self._decoder.decode(b"".join((b"[", text[:count], b"]")))


class JsonArray(Generic[P]):
    """The elements of array `key` of a JSON object, or of a document that is itself an array.

    Iterating yields pieces of decoded elements. Afterwards `rest` holds the document with that
    array empty, and `found` tells whether there was such an array. `looked_at` counts the bytes
    that were decoded or walked, which is how the work is measured.
    """

    def __init__(
        self,
        path: str | Path,
        filling: Filling,
        key: str,
        decoder: Decoder[P] | ElementDecoder[P],
        *,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        self.rest = b""
        self.found = False
        self.looked_at = 0
        self._path = path
        self._start = re.compile(rb'"' + key.encode() + rb'"\s*:\s*\[')
        self._key = key
        self._decoder: ElementDecoder[P] = (
            decoder if isinstance(decoder, ElementDecoder) else InBrackets(decoder)
        )
        self._piece_bytes = piece_bytes
        self._openings: dict[bytes, None] = {}
        self._text = TextBuffer()
        self._filling = filling(self._text)
        self._ended = False
        self._count = 0  # elements decoded so far

    def __iter__(self) -> Iterator[P]:
        prefix = self._find_array()
        if prefix is None:
            self.rest = self._text.part()
            return
        self.found = True
        self._fill(1 << 12)
        self._learn(0)
        closed = False
        while not closed:
            self._fill(self._piece_bytes)
            cut = self._last_element()
            piece = self._try_decode(cut) if cut > 0 else None
            if piece is None:
                piece, closed = self._decode_walked()
            if piece:
                yield piece
        while self._read_on():
            pass
        self.rest = prefix + b"]" + self._text.part()

    def _fill(self, wanted: int) -> None:
        """Read on until there is so much text, or the document ends."""
        self._text.wanted = wanted
        while len(self._text) < wanted and not self._ended:
            self._ended = next(self._filling, self) is self

    def _read_on(self) -> bool:
        """Read as much again as there is; whether anything came."""
        before = len(self._text)
        self._fill(max(self._piece_bytes, 2 * before))
        return len(self._text) > before

    def _find_array(self) -> bytes | None:
        searched = 0
        while True:
            begin = self._text.behind(_BARE)
            if begin is None:
                begin = self._text.behind_next(self._start, searched)
            if begin is not None:
                return self._take(begin)
            searched = max(0, len(self._text) - 256)
            if len(self._text) > _LIMIT_BYTES:
                raise self._malformed(f'no array "{self._key}" begins', 0)
            if not self._read_on():
                return None

    def _take(self, count: int) -> bytes:
        taken = self._text.part(0, count)
        self._text.drop(count)
        return taken

    def _learn(self, at: int) -> None:
        """Remember how the element at a place begins, from its brace to its first key."""
        match = self._text.match(_OPENING, at)
        opening = match[1] if match else b"{"
        if opening not in self._openings:
            if len(self._openings) >= _OPENINGS:
                del self._openings[next(iter(self._openings))]
            self._openings[bytes(opening)] = None

    def _last_element(self) -> int:
        """Where the last element of a piece seems to begin, -1 if none does after the first."""
        text = self._text
        end = min(len(text), self._piece_bytes)
        for low in (max(1, end - _NEAR_BYTES), 1):
            places = {opening: text.last(opening, low, end) for opening in self._openings}
            while (at := max(places.values())) > 0:
                before = text.part(max(0, at - 256), at).rstrip()
                if before.endswith(b",") and before[:-1].rstrip().endswith(b"}"):
                    return at
                latest = max(places, key=places.__getitem__)
                places[latest] = text.last(latest, low, at)
        return -1

    def _try_decode(self, cut: int) -> P | None:
        """The elements before `cut`, taken off the text; None if the cut was no border."""
        try:
            piece = self._decode(self._text.last(b",", 0, cut))
        except (msgspec.DecodeError, RecursionError):
            return None
        self._count += len(piece)
        self._text.drop(cut)
        return piece

    def _decode_walked(self) -> tuple[P, bool]:
        """The elements that are whole in a piece, taken off the text, and whether no more come."""
        walked = self._walk()
        try:
            piece = self._decode(walked.end)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._malformed(str(error), 0) from error
        self._count += len(piece)
        self._text.drop(walked.end)
        self._text.drop(self._text.behind(_END if walked.closed else _COMMA) or 0)
        return piece, walked.closed

    def _decode(self, end: int) -> P:
        self.looked_at += end
        with self._text.view() as text:
            try:
                return self._decoder.decode_elements(text, end)
            except msgspec.ValidationError as error:
                raise self._invalid(error) from error

    def _walk(self) -> _Walked:
        """Walk the elements of a piece, or of a longer one where the first is longer."""
        size = self._piece_bytes
        while True:
            self._fill(size)
            self.looked_at += min(size, len(self._text))
            # Latin-1 keeps one character for each byte; all marks of JSON are ASCII.
            whole = self._ended and len(self._text) <= size
            walked = self._walk_text(self._text.part(0, size).decode("latin-1"), whole)
            if walked is not None:
                return walked
            if size > _LIMIT_BYTES:
                raise self._malformed(f"no record ends within {_LIMIT_BYTES >> 20} MiB", 0)
            size *= 2

    def _walk_text(self, text: str, whole: bool) -> _Walked | None:
        """Walk the elements in a text; None if it is cut within the first one.

        Raises UnsoundError where it is no JSON.
        """
        if self._text.behind(_END) is not None:
            return _Walked(0, True)
        at, ended = self._text.behind(_BLANKS) or 0, 0
        while at < len(text):
            try:
                _, stop = WALKER.raw_decode(text, at)
            except RecursionError as error:
                raise self._malformed("nested too deep", at) from error
            except json.JSONDecodeError as error:
                if whole or not may_be_cut(error, text):
                    raise self._malformed(error.msg, error.pos) from error
                break
            if self._text.behind(_END, stop) is not None:
                return _Walked(stop, True)
            following = self._text.behind(_COMMA, stop)
            if following is None:
                if text[stop:].strip():
                    raise self._malformed("expected ',' or ']'", stop)
                break
            self._learn(at)
            ended, at = stop, following
        if whole:
            raise self._malformed(f'array "{self._key}" does not end', at)
        return _Walked(ended, False) if ended else None

    def _invalid(self, error: msgspec.ValidationError) -> UnsoundError:
        match = re.search(r"`\$\[(\d+)\](.*)`", str(error))
        number, field = (int(match[1]), match[2]) if match else (0, "")
        return UnsoundError(
            str(error).split(" - at ")[0],
            path=self._path,
            place=f"{self._key}[{self._count + number}]{field}",
        )

    def _malformed(self, reason: str, at: int) -> UnsoundError:
        return UnsoundError(
            f"not valid JSON: {reason}",
            path=self._path,
            place=f"byte {self._text.offset + at}",
            remedy="The file may be truncated, or its producer does not escape names.",
        )


def may_be_cut(error: json.JSONDecodeError, text: str) -> bool:
    """Whether an error is one that the end of the text makes."""
    return error.msg.startswith("Unterminated") or error.pos > len(text) - _LONGEST_WORD
