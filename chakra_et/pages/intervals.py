"""Sets of times: disjoint intervals, and how much of a window each covers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.graph.intervals import inside, union


@dataclass(frozen=True)
class Intervals:
    """Disjoint intervals in ascending order, from `start[i]` on and before `end[i]`, in ns."""

    start: Rows
    end: Rows

    @classmethod
    def of(cls, start: Rows, end: Rows) -> Intervals:
        """The times in at least one of the given intervals, which may overlap; empty ones go."""
        some = end > start
        return cls(*union(start[some], end[some]))

    @property
    def length_ns(self) -> int:
        """How much time there is in all."""
        return int((self.end - self.start).sum())

    @cached_property
    def _before(self) -> Rows:
        return np.append(0, np.cumsum(self.end - self.start))

    def until(self, times: Rows) -> Rows:
        """How much of the set lies before each of some times, in ns."""
        place = np.searchsorted(self.start, times, "right")
        if not len(self.start):
            return np.zeros(len(times), np.int64)
        beyond = np.maximum(self.end[place - 1] - times, 0)
        return np.asarray(self._before[place] - np.where(place > 0, beyond, 0))

    def covers(self, times: Rows) -> npt.NDArray[np.bool_]:
        """Which of some times are in the set."""
        return inside(self.start, self.end, times)

    def __or__(self, other: Intervals) -> Intervals:
        """The times in either."""
        return Intervals.of(
            np.concatenate((self.start, other.start)), np.concatenate((self.end, other.end))
        )

    def __and__(self, other: Intervals) -> Intervals:
        """The times in both."""
        return self._where(other, wanted=True)

    def __sub__(self, other: Intervals) -> Intervals:
        """The times in this set and not in the other."""
        return self._where(other, wanted=False)

    def _where(self, other: Intervals, *, wanted: bool) -> Intervals:
        times = np.concatenate((self.start, self.end, other.start, other.end))
        # Four runs that ascend: a stable sort merges them in linear time.
        order = np.argsort(times, kind="stable")
        times = times[order]
        mine, theirs = 2 * len(self.start), 2 * len(other.start)
        inside = _running(order, 0, mine) > 0
        chosen = inside & ((_running(order, mine, theirs) > 0) == wanted)
        return Intervals.of(times[:-1][chosen[:-1]], times[1:][chosen[:-1]])


def _running(order: Rows, first: int, count: int) -> Rows:
    """How many intervals are open behind each of some edges.

    Of all edges, those from `first` on are `count` ones of these intervals: starts, then ends.
    """
    step = np.zeros(len(order), np.int64)
    step[first : first + count // 2], step[first + count // 2 : first + count] = 1, -1
    return np.cumsum(step[order])


NEVER: Final = Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))
"""No time at all."""
