"""Rows of nodes in a bit each."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.narrow import is_many

_COUNTED: Final = 1 << 12
"""Rows before each so many are counted, so that a place is found without a look at all of them."""


class RowSet:
    """Ascending rows, of which each stands once, as a bit for each row of a table."""

    __slots__ = ("_before", "_bits", "_count")

    def __init__(self, rows: Rows) -> None:
        blocks = int(rows[-1]) // _COUNTED + 1 if len(rows) else 0
        told = np.zeros(blocks * _COUNTED, np.bool_)
        told[rows] = True
        self._bits = np.packbits(told, bitorder="little")
        self._before = np.searchsorted(rows, np.arange(blocks + 1) * _COUNTED)
        self._count = len(rows)

    def __len__(self) -> int:
        return self._count

    def all(self) -> Rows:
        """The rows, int64[len]."""
        return np.flatnonzero(self._told(0, len(self._bits)))

    def within(self, first: int, end: int) -> tuple[int, Rows]:
        """The place of the first row from `first` on, and the rows from there up to `end`."""
        last = len(self._bits) * 8
        first, end = min(first, last), min(end, last)
        block = first // _COUNTED
        begin = block * _COUNTED
        told = self._told(begin // 8, -(-end // 8))
        before = int(np.count_nonzero(told[: first - begin]))
        return int(self._before[block]) + before, np.flatnonzero(
            told[first - begin : end - begin]
        ) + first

    def _told(self, begin: int, end: int) -> npt.NDArray[np.bool_]:
        return np.unpackbits(self._bits[begin:end], bitorder="little").view(np.bool_)


def packed_rows(rows: Rows) -> Rows | RowSet:
    """Rows as a column holds them: many in a bit each."""
    many = is_many(len(rows)) and rows[-1] < 8 * len(rows) * rows.itemsize
    return RowSet(rows) if many and rows[0] >= 0 and bool((np.diff(rows) > 0).all()) else rows


def rows_within(rows: Rows | RowSet, first: int, end: int) -> tuple[int, Rows]:
    """The place of the first row from `first` on, and the rows from there up to `end`."""
    if isinstance(rows, RowSet):
        return rows.within(first, end)
    low, high = np.searchsorted(rows, (first, end)).tolist()
    return low, rows[low:high]
