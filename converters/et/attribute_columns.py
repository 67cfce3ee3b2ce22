"""Attribute columns while nodes come in."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et.attribute_codec import (
    NAME,
    SCALARS,
    decode_attribute,
    decode_content,
    encode_text,
)
from chakra_et.converters.et.distinct import distinct, pooled, slices
from chakra_et.converters.et.side_by_side import Ints, Wire
from chakra_et.converters.et.wire import (
    BYTES,
    FIXED32,
    VARINT,
    field_bytes,
    read_varint,
    tag,
)
from chakra_et.definitions import Kind
from chakra_et.model import AttributeColumn, AttributeKey, AttributeValue
from chakra_et.model.attribute_values import array_type
from chakra_et.pool import Pool

_MOST_KNOWN: Final = 1 << 14
"""Values of a column that are remembered, so that nodes share them."""
_BY_ITSELF: Final = -1

Mark: TypeAlias = tuple[int, list[int]]
"""How many heads there are, and how many parts each column has."""


class UnusualError(Exception):
    """A record that must be read with care."""


class _Known(dict[bytes, AttributeValue]):
    """Text, bytes or lists by the bytes of their field after its tag; equal ones are one object."""

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self._kind = kind

    def __missing__(self, piece: bytes) -> AttributeValue:
        length, at = read_varint(piece, 0, len(piece))
        if at + length != len(piece):
            raise UnusualError
        value = decode_content(self._kind, piece[at:])
        if len(self) < _MOST_KNOWN:
            self[piece] = value
        return value


class _Column:
    """The values of one attribute. `plain`: each is its name, the tag of its kind, the value."""

    def __init__(self, key: AttributeKey) -> None:
        self.key = key
        self.rows: list[Ints] = []
        self.parts: list[Any] = []
        self.head = _plain_head(key)
        self._known = _Known(key.kind) if self.head and key.kind is not None else None

    def take(self, wire: Wire, data: bytes, rows: Ints, at: Ints, behind: Ints) -> None:
        """Take in the values that stand in `at` to `behind`."""
        kind = self.key.kind
        assert kind is not None
        assert self._known is not None
        wire_type = _wire_type(kind)
        if wire_type == BYTES:
            first, code = distinct(wire, at, behind)
            pieces = slices(data, at[first], behind[first])
            values: Any = np.fromiter(map(self._known.__getitem__, pieces), object)[code].tolist()
        elif wire_type == VARINT:
            found, width = wire.varints(at)
            if not np.array_equal(width, behind - at):
                raise UnusualError
            values = from_varints(kind, found)
        else:
            size = 4 if wire_type == FIXED32 else 8
            if (behind - at != size).any():
                raise UnusualError
            letter = np.dtype(array_type(kind)).kind
            values = wire.buffer[at[:, None] + np.arange(size)].view(f"<{letter}{size}")[:, 0]
        self.rows.append(rows)
        self.parts.append(values)

    def finish(self) -> AttributeColumn:
        """The column of the model."""
        rows = np.concatenate(self.rows)
        dtype = array_type(self.key.kind)
        if dtype is None:
            return AttributeColumn(self.key, rows, [v for part in self.parts for v in part])
        values = np.concatenate([np.asarray(part, dtype) for part in self.parts])
        return AttributeColumn(self.key, rows, values)


def _plain_head(key: AttributeKey) -> bytes:
    """The bytes before each value; b"" where the next attribute may have others."""
    name = encode_text(key.name)
    if key.kind is None or not 0 < len(name) < 0x80 or key != AttributeKey(key.name, key.kind):
        return b""
    return field_bytes(NAME, name) + tag(key.kind, _wire_type(key.kind))


def _wire_type(kind: Kind) -> int:
    return SCALARS[kind].wire_type if kind in SCALARS else BYTES


def from_varints(kind: Kind, found: npt.NDArray[np.uint64]) -> Any:
    """What varints stand for, by their kind."""
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


class AttributeColumns:
    """Sorts attributes into columns, many at a time.

    Nearly all read: name, tag of the value, value. The first two, the *head*, decide the column;
    the values of a column are decoded together. An attribute that reads otherwise is decoded by
    itself. Raises UnusualError where such a one belongs to a column of plain ones.
    """

    def __init__(self) -> None:
        self._columns: list[_Column] = []
        self._by_key: dict[AttributeKey, int] = {}
        self._heads: Pool[bytes] = Pool()
        self._column_of_head: list[int] = []

    def take(self, wire: Wire, data: bytes, rows: Ints, at: Ints, behind: Ints) -> Ints:
        """The column of each of the attributes in `at` to `behind`; rows ascend."""
        value_at = _value_places(wire, at, behind)
        code = pooled(self._heads, wire, data, at, value_at)
        if len(self._column_of_head) < len(self._heads):
            self._learn(data, code, at, behind)
        number = np.array(self._column_of_head, np.int64)[code]
        for column in np.unique(number).tolist():
            chosen = np.flatnonzero(number == column)
            part = rows[chosen], value_at[chosen], behind[chosen]
            if column != _BY_ITSELF:
                self._columns[column].take(wire, data, *part)
                continue
            for place in chosen.tolist():
                number[place] = self._single(data, int(rows[place]), at[place], behind[place])
        return number

    def _learn(self, data: bytes, code: npt.NDArray[np.int32], at: Ints, behind: Ints) -> None:
        """Find the column of each new head by an attribute that has it."""
        codes, places = np.unique(code, return_index=True)
        place_of = dict(zip(codes.tolist(), places.tolist(), strict=True))
        heads = self._heads.in_order
        for new in range(len(self._column_of_head), len(heads)):
            start, end = int(at[place_of[new]]), int(behind[place_of[new]])
            key, _ = decode_attribute(data[start:end], start)
            plain = heads[new] and heads[new] == _plain_head(key)
            self._column_of_head.append(self._number(key) if plain else _BY_ITSELF)

    def _number(self, key: AttributeKey) -> int:
        if key not in self._by_key:
            self._by_key[key] = len(self._columns)
            self._columns.append(_Column(key))
        return self._by_key[key]

    def _single(self, data: bytes, row: int, at: int, behind: int) -> int:
        key, value = decode_attribute(data[at:behind], int(at))
        number = self._number(key)
        column = self._columns[number]
        if column.head:
            raise UnusualError
        column.rows.append(np.array([row], np.int64))
        column.parts.append([value])
        return number

    def mark(self) -> Mark:
        """What `undo` goes back to."""
        return len(self._heads), [len(column.rows) for column in self._columns]

    def undo(self, mark: Mark) -> None:
        """Forget all that was taken since `mark`."""
        heads, parts = mark
        self._heads.keep(heads)
        del self._column_of_head[heads:]
        for column in self._columns[len(parts) :]:
            del self._by_key[column.key]
        del self._columns[len(parts) :]
        for column, count in zip(self._columns, parts, strict=True):
            del column.rows[count:], column.parts[count:]

    def finish(self) -> list[AttributeColumn]:
        """The columns, each at its number."""
        return [column.finish() for column in self._columns]


def _value_places(wire: Wire, at: Ints, behind: Ints) -> Ints:
    """Where the value of each attribute begins; at its begin, if it does not read as usual."""
    # Name and tag of the value: each length is one byte, and so is the tag of the name.
    last = len(wire.buffer) - 1
    size = wire.buffer[np.minimum(at + 1, last)]
    value_at = at + 3 + size
    value_at += wire.buffer[np.minimum(value_at - 1, last)] >= 0x80
    named = (wire.buffer[np.minimum(at, last)] == NAME << 3 | BYTES) & (size < 0x80)
    return np.where(named & (value_at < behind), value_at, at)
