"""Two sequences that are nearly the same are aligned, with gaps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.linker.alignment import align


def pairs(left: list[int], right: list[int]) -> list[tuple[int, int]]:
    a, b = align(np.array(left, np.int64), np.array(right, np.int64))
    return list(zip(a.tolist(), b.tolist(), strict=True))


def test_equal_sequences_match_whole() -> None:
    assert pairs([3, 1, 2], [3, 1, 2]) == [(0, 0), (1, 1), (2, 2)]


def test_an_extra_item_leaves_a_gap() -> None:
    assert pairs([1, 2, 3, 4], [1, 2, 9, 3, 4]) == [(0, 0), (1, 1), (2, 3), (3, 4)]


def test_a_missing_item_leaves_a_gap() -> None:
    assert pairs([1, 2, 9, 3], [1, 2, 3]) == [(0, 0), (1, 1), (3, 2)]


def test_nothing_in_common_matches_nothing() -> None:
    assert pairs([1, 1], [2, 2, 2]) == []
    assert pairs([], [1]) == []


def test_long_sequences_with_many_gaps_match_all_that_is_common() -> None:
    generator = np.random.default_rng(7)
    left = generator.integers(0, 50, 20_000)
    kept = np.sort(generator.choice(20_000, 19_000, replace=False))
    a, b = align(left, left[kept])
    assert len(a) == 19_000
    assert np.array_equal(left[a], left[kept][b])


@given(st.lists(st.integers(0, 4)), st.lists(st.integers(0, 4)))
def test_matches_are_equal_and_ascend_on_both_sides(left: list[int], right: list[int]) -> None:
    found = pairs(left, right)
    assert all(left[i] == right[j] for i, j in found)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(found))


@given(st.lists(st.integers(0, 99), unique=True), st.data())
def test_distinct_items_match_whatever_is_left_out(items: list[int], data: st.DataObject) -> None:
    keep = data.draw(st.lists(st.booleans(), min_size=len(items), max_size=len(items)))
    part = [item for item, kept in zip(items, keep, strict=True) if kept]
    assert len(pairs(items, part)) == len(part)
