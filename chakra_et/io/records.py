"""Records of a JSON trace file: the fast reader, and behind it the tolerant one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from chakra_et.errors import FormatError
from chakra_et.io.json_array import ElementDecoder, InBrackets, JsonArray
from chakra_et.io.mend import Mender, MendError
from chakra_et.io.mended_array import AFTER, MendedArray
from chakra_et.io.repairs import Repairs, UnsoundError
from chakra_et.io.source import blocks, filling

T = TypeVar("T", bound=msgspec.Struct)
T_contra = TypeVar("T_contra", contravariant=True)

MEMBER: Final = "metadata beyond repair"
MISSING_END: Final = "metadata that was cut off"
_FAILURES: Final = 100
"""After so many members that cannot be read, no more are tried."""

_WALKER: Final = json.JSONDecoder(strict=False)
_MEMBER: Final = re.compile(rb'[\s,]*"([^"\\\x00-\x1f]{1,200})"\s{0,64}:\s{0,64}')
_NEXT_MEMBER: Final = re.compile(rb',\s{0,64}(?="[^"\\\x00-\x1f]{1,200}"\s{0,64}:)')


class Columns(Protocol[T_contra]):
    """What takes records in, piece by piece."""

    def add(self, piece: T_contra, /) -> None:
        """Take in some records."""


C = TypeVar("C", bound=Columns[Any])


class Layout(msgspec.Struct, Generic[T], frozen=True):
    """How records stand in a document: array `array` of objects of type `record`.

    `first` are the keys with which a record may begin, `document` is how the document does.
    `fast` gives a decoder that is faster, or None where there is none; that decoder gives None for
    a piece that is to be decoded to records of type `record`.
    """

    record: type[T]
    array: str
    first: tuple[str, ...]
    document: str
    fast: Callable[[], ElementDecoder[Any] | None] = lambda: None


class _Either(msgspec.Struct, frozen=True):
    """A decoder that is fast, or else one that knows everything."""

    fast: ElementDecoder[Any]
    sure: ElementDecoder[Any]

    def decode_elements(self, text: memoryview, count: int) -> Any:
        piece = self.fast.decode_elements(text, count)
        return self.sure.decode_elements(text, count) if piece is None else piece


class Records(msgspec.Struct, Generic[C]):
    """The columns that took the records in, what stood around them, and what was mended.

    `starts` tells how many records stood before each document of the file.
    """

    columns: C
    metadata: dict[str, Any]
    repairs: Repairs
    found: bool = True
    starts: list[int] = msgspec.field(default_factory=list)


def read_records(
    path: str | Path, layout: Layout[T], new_columns: Callable[[Repairs], C], *, strict: bool
) -> Records[C]:
    """Read all records of a file; damage is mended and counted, or refused if `strict`.

    Raises FormatError, with the place, for what cannot be read, and for any damage if `strict`.
    """
    repairs = Repairs(Path(path), strict)
    try:
        return _read_sound(path, layout, new_columns(repairs), repairs)
    except UnsoundError as error:
        unsound = error
    repairs = Repairs(Path(path), strict)
    try:
        return _read_damaged(path, layout, new_columns(repairs), repairs)
    except UnsoundError:
        raise unsound from None


def _read_sound(path: str | Path, layout: Layout[T], columns: C, repairs: Repairs) -> Records[C]:
    sure, fast = InBrackets(msgspec.json.Decoder(_list_of(layout))), layout.fast()
    decoder: ElementDecoder[Any] = sure if fast is None else _Either(fast, sure)
    array = JsonArray(path, filling(path), layout.array, decoder)
    for piece in array:
        columns.add(piece)
    try:
        document = msgspec.json.decode(array.rest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnsoundError(
            f"what surrounds the records is not valid JSON: {error}", path=path
        ) from error
    metadata = dict(document) if isinstance(document, dict) else {}
    if metadata.pop(layout.array, None):
        raise UnsoundError(f'the array "{layout.array}" appears twice', path=path)
    return Records(columns, metadata, repairs, array.found)


def _read_damaged(path: str | Path, layout: Layout[T], columns: C, repairs: Repairs) -> Records[C]:
    of = _list_of(layout)
    keys = {item.encode_name for item in msgspec.structs.fields(layout.record)}
    array = MendedArray(
        path,
        blocks(path, repairs),
        layout.array,
        (msgspec.json.Decoder(of), msgspec.json.Decoder(of, strict=False)),
        repairs,
        keys=frozenset(keys | {"id", "bp", "s"}),
        first=layout.first,
        document=layout.document,
    )
    for piece in array:
        columns.add(piece)
    metadata = salvage(array.rest, repairs)
    metadata.pop(layout.array, None)
    return Records(columns, metadata, repairs, array.found, array.starts)


def _list_of(layout: Layout[T]) -> type[list[T]]:
    record: Any = layout.record
    return list[record]


def salvage(text: bytes, repairs: Repairs) -> dict[str, Any]:
    """The members of an object as far as they can be read, with repairs counted.

    Offsets of what was mended are not known here: the text is put together from both ends.
    """
    at = text.find(b"{") + 1
    if at == 0 or b"[" in text[: at - 1]:
        return {}
    found: dict[str, Any] = {}
    failures = 0
    # Latin-1 keeps one character for each byte; all marks of JSON are ASCII.
    characters = text.decode("latin-1")
    while match := _MEMBER.match(text, at):
        try:
            value, at = _value(text, characters, match.end(), repairs)
        except MendError as error:
            repairs.mend(MISSING_END if error.incomplete else MEMBER, None)
            failures += 1
            following = _NEXT_MEMBER.search(text, match.end())
            if following is None or failures == _FAILURES:
                return found
            at = following.end()
        else:
            found[match[1].decode("utf-8", "replace")] = value
    behind = text[at:].strip(b" \t\r\n,")
    if not behind.startswith(b"}"):
        repairs.mend(MISSING_END, None)
    elif len(behind) > 1:
        repairs.mend(AFTER, None, size=len(behind) - 1)
    return found


def _value(text: bytes, characters: str, at: int, repairs: Repairs) -> tuple[Any, int]:
    """The value at a place, and where it ends. Raises MendError."""
    try:
        _, end = _WALKER.raw_decode(characters, at)
        return msgspec.json.decode(text[at:end]), end
    except (ValueError, RecursionError):
        mended, end, done = Mender().mend(text, at)
    for kind, _ in done:
        repairs.mend(kind, None)
    try:
        return msgspec.json.decode(mended), end
    except (ValueError, RecursionError):
        raise MendError("not JSON") from None


def missing_array(path: str | Path, layout: Layout[Any], remedy: str) -> FormatError:
    """The error for a document without the array that it should be about."""
    return FormatError(f'no array "{layout.array}"', path=path, remedy=remedy)
