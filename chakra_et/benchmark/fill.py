"""How memory is filled, and what an operation may demand of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from chakra_et.benchmark.arguments import View


@dataclass(frozen=True)
class Fill:
    """How memory is filled. `kind` is a name that `runtime.filled` knows.

    `range`: whole numbers from `low` up to `high`, without it; `offsets`: integers that ascend
    evenly from `low` to `high`; `lengths`: integers whose sum is `high`, the first and largest of
    them `low` (0: all as even as can be); `some`: `low` elements are true, or 1, all others false;
    `identity`: matrices of `low` rows with ones on their diagonals and zeros elsewhere;
    `positive`: numbers between 0 and 1; `floats`: small numbers of both signs; `flags`: booleans;
    `none`: whatever is there.
    """

    kind: str
    low: int = 0
    high: int = 0

    @property
    def whole(self) -> bool:
        """Whether it is of integers or booleans, of which operators may make shapes and places."""
        return self.kind in ("range", "offsets", "lengths", "some", "flags")

    def meet(self, other: Fill) -> Fill:
        """Values that satisfy both; of two kinds the first."""
        if self.kind != other.kind or self.kind != "range":
            return self
        low = max(self.low, other.low)
        return Fill("range", low, max(min(self.high, other.high), low + 1))


Demand: TypeAlias = tuple[int, Fill]
"""A view, and what it must hold."""
Given: TypeAlias = dict[str, Any]
"""The inputs of an operation by the names of its arguments; by `RETURNED` its outputs."""
Find: TypeAlias = Callable[[Given, list[View]], Iterable[Demand]]

RETURNED = "return"
"""No argument can have this name."""
