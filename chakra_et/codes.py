"""Small numbers in place of large ones, and orders: of rows of columns, the first counts most."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from chakra_et.columns import EVER, NEVER

_LIMIT = 1 << 63


def order_of(*columns: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The places of rows in ascending order; equal rows stay in theirs."""
    key = _packed(columns)
    # A stable sort makes use of order that is there already; one by one, columns would disturb it.
    return np.lexsort(columns[::-1]) if key is None else np.argsort(key, kind="stable")


def codes(*columns: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """A number for each row of one or more columns: the rank of that row among distinct rows."""
    key = _packed(columns)
    columns = columns if key is None else (key,)
    order = order_of(*columns)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(begins(*(column[order] for column in columns))) - 1
    return ranks


def row_keys(*columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """A number for each row of some columns: numbers compare as the rows do, column by column.

    They have gaps, other than `codes`, and cost no sorting where the columns, less their least
    values, fit into 63 bits together. `EVER` and `NEVER` may stand in any of them.
    """
    key = _packed(columns)
    return codes(*columns) if key is None else key


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


def _packed(columns: tuple[npt.NDArray[Any], ...]) -> npt.NDArray[np.int64] | None:
    """Numbers that compare as the rows of columns do; None if 63 bits are not enough for them."""
    if any(column.dtype.kind not in "iub" for column in columns):
        return None
    limits = [_limits(column) for column in columns]
    widths = [high - low + 3 for low, high in limits]
    if prod(widths) >= _LIMIT or any(high > NEVER for _, high in limits):
        return None
    result = np.zeros(len(columns[0]), np.int64)
    for column, (low, high), width in zip(columns, limits, widths, strict=True):
        part = column.astype(np.int64, copy=False)
        # What is before or after all others stands right beside them.
        part = np.clip(part, max(low - 1, EVER), min(high + 1, NEVER))
        part -= low - 1
        result *= width
        result += part
    return result


def _limits(values: npt.NDArray[Any]) -> tuple[int, int]:
    """The least and the greatest value that is not `EVER` or `NEVER`; both 0 if there is none."""
    if len(values) == 0:
        return 0, 0
    low, high = int(values.min()), int(values.max())
    if low == EVER or high == NEVER:
        told = values[(values != EVER) & (values != NEVER)]
        return _limits(told)
    return low, high
