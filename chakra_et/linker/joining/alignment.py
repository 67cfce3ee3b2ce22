"""Aligning two sequences that are nearly the same, in nearly linear time."""

from __future__ import annotations

from bisect import bisect_left
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np

from chakra_et.codes import codes
from chakra_et.columns import Rows, count_up
from chakra_et.kernel import kernel

Sequence = Rows
Run: TypeAlias = tuple[int, int, int]
"""Places in both sequences, and how many items are equal from there on."""

_RUN: Final = 8
"""Equal neighbours that make an anchor."""
_FEW: Final = 128
"""Items that one side has alone: so many are looked for at once."""
_TRIES: Final = 16
"""In so many parts: where they differ more, looking costs and finds nothing."""
_MANY: Final = 512
"""So many are looked for where there is no other way: the work grows as the square of this."""
_SMALL: Final = 1 << 20
"""Product of lengths up to which a gap between anchors is compared item by item."""


def align(left: Sequence, right: Sequence) -> tuple[Sequence, Sequence]:
    """Places in `left` and `right`, ascending in both, that hold equal items.

    Equal beginnings and ends are matched first, and the rest with the fewest gaps where few are
    enough. Else runs of items that occur once on either side are anchors (as in a patience diff),
    and what lies between two anchors is matched the same way, or item by item where it is short.
    What is long and has no anchors, as repeated layers have none, may take more gaps.
    """
    runs: list[Run] = []
    tries = _TRIES
    todo = [(0, len(left), 0, len(right), _RUN)]
    while todo:
        low, high, other_low, other_high, run = todo.pop()
        head = _common_prefix(left[low:high], right[other_low:other_high])
        runs.append((low, other_low, head))
        low, other_low = low + head, other_low + head
        tail = _common_prefix(left[low:high][::-1], right[other_low:other_high][::-1])
        high, other_high = high - tail, other_high - tail
        runs.append((high, other_high, tail))
        if low == high or other_low == other_high:
            continue
        part, other = left[low:high], right[other_low:other_high]
        found: list[Run] = []
        if run == _RUN and tries:
            found, tries = _shortest_edit(part, other, _FEW), tries - 1
        anchors = _anchors(part, other, run) if not found else []
        if anchors:
            borders = [(0, 0), *anchors, (high - low, other_high - other_low)]
            for (a, b), (next_a, next_b) in pairwise(borders):
                todo.append((low + a, low + next_a, other_low + b, other_low + next_b, run))
        elif not found and run > 1:
            todo.append((low, high, other_low, other_high, run // 2))
        elif not found and (high - low) * (other_high - other_low) <= _SMALL:
            matcher = SequenceMatcher(None, part.tolist(), other.tolist(), autojunk=False)
            found = [(a, b, size) for a, b, size in matcher.get_matching_blocks()]
        elif not found:
            found = _shortest_edit(part, other, _MANY)
        runs += [(low + a, other_low + b, size) for a, b, size in found]
    return _places(runs)


def _places(runs: list[Run]) -> tuple[Sequence, Sequence]:
    """The places of all items in runs that do not overlap, ascending."""
    first, other, size = np.array(sorted(runs), np.int64).reshape(-1, 3).T
    within = count_up(size)
    return np.repeat(first, size) + within, np.repeat(other, size) + within


def _shortest_edit(left: Sequence, right: Sequence, most: int) -> list[Run]:
    """Places and lengths of equal runs between the fewest items that either side has alone.

    By E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", Algorithmica 1 (1986): for
    each number of gaps, how far one gets in `left` on each diagonal (`left` place less `right`
    place). Nothing is matched where more than `most` items stand alone.
    """
    if (module := kernel()) is not None:
        sides = map(np.ascontiguousarray, (left, right))
        columns = module.shortest_edit(*sides, most)
        return list(zip(*(column.tolist() for column in columns), strict=True))
    if abs(len(left) - len(right)) > most:
        return []
    most = min(most, len(left) + len(right))
    items, others, middle = left.tolist(), right.tolist(), most + 1
    reach = [0] * (2 * middle + 1)  # the diagonals from -middle to middle
    steps: list[list[int]] = []
    for gaps in range(most + 1):
        steps.append(reach.copy())
        for diagonal in range(-gaps, gaps + 1, 2):
            at = _step(reach, gaps, diagonal, middle)[1]
            other = at - diagonal
            # Most runs end at once.
            if 0 <= other < len(others) and at < len(items) and items[at] == others[other]:
                at += _equal_from(left, right, at, other)
            reach[middle + diagonal] = at
            if at >= len(items) and at - diagonal >= len(others):
                return _way_back(steps, diagonal, at, middle)
    return []


def _step(reach: list[int], gaps: int, diagonal: int, middle: int) -> tuple[int, int]:
    """The diagonal beside this one that one more gap leads here from, and how far it gets here."""
    below, above = reach[middle + diagonal - 1], reach[middle + diagonal + 1]
    if diagonal == -gaps or (diagonal != gaps and below < above):
        return diagonal + 1, above
    return diagonal - 1, below + 1


def _way_back(steps: list[list[int]], diagonal: int, at: int, middle: int) -> list[Run]:
    """The equal runs on the way to a place, by how far each number of gaps had got before it."""
    runs = []
    for gaps in range(len(steps) - 1, -1, -1):
        before, begin = _step(steps[gaps], gaps, diagonal, middle)
        if at > begin:
            runs.append((begin, begin - diagonal, at - begin))
        diagonal, at = before, steps[gaps][middle + before]
    return runs


def _equal_from(left: Sequence, right: Sequence, a: int, b: int) -> int:
    """How many items are equal from two places on; looks at twice as many each time."""
    size, equal, look = min(len(left) - a, len(right) - b), 0, 32
    while equal < size:
        part = _common_prefix(
            left[a + equal : a + equal + look], right[b + equal : b + equal + look]
        )
        equal += part
        if part < look:
            break
        look *= 2
    return min(equal, size)


def _common_prefix(left: Sequence, right: Sequence) -> int:
    size = min(len(left), len(right))
    different = np.flatnonzero(left[:size] != right[:size])
    return int(different[0]) if len(different) else size


def _anchors(left: Sequence, right: Sequence, run: int) -> list[tuple[int, int]]:
    """Starts of runs that occur exactly once on either side, ascending on both sides."""
    if min(len(left), len(right)) < run:
        return []
    both = np.concatenate((_runs(left, run), _runs(right, run)))
    code = codes(*both.T)
    mine, theirs = code[: len(left) - run + 1], code[len(left) - run + 1 :]
    count = int(code.max()) + 1
    once = (np.bincount(mine, minlength=count) == 1) & (np.bincount(theirs, minlength=count) == 1)
    place = np.empty(count, np.int64)
    place[theirs] = np.arange(len(theirs))
    starts = np.flatnonzero(once[mine])
    targets = place[mine[starts]]
    rising = _longest_rising(targets)
    return [(int(starts[i]), int(targets[i])) for i in rising]


def _runs(items: Sequence, run: int) -> Rows:
    return np.lib.stride_tricks.sliding_window_view(items, run)


def _longest_rising(values: Sequence) -> list[int]:
    """Places of a longest strictly rising subsequence."""
    tails: list[int] = []
    tail_values: list[int] = []
    before = [-1] * len(values)
    for i, value in enumerate(values.tolist()):
        at = bisect_left(tail_values, value)
        before[i] = tails[at - 1] if at else -1
        if at == len(tails):
            tails.append(i)
            tail_values.append(value)
        else:
            tails[at], tail_values[at] = i, value
    result = []
    at = tails[-1] if tails else -1
    while at >= 0:
        result.append(at)
        at = before[at]
    return result[::-1]
