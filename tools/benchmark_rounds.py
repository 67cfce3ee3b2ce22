"""One round of the tables of docs/benchmark.md: what a process measures of a model in turns."""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call"

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random

import torch
from benchmark_rows import Samples
from recording.ranks import run_ranks
from recording.window import UNSEEN_STEPS, Step, record

from chakra_et.benchmark.account import account_of
from chakra_et.benchmark.certificate import OperatorTimes, times_of
from chakra_et.benchmark.comms.all_ranks import run_all_ranks
from chakra_et.benchmark.comms.job import prepare as job_of
from chakra_et.benchmark.plan import Choice, Plan
from chakra_et.benchmark.program import Style
from chakra_et.benchmark.running import Settings, prepare, rehearsed
from chakra_et.loading import load
from chakra_et.model import Trace

Make = Callable[[], Step]

STEPS = 2
"""Steps of one recording."""
PLAIN = 3
"""Steps without the profiler, for each recording."""
ITERATIONS = 10
"""Iterations of one process of an emitted program."""
RANKS = 2
LONG_NS = 50_000
TIMEOUT_S = 60.0


def record_first(make: Make, folder: Path) -> None:
    """The recording that programs are made from."""
    record(make(), folder)


def measure(make: Make, first: Path, runs: int, number: int, folder: Path) -> Samples:
    """Record and time a model and its program in turns.

    Which side's memory was there first, and who begins a turn, may matter: the one changes from
    round to round, the other is drawn.
    """
    trace = load(first)[0]
    torch.set_num_threads(1)
    makers: dict[str, Make] = {
        "recorded": make,
        "run": partial(_program, trace),
        "gaps": partial(_program, trace, True),
    }
    names = list(makers) if number % 2 else list(reversed(makers))
    sides = {name: makers[name]() for name in names}
    for step in sides.values():
        step()
    plan = prepare(trace, Settings(threads=1)).plan
    found = Samples(*_coverage([plan]))
    random = Random(number)
    for turn in range(runs):
        for side in _drawn(random, ["recorded", "run"]):
            times, faults = _recorded(sides[side], folder / f"{side} {turn}")
            _add(found, side, times)
            found.add(f"faults {side}", *faults)
        for _ in range(PLAIN):
            for side in _drawn(random, list(sides)):
                found.add(f"plain {side}", _time_of(sides[side]))
    # As many of all series: a run with gaps is compared with recordings.
    found.values["with gaps"] = _thirds(found.values["plain gaps"])
    return found


def _program(trace: Trace, gaps: bool = False) -> Step:
    settings = Settings(threads=1, style=Style(gaps=gaps))
    execution = rehearsed(prepare(trace, settings), settings)

    def step() -> None:
        execution.iterate()

    return step


def _drawn(random: Random, names: list[str]) -> list[str]:
    return random.sample(names, len(names))


def _thirds(values: Sequence[float]) -> list[float]:
    """The medians of what was timed for each recording."""
    return [statistics.median(values[at : at + PLAIN]) for at in range(0, len(values), PLAIN)]


def record_first_ranks(make: Make, folder: Path) -> None:
    """The recordings of all ranks that programs are made from."""
    _run_ranks(make, folder, 1)


def measure_ranks(make: Make, first: Path, runs: int, number: int, folder: Path) -> Samples:
    """The same for a model on several ranks: each recording has processes of its own.

    Times are the sums over the ranks' operators, and the means of their spans.
    """
    traces = load(first)
    job = job_of(traces)
    found = Samples(
        "", _coverage([prepare(t, Settings(threads=1)).plan for t in traces.values()])[1]
    )
    random = Random(number)

    def model(folder: Path) -> None:
        found.add("plain recorded", _run_ranks(make, folder, STEPS))

    def program(folder: Path, gaps: bool = False) -> None:
        settings = Settings(threads=1, warmup=UNSEEN_STEPS, iterations=STEPS,
                            style=Style(gaps=gaps), record=None if gaps else folder)  # fmt: skip
        done = run_all_ranks(traces, job, settings, TIMEOUT_S).outcomes.values()
        spans = [statistics.median(outcome.spans_ns) for outcome in done]
        found.add("with gaps" if gaps else "plain run", statistics.fmean(spans))
        counts = [(outcome.account.runs, outcome.account.operations) for outcome in done]
        found.operators = " of ".join(str(sum(each)) for each in zip(*counts, strict=True))

    does: dict[str, Callable[[Path], None]] = {
        "recorded": model,
        "run": program,
        "gaps": partial(program, gaps=True),
    }
    for turn in range(runs):
        for side in _drawn(random, list(does)):
            path = folder / f"{side} {turn}"
            does[side](path)
            if side != "gaps":
                _add(found, side, _of_ranks(path))
    return found


