"""Small numbers in place of large ones, and orders: of rows of columns, the first counts most."""

from __future__ import annotations

from math import prod
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from chakra_et.columns import EVER, NEVER
from chakra_et.kernel import kernel

_LIMIT = 1 << 63
_SPARSE: Final = 16
"""Keys are ranked by a table of all that there could be while these are not more by this factor."""


def order_of(*columns: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The places of rows in ascending order; equal rows stay in theirs."""
    keys = _packed(columns)
    # A stable sort makes use of order that is there already; one by one, columns would disturb it.
    return np.lexsort(columns[::-1]) if keys is None else np.argsort(keys[0], kind="stable")


def recoded(column: npt.NDArray[Any], places: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The new code of each old one in a column; the column itself where no code changes."""
    same = len(places) == 0 or bool((places == np.arange(len(places))).all())
    return column if same else places.take(column)


def codes(*columns: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """A number for each row of one or more columns: the rank of that row among distinct rows."""
    starts = np.flatnonzero(begins(*columns))
    if len(starts) < len(columns[0]) // 4:  # Equal rows often stand side by side, as of one thread.
        counts = np.diff(np.append(starts, len(columns[0])))
        return np.repeat(codes(*(column.take(starts) for column in columns)), counts)
    keys = _packed(columns)
    if keys is not None and len(keys[0]) and int(keys[0].max()) < _SPARSE * len(keys[0]):
        return _ranks(keys[0])
    columns = columns if keys is None else (keys[0],)
    order = np.lexsort(columns[::-1])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(begins(*(column.take(order) for column in columns))) - 1
    return ranks


def _ranks(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The ranks of keys from 0 on, by a table of all that there could be."""
    rank = np.zeros(int(keys.max()) + 1, np.int64)
    rank[keys] = 1
    np.cumsum(rank, out=rank)
    rank -= 1
    return rank.take(keys)


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
    if (module := kernel()) is not None:
        tables = (tuple(map(np.ascontiguousarray, table)) for table in (ordered, wanted))
        found: npt.NDArray[np.int64] = module.search_rows(*tables, side == "right")
        return found
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
    """The distinct values, ascending: as `np.unique`, which since NumPy 2.3 hashes them first.

    That also imports what masked arrays need, which takes longer than most of what is asked here.
    """
    ordered = np.sort(values)
    return ordered[begins(ordered)]


def among(values: npt.NDArray[np.integer[Any]], some: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Which values are among some others: as `np.isin`, for whole numbers of 64 bits."""
    numbers = values.astype(np.int64, copy=False)
    wanted = np.asarray(some).astype(np.int64, copy=False)
    if len(wanted) == 0:
        return np.zeros(len(numbers), np.bool_)
    low, high = int(wanted.min()), int(wanted.max())
    if low > EVER and high - low < _SPARSE * (len(numbers) + len(wanted)):
        there = np.zeros(high - low + 3, np.bool_)
        there[wanted - (low - 1)] = True
        # What is not between them goes to the ends, where nothing is, also by wrapping around.
        return there.take(numbers - (low - 1), mode="clip")
    ordered = np.sort(wanted)
    found: npt.NDArray[np.bool_] = (
        ordered.take(np.searchsorted(ordered, numbers), mode="clip") == numbers
    )
    return found


def distinct_rows(*columns: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    """The columns of the distinct rows, ascending."""
    order = order_of(*columns)
    order = order[begins(*(column.take(order) for column in columns))]
    return tuple(column.take(order) for column in columns)


def _packed(*tables: tuple[npt.NDArray[Any], ...]) -> list[npt.NDArray[np.int64]] | None:
    """Numbers that compare as the rows of some tables do, those of each table; None if 63 bits are
    not enough for them.
    """
    if any(column.dtype.kind not in "iub" for table in tables for column in table):
        return None
    limits = [_limits(columns) for columns in zip(*tables, strict=True)]
    widths = [limit.high - limit.low + 3 for limit in limits]
    if prod(widths) >= _LIMIT or any(limit.high > NEVER for limit in limits):
        return None
    return [_keys(table, limits, widths) for table in tables]


def _keys(
    table: tuple[npt.NDArray[Any], ...], limits: list[_Limits], widths: list[int]
) -> npt.NDArray[np.int64]:
    """A number for each row of a table."""
    keys, base = np.zeros(0, np.int64), 0
    for number, (column, limit, width) in enumerate(zip(table, limits, widths, strict=True)):
        part = column.astype(np.int64, copy=False)
        if limit.beyond:  # What is before or after all others stands right beside them.
            part = np.clip(part, max(limit.low - 1, EVER), min(limit.high + 1, NEVER))
        keys = part if number == 0 else np.multiply(keys, width, out=keys if number > 1 else None)
        if number:
            keys += part
        base = base * width + limit.low - 1
    # All of this counts modulo 2**64, and the difference fits.
    return keys - np.array(base % (1 << 64), np.uint64).view(np.int64)


class _Limits(NamedTuple):
    """The least and the greatest value of columns; whether `EVER` or `NEVER` is beyond them."""

    low: int
    high: int
    beyond: bool


def _limits(columns: tuple[npt.NDArray[Any], ...]) -> _Limits:
    """The least and the greatest value that is not `EVER` or `NEVER`; both 0 if there is none."""
    lows, highs, beyond = [], [], False
    for values in filter(len, columns):
        low, high = int(values.min()), int(values.max())
        if low == EVER or high == NEVER:
            beyond = True
            told = values[(values != EVER) & (values != NEVER)]
            low, high = int(told.min(initial=NEVER)), int(told.max(initial=EVER))
        if low <= high:
            lows.append(low)
            highs.append(high)
    return _Limits(min(lows, default=0), max(highs, default=0), beyond)
