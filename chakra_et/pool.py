"""Distinct values and their codes."""

from __future__ import annotations

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

    def keep(self, count: int) -> None:
        """Drop all values but the first `count`."""
        while len(self) > count:
            self.popitem()

    @property
    def in_order(self) -> list[T]:
        """The distinct values; a value's code is its place."""
        return list(self)
