"""Slimming: what is left out is what others say, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recordings import BACKWARD, Profile

from chakra_et.conversion import convert
from chakra_et.definitions import NodeType
from chakra_et.graph import redundant_edges, transitive_reduction
from chakra_et.graph.transitive_reduction import chains, implied
from chakra_et.model import EdgeKind, Edges, Nodes, Trace
from chakra_et.replay import replay


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Nodes on some lanes, edges along most of each lane, and some across; edges lead forward."""
    count = draw(st.integers(2, 30))
    lane = draw(st.lists(st.sampled_from((0, 0, 1, 1, 2, 3)), min_size=count, max_size=count))
    edges: dict[tuple[int, int], bool] = {}
    last: dict[int, int] = {}
    for node, mine in enumerate(lane):
        if mine in last and draw(st.integers(0, 9)):
            edges[last[mine], node] = True
        last[mine] = node
    if draw(st.booleans()):
        # A thread that launches work on a stream: most edges lead from one lane to one other.
        for node, mine in enumerate(lane):
            calls = [other for other in range(node) if lane[other] == 0][-4:]
            if mine == 1 and calls:
                edges[draw(st.sampled_from(calls)), node] = False
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    for a, b in draw(st.lists(pairs, max_size=draw(st.sampled_from((8, 40))))):
        if a != b:
            edges.setdefault((min(a, b), max(a, b)), False)
    ordered = draw(st.permutations(sorted(edges)))
    source, target = (np.array([edge[side] for edge in ordered], np.int64) for side in (0, 1))
    return count, source, target, np.array([edges[edge] for edge in ordered], np.bool_)


