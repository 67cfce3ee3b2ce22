"""Tables as those of Arrow, pandas and Polars, each imported only here."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from chakra_et.extras import library
from chakra_et.shown import encodable
from chakra_et.tables.table import Column, Table


def to_arrow(table: Table) -> Any:
    """As a `pyarrow.Table`; unknown values are null."""
    pa = library("pyarrow", "tables", "an Arrow table")
    arrays = [_array(pa, column) for column in table.columns.values()]
    return pa.table(arrays, names=list(table.columns))


def to_pandas(table: Table) -> Any:
    """As a `pandas.DataFrame`; integers of which some are unknown are of type Int64."""
    pandas = library("pandas", "tables", "a DataFrame")
    frame = {}
    for name, column in table.columns.items():
        if isinstance(column, np.ma.MaskedArray) and column.dtype.kind in "iub":
            kind = "boolean" if column.dtype.kind == "b" else column.dtype.name.capitalize()
            values = pandas.array(column.tolist(), dtype=kind.replace("Uint", "UInt"))
        elif column.dtype == object:
            values = pandas.Series(_objects(column))
        else:
            values = np.ma.filled(column, np.nan) if np.ma.isMaskedArray(column) else column
        frame[name] = values
    return pandas.DataFrame(frame)


def to_polars(table: Table) -> Any:
    """As a `polars.DataFrame`; unknown values are null."""
    polars = library("polars", "tables", "a Polars frame")
    return polars.from_arrow(to_arrow(table))


def _array(pa: Any, column: Column) -> Any:
    """A column of Arrow's; of values of several types, their texts."""
    if column.dtype != object:
        mask = np.ma.getmaskarray(column)
        if column.dtype.kind == "f":
            mask = mask | np.isnan(np.ma.getdata(column))
        return pa.array(np.ma.getdata(column), mask=mask)
    items = _objects(column)
    kinds = {type(item) for item in items} - {type(None)}
    if len(kinds) > 1:
        items = [None if item is None else _text(item) for item in items]
    return pa.array(items, type=None if kinds else pa.string())


def _objects(column: Column) -> list[Any]:
    """Texts that UTF-8 can hold, and lists."""
    return [encodable(list(v) if isinstance(v, tuple) else v) for v in column.tolist()]


def _text(item: Any) -> str:
    if isinstance(item, str):
        return item
    return item.hex() if isinstance(item, bytes) else msgspec.json.encode(item).decode()
