"""Ranges of a backend that lie on the thread which asked for them, and run beside it.

A message over gloo begins its range where it is asked for, and ends it where somebody has waited
for it: the thread goes on meanwhile. Backends without threads of their own (MPI) do so with
collectives, too. Such a range is no part of what its thread does; it has a lane of its own.
"""

from __future__ import annotations

import numpy as np

from chakra_et.codes import among, distinct
from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.recording.libraries import HOST_BACKENDS


def backend_names(names: list[str]) -> Mask:
    """Which names are those that backends on the host give to what they transfer."""
    return np.array([name.startswith(HOST_BACKENDS) for name in names], np.bool_)


def ranges_beside(ranges: Rows, host: Rows, lane: Rows, nested_in: Rows) -> Rows:
    """Which `ranges` lie on a thread that does other things, too; `host` are all on host threads.

    What a worker thread of a backend does lies inside of ranges.
    """
    outermost = host[nested_in[host] == NO_ROW]
    others = distinct(lane[outermost[~among(outermost, ranges)]])
    beside: Rows = ranges[among(lane[ranges], others)]
    return beside


def callers_of(beside: Rows, nested_in: Rows, start_ns: Rows, end_ns: Rows) -> Rows:
    """The innermost activity that is open where each range begins, other ranges left out."""
    above = _without_ranges(beside, nested_in)
    caller = above[nested_in[beside]]
    left = np.arange(len(beside))
    while len(left):
        here = caller[left]
        left = left[(here != NO_ROW) & (end_ns[here] <= start_ns[beside[left]])]
        caller[left] = above[nested_in[caller[left]]]
    return caller


def _without_ranges(beside: Rows, nested_in: Rows) -> Rows:
    """Each row, or what it lies in if it is one of the ranges; the last entry stands for no row.

    Twice as far with each look, so that ranges within ranges cost little at any depth.
    """
    above = np.append(np.arange(len(nested_in)), NO_ROW)
    above[beside] = nested_in[beside]
    for _ in range(len(nested_in).bit_length()):
        further = above[above]
        if np.array_equal(further, above):
            break
        above = further
    return above
