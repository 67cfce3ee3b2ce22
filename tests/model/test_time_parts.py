"""Whose time a host node's interval holds: by nesting, in files, in replays and what-ifs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recordings import Profile
from traces import node, trace

import chakra_et
from chakra_et.conversion import convert
from chakra_et.model import Trace, TraceSet, time_parts
from chakra_et.model.time_parts import unreadable
from chakra_et.passes import renumber
from chakra_et.replay import replay

Spans = list[tuple[int, int]]
"""Starts and lengths, in us."""


def matmul(repeats: int = 4) -> Profile:
    """A product that does nearly all of its work after its last child has returned."""
    profile = Profile()
    for i in range(repeats):
        profile.op("aten::linear", 1100 * i, 1050)
        profile.op("aten::mm", 1100 * i + 10, 1030)
        profile.op("aten::resolve_conj", 1100 * i + 12, 1)
    return profile


def converted(profile: Profile, folder: Path) -> Trace:
    return convert(None, profile.write(folder / "device.json")).trace


@pytest.fixture
def products(tmp_path: Path) -> Trace:
    return converted(matmul(), tmp_path)


def test_what_a_caller_does_after_its_last_child_is_its_own(products: Trace) -> None:
    linear, product, last = products.nodes[:3]
    assert (linear.duration_ns, product.duration_ns, last.duration_ns) == (10_000, 2_000, 1_088_000)
    assert last.time_parts == f"{product.id}:1027000 {linear.id}:10000 gap:50000"
    assert (linear.self_ns, product.self_ns, last.self_ns) == (20_000, 1_029_000, 1_000)


def test_halving_an_operator_takes_away_half_of_its_self_time(products: Trace) -> None:
    done = replay(products, scale=[("name~^aten::mm$", 0.5)])
    figures, path = done.figures[0], done.paths[0]
    assert figures.recorded_span_ns - figures.span_ns == 4 * 1_029_000 // 2
    assert path.by_name_ns[:2] == [("aten::mm", 2_058_000), ("Python after aten::linear", 150_000)]
    assert path.bound_ns["gap"] == 150_000
    assert done.trace.nodes.self_ns[:3].tolist() == [20_000, 514_500, 1_000]


def test_gaps_are_scaled_apart(products: Trace) -> None:
    span = replay(products).figures[0].span_ns
    for selector, left in (("gap=true", 150_000), ("gap!=true", span - 150_000)):
        assert replay(products, scale=[(selector, 0)]).figures[0].span_ns == span - left
    assert replay(products, scale=[("gap=false", 0)]).figures[0].span_ns == 150_000
    # Nothing describes a gap but that it is one, so all that excludes something takes gaps, too.
    assert replay(products, scale=[("name~.", 0)]).figures[0].span_ns == 150_000
    assert replay(products, scale=[("name!~mm", 0)]).figures[0].span_ns == 4 * 1_029_000


def test_an_annotation_does_nothing_itself(tmp_path: Path) -> None:
    """A user's pause within a step is Python's time, whatever is open around it."""
    profile = Profile().op("ProfilerStep#1", 0, 1000, cat="user_annotation")
    profile.op("aten::linear", 100, 50).op("aten::view", 110, 20).op("aten::mm", 900, 100)
    found = converted(profile, tmp_path)
    path = replay(found).paths[0]
    assert path.by_name_ns[0] == ("Python after aten::linear", 750_000)
    assert ("Python in ProfilerStep#1", 100_000) in path.by_name_ns
    assert path.bound_ns["gap"] == 850_000
    assert replay(found, scale=[("gap=true", 0)]).figures[0].span_ns == 150_000
    assert replay(found).figures[0].replayed.exposed_compute_ns == 150_000
    # In tables its own time is its own, as in the profiler's.
    (step,) = (i for i in chakra_et.operator_times(found) if i.name == "ProfilerStep#1")
    assert step.self_ns == 850_000


def test_a_duration_that_is_asked_for_is_that_of_all_that_the_node_owns(products: Trace) -> None:
    done = replay(products, duration=lambda n: 9_000 if n.name == "aten::mm" else None)
    assert done.figures[0].span_ns == 4_350_000 - 4 * 1_020_000
    assert [n.self_ns for n in done.trace.nodes if n.name == "aten::mm"] == [9_000] * 4


def test_times_by_operator(products: Trace) -> None:
    found = {item.name: item for item in chakra_et.operator_times(products)}
    assert list(found) == ["aten::mm", None, "aten::linear", "aten::resolve_conj"]
    product, gap, linear = found["aten::mm"], found[None], found["aten::linear"]
    assert (product.calls, product.self_ns, product.total_ns) == (4, 4_116_000, 4_120_000)
    assert (linear.self_ns, linear.total_ns, linear.wait_ns) == (80_000, 4_200_000, 0)
    assert (gap.calls, gap.self_ns) == (3, 150_000)
    again = chakra_et.operator_times(replay(products).trace)
    assert [(i.self_ns, i.total_ns) for i in again] == [
        (i.self_ns, i.total_ns) for i in found.values()
    ]


def test_what_calls_itself_counts_once(tmp_path: Path) -> None:
    profile = Profile().op("aten::mean", 0, 100).op("aten::mean", 10, 80).op("aten::sum", 20, 60)
    (mean,) = (
        item
        for item in chakra_et.operator_times(converted(profile, tmp_path))
        if item.name == "aten::mean"
    )
    assert (mean.calls, mean.self_ns, mean.total_ns) == (1, 40_000, 100_000)


def test_parts_follow_new_ids() -> None:
    parts = "5:300 gap:100"
    shifted = trace(
        node(7, start=1000, took=500, name="inner", is_cpu_op=True, time_parts=parts),
        node(5, start=0, took=1000, name="outer", is_cpu_op=True),
    )
    (again,) = renumber(TraceSet({0: shifted})).traces.values()
    assert [n.name for n in again.nodes] == ["outer", "inner"]
    assert again.nodes[1].time_parts == "1:300 gap:100"
    assert again.nodes.self_ns.tolist() == [1300, 100]


@pytest.mark.parametrize(
    "text", ["", "gap", "5:-1", "5:1:2", "x:5", "5:99", "gap:501", "7:1", "8:1"]
)
def test_what_makes_no_sense_is_no_part(text: str) -> None:
    wrong = trace(
        node(5, start=0, took=1000, is_cpu_op=True),
        node(7, start=1000, took=500, is_cpu_op=True, time_parts=text),
    )
    sound = text == "5:99"
    assert wrong.nodes.self_ns.tolist() == ([1099, 401] if sound else [1000, 500])
    assert unreadable(wrong.nodes).tolist() == ([] if sound else [1])


@st.composite
def nested(draw: st.DrawFn, begin: int = 0, end: int = 1000, depth: int = 3) -> Spans:
    """Operations of one thread, each within its caller."""
    cuts = sorted(draw(st.sets(st.integers(begin, end), max_size=6)))
    spans: Spans = []
    for first, last in zip(cuts[::2], cuts[1::2], strict=False):
        spans.append((first, last - first))
        if depth and last - first > 2:
            spans += draw(nested(first + 1, last - 1, depth - 1))
    return spans


@given(nested())
def test_each_moment_is_of_the_innermost_operation(
    tmp_path_factory: pytest.TempPathFactory, spans: Spans
) -> None:
    profile = Profile().op("op 0", 0, 1000)
    for i, (start, length) in enumerate(spans, 1):
        profile.op(f"op {i}", start, length)
    found = converted(profile, tmp_path_factory.mktemp("t"))
    owner = [0] * 1000
    for i, (start, length) in enumerate(spans, 1):
        owner[start : start + length] = [i] * length
    own = {n.name: n.self_ns for n in found.nodes}
    assert own == {f"op {i}": 1000 * owner.count(i) for i in range(len(spans) + 1)}
    assert time_parts(found.nodes).by_node(len(found.nodes)).sum() == 1_000_000


def test_a_thread_that_only_polls_is_no_part_of_the_run(tmp_path: Path) -> None:
    """The watchdog asks every 100 ms, whatever the rest does."""
    profile = Profile().op("step", 0, 1000).op("step", 1000, 1000)
    for i in range(3):
        profile.call("cudaEventQuery", 100_000 * i + 50, 5, 0, tid=4009)
    found = converted(profile, tmp_path)
    assert [n.polling for n in found.nodes.where(name="cudaEventQuery")] == [True] * 3
    done = replay(found, scale=[("name!~Query", 0.5)])
    assert (done.figures[0].recorded_span_ns, done.figures[0].span_ns) == (2_000_000, 1_000_000)
    assert [name for name, _ in done.paths[0].by_name_ns] == ["step"]
