"""SQL over the columns of traces, by DuckDB."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from chakra_et.errors import ChakraError
from chakra_et.extras import library
from chakra_et.model import Trace
from chakra_et.tables.arrow import to_arrow
from chakra_et.tables.frames import FRAMES, frame
from chakra_et.tables.table import Column, Table, known, texts


def query(traces: Mapping[int, Trace], sql: str) -> Table:
    """The rows that a query gives. Tables are those of `FRAMES`: nodes, edges and so on.

    Files cannot be read or written by it. Raises ChakraError for SQL that DuckDB refuses, or that
    gives no rows to show.
    """
    duckdb = library("duckdb", "query", "chakra query")
    with duckdb.connect(":memory:", config={"enable_external_access": "false"}) as database:
        for name in FRAMES:
            # Only what is asked for is made.
            if re.search(rf"\b{name}\b", sql, re.IGNORECASE):
                database.register(name, to_arrow(frame(traces, name)))
        try:
            found = database.sql(sql)
            if found is None:
                raise ChakraError("the SQL gives no rows", remedy="Write a SELECT.")
            return _table(found.to_arrow_table())
        except duckdb.Error as error:
            tables = ", ".join(FRAMES)
            raise ChakraError(
                f"the SQL cannot be run: {str(error).strip()}",
                remedy=f"Tables are {tables}; DESCRIBE nodes lists the columns of one.",
            ) from error


def _table(found: Any) -> Table:
    names = _distinct([str(name) for name in found.column_names])
    return Table("rows", {name: _column(found.column(i)) for i, name in enumerate(names)})


def _distinct(names: list[str]) -> list[str]:
    """Names of columns, each of its own: a join may give two of one name."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return result


def _column(chunks: Any) -> Column:
    """A column of Arrow's as one of ours; sums of integers stay integers."""
    items = [_plain(item) for item in chunks.to_pylist()]
    kinds = {type(item) for item in items} - {type(None)}
    there = np.array([item is not None for item in items], np.bool_)
    if kinds == {int} and all(-(1 << 63) <= item < 1 << 63 for item in items if item is not None):
        return known(np.array([item or 0 for item in items], np.int64), there)
    if kinds and kinds <= {int, float}:
        return np.array([np.nan if item is None else item for item in items], np.float64)
    return texts(items)


def _plain(item: Any) -> Any:
    if isinstance(item, Decimal):
        return int(item) if item == item.to_integral_value() else float(item)
    if isinstance(item, (bool, int, float, str, list, type(None))):
        return item
    return item.hex() if isinstance(item, bytes) else str(item)
