"""One long array inside a JSON document, decoded piece by piece.

Traces are JSON objects around one array with nearly all of the bytes. The array is cut where a
new element seems to begin, and the decoder proves each cut: a piece in brackets is valid JSON only
if it holds whole elements. So the guess costs nothing when it is right and cannot do harm when it
is wrong; then elements are walked one by one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from chakra_et.io.repairs import UnsoundError

T = TypeVar("T")

PIECE_BYTES: Final = 1 << 19
"""Bounds how many objects are alive at once: those of a piece are made, read and dropped."""
_LIMIT_BYTES: Final = 1 << 24
"""A longer piece that holds no whole elements, or a longer text before the array, is unsound."""
_OPENING = re.compile(rb'\s*(\{\s*"[^"\\]*")')
_BARE = re.compile(rb"\s*\[")
_END = re.compile(rb"\s*\]")
_COMMA = re.compile(rb"\s*,\s*")
_WALKER = json.JSONDecoder(strict=False)


class JsonArray(Generic[T]):
    """The elements of array `key` of a JSON object, or of a document that is itself an array.

    Iterating yields lists of decoded elements. Afterwards `rest` holds the document with that
    array empty, and `found` tells whether there was such an array.
    """

    def __init__(
        self,
        path: str | Path,
        blocks: Iterator[bytes],
        key: str,
        decoder: msgspec.json.Decoder[list[T]],
        *,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        self.rest = b""
        self.found = False
        self._path = path
        self._blocks = blocks
        self._start = re.compile(rb'"' + key.encode() + rb'"\s*:\s*\[')
        self._key = key
        self._decoder = decoder
        self._piece_bytes = piece_bytes
        self._text = bytearray()
        self._ended = False
        self._offset = 0  # of self._text in the document
        self._count = 0  # elements decoded so far

    def __iter__(self) -> Iterator[list[T]]:
        prefix = self._find_array()
        if prefix is None:
            self.rest = bytes(self._text)
            return
        self.found = True
        opening = self._learn_opening()
        while True:
            while len(self._text) < self._piece_bytes and self._read():
                pass
            cut = self._last_element(opening)
            if self._ended and len(self._text) <= self._piece_bytes:
                end = self._walk(max(cut, 0))
                yield from self._decode_tail(cut, end)
                break
            piece = self._try_decode(cut) if cut > 0 else None
            if piece is None:
                if self._piece_bytes > _LIMIT_BYTES:
                    raise self._malformed("no record ends", 0)
                self._piece_bytes *= 2
                continue
            yield piece
        self.rest = prefix + b"]" + bytes(self._text)

    def _read(self) -> bool:
        block = next(self._blocks, None)
        if block is None:
            self._ended = True
            return False
        self._text += block
        return True

    def _find_array(self) -> bytes | None:
        searched = 0
        while True:
            if _BARE.match(self._text):
                return self._take(self._text.index(b"[") + 1)
            match = self._start.search(self._text, searched)
            if match:
                return self._take(match.end())
            searched = max(0, len(self._text) - 256)
            if len(self._text) > _LIMIT_BYTES:
                raise self._malformed(f'no array "{self._key}" begins', 0)
            if not self._read():
                return None

    def _take(self, count: int) -> bytes:
        taken = bytes(self._text[:count])
        self._drop(count)
        return taken

    def _drop(self, count: int) -> None:
        del self._text[:count]
        self._offset += count

    def _learn_opening(self) -> bytes:
        """How the first element begins, from its brace to its first key."""
        while True:
            match = _OPENING.match(self._text)
            if match:
                return match[1]
            if len(self._text) > 1 << 16 or not self._read():
                return b"{"

    def _last_element(self, opening: bytes) -> int:
        """Where the last element of a piece seems to begin, -1 if none does after the first."""
        at = self._text.rfind(opening, 0, self._piece_bytes)
        while at > 0:
            before = self._text[max(0, at - 256) : at].rstrip()
            if before.endswith(b",") and before[:-1].rstrip().endswith(b"}"):
                return at
            at = self._text.rfind(opening, 0, at)
        return -1

    def _try_decode(self, cut: int) -> list[T] | None:
        """The elements before `cut`, taken off the text; None if the cut was no border."""
        comma = self._text.rfind(b",", 0, cut)
        try:
            piece = self._decode(comma)
        except msgspec.ValidationError as error:
            raise self._invalid(error) from error
        except (msgspec.DecodeError, RecursionError):
            return None
        self._count += len(piece)
        self._drop(cut)
        return piece

    def _decode_tail(self, cut: int, end: int) -> Iterator[list[T]]:
        """The elements up to the closing bracket at `end`, in one go where the text is sound."""
        try:
            piece = self._decode(end)
        except msgspec.ValidationError as error:
            raise self._invalid(error) from error
        except (msgspec.DecodeError, RecursionError):
            # The guess led astray (into another array, say): walk from the first element.
            end = self._walk(0)
            try:
                piece = self._decode(end)
            except msgspec.ValidationError as error:
                raise self._invalid(error) from error
            except (msgspec.DecodeError, RecursionError) as error:
                raise self._malformed(str(error), 0) from error
        self._count += len(piece)
        self._drop(end)
        match = _END.match(self._text)
        self._drop(match.end() if match else 0)
        yield piece

    def _decode(self, end: int) -> list[T]:
        with memoryview(self._text) as text, text[:end] as piece:
            return self._decoder.decode(b"".join((b"[", piece, b"]")))

    def _walk(self, at: int) -> int:
        """Where the array ends, walking element by element from `at`, where one begins."""
        # Latin-1 keeps one character for each byte; all marks of JSON are ASCII.
        text = self._text[at:].decode("latin-1")
        raw = self._text
        position = at
        if match := _END.match(raw, position):
            return match.start()
        while True:
            try:
                skip = len(raw) - len(raw[position:].lstrip()) if position == at else position
                _, stop = _WALKER.raw_decode(text, skip - at)
            except (json.JSONDecodeError, RecursionError) as error:
                where = at + error.pos if isinstance(error, json.JSONDecodeError) else position
                reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deep"
                raise self._malformed(reason, where) from error
            position = at + stop
            if match := _END.match(raw, position):
                return match.start()
            comma = _COMMA.match(raw, position)
            if not comma:
                reason = (
                    f'array "{self._key}" does not end'
                    if position >= len(raw.rstrip())
                    else "',' or ']' expected"
                )
                raise self._malformed(reason, position)
            position = comma.end()

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
            place=f"byte {self._offset + at}",
            remedy="The file may have been cut, or its producer does not escape names.",
        )
