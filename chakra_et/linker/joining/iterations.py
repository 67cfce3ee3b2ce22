"""One of many iterations: where the whole of one sequence stands in another, longer one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import codes, distinct
from chakra_et.columns import Rows
from chakra_et.linker.joining.alignment import align

Sequence = Rows
Pairs = tuple[Sequence, Sequence]
"""Places in the short and in the long sequence that hold the same."""

_RUNS: Final = (8, 4, 2, 1)
"""Lengths of runs of items by which places are found, the most telling first."""
_WHOLE: Final = 0.8
"""Share of the runs of the short sequence that stand where all of it does."""
LONGER: Final = 1.2
"""From so many times its length on, a sequence may hold another one more than once."""


class Iterations(msgspec.Struct):
    """Where the short sequence stands: `places[i]` are begin and end in the long one.

    `chosen` is the place that is taken, `by` what favours it (None where nothing does), and `alike`
    counts the places that are as good.
    """

    places: list[tuple[int, int]]
    chosen: int
    by: str | None
    alike: int


def find_iterations(
    short: Sequence, long: Sequence, agreeing: dict[str, Callable[[Pairs], int]]
) -> Iterations | None:
    """The places of the whole short sequence in the long one; None where it has none.

    `agreeing` holds what tells places apart, by name: of pairs of the two, how many agree. The
    place is taken where most operations are found and most agree; of equals, the first.
    """
    places = _places(short, long)
    if not places:
        return None
    scores: list[list[int]] = []
    for begin, end in places:
        left, right = align(short, long[begin:end])
        pairs = left, begin + right
        scores.append([len(left), *(count(pairs) for count in agreeing.values())])
    sums = [sum(score) for score in scores]
    chosen = sums.index(max(sums))
    names = ("operations", *agreeing)
    differing = [name for k, name in enumerate(names) if len({score[k] for score in scores}) > 1]
    by = " and ".join(differing) if differing and sums.count(max(sums)) < len(sums) else None
    return Iterations(places, chosen, by, sums.count(max(sums)))


def _places(short: Sequence, long: Sequence) -> list[tuple[int, int]]:
    """Begin and end of each place, ascending, found by the runs that the short one has once."""
    for run in _RUNS:
        if len(short) < run or len(long) < run:
            continue
        mine, theirs = _places_of_runs(short, long, run)
        if len(mine):
            return _together(mine, theirs, len(short), len(long), run)
    return []


def _places_of_runs(short: Sequence, long: Sequence, run: int) -> Pairs:
    """Runs that stand once in the short sequence, and all their places in the long one."""
    view = np.lib.stride_tricks.sliding_window_view
    both = np.concatenate((view(short, run), view(long, run)))
    code, count = codes(*both.T), len(short) - run + 1
    times = np.bincount(code[:count], minlength=int(code.max()) + 1)
    place = np.zeros(len(times), np.int64)
    place[code[:count]] = np.arange(count)
    theirs = np.flatnonzero(times[code[count:]] == 1)
    return place[code[count:][theirs]], theirs


def _together(
    mine: Sequence, theirs: Sequence, short: int, long: int, run: int
) -> list[tuple[int, int]]:
    """Places where nearly all runs stand, at nearly the same distance from those of the short."""
    distance = theirs - mine
    order = np.argsort(distance, kind="stable")
    distance, mine = distance[order], mine[order]
    borders = np.flatnonzero(np.diff(distance) > short // 2) + 1
    wanted = len(distinct(mine))
    found = []
    for part in np.split(np.arange(len(mine)), borders):
        if len(distinct(mine[part])) >= _WHOLE * wanted:
            begin, end = int(distance[part[0]]), int(distance[part[-1]]) + short
            found.append((max(begin, 0), min(end, long)))
    return found
