"""A graph with the durations of another run foretells that run."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from traces import node, trace
from truth.files import write
from truth.machine import Run, play
from truth.program import Launch, Op, Program, Statement, SyncDevice, SyncStream
from truth.programs import programs

from chakra_et.conversion import convert
from chakra_et.model import EdgeKind, Trace
from chakra_et.predict import same_places, times_of
from chakra_et.replay import replay
from chakra_et.replay.columns import columns_of

SLOWER = {"gemm": 3.0, "relu": 0.5, "cudaLaunchKernel": 2.0, "graph kernel": 0.25}


def linked(run: Run) -> Trace:
    with tempfile.TemporaryDirectory() as folder:
        return convert(*write(run, Path(folder))).trace


def span(trace: Trace) -> int:
    return next(iter(replay(trace).figures.values())).span_ns


def one(*statements: Statement) -> Trace:
    (run,) = play(Program([list(statements)]))
    return linked(run)


@given(programs())
def test_a_run_with_other_durations_is_foretold_to_the_nanosecond(program: Program) -> None:
    (run,), (other,) = play(program), play(program, lambda name: SLOWER.get(name, 1.0))
    moved = times_of(linked(run), linked(other))
    assert (moved.missing, moved.extra, moved.extra_ns) == (0, 0, 0)
    assert span(moved.trace) == other.span


@given(programs())
def test_a_run_foretells_itself(program: Program) -> None:
    (run,) = play(program)
    trace = linked(run)
    moved = times_of(trace, trace)
    assert moved.place.tolist() == list(range(len(trace.nodes)))
    assert moved.trace.nodes.duration_ns.tolist() == trace.nodes.duration_ns.tolist()
    assert span(moved.trace) == run.span


def test_what_the_other_run_does_besides_follows_what_precedes_it() -> None:
    steps = [Op(2000), Launch(7, 100, 50_000, 10), SyncDevice(50), Op(3000)]
    a, b = one(*steps), one(*steps[:2], Launch(20, 700, 400, 10, "relu"), *steps[2:])
    moved = times_of(a, b)
    assert (moved.missing, moved.extra, moved.extra_ns) == (0, 2, 700 + 400)
    assert span(moved.trace) == span(b)


def test_a_call_that_the_other_run_does_not_make_waits_for_nothing() -> None:
    steps = [Launch(7, 100, 90_000, 10), SyncStream(7, 50), Op(2000), Op(4000)]
    a, b = one(*steps), one(steps[0], *steps[2:])
    moved = times_of(a, b)
    assert (moved.missing, moved.extra) == (1, 0)
    assert span(moved.trace) == span(b) == 100 + 10 + 90_000
    assert span(a) == 100 + 10 + 90_000 + 50 + 6000


def test_lanes_are_paired_by_what_runs_on_them() -> None:
    a = one(Launch(7, 10, 900, 5), Launch(20, 10, 700, 5, "relu"), SyncDevice(5), Op(9))
    b = one(Launch(44, 10, 800, 5), Launch(52, 10, 600, 5, "relu"), SyncDevice(5), Op(9))
    left, right = columns_of(a), columns_of(b)
    places = same_places(left, right)
    names = [node.name for node in b.nodes]
    assert [names[row] for row in places.row] == [node.name for node in a.nodes]
    assert places.in_order.any()


def test_nothing_in_common() -> None:
    a, b = one(Op(500)), one(SyncDevice(700))
    moved = times_of(a, b)
    assert (moved.missing, moved.extra, moved.extra_ns) == (1, 1, 700)
    assert span(moved.trace) == 0


def on_thread(*names: str) -> Trace:
    """Operations of these names, one after the other."""
    return trace(*(
        node(i, start=10 * i, took=10, name=name, is_cpu_op=True, thread=1,
             deps=(i - 1,) if i > 1 else (), kind=EdgeKind.PROGRAM)
        for i, name in enumerate(names, 1)
    ))  # fmt: skip


def test_other_operations_in_another_order_are_other_work() -> None:
    names = [f"op {chr(97 + i)}" for i in range(20)]
    whole = on_thread(*names)
    assert times_of(whole, on_thread(*names[:-1], "other")).same_work
    assert times_of(whole, on_thread(*names[::-1])).same_work, "each has its counterpart"
    stage = on_thread(*names[10::-1], *(f"late {name}" for name in names[:9]))
    assert not times_of(whole, stage).same_work


@pytest.fixture(scope="module")
def ranks(data: Path) -> dict[int, Trace]:
    pairs = {rank: (data / f"dlrm8/host.{rank}.json.gz", data / f"dlrm8/device.{rank}.json.gz")
             for rank in (0, 1, 2, 7)}  # fmt: skip
    return {rank: convert(*pair).trace for rank, pair in pairs.items()}


def test_ranks_foretell_each_other(ranks: dict[int, Trace]) -> None:
    spans = {rank: span(mine) for rank, mine in ranks.items()}
    assert max(spans.values()) > 1.5 * min(spans.values())
    for a, mine in ranks.items():
        for b, other in ranks.items():
            foretold = span(times_of(mine, other).trace)
            assert foretold == pytest.approx(spans[b], rel=0.005), (a, b)


@pytest.mark.parametrize(
    ("run", "numbers"), [("torchrec4", (4, 5, 6)), ("torch213/ddp_2rank", (1, 2, 3))]
)
def test_steps_foretell_each_other(data: Path, run: str, numbers: tuple[int, ...]) -> None:
    host, device = data / run / "host.0.json.gz", data / run / "device.0.json.gz"
    pair = (host if host.exists() else None, device)
    steps = [convert(*pair, steps=str(step)).trace for step in numbers]
    spans = [span(trace) for trace in steps]
    errors = [span(times_of(a, b).trace) / spans[j] - 1
              for a in steps for j, b in enumerate(steps) if a is not b]  # fmt: skip
    assert max(spans) > 1.09 * min(spans)
    assert np.abs(errors).max() < 0.02
