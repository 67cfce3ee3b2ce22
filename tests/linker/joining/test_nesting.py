"""Who encloses whom on a thread, where clocks of operations and calls differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from accounts import callers, converted
from hypothesis import given
from hypothesis import strategies as st
from recordings import Profile

from chakra_et.columns import NO_ROW
from chakra_et.conversion import Conversion
from chakra_et.linker.joining.nesting import enclosing

AGREE = "External ids of device events that agree with their launch"


def holder(intervals: list[tuple[int, int]], item: int) -> int:
    """The innermost open interval that contains one, else the one that holds most of it."""
    start, end = intervals[item]
    before = [i for i in range(item) if intervals[i][1] > start]
    inside = {i: min(intervals[i][1] + 1, end) for i in before}
    return max(before, key=lambda i: (inside[i], intervals[i][0], i), default=NO_ROW)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=12))
def test_the_owner_is_who_contains_an_interval(pairs: list[tuple[int, int]]) -> None:
    """Times are odd nanoseconds, so that one nanosecond is the last digit."""
    intervals = sorted(
        ((3 * s + 1, 3 * (s + d) + 1) for s, d in pairs), key=lambda p: (p[0], -p[1])
    )
    start, end = (np.array([p[side] for p in intervals], np.int64) for side in (0, 1))
    found = enclosing(np.zeros(len(start), np.int64), start, end, np.arange(len(start)))
    assert found.tolist() == [holder(intervals, item) for item in range(len(intervals))]


def test_a_long_row_of_overlaps_takes_linear_work() -> None:
    """Each interval begins inside all before it and ends after them."""
    count = 200_000
    start = np.arange(count, dtype=np.int64) * 2 + 1
    found = enclosing(np.zeros(count, np.int64), start, start + count, np.arange(count))
    assert found[1:].tolist() == list(range(count - 1))


def call_over_the_end(sibling_ends: float, owner: int) -> Profile:
    """A launch that begins inside a callee of an operation and ends after it."""
    profile = Profile().op("outer", 4, 80, **{"External id": 11})
    profile.op("sibling", 10, sibling_ends - 10, **{"External id": 12})
    return profile.call("hipLaunchKernel", 19.85, 7.78, 1).kernel(
        "ln", 40, 20, 1, **{"External id": owner}
    )


def agreement(result: Conversion) -> tuple[int, int]:
    (join,) = (join for join in result.report.joins if join.what == AGREE)
    return join.matched, join.of


@pytest.mark.parametrize("sibling_ends", [20.0, 23.0, 27.5])
def test_a_call_belongs_to_who_contains_it(tmp_path: Path, sibling_ends: float) -> None:
    profile = call_over_the_end(sibling_ends, owner=11)
    result = converted(None, profile.write(tmp_path / "device.json"))
    assert callers(result, "hipLaunchKernel") == callers(result, "ln") == {"outer"}
    assert agreement(result) == (1, 1)


def test_a_digit_is_no_reason_to_be_of_another(tmp_path: Path) -> None:
    profile = call_over_the_end(27.629, owner=12)
    result = converted(None, profile.write(tmp_path / "device.json"))
    assert callers(result, "hipLaunchKernel") == {"sibling"}
    assert agreement(result) == (1, 1)


def test_ids_are_held_against_the_operation(tmp_path: Path) -> None:
    """The launch lies in the outer operation as well, but it is not the one that it is of."""
    profile = call_over_the_end(40, owner=11)
    result = converted(None, profile.write(tmp_path / "device.json"))
    assert agreement(result) == (0, 1)
    assert any("External ids of 1 of 1" in warning for warning in result.report.warnings)


def test_annotations_have_no_part_in_it(tmp_path: Path) -> None:
    profile = Profile().op("record_param_comms", 0, 50, **{"External id": 3})
    profile.op("nccl:all_reduce", 5, 40, cat="user_annotation", **{"External id": 4})
    profile.call("cudaLaunchKernelExC", 10, 5, 1).kernel("k", 20, 5, 1, **{"External id": 3})
    result = converted(None, profile.write(tmp_path / "device.json"))
    assert agreement(result) == (1, 1)
