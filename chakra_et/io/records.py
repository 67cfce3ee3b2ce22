"""Records of a JSON trace file: the fast reader, and behind it the tolerant one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from chakra_et.errors import FormatError
from chakra_et.io.json_array import ElementDecoder, InBrackets, JsonArray
from chakra_et.io.repairs import Repairs, UnsoundError
from chakra_et.io.source import blocks, filling

T = TypeVar("T", bound=msgspec.Struct)
T_contra = TypeVar("T_contra", contravariant=True)


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
    from chakra_et.io.mended_array import MendedArray
    from chakra_et.io.salvage import salvage

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


def missing_array(path: str | Path, layout: Layout[Any], remedy: str) -> FormatError:
    """The error for a document without the array that it should be about."""
    return FormatError(f'no array "{layout.array}"', path=path, remedy=remedy)
