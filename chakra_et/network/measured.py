"""Measured times by size, as benchmarks print them, and what lies between the sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from chakra_et.errors import ChakraError


@dataclass(frozen=True)
class Measured:
    """Times in ns by size in bytes, both ascending in size.

    Between two sizes a time lies on the straight line through both on logarithmic scales. Above the
    largest size the time grows with the size; below the smallest one it stays.
    """

    sizes_bytes: tuple[float, ...]
    times_ns: tuple[float, ...]

    @classmethod
    def of(cls, rows: Sequence[tuple[float, float]]) -> Measured:
        """From pairs (bytes, ns). Raises ChakraError for sizes that do not ascend."""
        sizes, times = zip(*rows, strict=True) if rows else ((), ())
        ascending = all(a < b for a, b in zip((0.0, *sizes), sizes, strict=False))
        if not rows or not ascending or min(times) <= 0:
            raise ChakraError(
                "a table of times whose sizes do not ascend, or whose times are not above 0",
                remedy="List pairs of bytes and time, smallest first.",
            )
        return cls(sizes, times)

    def time_ns(self, size_bytes: float) -> float:
        """The time of any size."""
        largest = self.sizes_bytes[-1]
        if size_bytes >= largest:
            return self.times_ns[-1] * size_bytes / largest
        if size_bytes <= self.sizes_bytes[0]:
            return self.times_ns[0]
        return exp(np.interp(log(size_bytes), np.log(self.sizes_bytes), np.log(self.times_ns)))
