"""Two sequences that are nearly the same are aligned, with gaps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.linker.joining.alignment import _shortest_edit, align


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


def longest_common(left: list[int], right: list[int]) -> int:
    """The length of a longest common subsequence, by its definition."""
    best = [0] * (len(right) + 1)
    for a in left:
        row = [0]
        for j, b in enumerate(right):
            row.append(best[j] + 1 if a == b else max(best[j + 1], row[j]))
        best = row
    return best[-1]


@given(st.lists(st.integers(0, 3), max_size=30), st.lists(st.integers(0, 3), max_size=30))
def test_the_shortest_edit_keeps_all_that_can_be_kept(left: list[int], right: list[int]) -> None:
    runs = _shortest_edit(np.array(left, np.int64), np.array(right, np.int64), 99)
    found = [(a + k, b + k) for a, b, size in reversed(runs) for k in range(size)]
    assert all(left[i] == right[j] for i, j in found)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(found))
    assert len(found) == longest_common(left, right)


@pytest.mark.parametrize("step", [131, 11])
def test_repeated_layers_without_anchors_match_around_what_one_side_has_alone(step: int) -> None:
    layer = np.array([1, 2, 3, 2, 4, 1, 1, 5] * 500, np.int64)
    places = np.arange(97, 3900, step)
    longer = np.insert(layer, places, 9)
    a, b = align(longer, layer)
    assert len(a) == len(layer)
    assert np.array_equal(longer[a], layer[b])