def reach(count: int, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Which node is reached from which, by plain search."""
    reached = np.eye(count, dtype=np.bool_)
    for a, b in sorted(pairs, key=lambda pair: pair[1]):
        reached[:, b] |= reached[:, a]
    return reached


@given(graphs(), st.randoms(use_true_random=False))
def test_an_edge_is_implied_if_and_only_if_a_path_of_others_is(graph, random) -> None:
    count, source, target, in_order = graph
    within = np.array([flag or random.random() < 0.8 for flag in in_order], np.bool_)
    share = random.choice((0.1, 0.6))
    asked = np.array([flag and random.random() < share for flag in within & ~in_order], np.bool_)
    chain, linked = chains(count, source, target, in_order)
    found = implied(chain, source, target, linked, within, asked)
    pairs = list(zip(source.tolist(), target.tolist(), strict=True))
    for place, (a, b) in enumerate(pairs):
        others = [pair for i, pair in enumerate(pairs) if i != place and within[i]]
        assert found[place] == (asked[place] and reach(count, others)[a, b]), (a, b)
    left = [pair for i, pair in enumerate(pairs) if within[i] and not found[i]]
    everything = [pair for i, pair in enumerate(pairs) if within[i]]
    assert np.array_equal(reach(count, left), reach(count, everything))


REAL = ("dlrm8/device.0", "kineto/cuda_sync_a100", "kineto/cudagraph_a100", "torchrec4/device.3")


@pytest.mark.parametrize("name", REAL)
def test_real_traces_are_slim_and_complete_without_callers(name: str, data: Path) -> None:
    trace = convert(None, data / f"{name}.json.gz").trace
    assert not redundant_edges(trace).any()
    dependencies = trace.edges.select(trace.edges.kind != EdgeKind.CALL)
    alone = replay(Trace(trace.nodes, dependencies, trace.metadata)).trace
    both = replay(trace).trace
    lasting = trace.nodes.duration_ns > 0
    assert np.array_equal(alone.nodes.start_ns[lasting], both.nodes.start_ns[lasting])


def test_edges_of_a_cycle_stay() -> None:
    """Three nodes in a circle, and an edge behind it that a path would imply."""
    pairs = [(0, 1), (1, 2), (2, 0), (1, 3), (2, 3)]
    edges = Edges.collect(
        4,
        np.array([target for _, target in pairs], np.int64),
        np.array([source for source, _ in pairs], np.uint64),
        np.full(len(pairs), EdgeKind.EVENT, np.uint8),
        np.ones(len(pairs), np.bool_),
    )
    nodes = Nodes(
        id=np.arange(4, dtype=np.uint64),
        type=np.full(4, NodeType.COMP, np.int32),
        name_code=np.zeros(4, np.int32),
        names=["n"],
        start_ns=np.zeros(4, np.int64),
        duration_ns=np.zeros(4, np.int64),
    )
    assert not redundant_edges(Trace(nodes, edges)).any()


def test_overlaps_on_a_stream_give_no_edge_twice(tmp_path: Path) -> None:
    """c runs beside b, b beside a, d after all: d waits for a by way of c alone."""
    profile = Profile().op("op", 0, 1)
    for number, (name, ts, dur) in enumerate(
        [("a", 10, 10), ("b", 12, 30), ("c", 22, 28), ("d", 60, 5)]
    ):
        profile.kernel(name, ts, dur, number + 1)
    trace = convert(None, profile.write(tmp_path / "device.json")).trace
    name = [node.name for node in trace.nodes]
    rows = zip(trace.source_rows().tolist(), trace.edges.target.tolist(), strict=True)
    assert {(name[s], name[t]) for s, t in rows} == {("a", "c"), ("b", "d"), ("c", "d")}


def crowd(threads: int, length: int) -> tuple[np.ndarray, ...]:
    """Threads of two nodes: the first waits for that of a thread `length` before, the second for
    the first one of the thread right before. All edges between threads are asked about.
    """
    first = np.arange(threads)
    second = first + threads
    late = first[length:]
    pairs = [(first, second), (late - length, late), (first[:-1], second[1:])]
    source = np.concatenate([a for a, _ in pairs])
    target = np.concatenate([b for _, b in pairs])
    rank = np.argsort(np.argsort(np.concatenate((first, first + length + 0.5)), kind="stable"))
    along = np.arange(len(source)) < threads
    return rank[source], rank[target], along, ~along


def steps(monkeypatch: pytest.MonkeyPatch, threads: int, length: int) -> int:
    """How many sets of bits are joined to slim the edges of a crowd."""
    source, target, along, asked = crowd(threads, length)
    chain, linked = chains(2 * threads, source, target, along)
    count = 0
    both = transitive_reduction._both

    def counted(one: int, other: int) -> int:
        nonlocal count
        count += 1
        return both(one, other)

    monkeypatch.setattr(transitive_reduction, "_both", counted)
    implied(chain, source, target, linked, np.ones(len(source), np.bool_), asked)
    monkeypatch.setattr(transitive_reduction, "_both", both)
    return count


@pytest.mark.parametrize("length", [3, 200])
def test_work_grows_with_threads_and_no_faster(
    monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    few, many = (steps(monkeypatch, threads, length) for threads in (2_000, 20_000))
    assert 0 < few < many < 12 * few


def test_far_apart_edges_do_not_cost_what_lies_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edges that nothing asks about are passed over, however many."""
    source, target, along, asked = crowd(5_000, 3)
    asked &= (source < 10) | (source > 9_900)
    chain, linked = chains(10_000, source, target, along)
    seen: list[int] = []
    monkeypatch.setattr(
        transitive_reduction, "_walk", lambda chain, source, *rest: seen.append(len(source)) or []
    )
    implied(chain, source, target, linked, np.ones(len(source), np.bool_), asked)
    assert sum(seen) < 200


def test_what_a_call_waits_for_does_not_tell_when_it_is_made(tmp_path: Path) -> None:
    profile = Profile().op("a", 0, 100).op("b", 0, 250, tid=BACKWARD).op("a", 910, 10)
    profile.call("cudaLaunchKernel", 300, 120, 1, tid=BACKWARD).kernel("k", 420, 480, 1)
    profile.call("cudaDeviceSynchronize", 520, 382, 2)
    trace = convert(None, profile.write(tmp_path / "device.json")).trace
    (call,) = trace.nodes.where(name="cudaDeviceSynchronize")
    into = trace.edges.kind[trace.edges.target == call.row].tolist()
    assert {EdgeKind.THREAD, EdgeKind.SYNC} <= set(into)
    assert replay(trace).figures[0].span_error == 0
