"""Attributes of nodes, stored by column.

A node's attributes are a sequence of named, typed values. Most nodes of a trace have one of a few
such sequences, so the table keeps each distinct sequence once, as a *layout* (a tuple of column
numbers), and the values of each column in one array with the rows that have it. The order of a
node's attributes, their kinds and whatever a reader did not know survive a round trip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from chakra_et.codes import among
from chakra_et.definitions import Kind
from chakra_et.model.attribute_column import AttributeColumn
from chakra_et.model.attribute_values import AttributeKey, AttributeValue
from chakra_et.model.packed_values import PackedValues


def _fits(values: Any, dtype: np.dtype[Any]) -> bool:
    """Whether an array of `dtype` can hold such values; fractions are no integers."""
    if dtype.kind == "O":
        return True
    return isinstance(values, np.ndarray) and (values.dtype.kind != "f" or dtype.kind == "f")


def _repeats(key: AttributeKey, first: AttributeKey) -> bool:
    """Whether a key is that of a first attribute, or of one that repeats it in a node."""
    return key.name == first.name and replace(key, occurrence=0) == first


def _and(number: int, layout: tuple[int, ...]) -> tuple[int, ...]:
    return (*layout, number)


def _without(number: int, layout: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i for i in layout if i != number)


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
        values: Sequence[AttributeValue] | npt.NDArray[Any] | PackedValues,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Append attribute `name` to the nodes of `rows` (ascending; all nodes by default).

        A node that has an attribute of that name and kind gets a second one.
        """
        rows = np.arange(len(self), dtype=np.int64) if rows is None else np.asarray(rows, np.int64)
        self.add_column(AttributeColumn(AttributeKey(name, kind), rows, values))

    def add_column(self, column: AttributeColumn) -> None:
        """The same for a column that is there already."""
        rows = column.rows
        same = {n for n, other in enumerate(self.columns) if _repeats(other.key, column.key)}
        if not same:
            self._append(column)
            return
        repeated = np.array([len(same.intersection(layout)) for layout in self.layouts])
        occurrences = repeated[self.layout[rows]]
        for occurrence in np.flatnonzero(np.bincount(occurrences)).tolist():
            chosen = np.flatnonzero(occurrences == occurrence)
            key = replace(column.key, occurrence=occurrence)
            whole = len(chosen) == len(rows) and not occurrence
            part = column if whole else column.part(chosen, key)
            number = self._join(part)
            self._relayout(part.rows, partial(_and, number))

    def _append(self, column: AttributeColumn) -> None:
        """Add a column of an attribute that no node has yet; one of no nodes is left out."""
        if len(column):
            self.columns.append(column)
            self._relayout(column.rows, partial(_and, len(self.columns) - 1))

    def remove(self, column: AttributeColumn, rows: npt.NDArray[np.int64]) -> None:
        """Take the attribute of `column`, one of this table's, from the nodes of `rows`."""
        number = next(i for i, other in enumerate(self.columns) if other is column)
        self._relayout(rows, partial(_without, number))
        kept = np.flatnonzero(~among(column.rows, rows))
        self.columns[number] = column.part(kept)
        if len(kept) == 0:
            del self.columns[number]
            self.layouts = [
                tuple(i - (i > number) for i in layout if i != number) for layout in self.layouts
            ]

    def _join(self, part: AttributeColumn) -> int:
        """The number of the column with the key of `part`, of which `part` is now a part."""
        for number, column in enumerate(self.columns):
            if column.key == part.key:
                self.columns[number] = column.merged(part)
                return number
        self.columns.append(part)
        return len(self.columns) - 1

    def _relayout(
        self,
        rows: npt.NDArray[np.int64],
        change: Callable[[tuple[int, ...]], tuple[int, ...]],
    ) -> None:
        """Give the nodes of `rows` the layouts that `change` makes from theirs."""
        known = {layout: i for i, layout in enumerate(self.layouts)}
        before = self.layout.take(rows).astype(np.intp)
        after = np.arange(len(self.layouts), dtype=np.int32)
        for code in np.flatnonzero(np.bincount(before)).tolist():
            layout = change(self.layouts[code])
            if layout not in known:
                known[layout] = len(self.layouts)
                self.layouts.append(layout)
            after[code] = known[layout]
        self.layout[rows] = after.take(before)

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
        """Attribute `name` of every node as one array of `dtype`; `default` where it is absent.

        Values of a kind that `dtype` does not hold, as texts for numbers, count as absent.
        """
        result = np.full(len(self), default, dtype)
        for column in self.named(name):
            values: Any = column.values
            if not _fits(values, result.dtype):
                continue
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
        """The table of the nodes `order` (old rows in their new order, some more than once)."""
        new_row = np.full(len(self), -1, np.int64)
        new_row[order] = np.arange(len(order))
        once = np.count_nonzero(new_row >= 0) == len(order)
        columns = [
            column.take(order, new_row) if once else column.repeated(order, len(self))
            for column in self.columns
        ]
        return AttributeTable(len(order), columns, list(self.layouts), self.layout[order])

    def joined(self, other: AttributeTable) -> AttributeTable:
        """The table of the nodes of both, those of `other` behind these."""
        table = AttributeTable(len(self) + len(other), list(self.columns), list(self.layouts))
        numbers = []
        for column in other.columns:
            moved = AttributeColumn(column.key, column.rows + len(self), column.values)
            numbers.append(table._join(moved))
        known = {layout: code for code, layout in enumerate(table.layouts)}
        codes = []
        for layout in other.layouts:
            codes.append(known.setdefault(tuple(numbers[i] for i in layout), len(known)))
        table.layouts = list(known)
        table.layout[:] = np.concatenate([self.layout, np.array(codes, np.int32)[other.layout]])
        return table

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
        return {column.key: column for column in self.columns if len(column)}

    def _orders(self) -> list[tuple[AttributeKey, ...]]:
        keys = [tuple(self.columns[i].key for i in layout) for layout in self.layouts]
        return [keys[i] for i in self.layout]
