"""Columns: what arrays are called in signatures, and the few steps that many modules need."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Rows: TypeAlias = npt.NDArray[np.int64]
"""Rows of a table, times in nanoseconds, sizes, or other whole numbers."""
Mask: TypeAlias = npt.NDArray[np.bool_]
TextCodes: TypeAlias = npt.NDArray[np.int32]
"""Codes into a pool of texts."""

NO_ROW: Final = -1
"""In a column of rows: there is none."""
EVER: Final = int(np.iinfo(np.int64).min)
"""A time before all others."""
NEVER: Final = int(np.iinfo(np.int64).max)
"""A time after all others."""
UNTIMED: Final = EVER
"""The start of what has no time."""


def no_rows() -> Rows:
    """A column without entries."""
    return np.zeros(0, np.int64)


def count_up(counts: Rows) -> Rows:
    """0, 1, … for each of some runs of these lengths, one after the other."""
    places: Rows = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return places


def let_go(table: object, names: Iterable[str], but: Collection[str] = ()) -> None:
    """Drop columns of a table that nobody looks at any longer, all but some.

    Those of a long recording take much memory, and whoever made the table still holds it.
    """
    for name in names:
        if name not in but:
            setattr(table, name, getattr(table, name)[:0].copy())


def turns_of(values: Rows, part: Rows) -> Rows:
    """How many equal values of the same part stand before each one."""
    order = np.lexsort((values, part))
    same = (np.diff(values[order]) == 0) & (np.diff(part[order]) == 0)
    first = np.flatnonzero(np.append(True, ~same))
    turns = np.empty(len(values), np.int64)
    turns[order] = count_up(np.diff(np.append(first, len(values))))
    return turns
