"""Columns of what only a few rows have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np

from chakra_et.columns import Mask, Rows

T = TypeVar("T")


class Sparse(Generic[T]):
    """Values of some rows of a table, in the order of the rows."""

    def __init__(self, entries: Iterable[tuple[int, T]] = ()) -> None:
        self._values = dict(entries)

    def get(self, row: int) -> T | None:
        """The value of a row; None where it has none."""
        return self._values.get(row)

    def items(self) -> Iterator[tuple[int, T]]:
        """Rows and their values."""
        return iter(self._values.items())

    @property
    def rows(self) -> Rows:
        """The rows that have a value."""
        return np.fromiter(self._values, np.int64, len(self._values))

    def select(self, mask: Mask) -> Sparse[T]:
        """The column of some rows of the table, with the numbers that these have then."""
        if not self._values:
            return self
        place = (np.cumsum(mask) - 1).tolist()
        return Sparse((place[row], value) for row, value in self._values.items() if mask[row])

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, row: int) -> bool:
        return row in self._values
