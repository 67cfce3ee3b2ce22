"""Attributes of nodes, stored by column.

A node's attributes are a sequence of named, typed values. Most nodes of a trace have one of a few
such sequences, so the table keeps each distinct sequence once, as a *layout* (a tuple of column
numbers), and the values of each column in one array with the rows that have it. The order of a
node's attributes, their kinds and whatever a reader did not know survive a round trip.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.definitions import Kind

AttributeValue = Any
"""int, float, bool, str, bytes, a tuple of one of these, or None for an attribute without value."""

INTEGER_KINDS: Final = frozenset(
    {
        Kind.INT32,
        Kind.INT64,
        Kind.UINT32,
        Kind.UINT64,
        Kind.SINT32,
        Kind.SINT64,
        Kind.FIXED32,
        Kind.FIXED64,
        Kind.SFIXED32,
        Kind.SFIXED64,
    }
)
_UNSIGNED = frozenset({Kind.UINT32, Kind.UINT64, Kind.FIXED32, Kind.FIXED64})


def array_type(kind: Kind | None) -> npt.DTypeLike | None:
    """The NumPy type that holds values of `kind`, or None where a Python list holds them."""
    if kind in INTEGER_KINDS:
        return np.uint64 if kind in _UNSIGNED else np.int64
    if kind is Kind.BOOL:
        return np.bool_
    if kind is Kind.DOUBLE:
        return np.float64
    if kind is Kind.FLOAT:
        return np.float32
    return None


@dataclass(frozen=True, slots=True)
class AttributeKey:
    """What tells one attribute column from another.

    `kind` is None for an attribute that carries no value. `occurrence` numbers repetitions of one
    name within a node; `doc` is the attribute's doc string; `extra` holds the bytes of protobuf
    fields that this version does not know.
    """

    name: str
    kind: Kind | None
    occurrence: int = 0
    doc: str = ""
    extra: bytes = b""


class AttributeColumn:
    """The values of one attribute: `values[i]` belongs to node row `rows[i]`; rows ascend."""

    __slots__ = ("key", "rows", "values")

    def __init__(
        self, key: AttributeKey, rows: npt.NDArray[np.int64], values: Sequence[AttributeValue]
    ) -> None:
        self.key = key
        self.rows = np.asarray(rows, np.int64)
        dtype = array_type(key.kind)
        self.values: Any = list(values) if dtype is None else np.asarray(values, dtype)
        if len(self.values) != len(self.rows):
            raise ValueError(f"{key.name}: {len(self.rows)} rows but {len(self.values)} values")

    def __repr__(self) -> str:
        return f"<AttributeColumn {self.key.name} ({len(self.rows)} nodes)>"

    def at(self, row: int) -> AttributeValue:
        """The value at node `row`, as a Python object; KeyError where the node has none."""
        position = int(np.searchsorted(self.rows, row))
        if position == len(self.rows) or self.rows[position] != row:
            raise KeyError(row)
        value = self.values[position]
        return value.item() if isinstance(value, np.generic) else value

    def take(self, order: npt.NDArray[np.int64], new_row: npt.NDArray[np.int64]) -> AttributeColumn:
        """The column after nodes moved: old row r goes to `new_row[r]`, or away where negative.

        `order` lists the old rows in their new order; it is the inverse of `new_row`.
        """
        moved = new_row[self.rows]
        kept = np.flatnonzero(moved >= 0)
        kept = kept[np.argsort(moved[kept], kind="stable")]
        values = (
            self.values[kept]
            if isinstance(self.values, np.ndarray)
            else [self.values[i] for i in kept]
        )
        return AttributeColumn(self.key, moved[kept], values)

    def same(self, other: AttributeColumn) -> bool:
        """Whether key, rows and values agree, NaN being equal to NaN."""
        if self.key != other.key or not np.array_equal(self.rows, other.rows):
            return False
        if isinstance(self.values, np.ndarray):
            return self.values.tobytes() == other.values.tobytes()
        return all(same_value(a, b) for a, b in zip(self.values, other.values, strict=True))


def same_value(a: AttributeValue, b: AttributeValue) -> bool:
    """Equality of two attribute values in which NaN equals NaN."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same_value(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b) or (a != a and b != b)


