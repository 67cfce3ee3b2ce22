"""Unions of intervals of time."""

from __future__ import annotations

import numpy as np

from chakra_et.columns import Mask, Rows


def union(start: Rows, end: Rows) -> tuple[Rows, Rows]:
    """Starts and ends of the pieces that intervals cover together, in order."""
    if len(start) == 0:
        return start, end
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    begins = np.append(True, start[1:] > end[:-1])
    return start[begins], end[np.append(begins[1:], True)]


def inside(begins: Rows, ends: Rows, times: Rows) -> Mask:
    """Which times lie in one of the disjoint pieces that `union` gives, their ends left out."""
    if len(begins) == 0:
        return np.zeros(len(times), np.bool_)
    place = np.searchsorted(begins, times, "right") - 1
    return np.asarray((place >= 0) & (times < ends[place]))


def covered(start: Rows, end: Rows) -> int:
    """How much time intervals cover together."""
    begins, ends = union(start, end)
    return int((ends - begins).sum())


def covered_within(start: Rows, end: Rows, begin: Rows, until: Rows) -> Rows:
    """How much of each of the intervals `begin` to `until` the others cover together."""
    begins, ends = union(start, end)
    if len(begins) == 0:
        return np.zeros(len(begin), np.int64)
    before = np.append(0, np.cumsum(ends - begins))

    def up_to(moment: Rows) -> Rows:
        """How much is covered before each moment."""
        place = np.searchsorted(begins, moment, "right") - 1
        inside = np.minimum(moment, ends[place]) - begins[place]
        return np.where(place >= 0, before[place] + inside, 0)

    return up_to(until) - up_to(begin)
