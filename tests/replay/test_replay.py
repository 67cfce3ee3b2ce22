"""Replay: properties, figures, what-ifs, errors and the command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from truth.linked import linked, linked_ranks
from truth.machine import play
from truth.program import Collective, Launch, Op, Program, Record, SyncDevice, WaitEvent
from truth.programs import programs

from chakra_et.definitions import CollectiveType, Kind, NodeType
from chakra_et.errors import ChakraError
from chakra_et.files import read, write
from chakra_et.graph import find_cycle, topological_order
from chakra_et.model import AttributeTable, EdgeKind, Edges, Node, Nodes, Trace
from chakra_et.replay import AlphaBeta, replay, select

PAIR = Program(
    [
        [Op(1000), Launch(7, 100, 9000, 10), Collective(30, 100, 50_000), SyncDevice(5), Op(10)],
        [Op(1000), Launch(7, 100, 40_000, 10), Collective(30, 100, 50_000), SyncDevice(5), Op(10)],
    ]
)


def graph(durations: list[int], edges: list[tuple[int, int]]) -> Trace:
    """Host nodes without recorded times, with edges between their rows."""
    count = len(durations)
    attributes = AttributeTable(count)
    attributes.add("is_cpu_op", Kind.BOOL, np.ones(count, np.bool_))
    nodes = Nodes(
        id=np.arange(count, dtype=np.uint64),
        type=np.full(count, NodeType.COMP, np.int32),
        name_code=np.arange(count, dtype=np.int32),
        names=[f"n{i}" for i in range(count)],
        start_ns=np.zeros(count, np.int64),
        duration_ns=np.array(durations, np.int64),
        attributes=attributes,
    )
    return Trace(
        nodes,
        Edges.collect(
            count,
            np.array([t for _, t in edges], np.int64),
            np.array([s for s, _ in edges], np.uint64),
            np.full(len(edges), EdgeKind.DATA, np.uint8),
            np.zeros(len(edges), np.bool_),
        ),
    )


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]]]:
    durations = draw(st.lists(st.integers(0, 1000), min_size=1, max_size=12))
    rows = st.integers(0, len(durations) - 1)
    pairs = draw(st.lists(st.tuples(rows, rows), max_size=30))
    return durations, [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]


@given(graphs())
def test_a_node_starts_when_the_last_it_waits_for_ends(case: tuple[Any, Any]) -> None:
    durations, edges = case
    starts = replay(graph(durations, edges)).trace.nodes.start_ns.tolist()
    for row, start in enumerate(starts):
        assert start == max([starts[s] + durations[s] for s, t in edges if t == row], default=0)


@given(graphs(), st.data())
def test_a_longer_duration_never_ends_a_rank_earlier(case: tuple[Any, Any], data: Any) -> None:
    durations, edges = case
    before = replay(graph(durations, edges)).figures[0].span_ns
    longer = list(durations)
    longer[data.draw(st.integers(0, len(durations) - 1))] += data.draw(st.integers(0, 500))
    assert replay(graph(longer, edges)).figures[0].span_ns >= before


@given(programs(), st.sampled_from([1.0, 0.5, 2.0]))
def test_the_replay_of_a_replayed_timeline_is_itself(program: Program, factor: float) -> None:
    (run,) = play(program)
    once = replay(linked(run), scale=[("name~gemm", factor)])
    twice = replay(once.trace)
    assert np.array_equal(twice.trace.nodes.start_ns, once.trace.nodes.start_ns)
    assert np.array_equal(twice.trace.nodes.duration_ns, once.trace.nodes.duration_ns)
    assert twice.figures[0].span_error == 0


@given(programs(ranks=2))
def test_so_is_that_of_several_ranks(program: Program) -> None:
    once = replay(linked_ranks(program, play(program)), scale=[("name~gemm", 0.5)])
    twice = replay(once.traces)
    for rank, trace in once.traces.items():
        assert np.array_equal(twice.traces[rank].nodes.start_ns, trace.nodes.start_ns)


@given(programs())
def test_scaling_nothing_changes_nothing(program: Program) -> None:
    (run,) = play(program)
    trace = linked(run)
    plain = replay(trace).trace
    assert replay(trace, scale=[("name~.", 1.0)]).trace == plain
    assert replay(trace, duration=lambda node: None).trace == plain
    assert replay(trace, duration=lambda node: node.self_ns).trace == plain


@given(programs())
def test_the_critical_path_is_as_long_as_the_span(program: Program) -> None:
    (run,) = play(program)
    done = replay(linked(run))
    assert done.paths[0].length_ns == done.figures[0].span_ns
    parts = done.figures[0].replayed
    total = parts.exposed_compute_ns + parts.overlap_ns + parts.exposed_comm_ns + parts.other_ns
    assert total == done.figures[0].span_ns


def test_waiting_and_transfer_are_told_apart() -> None:
    traces = linked_ranks(PAIR, play(PAIR))
    faster = replay(traces, duration=lambda n: 500 if "gemm" in n.name else None)
    nodes = [t.nodes for t in faster.traces.values()]
    took = [n.duration_ns[n.type == NodeType.COMM_COLL].tolist() for n in nodes]
    assert took[0][0] >= 50_000
    assert min(t[0] for t in took) == 50_000
    assert faster.matched == 2
    assert faster.unmatched == {}


def test_a_rank_without_a_trace_is_told() -> None:
    traces = linked_ranks(PAIR, play(PAIR))
    done = replay({0: traces[0], 2: traces[1]})
    assert done.matched == 0
    assert any("ranks [1] have no trace" in reason for reason in done.unmatched)


def test_a_ring_that_sends_first_needs_buffers(data: Path) -> None:
    traces = {rank: read(data / "et" / "ring8" / f"ring.{rank}.et") for rank in range(8)}
    done = replay(traces, network=AlphaBeta(1000.0, 1e9))
    assert done.matched == 8 * 28
    assert done.unmatched == {}
    assert all(f.span_ns > 14_000 for f in done.figures.values())


def test_a_network_model_gives_transfers() -> None:
    traces = linked_ranks(PAIR, play(PAIR))
    done = replay(traces, network=AlphaBeta(2000.0, 1e9))
    nodes = done.traces[1].nodes
    took = int(nodes.duration_ns[nodes.type == NodeType.COMM_COLL].min())
    assert took <= 2 * 2000 + 1024 <= took + 40_000


def test_alpha_beta_counts_steps_of_rings() -> None:
    model = AlphaBeta(1000.0, 1e9)
    assert model.transfer_ns(CollectiveType.ALL_REDUCE, 4000, range(4)) == 6 * 1000 + 6000
    assert model.transfer_ns(CollectiveType.ALL_GATHER, 1000, range(4)) == 3 * 1000 + 3000
    assert model.transfer_ns(CollectiveType.REDUCE_SCATTER, 4000, range(4)) == 3 * 1000 + 3000
    assert model.transfer_ns(None, 1000, range(2)) == 1000 + 1000


def test_events_hold_only_the_stream_that_waits() -> None:
    program = Program(
        [[Op(10), Launch(7, 10, 5000), Record(7, 1, 10), Launch(20, 10, 100), WaitEvent(20, 1, 10),
          Launch(20, 10, 100, 0, "relu"), SyncDevice(10), Op(1)]]
    )  # fmt: skip
    (run,) = play(program)
    counts = linked(run).edges.counts()
    assert counts[EdgeKind.EVENT] == (1, 0)
    assert counts[EdgeKind.SYNC] == (2, 0)


def test_a_cycle_is_named() -> None:
    trace = graph([1, 1, 1], [(0, 1), (1, 2), (2, 1)])
    with pytest.raises(ChakraError, match=r"form a cycle: (1 'n1' -> 2|2 'n2' -> 1)"):
        replay(trace)


def test_selectors() -> None:
    trace = graph([1, 2, 3], [])
    assert select(trace, "name~n[01]").tolist() == [True, True, False]
    assert select(trace, "name!=n1").tolist() == [True, False, True]
    assert (
        select(trace, "type=COMP").tolist() == [True, True, True]
        or select(trace, "type=COMP_NODE").all()
    )
    assert select(trace, "is_cpu_op=True").all()
    for wrong in ("gemm", "name~[", "nothing=1"):
        with pytest.raises(ChakraError):
            select(trace, wrong)


def test_negative_factors_and_durations_are_refused() -> None:
    trace = graph([1], [])
    with pytest.raises(ChakraError, match="scaled by"):
        replay(trace, scale=[("name~.", -1)])
    with pytest.raises(ChakraError, match="negative"):
        replay(trace, duration=lambda node: -1)


@given(graphs())
def test_orders_and_cycles(case: tuple[Any, Any]) -> None:
    durations, edges = case
    source = np.array([t for _, t in edges], np.int64)
    target = np.array([s for s, _ in edges], np.int64)
    order = topological_order(len(durations), source, target)
    place = {node: i for i, node in enumerate(order.tolist())}
    assert len(place) == len(durations)
    assert all(place[s] < place[t] for s, t in zip(source.tolist(), target.tolist(), strict=True))
    assert find_cycle(len(durations), source, target) == []


def run_command(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "chakra_et.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command(tmp_path: Path) -> None:
    for rank, trace in linked_ranks(PAIR, play(PAIR)).items():
        write(trace, tmp_path / f"trace.{rank}.et")
    done = run_command("replay", tmp_path, "--json", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["communication"] == {"matched": 2, "unmatched": {}}
    rank = content["ranks"]["0"]
    assert rank["span_error"] == 0
    assert rank["kernel_start_error"] == {"median": 0, "p95": 0}
    assert rank["exposed_comm_ns"]["recorded"] == rank["exposed_comm_ns"]["replayed"]
    assert 0 <= rank["host_bound_share"] <= 1
    assert rank["edges"]["sync"] == {"total": 2, "inferred": 0}
    assert len(read(tmp_path / "out" / "replayed.1.et").nodes) == rank["nodes"]
    one = run_command("replay", tmp_path / "trace.0.et", "--scale", "name~gemm", "0.5",
                      "--scale", "type=COMM_COLL_NODE", "0")  # fmt: skip
    assert one.returncode == 0, one.stderr
    assert "bound by" in one.stdout
    # What `--for astra-sim` writes beside the traces is no trace.
    (tmp_path / "comm_groups.json").write_text('{"1": [0, 1]}')
    both = run_command("replay", tmp_path)
    assert both.returncode == 0, both.stderr
    assert both.stdout.count("bound by") == 2
    assert "…" not in both.stdout, "in a pipe nothing is cut"
    wrong = run_command("replay", tmp_path / "trace.0.et", "--scale", "gemm", "0.5")
    assert wrong.returncode == 2
    assert "invalid selector" in wrong.stderr
    none = run_command("replay", tmp_path, "--json", "--scale", "name~no such name", "0.5")
    assert none.returncode == 0
    assert "'name~no such name' matches no node" in none.stderr
    assert json.loads(none.stdout)["ranks"]["0"] == rank


def test_a_node_can_be_given_any_duration() -> None:
    def double(node: Node) -> int:
        return 2 * int(node.duration_ns)

    assert replay(graph([3, 4], [(0, 1)]), duration=double).figures[0].span_ns == 14
