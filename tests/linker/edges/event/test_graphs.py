"""Graphs of device work: the dependencies and streams that newer profilers tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from accounts import converted, edges_into, names
from hypothesis import given
from hypothesis import strategies as st
from recordings import Profile

from chakra_et.conversion import Conversion
from chakra_et.linker.evidence import Evidence
from chakra_et.replay import replay

FIRST = 1 << 40
DRAWN = Evidence.EVENT_ARROW.label
ARROW = "arrow between nodes of a graph: evidence, not work"


def launched() -> Profile:
    profile = Profile().op("step", 0, 12, cat="user_annotation")
    return profile.call("cudaGraphLaunch", 2, 5, 1)


def with_host_node() -> Profile:
    """Two chains on four streams; a function of the host is a node of the first."""
    profile = launched().kernel("producer", 20, 30, 1, stream=21)
    profile.kernel("independent", 20, 40, 1, stream=22)
    profile.kernel("HostNode: log", 51, 25, 1, stream=21, cat="graph_host_node")
    profile.kernel("after_host", 77, 10, 1, stream=23).kernel("consumer", 61, 8, 1, stream=24)
    profile.arrow(FIRST, (21, 50), (21, 51)).arrow(FIRST + 1, (21, 76), (23, 77))
    return profile.arrow(FIRST + 2, (22, 60), (24, 61))


def span_us(result: Conversion, *scale: tuple[str, float]) -> float:
    return float(replay(result.trace, scale=scale).figures[0].span_ns / 1000)


def test_arrows_between_nodes_of_a_graph_are_stated_edges(tmp_path: Path) -> None:
    result = converted(None, with_host_node().write(tmp_path / "device.json"))
    launch = ("cudaGraphLaunch", "launch", "correlation id")
    order = ("producer", "stream", "order of starts")
    assert edges_into(result, "HostNode: log") == {launch, order}
    assert edges_into(result, "after_host") == {launch, ("HostNode: log", "event", DRAWN)}
    assert edges_into(result, "consumer") == {launch, ("independent", "event", DRAWN)}
    assert not result.trace.edges.inferred.any()
    assert {
        r["reason"]: r["count"] for r in result.report.records["ac2g"].as_dict()["left_out"]
    } == {ARROW: 6}
    (join,) = (j for j in result.report.joins if j.what.startswith("arrows"))
    assert (join.matched, join.of) == (3, 3)


def test_what_ifs_follow_the_arrows(tmp_path: Path) -> None:
    result = converted(None, with_host_node().write(tmp_path / "device.json"))
    assert span_us(result) == 87
    assert span_us(result, ("name~producer", 3)) == 147
    assert span_us(result, ("name~independent", 3)) == 149


def test_arrows_of_calls_are_no_evidence(tmp_path: Path) -> None:
    profile = with_host_node().arrow(7, (21, 50), (24, 61))
    result = converted(None, profile.write(tmp_path / "device.json"))
    assert ("producer", "event", DRAWN) not in edges_into(result, "consumer")
    assert result.report.records["ac2g"].left_out[ARROW] == 6


@pytest.mark.parametrize("ends", [((99, 50.0), (24, 61.0)), ((22, 19.0), (24, 61.0))])
def test_an_arrow_without_work_at_an_end_is_counted(
    tmp_path: Path, ends: tuple[tuple[int, float], tuple[int, float]]
) -> None:
    profile = launched().kernel("independent", 20, 40, 1, stream=22)
    profile.kernel("consumer", 61, 8, 1, stream=24).arrow(FIRST, *ends)
    result = converted(None, profile.write(tmp_path / "device.json"))
    (join,) = (j for j in result.report.joins if j.what.startswith("arrows"))
    assert (join.matched, join.of) == (0, 1)


def test_an_arrow_against_the_times_is_left_out_and_counted(tmp_path: Path) -> None:
    profile = launched().kernel("long", 20, 60, 1, stream=22)
    profile.kernel("early", 40, 8, 1, stream=24).arrow(FIRST, (22, 80), (24, 40))
    result = converted(None, profile.write(tmp_path / "device.json"))
    assert edges_into(result, "early") == {("cudaGraphLaunch", "launch", "correlation id")}
    assert any(w.startswith("1 event edge contradicts the recorded times")
               for w in result.report.warnings)  # fmt: skip


def test_without_arrows_times_tell(tmp_path: Path) -> None:
    profile = launched().kernel("a", 20, 30, 1, stream=21).kernel("b", 51, 8, 1, stream=22)
    result = converted(None, profile.write(tmp_path / "device.json"))
    assert ("a", "event", Evidence.EVENT_GRAPH.label) in edges_into(result, "b")


@given(st.permutations(range(4)), st.integers(0, 3))
def test_the_stream_of_a_lane_is_the_original_one(
    tmp_path_factory: pytest.TempPathFactory, streams: list[int], lane: int
) -> None:
    """Kernels of two streams in one lane of a viewer: only those of one stream follow another."""
    one, two, *_ = (30 + stream for stream in streams)
    args = {"graph id": 3}
    profile = launched().kernel("a", 20, 20, 1, stream=lane, original_stream=one, **args)
    profile.kernel("beside", 25, 5, 1, stream=lane, original_stream=two, **args)
    profile.kernel("b", 40.5, 9.5, 1, stream=lane, original_stream=one, **args)
    path = tmp_path_factory.mktemp("lanes") / "device.json"
    result = converted(None, profile.write(path))
    launch = ("cudaGraphLaunch", "launch", "correlation id")
    assert edges_into(result, "beside") == {launch}
    assert edges_into(result, "b") == {launch, ("a", "stream", "order of starts")}
    column = result.trace.nodes.attributes.dense("stream", -1, int).tolist()
    told = dict(zip(names(result), column, strict=True))
    assert {told["a"], told["b"], told["beside"]} == {one, two}
    assert span_us(result, ("name=beside", 6)) == 55
