"""Sketches keep means, spreads are even, mixtures find their components."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.synth.mixtures import Mixture, mixture
from chakra_et.synth.sketches import CLUSTERS, Sketch, SketchTable, sketch, spread

VALUES = st.lists(st.integers(0, 1 << 40), min_size=1, max_size=300)


@given(VALUES)
def test_a_sketch_has_the_mean_and_the_bounds_of_its_values(values: list[int]) -> None:
    found = sketch(np.array(values, np.int64))
    assert sum(found.counts) == len(values)
    assert len(found.counts) <= CLUSTERS
    # Means of clusters are whole numbers.
    assert abs(found.mean - np.mean(values)) <= 0.5 + 1e-6
    low = min(m - r for m, r in zip(found.means, found.reaches, strict=True))
    high = max(m + r for m, r in zip(found.means, found.reaches, strict=True))
    assert min(values) <= low <= high <= max(values)


def test_a_rare_long_time_stays_what_it_is() -> None:
    values = np.append(np.full(999, 10_000), 100_000_000)
    found = sketch(values)
    assert (found.counts[-1], found.means[-1], found.reaches[-1]) == (1, 100_000_000, 0)
    drawn = SketchTable([found]).draw(np.zeros(1000, np.int64), np.random.default_rng(0))
    assert drawn.sum() == values.sum()


@given(VALUES, st.integers(0, 5))
def test_draws_lie_within_the_values(values: list[int], seed: int) -> None:
    table = SketchTable([Sketch((), (), ()), sketch(np.array(values, np.int64))])
    codes = np.array([1, 0, 1, 1], np.int64)
    drawn = table.draw(codes, np.random.default_rng(seed))
    assert drawn[1] == 0
    assert all(min(values) <= v <= max(values) for v in drawn[[0, 2, 3]].tolist())


def test_draws_are_as_coarse_as_the_values_and_keep_the_mean() -> None:
    values = np.array([1000, 2000, 2000, 7000, 1000, 2000, 1000] * 30, np.int64)
    drawn = SketchTable([sketch(values)], 1000).draw(
        np.zeros(20_000, np.int64), np.random.default_rng(1)
    )
    assert set((drawn % 1000).tolist()) == {0}
    assert 1000 <= drawn.min() <= drawn.max() <= 7000
    assert abs(drawn.mean() / values.mean() - 1) < 0.01


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(0, 5))
def test_numbers_of_one_code_are_spread_evenly(codes: list[int], seed: int) -> None:
    column = np.array(codes, np.int64)
    share = spread(column, 5, np.random.default_rng(seed))
    for code in set(codes):
        mine = np.sort(share[column == code]) * np.count_nonzero(column == code)
        assert np.floor(mine).astype(int).tolist() == list(range(len(mine)))


def test_mixtures_find_as_many_components_as_there_are() -> None:
    random = np.random.default_rng(3)
    one = np.exp(random.normal(10, 0.5, 400)).astype(np.int64)
    other = np.exp(random.normal(16, 0.2, 400)).astype(np.int64)
    assert len(mixture(one).shares) == 1
    found = mixture(np.concatenate([one, other]))
    assert sorted(round(m) for m in found.means) == [10, 16]
    drawn = found.draw(2000, random)
    assert abs(np.mean(np.log(drawn) > 13) - 0.5) < 0.05
    assert drawn.min() >= found.low
    assert drawn.max() <= found.high


@pytest.mark.parametrize(
    "change",
    [{"shares": (-1.0,)}, {"means": (float("nan"),)}, {"low": 9, "high": 3}, {"shares": ()}],
)
def test_a_mixture_that_is_none_is_refused(change: dict[str, object]) -> None:
    sound = {"shares": (1.0,), "means": (3.0,), "deviations": (1.0,), "low": 1, "high": 90}
    with pytest.raises(ValueError, match="mixture"):
        Mixture(**{**sound, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize("broken", [((1,), (), ()), ((0,), (3,), (0,)), ((1,), (3,), (4,))])
def test_a_sketch_that_is_none_is_refused(broken: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ValueError, match="sketch"):
        Sketch(*broken)