def _run_ranks(make: Make, folder: Path, steps: int) -> float:
    """Record a model on all ranks; the mean over them of a step's time without the profiler."""

    def program(rank: int) -> None:
        torch.set_num_threads(1)
        step = make()
        for _ in range(UNSEEN_STEPS):
            step()
        spans = [_time_of(step) for _ in range(PLAIN)]
        record(step, folder, steps=steps, rank=rank)
        (folder / f"plain.{rank}").write_text(str(statistics.median(spans)))

    run_ranks([program], RANKS)
    told = [folder / f"plain.{rank}" for rank in range(RANKS)]
    spans = [float(path.read_text()) for path in told]
    for path in told:
        path.unlink()
    return statistics.fmean(spans)


def _of_ranks(folder: Path) -> OperatorTimes:
    """The operators of all ranks."""
    traces = load(folder)
    each = [times_of(trace, Choice()) for trace in traces.values()]
    own, calls = (
        {name: sum(side.get(name, 0) for side in sides) for side in sides for name in side}
        for sides in ([t.own_ns for t in each], [t.calls for t in each])
    )
    span = round(statistics.fmean(t.span_ns for t in each))
    return OperatorTimes(span, own, calls)


def record_and_emit(make: Make, folder: Path) -> None:
    """The first recording, and its program beside it."""
    record_first(make, folder)
    command = [*_chakra_run(folder), "--threads", "1", "--emit", str(_emitted(folder))]
    subprocess.run(command, check=True, stdout=sys.stderr)


def measure_emitted(_make: Make, first: Path, _runs: int, number: int, _folder: Path) -> Samples:
    """Time `chakra run` and the program that it emitted, each in a process of its own.

    One pair is a round: its processes have nothing in common.
    """
    does = {"run": _chakra_run(first), "emitted": [sys.executable, str(_emitted(first))]}
    found = Samples("", 0)
    options = ["--iterations", str(ITERATIONS), "--threads", "1", "--json"]
    for side in _drawn(Random(number), list(does)):
        done = subprocess.run([*does[side], *options], check=True, stdout=subprocess.PIPE)
        found.add(side, statistics.median(json.loads(done.stdout)["span_ns"]))
    return found


def _chakra_run(first: Path) -> list[str]:
    return [str(Path(sys.executable).with_name("chakra")), "run", str(first)]


def _emitted(first: Path) -> Path:
    return first.with_name("program.py")


def _add(found: Samples, side: str, times: OperatorTimes) -> None:
    """Note a recording of so many steps."""
    found.own.setdefault(side, []).append(times)
    found.add(side, times.span_ns / STEPS)


def _coverage(plans: Sequence[Plan]) -> tuple[str, float]:
    """How many operators run, and the share of the recorded time that is in long ones."""
    accounts = [account_of(plan) for plan in plans]
    run, of = sum(a.runs for a in accounts), sum(a.operations for a in accounts)
    every = [operation.duration_ns for plan in plans for operation in plan.operations]
    long = sum(ns for ns in every if ns >= LONG_NS)
    return f"{run} of {of}", long / sum(a.recorded_span_ns for a in accounts)


def _recorded(step: Step, folder: Path) -> tuple[OperatorTimes, list[int]]:
    """The times of a recording, and the page faults of each of its steps."""
    faults: list[int] = []
    record(partial(_count_faults, step, faults), folder, steps=STEPS)
    return times_of(load(folder)[0], Choice()), faults[-STEPS:]


def _count_faults(step: Step, faults: list[int]) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step()
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)


def _time_of(step: Step) -> int:
    begin = time.perf_counter_ns()
    step()
    return time.perf_counter_ns() - begin
