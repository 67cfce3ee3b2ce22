"""Small numbers in place of large ones: what is equal has the same number, order is kept."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from chakra_et.columns import EVER, NEVER

_LIMIT = 1 << 63


def codes(*columns: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """A number for each row of one or more columns: the rank of that row among distinct rows."""
    result = _ranks(columns[0])
    for column in columns[1:]:
        ranks = _ranks(column)
        result = _ranks(result * (int(ranks.max(initial=-1)) + 1) + ranks)
    return result


def row_keys(*columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """A number for each row of some columns: numbers compare as the rows do, column by column.

    They have gaps, other than `codes`, and cost no sorting where the columns, less their least
    values, fit into 63 bits together. `EVER` and `NEVER` may stand in any of them.
    """
    limits = [_limits(column) for column in columns]
    widths = [high - low + 3 for low, high in limits]
    if prod(widths) >= _LIMIT:
        return codes(*columns)
    result = np.zeros(len(columns[0]), np.int64)
    for column, (low, high), width in zip(columns, limits, widths, strict=True):
        # What is before or after all others stands right beside them.
        result *= width
        result += np.clip(column, max(low - 1, EVER), min(high + 1, NEVER)) - (low - 1)
    return result


def _limits(values: npt.NDArray[np.int64]) -> tuple[int, int]:
    """The least and the greatest value that is not `EVER` or `NEVER`; both 0 if there is none."""
    low, high = int(values.min(initial=NEVER)), int(values.max(initial=EVER))
    if low == EVER or high == NEVER:
        told = values[(values != EVER) & (values != NEVER)]
        low, high = int(told.min(initial=NEVER)), int(told.max(initial=EVER))
    return (low, high) if low <= high else (0, 0)


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The distinct values, ascending: as `np.unique`, which since NumPy 2.3 hashes them first."""
    ordered = np.sort(values)
    return ordered[_new(ordered)]


def _ranks(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    # A stable sort makes use of order that is there already.
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.cumsum(_new(values[order])) - 1
    return ranks


def _new(ordered: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which of some values in order differ from the one before."""
    new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new
