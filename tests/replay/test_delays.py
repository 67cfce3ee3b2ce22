"""Starts that no edge explains: by what, how long, kept in replays and told."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import Profile
from traces import node, recv, run, send, trace

from chakra_et.conversion import convert
from chakra_et.model import Trace
from chakra_et.replay import replay


def launched(late: float, **other: float) -> Profile:
    """A kernel that begins so many us after its launch; perhaps work of another stream before."""
    profile = Profile().op("op", 0, 20)
    profile.call("cudaLaunchKernel", 10, 10, 1)
    if other:
        profile.call("cudaLaunchKernel", 0, 5, 2)
        profile.kernel("other", other["start"], other["took"], 2, stream=20)
    return profile.kernel("late", 20 + late, 50, 1)


def converted(profile: Profile, folder: Path) -> Trace:
    return convert(None, profile.write(folder / "device.json")).trace


def delays(trace: Trace) -> tuple[int | None, int | None, int | None]:
    (node,) = trace.nodes.where(name="late")
    return node.lag_ns, node.late_ns, node.contention_ns


@pytest.mark.parametrize(
    ("late", "other", "expected"),
    [
        (0, {}, (None, None, None)),
        (20, {}, (20_000, None, None)),
        (21, {}, (None, 21_000, None)),
        (463_000, {}, (None, 463_000_000, None)),
        (500, {"start": 10, "took": 505}, (None, None, 500_000)),
        (500, {"start": 10, "took": 600}, (None, None, 500_000)),
        (500, {"start": 10, "took": 300}, (None, 500_000, None)),
        (500, {"start": 100, "took": 415}, (None, 500_000, None)),
    ],
)
def test_what_is_more_than_a_front_end_takes_is_told_apart(
    tmp_path: Path, late: float, other: dict[str, float], expected: tuple[int | None, ...]
) -> None:
    trace = converted(launched(late, **other), tmp_path)
    assert delays(trace) == expected
    figures = replay(trace).figures[0]
    assert figures.span_error == 0
    for what in ("lag", "late", "contention"):
        told = [ns for node in trace.nodes if (ns := getattr(node, f"{what}_ns"))]
        assert figures.delays[what] == {"count": len(told), "ns": sum(told)}


def test_the_path_tells_what_no_edge_explains(tmp_path: Path) -> None:
    path = replay(converted(launched(930), tmp_path)).paths[0]
    assert path.by_name_ns[0] == ("late start of late", 930_000)
    assert path.bound_ns["late"] == 930_000
    assert path.explained_share == pytest.approx(1 - 930 / 1000)
    contended = replay(converted(launched(930, start=10, took=930), tmp_path)).paths[0]
    assert contended.by_name_ns[0] == ("start of late beside other streams", 930_000)
    assert contended.explained_share == pytest.approx(1 - 930 / 1000)


def test_work_of_another_device_is_no_contention(tmp_path: Path) -> None:
    profile = launched(500, start=10, took=505)
    profile.events[3]["args"]["device"] = 1
    assert delays(converted(profile, tmp_path)) == (None, 500_000, None)


def test_a_path_takes_no_time_back() -> None:
    """A receive ends before its sender has closed its record: the path does not lose that time."""
    done = replay(run(
        trace(
            node(1, start=0, took=24),
            send(2, 1, start=48, took=0, deps=(1,)),
            recv(3, 1, tag=2, start=48, took=22, deps=(2,)),
            rank=0,
        ),
        trace(
            recv(1, 0, start=14, took=8),
            node(2, start=45, took=25, deps=(1,)),
            send(3, 0, tag=2, start=70, took=22, deps=(2,)),
            rank=1,
        ),
    ))  # fmt: skip
    for path in done.paths.values():
        assert min(path.bound_ns.values()) >= 0
