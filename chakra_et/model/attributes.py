"""Attributes of nodes, stored by column.

A node's attributes are a sequence of named, typed values. Most nodes of a trace have one of a few
such sequences, so the table keeps each distinct sequence once, as a *layout* (a tuple of column
numbers), and the values of each column in one array with the rows that have it. The order of a
node's attributes, their kinds and whatever a reader did not know survive a round trip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.codes import among
from chakra_et.definitions import Kind

AttributeValue = Any
"""int, float, bool, str, bytes, a tuple of one of these, or None for an attribute without value."""

INTEGER_KINDS: Final = frozenset(kind for kind in Kind if kind.name.endswith(("32", "64")))
_UNSIGNED: Final = frozenset(k for k in INTEGER_KINDS if k.name.startswith(("UINT", "FIXED")))


def _range(kind: Kind) -> tuple[int, int]:
    bits = 32 if kind.name.endswith("32") else 64
    return (0, 2**bits - 1) if kind in _UNSIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


INTEGER_RANGES: Final = {kind: _range(kind) for kind in INTEGER_KINDS}
"""Least and greatest value of each kind of integer."""

_TYPES: Final[dict[Kind, tuple[type, ...]]] = {
    **dict.fromkeys(INTEGER_KINDS, (int, np.integer)),
    Kind.DOUBLE: (float, int, np.floating),
    Kind.FLOAT: (float, int, np.floating),
    Kind.BOOL: (bool, int, np.bool_),
    Kind.STRING: (str,),
    Kind.BYTES: (bytes,),
}


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

    `kind` is None for an attribute that carries no value. `occurrence` numbers repetitions of what
    is otherwise the same key within a node; `doc` is the attribute's doc string; `extra` holds the
    bytes of protobuf fields that this version does not know.
    """

    name: str
    kind: Kind | None
    occurrence: int = 0
    doc: str = ""
    extra: bytes = b""


class CodedTexts:
    """Texts of which few are distinct: codes into these, until somebody looks at the texts."""

    __slots__ = ("codes", "distinct")

    def __init__(self, codes: npt.NDArray[np.integer[Any]], distinct: list[str]) -> None:
        self.codes = np.asarray(codes, np.int32)
        self.distinct = distinct

    def __len__(self) -> int:
        return len(self.codes)

    def __call__(self) -> list[str]:
        """The texts."""
        return list(map(self.distinct.__getitem__, self.codes.tolist()))


class AttributeColumn:
    """The values of one attribute: `values[i]` belongs to node row `rows[i]`; rows ascend."""

    __slots__ = ("_values", "key", "rows")

    def __init__(
        self,
        key: AttributeKey,
        rows: npt.NDArray[np.int64],
        values: Sequence[AttributeValue] | npt.NDArray[Any] | CodedTexts,
    ) -> None:
        self.key = key
        self.rows = np.asarray(rows, np.int64)
        is_coded = isinstance(values, CodedTexts)
        stored: Any = values if is_coded else _stored(key, values)
        if len(stored) != len(self.rows):
            raise ValueError(f"{key.name}: {len(self.rows)} rows but {len(stored)} values")
        check_values(key, stored.distinct if is_coded else stored)
        self._values: Any = stored

    def __repr__(self) -> str:
        return f"<AttributeColumn {self.key.name} ({len(self.rows)} nodes)>"

    def __reduce__(self) -> tuple[Any, ...]:
        # What is deferred is made here: another process lacks what it is made of.
        return AttributeColumn.trusted, (self.key, self.rows, self.values)

    @property
    def values(self) -> Any:
        """An array, or a list where no array holds such values."""
        # Looked up once: another thread may have made them by the next time.
        values = self._values
        if callable(values):
            self._values = values = values()
        return values

    @values.setter
    def values(self, values: Any) -> None:
        self._values = values

    @property
    def coded(self) -> CodedTexts | None:
        """The values as codes, where they are kept so."""
        return self._values if isinstance(self._values, CodedTexts) else None

    def at(self, row: int) -> AttributeValue:
        """The value at node `row`, as a Python object; KeyError where the node has none."""
        position = int(np.searchsorted(self.rows, row))
        if position == len(self.rows) or self.rows[position] != row:
            raise KeyError(row)
        return _plain(self.values[position])

    def take(self, order: npt.NDArray[np.int64], new_row: npt.NDArray[np.int64]) -> AttributeColumn:
        """The column after nodes moved: old row r goes to `new_row[r]`, or away where negative.

        `order` lists the old rows in their new order; it is the inverse of `new_row`.
        """
        moved = new_row[self.rows]
        kept = np.flatnonzero(moved >= 0)
        kept = kept[np.argsort(moved[kept], kind="stable")]
        return self.trusted(self.key, moved[kept], self._values_at(kept))

    def repeated(self, order: npt.NDArray[np.int64], count: int) -> AttributeColumn:
        """The column of the nodes `order`, old rows in their new order, some more than once.

        Old rows are below `count`.
        """
        of_row = np.full(count, -1, np.int64)
        of_row[self.rows] = np.arange(len(self.rows))
        place = of_row[order]
        found = np.flatnonzero(place >= 0)
        return self.trusted(self.key, found, self._values_at(place[found]))

    def part(
        self, places: npt.NDArray[np.int64], key: AttributeKey | None = None
    ) -> AttributeColumn:
        """The column of the rows and values at `places`, under another key if one is given."""
        return self.trusted(key or self.key, self.rows[places], self._values_at(places))

    def between(self, low: int, high: int) -> AttributeColumn:
        """The column of the values at places `low` to `high`, of which the latter is left out."""
        return self.trusted(self.key, self.rows[low:high], self.values[low:high])

    @classmethod
    def trusted(
        cls, key: AttributeKey, rows: npt.NDArray[np.int64], values: Any
    ) -> AttributeColumn:
        """A column of values that are known to fit, stored as columns of its kind are."""
        column = cls.__new__(cls)
        column.key, column.rows, column._values = key, rows, values
        return column

    @classmethod
    def deferred(
        cls, key: AttributeKey, rows: npt.NDArray[np.int64], make: Callable[[], Any]
    ) -> AttributeColumn:
        """As `trusted`; the values are made when somebody looks at them."""
        return cls.trusted(key, rows, make)

    def merged(self, other: AttributeColumn) -> AttributeColumn:
        """The column of the rows and values of both, which have no row in common."""
        rows = np.concatenate([self.rows, other.rows])
        if isinstance(self.values, np.ndarray):
            values: Any = np.concatenate([self.values, other.values])
        else:
            values = [*self.values, *other.values]
        return AttributeColumn(self.key, rows, values).part(np.argsort(rows, kind="stable"))

    def _values_at(self, places: npt.NDArray[np.int64]) -> Any:
        values = self.values
        if isinstance(values, np.ndarray):
            return values[places]
        return [values[i] for i in places.tolist()]

    def same(self, other: AttributeColumn) -> bool:
        """Whether key, rows and values agree, NaN being equal to NaN."""
        if self.key != other.key or not np.array_equal(self.rows, other.rows):
            return False
        if isinstance(self.values, np.ndarray):
            unsigned = f"u{self.values.dtype.itemsize}"
            equal = self.values.view(unsigned) == other.values.view(unsigned)
            # Nothing but NaN is unequal to itself.
            both_nan = (self.values != self.values) & (other.values != other.values)
            return bool((equal | both_nan).all())
        return all(same_value(a, b) for a, b in zip(self.values, other.values, strict=True))