class AttributeTable:
    """All attributes of the nodes of a trace: columns, layouts, and the layout of each node."""

    __slots__ = ("columns", "layout", "layouts")

    def __init__(
        self,
        count: int,
        columns: list[AttributeColumn] | None = None,
        layouts: list[tuple[int, ...]] | None = None,
        layout: npt.NDArray[np.int32] | None = None,
    ) -> None:
        self.columns: list[AttributeColumn] = columns or []
        self.layouts: list[tuple[int, ...]] = layouts or [()]
        self.layout = np.zeros(count, np.int32) if layout is None else layout

    def __len__(self) -> int:
        return len(self.layout)

    def __repr__(self) -> str:
        names = sorted({column.key.name for column in self.columns})
        return f"<AttributeTable {len(self)} nodes: {', '.join(names)}>"

    def add(
        self,
        name: str,
        kind: Kind,
        values: Sequence[AttributeValue] | npt.NDArray[Any],
        rows: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Append attribute `name` to the nodes of `rows` (ascending; all nodes by default)."""
        rows = np.arange(len(self), dtype=np.int64) if rows is None else np.asarray(rows, np.int64)
        if len(rows) == 0:
            return
        column = AttributeColumn(AttributeKey(name, kind), rows, values)
        number = len(self.columns)
        self.columns.append(column)
        known = {layout: i for i, layout in enumerate(self.layouts)}
        before = self.layout[rows]
        after = np.empty_like(before)
        for old in np.unique(before):
            longer = (*self.layouts[old], number)
            after[before == old] = known.setdefault(longer, len(known))
            if len(known) > len(self.layouts):
                self.layouts.append(longer)
        self.layout[rows] = after

    def named(self, name: str) -> list[AttributeColumn]:
        """The columns called `name`: one for each kind in which nodes carry it."""
        return [column for column in self.columns if column.key.name == name]

    def at(self, row: int) -> Iterator[tuple[AttributeKey, AttributeValue]]:
        """Key and value of each attribute of node `row`, in order."""
        for number in self.layouts[self.layout[row]]:
            column = self.columns[number]
            yield column.key, column.at(row)

    def get(self, row: int, name: str) -> AttributeValue:
        """The value of attribute `name` at node `row`, or None."""
        for number in self.layouts[self.layout[row]]:
            if self.columns[number].key.name == name:
                return self.columns[number].at(row)
        return None

    def dense(self, name: str, default: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Attribute `name` of every node as one array of `dtype`; `default` where it is absent."""
        result = np.full(len(self), default, dtype)
        for column in self.named(name):
            values: Any = column.values
            if result.dtype == object and isinstance(values, list):
                values = np.fromiter(values, object, len(values))
            result[column.rows] = values
        return result

    def present(self, name: str) -> npt.NDArray[np.bool_]:
        """Which nodes carry attribute `name`."""
        result = np.zeros(len(self), np.bool_)
        for column in self.named(name):
            result[column.rows] = True
        return result

    def take(self, order: npt.NDArray[np.int64]) -> AttributeTable:
        """The table of the nodes `order` (old rows in their new order)."""
        new_row = np.full(len(self), -1, np.int64)
        new_row[order] = np.arange(len(order))
        columns = [column.take(order, new_row) for column in self.columns]
        return AttributeTable(len(order), columns, list(self.layouts), self.layout[order])

    def same(self, other: AttributeTable) -> bool:
        """Whether both hold the same attributes, kinds and values in the same order per node."""
        if len(self) != len(other):
            return False
        mine, theirs = self._by_content(), other._by_content()
        if mine.keys() != theirs.keys():
            return False
        return (
            all(mine[key].same(theirs[key]) for key in mine) and self._orders() == other._orders()
        )

    def _by_content(self) -> dict[AttributeKey, AttributeColumn]:
        return {column.key: column for column in self.columns if len(column.rows)}

    def _orders(self) -> list[tuple[AttributeKey, ...]]:
        keys = [tuple(self.columns[i].key for i in layout) for layout in self.layouts]
        return [keys[i] for i in self.layout]
