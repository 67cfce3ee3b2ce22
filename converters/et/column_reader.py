"""Attribute columns while nodes come in.

Values stay as bytes for as long as that is cheap: numbers of a column are decoded all at once when
the last node has come in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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
    is_varint,
    read_varint,
    tag,
    unpack,
)
from chakra_et.definitions import Kind
from chakra_et.model import AttributeColumn, AttributeKey, AttributeValue
from chakra_et.model.attributes import array_type

_MOST_KNOWN: Final = 1 << 14
"""Values of a column that are remembered, so that nodes share them."""
_NAME_TAG: Final = tag(NAME, BYTES)[0]


class Column(ABC):
    """One attribute column; `last` is the newest row in it."""

    __slots__ = ("key", "last", "number", "rows")

    def __init__(self, key: AttributeKey, number: int) -> None:
        self.key = key
        self.number = number
        self.rows: list[int] = []
        self.last = -1

    @abstractmethod
    def take(self, raw: bytes) -> bool:
        """Take in what follows the tag of a value; False if that is not just one value."""

    @abstractmethod
    def put(self, value: AttributeValue) -> None:
        """Take in a decoded value."""

    @abstractmethod
    def values(self) -> Any:
        """All values taken in."""

    def finish(self) -> AttributeColumn:
        """The column of the model."""
        return AttributeColumn(self.key, np.array(self.rows, np.int64), self.values())


class _Varints(Column):
    """Integers and truth values, as varints one after another."""

    __slots__ = ("_raw",)

    def __init__(self, key: AttributeKey, number: int) -> None:
        super().__init__(key, number)
        self._raw = bytearray()

    def take(self, raw: bytes) -> bool:
        if not is_varint(raw):
            return False
        self._raw += raw
        return True

    def put(self, value: AttributeValue) -> None:
        assert self.key.kind is not None
        self._raw += SCALARS[self.key.kind].encode(value)

    def values(self) -> Any:
        return _from_varints(self.key.kind, unpack(self._raw))


def _from_varints(kind: Kind | None, found: npt.NDArray[np.uint64]) -> Any:
    one, low = np.uint64(1), np.uint64(0xFFFFFFFF)
    if kind is Kind.BOOL:
        return found != 0
    if kind is Kind.UINT64:
        return found
    if kind is Kind.UINT32:
        return found & low
    if kind is Kind.INT32:
        return found.astype(np.uint32).view(np.int32).astype(np.int64)
    if kind in (Kind.SINT32, Kind.SINT64):
        found = found & low if kind is Kind.SINT32 else found
        return (found >> one).view(np.int64) ^ -(found & one).view(np.int64)
    return found.view(np.int64)


class _Fixed(Column):
    """Numbers of four or eight bytes."""

    __slots__ = ("_dtype", "_raw", "_width")

    def __init__(self, key: AttributeKey, number: int) -> None:
        super().__init__(key, number)
        assert key.kind is not None
        self._raw = bytearray()
        self._width = 4 if SCALARS[key.kind].wire_type == FIXED32 else 8
        letter = np.dtype(array_type(key.kind)).kind
        self._dtype = f"<{letter}{self._width}"

    def take(self, raw: bytes) -> bool:
        if len(raw) != self._width:
            return False
        self._raw += raw
        return True

    def put(self, value: AttributeValue) -> None:
        assert self.key.kind is not None
        self._raw += SCALARS[self.key.kind].encode(value)

    def values(self) -> Any:
        return np.frombuffer(bytes(self._raw), self._dtype).astype(array_type(self.key.kind))


class _Objects(Column):
    """Text, bytes and lists; equal values become one object. Also attributes without a value."""

    __slots__ = ("_known", "_values")

    def __init__(self, key: AttributeKey, number: int) -> None:
        super().__init__(key, number)
        self._known: dict[bytes, AttributeValue] = {}
        self._values: list[AttributeValue] = []

    def take(self, raw: bytes) -> bool:
        value = self._known.get(raw)
        if value is None:
            assert self.key.kind is not None
            length, at = read_varint(raw, 0, len(raw))
            if at + length != len(raw):
                return False
            value = decode_content(self.key.kind, raw[at:])
            if len(self._known) < _MOST_KNOWN:
                self._known[raw] = value
        self._values.append(value)
        return True

    def put(self, value: AttributeValue) -> None:
        self._values.append(value)

    def values(self) -> Any:
        return self._values


class ColumnReader:
    """Sorts the attributes of nodes into columns."""

    def __init__(self) -> None:
        self._columns: list[Column] = []
        self._by_key: dict[AttributeKey, Column] = {}
        # Name and tag of the value, as they stand before the value in nearly every attribute.
        self._by_head: dict[bytes, Column] = {}

    def read(self, data: bytes, at: int, end: int, row: int) -> int:
        """Take in the attribute in `data[at:end]` of node `row`; the number of its column."""
        if end - at > 3 and data[at] == _NAME_TAG:
            value_at = at + 3 + data[at + 1]
            if value_at < end:
                if data[value_at - 1] >= 0x80:  # a tag of two bytes
                    value_at += 1
                column = self._by_head.get(data[at:value_at])
                if column is not None and column.last != row:
                    try:
                        taken = column.take(data[value_at:end])
                    except WireError as error:
                        raise WireError(f"attribute {column.key.name!r}: {error}", at) from None
                    if taken:
                        column.last = row
                        column.rows.append(row)
                        return column.number
        return self._read_any(data, at, end, row)

    def _read_any(self, data: bytes, at: int, end: int, row: int) -> int:
        key, value = decode_attribute(data[at:end], at)
        column = self._column(key)
        while column.last == row:
            key = AttributeKey(key.name, key.kind, key.occurrence + 1, key.doc, key.extra)
            column = self._column(key)
        column.put(value)
        column.last = row
        column.rows.append(row)
        return column.number

    def _column(self, key: AttributeKey) -> Column:
        column = self._by_key.get(key)
        if column is None:
            scalar = None if key.kind is None else SCALARS.get(key.kind)
            wire_type = BYTES if scalar is None else scalar.wire_type
            made = {VARINT: _Varints, BYTES: _Objects}.get(wire_type, _Fixed)
            column = self._by_key[key] = made(key, len(self._columns))
            self._columns.append(column)
            name = encode_text(key.name)
            plain = key == AttributeKey(key.name, key.kind)
            if key.kind is not None and plain and 0 < len(name) < 0x80:
                self._by_head[field_bytes(NAME, name) + tag(key.kind, wire_type)] = column
        return column

    def finish(self) -> list[AttributeColumn]:
        """The columns, each at its number."""
        return [column.finish() for column in self._columns]
