"""Parts of host time and late starts as nodes: the same times by other means."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from places import EXAMPLES
from recordings import Profile

from chakra_et import Trace, TraceSet, cure, operator_times, validate
from chakra_et.conversion import convert
from chakra_et.passes import Pass, show_late_starts, split_host_time, splitting
from chakra_et.replay import replay


@pytest.fixture(scope="module")
def recorded() -> Trace:
    folder = EXAMPLES / "simple_add"
    return convert(folder / "host.json.gz", folder / "device.json.gz").trace


def changed(trace: Trace, by: Pass) -> Trace:
    return by(TraceSet({0: trace})).traces[0]


def converted(profile: Profile, folder: Path) -> Trace:
    return convert(None, profile.write(folder / "device.json")).trace


def by_name(trace: Trace) -> dict[tuple[str | None, bool], int]:
    return {(item.name, item.on_host): item.self_ns for item in operator_times(trace)}


@pytest.mark.parametrize("least_ns", [1, 2_000, 10**12])
def test_a_split_trace_replays_the_same_and_counts_the_same(recorded: Trace, least_ns: int) -> None:
    split = changed(recorded, splitting(least_ns))
    once, again = replay(recorded), replay(split)
    (before,), (after,) = once.figures.values(), again.figures.values()
    assert after.span_ns == before.span_ns
    starts = [
        np.sort(done.trace.nodes.start_ns[done.trace.nodes.attributes.present("stream")])
        for done in (once, again)
    ]
    assert np.array_equal(*starts)
    left, names = by_name(recorded), by_name(split)
    assert {key: ns for key, ns in left.items() if key[0]} == {k: names[k] for k in left if k[0]}
    assert (len(split.nodes) > len(recorded.nodes)) == (least_ns < 10**12)
    assert not [o for o in validate(split).outcomes if o.severity.label == "error"]


def test_who_goes_by_names_alone_sees_the_right_times(tmp_path: Path) -> None:
    profile = Profile().op("aten::mm", 0, 1000).op("aten::resolve_conj", 2, 1).op("step", 1100, 100)
    split = changed(converted(profile, tmp_path), split_host_time)
    took = [(n.name, n.duration_ns, n.rest_of) for n in split.nodes]
    first = split.nodes[0].id
    assert took == [
        ("aten::mm", 2_000, None),
        ("aten::resolve_conj", 1_000, None),
        ("aten::mm", 997_000, first),
        ("gap", 100_000, None),
        ("step", 100_000, None),
    ]
    assert [n.thread for n in split.nodes] == [split.nodes[0].thread] * 5
    assert all(source < n.id for n in split.nodes for source in n.data_deps)


def test_small_parts_stay_where_they_are(tmp_path: Path) -> None:
    profile = Profile().op("a", 0, 10).op("b", 2, 1).op("c", 100, 10)
    split = changed(converted(profile, tmp_path), splitting(50_000))
    (gap,), (inner,) = split.nodes.where(name="gap"), split.nodes.where(name="b")
    assert (gap.duration_ns, inner.time_parts) == (90_000, f"{split.nodes[0].id}:7000")


def test_transfers_and_threads_that_poll_are_not_split(tmp_path: Path) -> None:
    profile = Profile().op("a", 0, 20).op("gloo:all_reduce", 20, 500, tid=9, cat="user_annotation")
    profile.op("aten::copy_", 100, 50, tid=9)
    for i in range(2):
        profile.call("cudaEventQuery", 1000 * i, 5, 0, tid=8)
    trace = converted(profile, tmp_path)
    assert len(changed(trace, split_host_time).nodes) == len(trace.nodes)


def late(tmp_path: Path) -> Trace:
    profile = Profile().op("op", 0, 20).call("cudaLaunchKernel", 10, 10, 1)
    return converted(profile.kernel("late", 520, 50, 1), tmp_path)


def test_a_late_start_as_a_node(tmp_path: Path) -> None:
    trace = late(tmp_path)
    shown = changed(trace, show_late_starts)
    (kernel,), (before,) = shown.nodes.where(name="late"), shown.nodes.where(name="late start")
    assert (kernel.late_ns, before.duration_ns) == (None, 500_000)
    assert before.id in kernel.data_deps
    assert set(before.data_deps) == set(kernel.data_deps) - {before.id}
    assert replay(shown).figures[0].span_ns == replay(trace).figures[0].span_ns == 570_000


@pytest.mark.parametrize("host", ["fold", "keep"])
def test_a_simulator_gets_late_starts_in_nodes(tmp_path: Path, host: str) -> None:
    ready = cure(TraceSet({0: late(tmp_path)}), "astra-sim", host=host).traces[0]
    for name in ("lag_ns", "late_ns", "contention_ns"):
        assert not ready.nodes.attributes.named(name)
    assert replay(ready).figures[0].span_ns == 570_000


@pytest.mark.parametrize("host", ["fold", "keep"])
def test_polls_are_no_time_of_the_run(tmp_path: Path, host: str) -> None:
    profile = Profile().op("op", 0, 20).call("cudaLaunchKernel", 10, 10, 1).kernel("k", 25, 50, 1)
    for i in range(3):
        profile.call("cudaEventQuery", 1000 * i, 5, 0, tid=4009)
    ready = cure(TraceSet({0: converted(profile, tmp_path)}), "astra-sim", host=host).traces[0]
    assert not ready.nodes.where(name="cudaEventQuery")
    assert replay(ready).figures[0].span_ns == 75_000
