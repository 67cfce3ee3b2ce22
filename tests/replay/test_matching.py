"""Which calls of ranks belong together, where recordings begin with different ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.replay.matching import first_places

PERIOD = 450


@given(st.lists(st.integers(0, 55), min_size=8, max_size=8), st.permutations([0, 1, 2]))
def test_calls_of_clocks_that_agree_are_in_plain_order(noise: list[int], ranks: list[int]) -> None:
    """Ends of one call vary with the machine, but less than what lies between two calls."""
    ends = {rank: [PERIOD * i + noise[(3 * rank + i) % 8] for i in range(4)] for rank in ranks}
    assert first_places(ends) == dict.fromkeys(ranks, 0)


def test_ends_of_a_busy_machine_shift_nothing() -> None:
    """Of four calls of three ranks, three were nearer to the next one's, by chance."""
    ends = {
        0: [602_959.7, 603_410.6, 603_898.8, 604_314.5],
        1: [602_990.6, 603_433.3, 603_898.8, 604_318.0],
        2: [602_991.3, 603_432.9, 603_900.5, 604_318.1],
    }
    whole = {rank: [round(1000 * end) for end in times] for rank, times in ends.items()}
    assert set(first_places(whole).values()) == {0}


@pytest.mark.parametrize("missing", [1, 2, 3])
@pytest.mark.parametrize("ahead", [0, 10**9])
def test_a_recording_that_begins_later_lacks_the_first_calls(missing: int, ahead: int) -> None:
    steps = np.cumsum(np.random.default_rng(5).integers(300, 700, 12))
    ends = {0: steps.tolist(), 1: (steps[missing:] + ahead).tolist()}
    assert first_places(ends) == {0: 0, 1: missing}


def test_calls_of_other_types_speak_against_a_shift() -> None:
    """Parts of split transfers follow each other as closely as calls end together."""
    ends = {
        0: [187_727, 187_727, 187_830, 192_337, 192_460, 192_707],
        1: [187_548, 187_548, 187_706, 193_145, 193_267, 193_486],
    }
    types = {rank: [2, 2, 2, 0, 0, 0] for rank in ends}
    assert set(first_places(ends).values()) != {0}
    assert set(first_places(ends, types).values()) == {0}
