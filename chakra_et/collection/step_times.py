"""How long steps take, with the profiler and without."""

from __future__ import annotations

import time
from typing import Any

from chakra_et.collection.release import synchronize


class StepTimes:
    """Times of steps in a row, of either kind.

    Devices are waited for where a row begins and ends, and nowhere in between: that would change
    what is measured.
    """

    def __init__(self) -> None:
        self._sums_ns = {"recorded": 0, "plain": 0}
        self._steps = {"recorded": 0, "plain": 0}
        self._begin_ns = 0

    def begin(self) -> None:
        """A row of steps begins now."""
        synchronize()
        self._begin_ns = time.perf_counter_ns()

    def end(self, kind: str, steps: int) -> None:
        """A row of so many steps has ended."""
        synchronize()
        self._sums_ns[kind] += time.perf_counter_ns() - self._begin_ns
        self._steps[kind] += steps

    def told(self) -> dict[str, Any]:
        """Milliseconds of a step, in the mean (None where there is none), and over how many."""
        found: dict[str, Any] = {}
        for kind, steps in self._steps.items():
            mean = self._sums_ns[kind] / steps / 1e6 if steps else None
            found[f"{kind}_ms_per_step"] = None if mean is None else round(mean, 3)
            found[f"{kind}_steps"] = steps
        return found
