"""Distinct values and their codes."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from typing import TypeVar

T = TypeVar("T")


class Pool(dict[T, int]):
    """Distinct values with their codes, in order of first use: `pool[value]` is the code.

    A value that is new joins the pool, so `map(pool.__getitem__, values)` turns values into codes
    without a step of Python for each.
    """

    def __missing__(self, value: T) -> int:
        code = self[value] = len(self)
        return code

    def codes(self, values: Collection[T]) -> list[int]:
        """The code of each value, where many are new: no step of Python is made for these."""
        new = [value for value in dict.fromkeys(values) if value not in self]
        self.update(zip(new, count(len(self)), strict=False))
        return list(map(self.__getitem__, values))

    def keep(self, count: int) -> None:
        """Drop all values but the first `count`."""
        while len(self) > count:
            self.popitem()

    @property
    def in_order(self) -> list[T]:
        """The distinct values; a value's code is its place."""
        return list(self)
