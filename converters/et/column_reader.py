"""Attribute columns while nodes come in.

An attribute nearly always reads: name, tag of the value, value. The first two decide its column;
the value's bytes go there as they are, and are decoded many at a time. A file with an attribute
that reads otherwise, though its column is such a one, is read again with care: attribute by
attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et.attribute_codec import (
    NAME,
    SCALARS,
    decode_attribute,
    decode_content,
    encode_text,
)
from chakra_et.converters.et.wire import (
    BYTES,
    FIXED32,
    VARINT,
    WireError,
    field_bytes,
    read_varint,
    tag,
    unpack,
)
from chakra_et.definitions import Kind
from chakra_et.model import AttributeColumn, AttributeKey, AttributeValue
from chakra_et.model.attributes import array_type

_MOST_KNOWN: Final = 1 << 14
"""Values of a column that are remembered, so that nodes share them."""


class UnusualError(Exception):
    """A file that must be read with care."""


class Column:
    """The values of one attribute, as bytes after the tag or, for `head` None, as objects."""

    __slots__ = ("_known", "_parts", "head", "key", "new", "number")

    def __init__(self, key: AttributeKey, number: int, head: bytes | None) -> None:
        self.key = key
        self.number = number
        self.head = head
        self.new: list[Any] = []
        self._parts: list[Any] = []
        self._known: dict[bytes, AttributeValue] = {}

    def settle(self) -> None:
        """Decode the values that came in since the last time."""
        if self.new:
            self._parts.append(self.new.copy() if self.head is None else self._decode(self.new))
            self.new.clear()

    def finish(self, rows: npt.NDArray[np.int64]) -> AttributeColumn:
        """The column of the model."""
        self.settle()
        dtype = array_type(self.key.kind)
        if dtype is None:
            return AttributeColumn(
                self.key, rows, [value for part in self._parts for value in part]
            )
        values = np.concatenate([np.asarray(part, dtype) for part in self._parts])
        return AttributeColumn(self.key, rows, values)

    def _decode(self, pieces: list[bytes]) -> Any:
        kind = self.key.kind
        assert kind is not None
        wire_type = _wire_type(kind)
        if wire_type == BYTES:
            return [self._object(kind, piece) for piece in pieces]
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        data = b"".join(pieces)
        if wire_type == VARINT:
            return _from_varints(kind, _one_each(data, lengths))
        width = 4 if wire_type == FIXED32 else 8
        if (lengths != width).any():
            raise UnusualError
        letter = np.dtype(array_type(kind)).kind
        return np.frombuffer(data, f"<{letter}{width}")

    def _object(self, kind: Kind, piece: bytes) -> AttributeValue:
        """Text, bytes or a list; equal ones become one object."""
        value = self._known.get(piece)
        if value is None:
            length, at = read_varint(piece, 0, len(piece))
            if at + length != len(piece):
                raise UnusualError
            value = decode_content(kind, piece[at:])
            if len(self._known) < _MOST_KNOWN:
                self._known[piece] = value
        return value


def _wire_type(kind: Kind) -> int:
    return SCALARS[kind].wire_type if kind in SCALARS else BYTES


def _one_each(data: bytes, lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """The varints of pieces of these lengths, if each piece is one."""
    if not lengths.all() or lengths.max() > 10:
        raise UnusualError
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) < 0x80) + 1
    if not np.array_equal(ends, np.cumsum(lengths)):
        raise UnusualError
    return unpack(data)


def _from_varints(kind: Kind, found: npt.NDArray[np.uint64]) -> Any:
    one, low = np.uint64(1), np.uint64(0xFFFFFFFF)
    if kind is Kind.BOOL:
        return found != 0
    if kind is Kind.UINT64:
        return found
    if kind is Kind.UINT32:
        return found & low
    if kind is Kind.INT32:
        return found.astype(np.uint32).view(np.int32)
    if kind in (Kind.SINT32, Kind.SINT64):
        found = found & low if kind is Kind.SINT32 else found
        return (found >> one).view(np.int64) ^ -(found & one).view(np.int64)
    return found.view(np.int64)


class ColumnReader:
    """Sorts the attributes of nodes into columns; `careful` decodes each by itself.

    `by_head` finds, by the bytes before an attribute's value, the number of its column and the
    function that takes the bytes of the value.
    """

    def __init__(self, *, careful: bool) -> None:
        self.by_head: dict[bytes, tuple[int, Callable[[bytes], None]]] = {}
        self._careful = careful
        self._columns: list[Column] = []
        self._by_key: dict[AttributeKey, Column] = {}

    def read(self, data: bytes, at: int, end: int, before: list[int]) -> int:
        """Take in the attribute in `data[at:end]`; the number of its column.

        `before` are the columns of the node's attributes before this one.
        """
        key, value = decode_attribute(data[at:end], at)
        column = self._column(key)
        while column.number in before:
            key = AttributeKey(key.name, key.kind, key.occurrence + 1, key.doc, key.extra)
            column = self._column(key)
        if column.head is None:
            column.new.append(value)
        elif data.startswith(column.head, at, end):
            column.new.append(data[at + len(column.head) : end])
        else:
            raise UnusualError
        return column.number

    def _column(self, key: AttributeKey) -> Column:
        column = self._by_key.get(key)
        if column is None:
            number = len(self._columns)
            column = self._by_key[key] = Column(key, number, self._head(key))
            self._columns.append(column)
            if column.head is not None:
                self.by_head[column.head] = number, column.new.append
        return column

    def _head(self, key: AttributeKey) -> bytes | None:
        """The bytes before the value of an attribute; None where the next may have others."""
        name = encode_text(key.name)
        if self._careful or key.kind is None or not 0 < len(name) < 0x80:
            return None
        if key != AttributeKey(key.name, key.kind):
            return None
        return field_bytes(NAME, name) + tag(key.kind, _wire_type(key.kind))

    def settle(self) -> None:
        """Decode what came in since the last time."""
        for column in self._columns:
            try:
                column.settle()
            except WireError:
                raise UnusualError from None  # the careful reader tells where it is

    def finish(
        self, layouts: list[tuple[int, ...]], layout: npt.NDArray[np.int32]
    ) -> list[AttributeColumn]:
        """The columns, each at its number. `layout` is the layout of each row."""
        self.settle()
        order = np.argsort(layout, kind="stable")
        ends = np.cumsum(np.bincount(layout, minlength=len(layouts)))
        rows: list[list[npt.NDArray[np.int64]]] = [[] for _ in self._columns]
        for numbers, part in zip(layouts, np.split(order, ends[:-1]), strict=True):
            for number in numbers:
                rows[number].append(part)
        return [
            column.finish(np.sort(np.concatenate(parts)))
            for column, parts in zip(self._columns, rows, strict=True)
        ]
