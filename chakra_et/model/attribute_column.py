"""One attribute of the nodes that have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.model.attribute_values import (
    AttributeKey,
    AttributeValue,
    check_values,
    same_value,
    stored,
)
from chakra_et.model.packed_values import CodedTexts, PackedValues
from chakra_et.model.row_sets import RowSet, packed_rows, rows_within
from chakra_et.narrow import Numbers, packed


class AttributeColumn:
    """The values of one attribute: `values[i]` belongs to node row `rows[i]`; rows ascend.

    Many rows and values are held in less room than these arrays and lists take: `within` looks at
    some of them.
    """

    __slots__ = ("_rows", "_values", "key")

    def __init__(
        self,
        key: AttributeKey,
        rows: Rows,
        values: Sequence[AttributeValue] | npt.NDArray[Any] | PackedValues,
    ) -> None:
        held: Any = values if callable(values) else stored(key, values)
        if len(held) != len(rows):
            raise ValueError(f"{key.name}: {len(rows)} rows but {len(held)} values")
        check_values(key, held.distinct if isinstance(held, CodedTexts) else held)
        self.key = key
        self._rows = packed_rows(np.asarray(rows, np.int64))
        self._values = packed(held)

    def __repr__(self) -> str:
        return f"<AttributeColumn {self.key.name} ({len(self)} nodes)>"

    def __len__(self) -> int:
        return len(self._rows)

    def __reduce__(self) -> tuple[Any, ...]:
        # What is deferred is made here: another process lacks what it is made of.
        return AttributeColumn.trusted, (self.key, self.rows, self.values)

    @property
    def rows(self) -> Rows:
        """The nodes that have the attribute."""
        return self._rows.all() if isinstance(self._rows, RowSet) else self._rows

    @property
    def values(self) -> Any:
        """An array, or a list where no array holds such values."""
        # Looked up once: another thread may have made them by the next time.
        values = self._values
        if isinstance(values, Numbers):
            return values()
        if callable(values):
            self._values = values = values()
        return values

    @values.setter
    def values(self, values: Any) -> None:
        self._values = packed(values)

    @property
    def coded(self) -> CodedTexts | None:
        """The values as codes, where they are kept so."""
        return self._values if isinstance(self._values, CodedTexts) else None

    def at(self, row: int) -> AttributeValue:
        """The value at node `row`, as a Python object; KeyError where the node has none."""
        place, found = rows_within(self._rows, row, row + 1)
        if len(found) == 0:
            raise KeyError(row)
        values = self._values if hasattr(self._values, "__getitem__") else self.values
        return _plain(values[place])

    def take(self, order: Rows, new_row: Rows) -> AttributeColumn:
        """The column after nodes moved: old row r goes to `new_row[r]`, or away where negative.

        `order` lists the old rows in their new order; it is the inverse of `new_row`.
        """
        moved = new_row[self.rows]
        kept = np.flatnonzero(moved >= 0)
        kept = kept[np.argsort(moved[kept], kind="stable")]
        return self._like(moved[kept], kept)

    def repeated(self, order: Rows, count: int) -> AttributeColumn:
        """The column of the nodes `order`, old rows in their new order, some more than once.

        Old rows are below `count`.
        """
        of_row = np.full(count, -1, np.int64)
        of_row[self.rows] = np.arange(len(self))
        place = of_row[order]
        found = np.flatnonzero(place >= 0)
        return self._like(found, place[found])

    def part(self, places: Rows, key: AttributeKey | None = None) -> AttributeColumn:
        """The column of the rows and values at `places`, under another key if one is given."""
        return self._like(self.rows[places], places, key)

    def within(self, first: int, end: int) -> AttributeColumn:
        """The column of the nodes from row `first` up to `end`, of which the latter is left out."""
        low, rows = rows_within(self._rows, first, end)
        return self.trusted(self.key, rows, self._values_at(slice(low, low + len(rows))))

    @classmethod
    def trusted(cls, key: AttributeKey, rows: Rows | RowSet, values: Any) -> AttributeColumn:
        """A column of values that are known to fit, stored as columns of its kind are."""
        column = cls.__new__(cls)
        column.key, column._rows, column._values = key, rows, values
        return column

    @classmethod
    def deferred(
        cls, key: AttributeKey, rows: Rows, make: Callable[[], Any] | PackedValues
    ) -> AttributeColumn:
        """As `trusted`; the values are made when somebody looks at them."""
        return cls.trusted(key, packed_rows(rows), make)

    def merged(self, other: AttributeColumn) -> AttributeColumn:
        """The column of the rows and values of both, which have no row in common."""
        rows = np.concatenate([self.rows, other.rows])
        order = np.argsort(rows, kind="stable")
        if isinstance(self.values, np.ndarray):
            values: Any = np.concatenate([self.values, other.values])[order]
        else:
            both = [*self.values, *other.values]
            values = [both[place] for place in order.tolist()]
        return AttributeColumn(self.key, rows[order], values)

    def _like(self, rows: Rows, places: Rows, key: AttributeKey | None = None) -> AttributeColumn:
        """The values at `places` for other rows; packed if this column is."""
        held = packed_rows(rows) if isinstance(self._rows, RowSet) else rows
        return self.trusted(key or self.key, held, self._values_at(places))

    def _values_at(self, places: Rows | slice) -> Any:
        if hasattr(self._values, "at"):
            return self._values.at(places)
        values = self.values
        if isinstance(values, np.ndarray) or isinstance(places, slice):
            return values[places]
        return [values[i] for i in places.tolist()]

    def same(self, other: AttributeColumn) -> bool:
        """Whether key, rows and values agree, NaN being equal to NaN."""
        if self.key != other.key or not np.array_equal(self.rows, other.rows):
            return False
        mine, theirs = self.values, other.values
        if isinstance(mine, np.ndarray):
            unsigned = f"u{mine.dtype.itemsize}"
            equal = mine.view(unsigned) == theirs.view(unsigned)
            # Nothing but NaN is unequal to itself.
            both_nan = (mine != mine) & (theirs != theirs)
            return bool((equal | both_nan).all())
        return all(same_value(a, b) for a, b in zip(mine, theirs, strict=True))


def _plain(value: Any) -> Any:
    """The Python object for a value of an array."""
    return value.item() if isinstance(value, np.generic) else value
