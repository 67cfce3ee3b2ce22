"""How long a step takes, by a replay of one rank for each program."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import chakra
from hypothesis import given, settings
from llm_plans import DENSE, interleaved, plans, with_experts

from chakra_et.build import Rank, Workload, write_packed, write_workload
from chakra_et.errors import ChakraError
from chakra_et.estimate import (
    ROOFLINE,
    Case,
    Constants,
    Copies,
    Machine,
    copies_of_set,
    copies_of_traces,
    copies_of_workload,
    estimate_plan,
    load_constants,
)
from chakra_et.estimate.table import tasks_of
from chakra_et.network import Level, Network, Topology, load_topology
from chakra_et.replay import replay
from chakra_et.workloads import Plan, Recompute, Schedule, device, generate, program

FLAT = Topology(
    name="one switch", levels=[Level(name="all", latency_us=2, gigabytes_per_second=50)]
)
"""Every rank has a link of its own: nothing is shared."""
ON_FLAT = Machine(device("a100"), FLAT, Constants())
PEAKS = Machine(device("a100"), load_topology("dgx-a100"), ROOFLINE)
PLAN = Plan(model=DENSE, tp=2, pp=2, dp=2, sequence=64, global_batch=8)


def of_plan(plan: Plan) -> Copies:
    """One rank for each program of a plan."""
    return copies_of_workload(plan.workload(), program(plan))


# ---------------------------------------------------------------------------------------------
# One rank for each program stands for all


@settings(max_examples=25)
@given(plans | interleaved | with_experts)
def test_one_rank_for_each_program_takes_what_all_ranks_take(plan: Plan) -> None:
    all_ranks = Case(copies_of_traces(generate(plan)), ON_FLAT)
    one_each = Case(of_plan(plan), ON_FLAT)
    assert one_each.run().step_ns == all_ranks.run().step_ns
    assert len(one_each.copies.traces) <= len(all_ranks.copies.traces)


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        replace(PLAN, schedule=Schedule.GPIPE, zero=3, cp=2),
        replace(PLAN, schedule=Schedule.ZERO_BUBBLE, recompute=Recompute.FULL),
    ],
)
def test_without_a_host_it_is_the_replay_of_the_whole_set(plan: Plan) -> None:
    case = Case(of_plan(plan), replace(ON_FLAT, constants=ROOFLINE))
    traces = generate(plan)
    took = dict(zip(case.graph.tasks, np.rint(case.costs().device.sum(1)), strict=True))
    for rank, trace in traces.items():
        found = tasks_of(trace, rank)
        for number, task in enumerate(found.tasks):
            if not task.group:
                trace.nodes.duration_ns[found.task_of == number] = took[task]
    done = replay(traces, network=Network(FLAT))
    assert case.run().step_ns == max(one.span_ns for one in done.figures.values())


@pytest.mark.parametrize("pack", [False, True])
def test_a_set_on_disk_takes_what_its_plan_takes(tmp_path: Path, pack: bool) -> None:
    # Ranks up to 127 need other bytes than ranks from 128 on: two files stand for one program.
    plan = replace(PLAN, dp=64, global_batch=128)
    write = write_packed if pack else write_workload
    write(plan.workload(), program(plan), tmp_path / "set")
    copies = copies_of_set(tmp_path / "set")
    assert [len(ranks) for ranks in copies.programs] == [128, 128]
    assert Case(copies, PEAKS).run().step_ns == estimate_plan(plan, PEAKS).step_ns


def test_a_set_without_a_manifest_goes_rank_by_rank(tmp_path: Path) -> None:
    write_workload(PLAN.workload(), program(PLAN), tmp_path / "set")
    (tmp_path / "set" / "manifest.json").unlink()
    copies = copies_of_set(tmp_path / "set")
    assert len(copies.programs) == 8
    assert Case(copies, ON_FLAT).run().step_ns == estimate_plan(PLAN, ON_FLAT).step_ns


# ---------------------------------------------------------------------------------------------
# Times


def step(work: object, constants: Constants = ROOFLINE, ranks: int = 2) -> int:
    """The step of a program in which all ranks are copies."""
    copies = copies_of_workload(Workload(rank=ranks), work)  # type: ignore[arg-type]
    return Case(copies, replace(PEAKS, constants=constants)).run().step_ns


def test_a_product_takes_its_work_and_all_else_its_bytes() -> None:
    def work(rank: Rank) -> None:
        with rank.on(stream=0):
            rank.compute("product", op_type="matmul", flops=312 * 10**9)
            rank.compute("norm", op_type="norm", moved_bytes=2_039_000_000)
            rank.compute("recorded", duration_ns=500)

    assert step(work) == 1_000_000 + 1_000_000 + 500
    half = replace(ROOFLINE, matrix_efficiency=0.5, memory_efficiency=0.25)
    assert step(work, half) == 2_000_000 + 4_000_000 + 500


def test_the_host_runs_ahead_of_the_device() -> None:
    def work(rank: Rank) -> None:
        with rank.on(stream=0):
            rank.compute("long", op_type="norm", moved_bytes=2_039_000 * 100)
            for _ in range(3):
                rank.compute("short", op_type="norm", moved_bytes=2_039)

    # 100 us hide three launches of 20 us; without the long one the host decides.
    assert step(work, replace(ROOFLINE, launch_ns=20_000)) == 20_000 + 100_000 + 3 * 1
    assert step(work, replace(ROOFLINE, launch_ns=200_000)) == 4 * 200_000 + 1


def test_constants_add_what_they_say() -> None:
    shapes = [(1, 8, 64, 16)] * 3

    def attend(rank: Rank) -> None:
        inputs = [
            rank.tensor(name, shape, "fp16") for name, shape in zip("qkv", shapes, strict=True)
        ]
        rank.compute("core", op_type="attention", moved_bytes=2_039, inputs=inputs)

    def reduce(rank: Rank) -> None:
        rank.all_reduce("rank", 1 << 20)

    def head(rank: Rank) -> None:
        rank.compute("head", op_type="matmul", flops=312 * 10**6)

    assert step(attend) == 1
    assert step(attend, replace(ROOFLINE, attention_kernels=4, kernel_ns=10)) == 1 + 40
    moved_ns = 3 * (8 * 64 * 64) * 2 / 2.039e12 * 1e9
    assert step(attend, replace(ROOFLINE, score_passes=3)) == round(1 + moved_ns)
    assert step(reduce, replace(ROOFLINE, jitter_ns=500)) - step(reduce) == 500
    eight = [step(reduce, replace(ROOFLINE, jitter_ns=x), 16) for x in (0, 100)]
    assert eight[1] - eight[0] == 7 * 100
    assert step(head, replace(ROOFLINE, head_efficiency=0.25)) == 4 * 1000


def test_a_message_is_waited_for_by_the_host() -> None:
    def work(rank: Rank) -> None:
        with rank.on(stream=0):
            if rank.coordinate("rank") == 0:
                done = rank.compute("slow", op_type="norm", moved_bytes=2_039_000 * 50)
                rank.send(1, 2400, after=done)
            else:
                rank.receive(0, 2400)
                rank.compute("behind", op_type="norm", moved_bytes=2_039_000)

    transfer = 5_000 + 8
    assert step(work) == 50_000 + transfer + 1_000
    # The launch of what follows begins when the message is there.
    assert step(work, replace(ROOFLINE, launch_ns=7_000)) == 7_000 + 50_000 + transfer + 8_000


def test_the_path_adds_up_and_names_its_sources() -> None:
    done = estimate_plan(replace(PLAN, zero=0), Machine(device("a100"), FLAT, Constants()))
    assert sum(done.path_ns.values()) == pytest.approx(done.step_ns, abs=2000)
    assert sum(done.work_ns.values()) == pytest.approx(done.step_ns, abs=2000)
    assert done.path_ns["recorded"] == 0
    assert min(done.path_ns[word] for word in ("roofline", "network", "fitted")) > 0
    peaks = estimate_plan(PLAN, PEAKS)
    assert peaks.path_ns["fitted"] == 0
    assert peaks.step_ns < done.step_ns
    assert [ranks for ranks, _ in peaks.program_ns] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_trace_with_a_host_of_its_own_gets_no_launches() -> None:
    def work(rank: Rank) -> None:
        rank.compute("python", duration_ns=1000, cpu=True)

    assert step(work, Constants()) == 1000


# ---------------------------------------------------------------------------------------------
# Errors


def test_constants_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("launch_ns = 5000\nscore_passes = 0\n")
    assert load_constants(path) == replace(Constants(), launch_ns=5000, score_passes=0)
    path.write_text("lunch_ns = 5000\n")
    with pytest.raises(ChakraError, match="no constant 'lunch_ns'"):
        load_constants(path)
    path.write_text("launch_ns = -1\n")
    with pytest.raises(ChakraError, match="launch_ns is -1"):
        load_constants(path)
    path.write_text("launch_ns = soon\n")
    with pytest.raises(ChakraError, match="no constants"):
        load_constants(path)


def test_a_device_without_a_rate_for_the_type() -> None:
    plan = replace(PLAN, dtype="fp8")
    with pytest.raises(ChakraError, match="has no rate for fp8"):
        estimate_plan(plan, PEAKS)


def test_a_rank_that_has_no_trace() -> None:
    traces = dict(generate(PLAN))
    del traces[7]
    with pytest.raises(ChakraError, match="rank 7 takes part, but has no trace"):
        Case(copies_of_traces(traces), PEAKS)


def test_a_message_without_an_end() -> None:
    def work(count: int) -> Callable[[Rank], None]:
        def run(rank: Rank) -> None:
            for _ in range(count):
                rank.send(1, 8) if rank.coordinate("rank") == 0 else rank.receive(0, 8)

        return run

    one, two = (Workload(rank=2).traces(work(count)) for count in (1, 2))
    with pytest.raises(ChakraError, match="0 sends and 1 receive with"):
        Case(copies_of_traces({0: one[0], 1: two[1]}), PEAKS)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("manifest.json", b"{", "truncated"),
        ("comm_groups.json", b"{}", "which is not there"),
    ],
)
def test_a_broken_manifest(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    write_workload(PLAN.workload(), program(PLAN), tmp_path / "set")
    (tmp_path / "set" / name).write_bytes(content)
    with pytest.raises(ChakraError, match=problem):
        copies_of_set(tmp_path / "set")


# ---------------------------------------------------------------------------------------------
# The command


def test_the_command_takes_a_set_or_a_plan(tmp_path: Path) -> None:
    options = ("--model", "llama2-7b", "--pp", 4, "--tp", 2, "--gbs", 4)
    assert chakra("generate", "llm", *options, "--pack", "-o", tmp_path / "set").code == 0
    told = [
        json.loads(chakra("estimate", *words, "--json").output)
        for words in ((tmp_path / "set",), options)
    ]
    assert told[0] == told[1]
    assert told[0]["world_size"] == 8
    shown = chakra("estimate", *options, "--peaks").words
    assert "8 ranks of NVIDIA A100" in shown
    assert "roofline" in shown
    assert "fitted" not in shown


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "one set is wanted"),
        (("DIR", "--model", "llama2-7b"), "one set is wanted"),
        (("--model", "llama2-7b", "--peaks", "--constants", "x"), "--peaks and --constants"),
        (("--model", "llama2-7b", "--network", "none.toml"), "no topology"),
        (("--model", "llama2-7b", "--constants", "none.toml"), "no constants"),
        (("--model", "llama2-7b", "--device", "abacus"), "no device 'abacus'"),
    ],
)
def test_what_the_command_refuses(words: tuple[str, ...], problem: str) -> None:
    done = chakra("estimate", *words)
    assert done.code == 2
    assert problem in done.errors
