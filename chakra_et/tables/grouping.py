"""Sums and percentiles of values by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chakra_et.codes import codes as ranked
from chakra_et.columns import Rows


@dataclass(frozen=True)
class Keys:
    """Which key each item has: `code[i]` is the place of its key in `first`, an item with it."""

    code: Rows
    first: Rows

    @classmethod
    def of(cls, *columns: npt.NDArray[Any]) -> Keys:
        """Items are of one key if they agree in all columns, which hold integers."""
        code = ranked(*columns)
        return cls(code, np.unique(code, return_index=True)[1])

    def __len__(self) -> int:
        return len(self.first)

    def count(self) -> Rows:
        """How many items have each key."""
        return np.bincount(self.code, minlength=len(self))

    def sum(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The sum of each key's values, which stays an integer where they are."""
        sums = np.zeros(len(self), values.dtype)
        np.add.at(sums, self.code, values)
        return sums

    def spread(self, ns: Rows, percentiles: Sequence[int] = (50, 95)) -> dict[str, Any]:
        """Count, total, mean, least, percentiles and greatest of each key's times, as columns.

        A percentile is that of the values as they are, the nearest one from above.
        """
        order = np.lexsort((ns, self.code))
        ordered, count = ns[order], self.count()
        begins = np.cumsum(count) - count
        total = self.sum(ns)
        columns = {
            "count": count,
            "total_ns": total,
            "mean_ns": total / np.maximum(count, 1),
            "min_ns": ordered[begins],
        }
        for percent in percentiles:
            place = np.maximum(-(-count * percent // 100) - 1, 0)
            columns[f"p{percent}_ns"] = ordered[begins + place]
        columns["max_ns"] = ordered[begins + count - 1]
        return columns


def codes(items: Sequence[Any]) -> tuple[Rows, list[Any]]:
    """A number for each item, equal for equal ones, and the distinct items in order of numbers."""
    known: dict[Any, int] = {}
    numbers = [known.setdefault(item, len(known)) for item in items]
    return np.array(numbers, np.int64), list(known)
