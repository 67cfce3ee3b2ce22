"""The kernel runs plans as the engines in Python do, or leaves them to these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from both_ways import both_ways, needs_kernel
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.kernel import kernel
from chakra_et.replay.engine import Plan, Times, kernel_columns, run
from chakra_et.replay.resolving import Waiting, run_resolving

TIMES = st.integers(-20, 100)


def column(values: Any) -> Any:
    return np.array(values, np.int64)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Edges lead anywhere, also in circles; durations and lags may be negative."""
    count = draw(st.integers(0, 12))
    rows = st.integers(0, max(count - 1, 0))
    edges = draw(st.lists(st.tuples(rows, rows), max_size=20 if count else 0))
    columns = [column(draw(st.lists(TIMES, min_size=count, max_size=count))) for _ in range(3)]
    ends = column(edges).reshape(-1, 2).T
    return Plan(*columns, ends[0], ends[1], count)


@st.composite
def waiting_plans(draw: st.DrawFn) -> tuple[Plan, Waiting]:
    """With work on streams, calls that launch some of it, and calls that wait for streams."""
    plan = draw(plans())
    rows = list(range(len(plan)))
    work = draw(st.lists(st.sampled_from(rows), unique=True)) if rows else []
    calls = draw(st.lists(st.sampled_from(rows), unique=True)) if work else []
    streams = draw(st.integers(1, 20))
    each = {"min_size": len(work), "max_size": len(work)}
    stream = draw(st.lists(st.integers(0, min(streams, len(work)) - 1), **each)) if work else []
    launch = draw(st.lists(st.sampled_from([-1, *rows]), **each))
    own = draw(st.lists(TIMES, **each))
    scopes = {row: draw(st.lists(st.sampled_from(stream), max_size=20)) for row in calls}
    return plan, Waiting(scopes, *map(column, (work, stream, launch, own)))


def assert_same(found: tuple[Any, Any]) -> None:
    fast, slow = found
    if not isinstance(fast, Times):
        assert fast == slow
        return
    for name in ("start", "end", "done"):
        assert getattr(fast, name).tolist() == getattr(slow, name).tolist()
    assert fast.found == slow.found


@needs_kernel
@given(plans())
def test_plans_are_run_alike(plan: Plan) -> None:
    assert_same(both_ways(run, plan))


@needs_kernel
@given(waiting_plans())
def test_calls_find_what_they_wait_for_alike(case: tuple[Plan, Waiting]) -> None:
    assert_same(both_ways(run_resolving, *case))


def chain(count: int, duration: int = 10) -> Plan:
    """Nodes one after the other."""
    nothing, rows = np.zeros(count, np.int64), np.arange(count)
    return Plan(np.full(count, duration), nothing, nothing, rows[:-1], rows[1:], count)


@needs_kernel
@pytest.mark.parametrize("work", [run, lambda plan: run_resolving(plan, Waiting())])
def test_times_that_do_not_fit_are_refused_by_python(work: Any) -> None:
    fast, slow = both_ways(work, chain(3, 1 << 62))
    assert fast == slow
    assert fast.startswith("OverflowError")


@needs_kernel
@pytest.mark.parametrize("row", [-1, 3])
def test_an_edge_to_no_node_is_left_to_python(row: int) -> None:
    module, plan = kernel(), chain(3)
    assert module is not None
    plan.target = column([1, row])
    columns = kernel_columns(plan, plan.release)
    none = column([])
    assert module.replay(columns) is None
    assert module.replay_resolving(columns, (none, column([0]), *[none] * 5), 16) is None


@needs_kernel
@pytest.mark.parametrize(
    "odd",
    [
        {0: [9]},  # a call that is no node
        {1: [-1, 1]},  # offsets that are none
        {1: [0, 5]},
        {2: [7]},  # a stream without work
        {3: [9]},  # work that is no node
        {4: [-1]},  # work on no stream
        {4: [1 << 40]},
        {5: [-2]},  # a launch by no call
    ],
)
def test_odd_columns_are_left_to_python(odd: dict[int, list[int]]) -> None:
    module, plan = kernel(), chain(3)
    assert module is not None
    sound = [[1], [0, 1], [0], [2], [0], [0], [5]]
    told = tuple(column(odd.get(place, values)) for place, values in enumerate(sound))
    columns = kernel_columns(plan, plan.release)
    assert module.replay_resolving(columns, tuple(map(column, sound)), 16) is not None
    assert module.replay_resolving(columns, told, 16) is None


@needs_kernel
def test_columns_of_different_lengths_are_refused() -> None:
    module, plan = kernel(), chain(3)
    assert module is not None
    duration, *others = kernel_columns(plan, plan.release)
    with pytest.raises(ValueError, match="different lengths"):
        module.replay((duration[:2], *others))


# Work is counted, not timed.


@needs_kernel
@pytest.mark.parametrize("count", [1000, 2000])
def test_each_edge_is_followed_once(count: int) -> None:
    module, plan = kernel(), chain(count)
    assert module is not None
    *_, followed = module.replay(kernel_columns(plan, plan.release))
    assert followed == count - 1


@needs_kernel
@pytest.mark.parametrize("count", [1000, 2000])
def test_each_node_is_picked_once_and_each_call_that_waits_twice(count: int) -> None:
    """Every tenth node waits for the stream of work that the node before it launches."""
    module, plan = kernel(), chain(count)
    assert module is not None
    calls = np.arange(9, count, 10)
    keep = ~np.isin(plan.target, calls - 1)
    work, launch = calls - 1, calls - 2
    plan.source, plan.target = plan.source[keep], plan.target[keep]
    plan.source = np.concatenate([plan.source, launch])
    plan.target = np.concatenate([plan.target, work])
    one = np.zeros(len(calls), np.int64)
    waiting = (calls, np.arange(len(calls) + 1), one, work, one, launch, one)
    *_, targets, _, picked, followed = module.replay_resolving(
        kernel_columns(plan, plan.release), waiting, 16
    )
    assert len(targets) == len(calls)
    assert count <= picked <= count + 2 * len(calls)
    assert len(plan.source) <= followed <= len(plan.source) + len(calls)
