"""Splitting, inserting, moving and fusing obey their laws, and give the times of the machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from edits import spans
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from traces import coll, node, run, trace
from truth.linked import linked, linked_ranks
from truth.machine import play
from truth.program import Collective, Launch, Op, Program, Statement, SyncDevice, SyncStream

from chakra_et import ChakraError
from chakra_et.model import EdgeKind, TraceSet
from chakra_et.replay import replay
from chakra_et.whatif import Edited, MissedError, edit, parse_edit


def edited(traces: TraceSet, *texts: str) -> Edited:
    return edit(traces, [parse_edit(text) for text in texts])


def one(program: Program) -> TraceSet:
    (played,) = play(program)
    return TraceSet({0: linked(played)})


@pytest.fixture(scope="module")
def worked() -> TraceSet:
    """Operators, kernels on two streams, a copy, and calls that wait for them."""
    steps: list[Statement] = [
        Op(2000), Launch(7, 300, 9000, 100), Launch(8, 300, 4000, 0, name="relu"), Op(700),
        SyncStream(7, 50), Op(500), Launch(7, 300, 1500, 20), SyncDevice(100),
    ]  # fmt: skip
    return one(Program([steps]))


@given(count=st.integers(1, 7), name=st.sampled_from(["gemm", "relu", "op", "cudaLaunch"]))
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
def test_parts_of_work_take_as_long_as_the_whole(worked: TraceSet, count: int, name: str) -> None:
    after = edited(worked, f"split:name~{name}={count}").traces
    assert spans(after) == spans(worked)
    assert after[0].nodes.duration_ns.sum() == worked[0].nodes.duration_ns.sum()
    if count == 1:
        assert after is worked


@given(a=st.integers(0, 50), b=st.integers(0, 50), name=st.sampled_from(["gemm", "relu", "^op"]))
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
def test_what_is_inserted_adds_up_and_can_be_taken_out(
    worked: TraceSet, a: int, b: int, name: str
) -> None:
    both = edited(worked, f"insert:name~{name}={a}", f"insert:name~{name}={b}")
    assert spans(both.traces) == spans(edited(worked, f"insert:name~{name}={a + b}").traces)
    assert spans(edited(worked, f"insert:name~{name}=0").traces) == spans(worked)
    assert spans(edited(both.traces, "remove:name=inserted=yes").traces) == spans(worked)


@given(us=st.integers(0, 50), factor=st.floats(0.25, 3))
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
def test_order_does_not_matter_for_edits_of_different_nodes(
    worked: TraceSet, us: int, factor: float
) -> None:
    texts = [f"insert:name~relu={us}", f"time:name~^gemm={factor}", "split:name~^op=2"]
    assert spans(edited(worked, *texts).traces) == spans(edited(worked, *texts[::-1]).traces)


def test_work_inserted_on_a_stream_is_that_of_the_machine() -> None:
    def program(more: int) -> TraceSet:
        steps: list[Statement] = [Op(2000), Launch(7, 300, 9000 + more, 100), SyncDevice(100)]
        return one(Program([steps]))

    assert spans(edited(program(0), "insert:name~gemm=5").traces) == spans(program(5000))


def test_a_split_transfer_carries_and_takes_as_much_on_all_ranks() -> None:
    each: list[Statement] = [Op(100), Collective(30, 100, 50_000), SyncDevice(10)]
    program = Program([each, [Op(4000), *each]])
    traces = linked_ranks(program, play(program))
    after = edited(traces, "split:type=COMM_COLL=4").traces
    assert spans(after) == spans(traces)
    sizes = [int(t[0].nodes.attributes.dense("comm_size", 0, np.int64).sum())
             for t in (traces, after)]  # fmt: skip
    assert sizes[0] == sizes[1]
    assert not replay(after).unmatched
    with pytest.raises(ChakraError, match="other ranks would have to make as many"):
        edited(traces, "insert:type=COMM_COLL=5")


def test_a_node_moves_and_comes_back() -> None:
    traces = run(trace(*(
        node(i, start=10 * i, took=10, name=f"op{i}", is_cpu_op=True, kind=EdgeKind.PROGRAM,
             deps=(i - 1,) if i > 1 else ())
        for i in range(1, 6)
    )))  # fmt: skip
    moved = edited(traces, "move=2:4").traces
    order = np.argsort(replay(moved).trace.nodes.start_ns)
    assert moved[0].nodes.id[order].tolist() == [1, 3, 4, 2, 5]
    assert edited(moved, "move=2:1").traces[0].edges == traces[0].edges
    for text, told in (("move=2:9", "no node with id 9"), ("move=3/2:4", "which rank")):
        with pytest.raises(ChakraError, match=told):
            edited(traces, text)


def kernels() -> TraceSet:
    """Two kernels that can be one, a third, and a transfer that waits for the second."""
    return run(trace(
        node(1, start=0, took=10, stream=7, name="gemm_a", is_cpu_op=False, num_ops=8),
        node(2, start=10, took=20, stream=7, name="relu_b", is_cpu_op=False, num_ops=2,
             deps=(1,), kind=EdgeKind.DATA),
        node(3, start=30, took=40, stream=7, name="gemm_c", is_cpu_op=False, deps=(2,),
             kind=EdgeKind.DATA),
        coll(4, start=30, took=5, stream=9, deps=(2,), kind=EdgeKind.DATA),
    ))  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "fusions.csv"
    path.write_text("kernels,factor\ngemm + relu,0.5\n")
    return path


def test_kernels_fuse_where_a_table_says_so(table: Path) -> None:
    after = edited(kernels(), f"fuse={table}")
    (change,) = after.changes
    assert change.provenance == {"table": 1, "recorded": 2}
    assert change.told == ("1 groups of device work fused",)
    nodes = after.traces[0].nodes
    assert sorted(each.name for each in nodes) == ["gemm_a + relu_b", "gemm_c", "node 4"]
    assert nodes[0].duration_ns == 15
    assert nodes.attributes.get(0, "num_ops") == 10
    assert spans(after.traces) == [15 + 40]
    starts = replay(after.traces).trace.nodes.start_ns
    assert (starts - starts[0]).tolist() == [0, 15, 15]


def test_a_fusion_with_factor_one_keeps_the_time(table: Path) -> None:
    table.write_text("gemm + relu,1\n")
    assert spans(edited(kernels(), f"fuse={table}").traces) == spans(kernels())


def test_the_calls_of_fused_kernels_take_no_time(table: Path) -> None:
    table.write_text("gemm + gemm,1\n")
    steps: list[Statement] = [Launch(7, 300, 9000, 0), Launch(7, 300, 9000, 0), SyncDevice(1)]
    traces = one(Program([steps]))
    after = edited(traces, f"fuse={table}").traces
    assert len(after[0].nodes) == len(traces[0].nodes) - 1
    assert after[0].nodes.duration_ns.sum() == traces[0].nodes.duration_ns.sum() - 300


def test_kernels_with_something_between_them_stay_apart(table: Path) -> None:
    traces = run(trace(
        node(1, start=0, took=10, stream=7, name="gemm", is_cpu_op=False),
        node(2, start=10, took=9, stream=8, name="other", is_cpu_op=False, deps=(1,),
             kind=EdgeKind.EVENT),
        node(3, start=20, took=20, stream=7, name="relu", is_cpu_op=False, deps=(1, 2),
             kind=EdgeKind.EVENT),
    ))  # fmt: skip
    with pytest.raises(MissedError, match="1 groups have something to wait for in between"):
        edited(traces, f"fuse={table}")


@pytest.mark.parametrize(
    ("content", "told"),
    [("gemm,0.5", "no fusion"), ("gemm + (,0.5", "no fusion"), ("gemm + relu", "no fusion"),
     ("gemm + relu,-1", "no fusion"), ("gemm + softmax,0.5", "one right after the other")],
)  # fmt: skip
def test_tables_that_say_nothing_are_refused(table: Path, content: str, told: str) -> None:
    table.write_text(content + "\n")
    with pytest.raises(ChakraError, match=told):
        edited(kernels(), f"fuse={table}")


@pytest.mark.parametrize(
    "text", ["split:name~a=0", "split:name~a=99999", "insert:name~a=-1", "move=1", "fuse=none.csv"]
)
def test_values_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(ChakraError):
        parse_edit(text)
