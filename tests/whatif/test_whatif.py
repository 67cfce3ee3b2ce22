"""Edits obey their laws, and give the times of a machine that ran the edited program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import chakra
from edits import durations, edited, spans
from hypothesis import given
from hypothesis import strategies as st
from llm_plans import DENSE
from traces import coll, node, trace
from truth.linked import linked, linked_ranks
from truth.machine import play
from truth.program import Collective, Launch, Op, Program, Statement, SyncDevice, SyncStream
from truth.programs import programs

from chakra_et import ChakraError
from chakra_et.files import write
from chakra_et.model import Trace, TraceSet
from chakra_et.whatif import ask, parse_edit
from chakra_et.workloads import Plan, Roofline, device, generate

EDITS = ["time:name~gemm=0.5", "time:name~relu=3", "time:gap=true=0.25", "straggler=0:1.5",
         "jitter=0.1,7"]  # fmt: skip


def one(*statements: Statement) -> TraceSet:
    (run,) = play(Program([list(statements)]))
    return TraceSet({0: linked(run)})


@given(programs(), st.sampled_from(["time:name~gemm=1", "straggler=0:1", "jitter=0"]))
def test_an_edit_that_changes_nothing_is_the_identity(program: Program, text: str) -> None:
    (run,) = play(program)
    traces = TraceSet({0: linked(run)})
    assert edited(traces, text)[0] == traces[0]


@given(programs())
def test_scaling_is_undone_by_its_inverse(program: Program) -> None:
    (run,) = play(program)
    traces = TraceSet({0: linked(run)})
    back = edited(traces, "time:name~gemm=4", "time:name~gemm=0.25")
    assert durations(back) == durations(traces)


@given(programs())
def test_factors_compose_and_order_does_not_matter(program: Program) -> None:
    (run,) = play(program)
    traces = TraceSet({0: linked(run)})
    twice = edited(traces, "time:name~gemm=2", "time:name~gemm=3")
    assert durations(twice) == durations(edited(traces, "time:name~gemm=6"))
    a, b = "time:name~gemm=2", "time:name~relu=0.5"
    assert durations(edited(traces, a, b)) == durations(edited(traces, b, a))


@given(programs())
def test_scaled_work_gives_the_span_of_the_machine(program: Program) -> None:
    (run,) = play(program)
    (changed,) = play(program, lambda name: 2.0 if name == "gemm" else 1.0)
    traces = TraceSet({0: linked(run)})
    assert spans(edited(traces, "time:name~^gemm=2")) == [changed.span]


def test_a_straggler_holds_the_others_up() -> None:
    def steps(ns: int) -> list[Statement]:
        return [Op(ns), Launch(7, ns, ns, 0), Collective(30, ns, 9000), SyncDevice(ns)]

    def program(ns: int) -> Program:
        return Program([steps(2000), steps(ns)])

    runs = play(program(2000))
    traces = linked_ranks(program(2000), runs)
    slower = play(program(4000))
    assert spans(edited(traces, "straggler=1:2")) == [run.span for run in slower]
    with pytest.raises(ChakraError, match="there is no rank 9"):
        edited(traces, "straggler=9:2")


def test_what_is_removed_takes_no_time_and_waits_for_nothing() -> None:
    steps: list[Statement] = [Op(2000), Launch(7, 300, 90_000, 10), SyncStream(7, 500), Op(4000)]
    traces = one(*steps)
    assert spans(edited(traces, "remove:name~StreamSynchronize=yes")) == [2000 + 300 + 10 + 90_000]
    without = edited(traces, "remove:name~gemm=yes")
    assert spans(without) == [2000 + 300 + 500 + 4000]
    assert "gemm 1" not in without[0].nodes.name.tolist()


def test_without_overlap_transfers_and_work_take_turns() -> None:
    def program() -> Program:
        each: list[Statement] = [Op(100), Collective(30, 100, 50_000), Launch(7, 100, 40_000, 0),
                                 SyncDevice(10)]  # fmt: skip
        return Program([each, list(each)])

    runs = play(program())
    traces = linked_ranks(program(), runs)
    answer = ask(traces, [parse_edit("overlap=off")])
    assert all(f.replayed.overlap_ns == 0 for f in answer.after.figures.values())
    assert max(spans(traces)) < 60_000 + 7000
    assert min(f.span_ns for f in answer.after.figures.values()) >= 90_000
    with pytest.raises(ChakraError, match="no transfers on a device"):
        edited(one(Op(5), Launch(7, 5, 5, 5), SyncDevice(5)), "overlap=off")


def test_jitter_is_repeatable_and_stays_within_its_share(data: Path) -> None:
    from chakra_et.conversion import convert

    device = data / "kineto/cuda_sync_a100.json.gz"
    traces = TraceSet({0: convert(None, device).trace})
    first, again, other = (edited(traces, f"jitter=0.1,{seed}") for seed in (1, 1, 2))
    assert durations(first) == durations(again) != durations(other)
    before, after = np.array(durations(traces)), np.array(durations(first))
    assert (np.abs(after - before) <= 0.1 * before + 2).all()


@pytest.mark.parametrize(
    "text",
    ["", "time=2", "time:name~gemm=fast", "time:name~gemm=-1", "straggler=1", "straggler=a:2",
     "jitter=2", "jitter=0.1,2,3", "overlap=on", "remove:name~a=no", "network=5", "network=5,0",
     "colour=red", "network:x=5,1"],
)  # fmt: skip
def test_edits_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(ChakraError):
        parse_edit(text)


def test_the_command(tmp_path: Path) -> None:
    traces = one(Op(2000), Launch(7, 300, 90_000, 10), SyncDevice(500))
    write(traces[0], tmp_path / "t.0.et")
    done = chakra("whatif", tmp_path / "t.0.et", "--set", "time:name~gemm=0.5")
    assert done.code == 0, done.output
    assert "1 nodes, 0.090 to 0.045 ms (scaled)" in done.words or "(scaled)" in done.words
    assert "span, ms 0.093 0.048 -48.5%" in done.words
    told = chakra("whatif", tmp_path / "t.0.et", "--set", "time:name~gemm=0.5", "--json",
                  "-o", tmp_path / "edited.et")  # fmt: skip
    assert '"span_change"' in told.output
    assert (tmp_path / "edited.et").exists()
    refused = chakra("whatif", tmp_path / "t.0.et", "--set", "network=5,100")
    assert (refused.code, "does nothing for one rank" in refused.errors) == (2, True)
    assert "fits nothing" in chakra("whatif", tmp_path / "t.0.et", "--set", "time:name=no=2").output


def test_times_that_are_unknown_and_ranks_that_are_missing_are_told(tmp_path: Path) -> None:
    plan = Plan(model=DENSE, dp=3, sequence=16, global_batch=3)
    for rank, one_of_three in generate(plan, Roofline(device("a100"))).items():
        write(one_of_three, tmp_path / f"trace.{rank}.et")
    grown = chakra("whatif", tmp_path, "--set", "layers=9").words
    assert "unknown times are 0: --set network=US,GB_PER_S gives transfers some" in grown
    (tmp_path / "trace.1.et").unlink()
    alone = chakra("whatif", tmp_path, "--set", "jitter=0.1").words
    assert "communication nodes not matched: group '1': ranks [1] have no trace" in alone


def test_traces_that_are_given_stay_as_they_are() -> None:
    traces = one(Op(2000), Launch(7, 300, 90_000, 10), SyncDevice(500))
    before = Trace(traces[0].nodes.take(np.arange(len(traces[0].nodes))), traces[0].edges,
                   traces[0].metadata)  # fmt: skip
    for text in EDITS:
        edited(traces, text)
    assert traces[0] == before


def test_transfers_that_only_a_host_overlaps_cannot_be_told_apart() -> None:
    traces = TraceSet(
        {0: trace(coll(1, start=0, took=90), node(2, start=0, took=90, is_cpu_op=True))}
    )
    with pytest.raises(ChakraError, match="no other work than transfers on a device"):
        edited(traces, "overlap=off")


def test_work_of_two_streams_does_not_overlap_with_transfers() -> None:
    traces = TraceSet({0: trace(
        coll(1, start=0, took=10, stream=1),
        node(2, start=20, took=100, stream=2, is_cpu_op=False),
        node(3, start=30, took=5, stream=3, is_cpu_op=False),
        coll(4, start=40, took=50, stream=1, ctrl=(1,)),
        node(5, start=60, took=20, stream=2, is_cpu_op=False, ctrl=(2,)),
        node(6, start=60, took=20, stream=3, is_cpu_op=False, ctrl=(3,)),
    )})  # fmt: skip
    assert ask(traces, []).after.figures[0].replayed.overlap_ns > 0
    once = edited(traces, "overlap=off")
    assert ask(once, []).after.figures[0].replayed.overlap_ns == 0
    assert spans(edited(once, "overlap=off")) == spans(once)


@pytest.mark.parametrize(
    "text",
    ["time:name~gemm=1e300", "straggler=0:1e12", f"straggler={'9' * 5000}:1", "network=1e300,1",
     "network=1,1e-300", "jitter=nan"],
)  # fmt: skip
def test_numbers_that_no_time_can_hold_are_refused(text: str) -> None:
    with pytest.raises(ChakraError, match="expected a"):
        parse_edit(text)