def _stored(key: AttributeKey, values: Any) -> Any:
    """The values as an array, or as a list where no array holds such values."""
    dtype = array_type(key.kind)
    if dtype is None:
        return list(values)
    try:
        array = np.asarray(values, dtype)
    except OverflowError as error:
        raise ValueError(f"attribute {key.name!r}: {error}") from None
    if key.kind in INTEGER_RANGES and isinstance(values, np.ndarray):
        changed = np.flatnonzero(array != values)
        if len(changed):
            raise ValueError(f"attribute {key.name!r}: {values[changed[0]]} is no {key.kind.name}")
    return array


def check_values(key: AttributeKey, values: Any) -> None:
    """Raise ValueError where `values` of the attribute `key` do not fit its kind."""
    kind = key.kind
    if kind is None or len(values) == 0:
        return
    scalar = kind if kind in _TYPES else Kind(kind - 1)
    if isinstance(values, np.ndarray):
        # Any array of the right type is right, but for the 32 bits that some kinds have.
        items = [values.min().item(), values.max().item()] if kind in INTEGER_RANGES else []
    else:
        items = values if scalar is kind else [item for value in values for item in value]
    if not all(issubclass(found, _TYPES[scalar]) for found in set(map(type, items))):
        raise ValueError(f"attribute {key.name!r}: not every value is a {scalar.name.lower()}")
    if scalar in INTEGER_RANGES and len(items):
        low, high = INTEGER_RANGES[scalar]
        if min(items) < low or max(items) > high:
            raise ValueError(f"attribute {key.name!r}: a value outside {scalar.name.lower()}")


def _fits(values: Any, dtype: np.dtype[Any]) -> bool:
    """Whether an array of `dtype` can hold such values; fractions are no integers."""
    if dtype.kind == "O":
        return True
    return isinstance(values, np.ndarray) and (values.dtype.kind != "f" or dtype.kind == "f")


def _plain(value: Any) -> Any:
    """The Python object for a value of an array."""
    return value.item() if isinstance(value, np.generic) else value


def _repeats(key: AttributeKey, first: AttributeKey) -> bool:
    """Whether a key is that of a first attribute, or of one that repeats it in a node."""
    return key.name == first.name and replace(key, occurrence=0) == first


def _and(number: int, layout: tuple[int, ...]) -> tuple[int, ...]:
    return (*layout, number)


def _without(number: int, layout: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i for i in layout if i != number)


def same_value(a: AttributeValue, b: AttributeValue) -> bool:
    """Equality of two attribute values in which NaN equals NaN, and 0.0 is not -0.0."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same_value(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return a != a if b != b else a == b and math.copysign(1, a) == math.copysign(1, b)
    return bool(a == b)


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
        values: Sequence[AttributeValue] | npt.NDArray[Any] | CodedTexts,
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
        if len(column.rows):
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
        before = self.layout[rows]
        after = np.arange(len(self.layouts), dtype=np.int32)
        for code in np.flatnonzero(np.bincount(before)).tolist():
            layout = change(self.layouts[code])
            if layout not in known:
                known[layout] = len(self.layouts)
                self.layouts.append(layout)
            after[code] = known[layout]
        self.layout[rows] = after[before]

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
        return {column.key: column for column in self.columns if len(column.rows)}

    def _orders(self) -> list[tuple[AttributeKey, ...]]:
        keys = [tuple(self.columns[i].key for i in layout) for layout in self.layouts]
        return [keys[i] for i in self.layout]
