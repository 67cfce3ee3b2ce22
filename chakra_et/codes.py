"""Small numbers in place of large ones, and orders: of rows of columns, the first counts most."""

from __future__ import annotations

from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from chakra_et.columns import EVER, NEVER

_LIMIT = 1 << 63


def order_of(*columns: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The places of rows in ascending order; equal rows stay in theirs."""
    keys = _packed(columns)
    # A stable sort makes use of order that is there already; one by one, columns would disturb it.
    return np.lexsort(columns[::-1]) if keys is None else np.argsort(keys[0], kind="stable")


def codes(*columns: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """A number for each row of one or more columns: the rank of that row among distinct rows."""
    columns = tuple(_packed(columns) or columns)
    order = order_of(*columns)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(begins(*(column[order] for column in columns))) - 1
    return ranks


def row_keys(*columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """A number for each row of some columns: numbers compare as the rows do, column by column.

    They have gaps, other than `codes`, and cost no sorting where the columns, less their least
    values, fit into 63 bits together. `EVER` and `NEVER` may stand in any of them.
    """
    keys = _packed(columns)
    return codes(*columns) if keys is None else keys[0]


def search_rows(
    ordered: tuple[npt.NDArray[np.int64], ...],
    wanted: tuple[npt.NDArray[np.int64], ...],
    side: Literal["left", "right"] = "right",
) -> npt.NDArray[np.int64]:
    """How many rows of ordered columns come before each wanted row; on the right, equal ones do."""
    keys = _packed(ordered, wanted)
    if keys is None:
        both = codes(*(np.append(*columns) for columns in zip(ordered, wanted, strict=True)))
        keys = np.split(both, [len(ordered[0])])
    return np.searchsorted(keys[0], keys[1], side)


def begins(*columns: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Where a row of some columns differs from the one before; the first one does."""
    new = np.ones(len(columns[0]), np.bool_)
    np.not_equal(columns[0][1:], columns[0][:-1], out=new[1:])
    for column in columns[1:]:
        new[1:] |= column[1:] != column[:-1]
    return new


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The distinct values, ascending: as `np.unique`, which since NumPy 2.3 hashes them first."""
    ordered = np.sort(values)
    return ordered[begins(ordered)]


def _packed(*tables: tuple[npt.NDArray[Any], ...]) -> list[npt.NDArray[np.int64]] | None:
    """Numbers that compare as the rows of some tables do, those of each table; None if 63 bits are
    not enough for them.
    """
    if any(column.dtype.kind not in "iub" for table in tables for column in table):
        return None
    limits = [_limits(columns) for columns in zip(*tables, strict=True)]
    widths = [high - low + 3 for low, high in limits]
    if prod(widths) >= _LIMIT or any(high > NEVER for _, high in limits):
        return None
    keys = [np.zeros(len(table[0]), np.int64) for table in tables]
    for key, table in zip(keys, tables, strict=True):
        for column, (low, high), width in zip(table, limits, widths, strict=True):
            part = column.astype(np.int64, copy=False)
            # What is before or after all others stands right beside them.
            part = np.clip(part, max(low - 1, EVER), min(high + 1, NEVER))
            part -= low - 1
            key *= width
            key += part
    return keys


def _limits(columns: tuple[npt.NDArray[Any], ...]) -> tuple[int, int]:
    """The least and the greatest value that is not `EVER` or `NEVER`; both 0 if there is none."""
    lows, highs = [], []
    for values in filter(len, columns):
        low, high = int(values.min()), int(values.max())
        if low == EVER or high == NEVER:
            told = values[(values != EVER) & (values != NEVER)]
            low, high = int(told.min(initial=NEVER)), int(told.max(initial=EVER))
        if low <= high:
            lows.append(low)
            highs.append(high)
    return min(lows, default=0), max(highs, default=0)
