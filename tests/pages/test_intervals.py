"""Sets of times agree with sets of moments."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.pages.intervals import NEVER, Intervals

PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=8)


def intervals(pairs: list[tuple[int, int]]) -> Intervals:
    start = np.array([a for a, _ in pairs], np.int64)
    return Intervals.of(start, start + np.array([b for _, b in pairs], np.int64))


def moments(found: Intervals) -> set[int]:
    return {t for a, b in zip(found.start, found.end, strict=True) for t in range(a, b)}


@given(PAIRS, PAIRS)
def test_they_are_combined_as_sets_of_moments(one: list, other: list) -> None:
    a, b = intervals(one), intervals(other)
    assert moments(a) == {t for s, n in one for t in range(s, s + n)}
    assert moments(a | b) == moments(a) | moments(b)
    assert moments(a & b) == moments(a) & moments(b)
    assert moments(a - b) == moments(a) - moments(b)
    assert a.length_ns == len(moments(a))


@given(PAIRS, st.lists(st.integers(-2, 50), max_size=6))
def test_what_lies_before_a_time_is_counted(pairs: list, times: list[int]) -> None:
    found, at = intervals(pairs), np.array(times, np.int64)
    inside = moments(found)
    assert found.until(at).tolist() == [sum(t < limit for t in inside) for limit in times]
    assert found.covers(at).tolist() == [t in inside for t in times]


def test_they_are_disjoint_and_ascend() -> None:
    found = intervals([(5, 5), (0, 3), (2, 1), (10, 2), (7, 0)])
    assert found.start.tolist() == [0, 5]
    assert found.end.tolist() == [3, 12]
    assert NEVER.length_ns == 0
