"""Ranks on a grid: laws of coordinates, groups and peers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.build import Grid

grids = st.dictionaries(
    st.sampled_from(["tp", "cp", "dp", "pp"]), st.integers(1, 4), min_size=1
).map(Grid)


def test_the_first_axis_is_the_one_along_which_ranks_are_neighbours() -> None:
    # Megatron's order: rank = tp + t * (dp + d * pp).
    grid = Grid({"tp": 2, "dp": 3, "pp": 4})
    assert grid.world_size == 24
    assert grid.rank(tp=1, dp=2, pp=3) == 1 + 2 * (2 + 3 * 3)
    assert grid.coordinates(13) == {"tp": 1, "dp": 0, "pp": 2}
    assert grid.groups(["tp"])[:3].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert grid.groups(["dp"])[:3].tolist() == [[0, 2, 4], [1, 3, 5], [6, 8, 10]]
    assert grid.groups(["pp"])[0].tolist() == [0, 6, 12, 18]
    assert grid.moved(0, {"pp": -1}) == 18


@given(grids, st.data())
def test_coordinates_name_a_rank_and_a_rank_its_coordinates(
    grid: Grid, data: st.DataObject
) -> None:
    rank = data.draw(st.integers(0, grid.world_size - 1))
    assert grid.rank(**grid.coordinates(rank)) == rank


@given(grids, st.data())
def test_groups_part_the_ranks_and_agree_outside_their_axes(
    grid: Grid, data: st.DataObject
) -> None:
    axes = data.draw(st.sets(st.sampled_from(sorted(grid.axes))))
    groups = grid.groups(axes)
    assert sorted(groups.ravel().tolist()) == list(range(grid.world_size))
    assert groups.shape[1] == math.prod(grid.axes[axis] for axis in axes)
    for axis in set(grid.axes) - axes:
        places = grid.coordinate(axis, groups)
        assert (places == places[:, :1]).all()


@given(grids, st.data())
def test_groups_of_different_axes_meet_in_one_rank(grid: Grid, data: st.DataObject) -> None:
    one = data.draw(st.sampled_from(sorted(grid.axes)))
    rest = set(grid.axes) - {one}
    for group in grid.groups([one]).tolist():
        for other in grid.groups(rest).tolist():
            assert len(set(group) & set(other)) == 1


@given(grids, st.data())
def test_a_step_there_and_back_leads_home(grid: Grid, data: st.DataObject) -> None:
    ranks = np.arange(grid.world_size)
    axis = data.draw(st.sampled_from(sorted(grid.axes)))
    steps = data.draw(st.integers(-5, 5))
    there = grid.moved(ranks, {axis: steps})
    assert sorted(there.tolist()) == ranks.tolist()
    assert grid.moved(there, {axis: -steps}).tolist() == ranks.tolist()


def test_an_axis_has_a_rank_at_least() -> None:
    with pytest.raises(ValueError, match="axis 'tp' has 0 ranks"):
        Grid({"tp": 0})
