"""A table: named columns of one length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Column: TypeAlias = npt.NDArray[Any]
"""int64, float64, bool or object (texts and lists); what is not known is masked, NaN or None."""


@dataclass(frozen=True)
class Table:
    """Columns by name, in order; row r of every column belongs together.

    Names end in their unit: `_ns`, `_bytes`, `_share` (of 1), `_bytes_per_s`, `_flops`. `name` says
    what the rows are, `note` what a reader should know of them.
    """

    name: str
    columns: Mapping[str, Column]
    note: str = ""

    def __post_init__(self) -> None:
        lengths = {len(column) for column in self.columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of {self.name!r} differ in length: {sorted(lengths)}")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, column: str) -> Column:
        return self.columns[column]

    def __repr__(self) -> str:
        return f"<Table {self.name}: {len(self)} rows of {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        from chakra_et.tables.html import table_html

        return table_html(self)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Rows of plain Python values; None where a value is not known."""
        return zip(*map(values, self.columns.values()), strict=True)

    def as_dicts(self) -> list[dict[str, Any]]:
        """Rows by name of column, as JSON has them."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows()]

    def take(self, places: Any) -> Table:
        """The rows at some places, in that order; a slice or a mask is taken, too."""
        columns = {name: column[places] for name, column in self.columns.items()}
        return replace(self, columns=columns)

    def by(self, column: str) -> Table:
        """The same rows, the largest of a column first; ties stay in order."""
        return self.take(np.argsort(-np.nan_to_num(self.columns[column]), kind="stable"))

    def to_arrow(self) -> Any:
        """As a `pyarrow.Table`; needs pyarrow."""
        from chakra_et.tables.arrow import to_arrow

        return to_arrow(self)

    def to_pandas(self) -> Any:
        """As a `pandas.DataFrame`; needs pandas and pyarrow."""
        from chakra_et.tables.arrow import to_pandas

        return to_pandas(self)

    def to_polars(self) -> Any:
        """As a `polars.DataFrame`; needs polars and pyarrow."""
        from chakra_et.tables.arrow import to_polars

        return to_polars(self)


def values(column: Column) -> list[Any]:
    """A column as plain Python values; None where a value is not known."""
    if column.dtype.kind == "f":
        return [None if value != value else value for value in column.tolist()]
    plain: list[Any] = column.tolist()
    return plain


def texts(items: Sequence[Any]) -> Column:
    """A column of Python objects."""
    return np.fromiter(items, object, len(items))


def known(column: Column, where: npt.NDArray[np.bool_]) -> Column:
    """A column of which only some values are known."""
    return column if where.all() else np.ma.MaskedArray(column, ~where)


def stacked(tables: Sequence[Table]) -> Table:
    """The rows of tables with the same columns, one after the other."""
    first = tables[0]
    columns = {name: _joined([table[name] for table in tables]) for name in first.columns}
    return replace(first, columns=columns)


def _joined(columns: Sequence[Column]) -> Column:
    if not any(isinstance(column, np.ma.MaskedArray) for column in columns):
        return np.concatenate(columns)
    joined: Column = np.ma.concatenate(columns)  # type: ignore[no-untyped-call]
    return joined
