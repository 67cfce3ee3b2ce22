"""One row of the tables of docs/benchmark.md: a model and its program, measured in turns."""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call"

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from recording.ranks import run_ranks
from recording.window import Step, record

from chakra_et.benchmark.account import account_of
from chakra_et.benchmark.certificate import OperatorTimes, times_of
from chakra_et.benchmark.comms.all_ranks import run_all_ranks
from chakra_et.benchmark.comms.job import prepare as job_of
from chakra_et.benchmark.plan import Choice, Plan
from chakra_et.benchmark.program import Style
from chakra_et.benchmark.running import Settings, prepare, rehearsed
from chakra_et.loading import load

STEPS = 2
"""Steps of one recording."""
PLAIN = 3
"""Steps without the profiler, for each recording."""
RANKS = 2
LEAST_SHARE = 0.01
LONG_NS = 50_000
MOST_ERROR = 0.1
TIMEOUT_S = 60.0

RANKS_HEAD = [
    "model", "operators", "in those above 50 us", "recorded (ms)", "run (ms)", "error",
    "operators off by more than 10 %",
]  # fmt: skip
HEAD = [
    *RANKS_HEAD, "page faults: recorded, run", "with recorded gaps (ms)", "error",
    "without profiler: model (ms)", "run (ms)", "error",
]  # fmt: skip


@dataclass
class Recordings:
    """Recordings of a model and of its program; spans are those of a step, in ns."""

    name: str
    operators: str
    """How many of the operators run."""
    long_share: float
    recorded: list[OperatorTimes] = field(default_factory=list)
    run: list[OperatorTimes] = field(default_factory=list)

    def cells(self) -> list[str]:
        """The first cells of the row."""
        model, again = self.spans()
        error = _error(model, again)
        spans = [_spread(model), _spread(again), error, self._off()]
        return [self.name, self.operators, f"{self.long_share:.0%}", *spans]

    def spans(self) -> tuple[list[float], list[float]]:
        """The spans of both sides."""
        model, again = ([t.span_ns / STEPS for t in side] for side in (self.recorded, self.run))
        return model, again

    def _off(self) -> str:
        """Operators above a share of the time whose own time differs by more than a tenth.

        Beside each stands how far the recordings themselves lie from their median.
        """
        total = statistics.median(sum(t.own_ns.values()) for t in self.recorded)
        found, told = [], 0
        for name in sorted({name for times in self.recorded for name in times.own_ns}):
            model, again = (
                [times.own_ns.get(name, 0) for times in side] for side in (self.recorded, self.run)
            )
            middle = statistics.median(model)
            if middle < LEAST_SHARE * total:
                continue
            told += 1
            error = statistics.median(again) / middle - 1
            if abs(error) > MOST_ERROR:
                own = f"{min(model) / middle - 1:+.0%} to {max(model) / middle - 1:+.0%}"
                found.append(f"{name.removeprefix('aten::')} {error:+.0%} ({own})")
        return f"{len(found)} of {told}" + (f": {', '.join(found)}" if found else "")


@dataclass
class Measured(Recordings):
    """What was measured of one model and its program in one process."""

    recorded_faults: list[int] = field(default_factory=list)
    """Page faults of each recorded step."""
    run_faults: list[int] = field(default_factory=list)
    with_gaps: list[int] = field(default_factory=list)
    """Without the profiler, but with the pauses that were recorded with it."""
    plain: list[int] = field(default_factory=list)
    plain_run: list[int] = field(default_factory=list)

    def cells(self) -> list[str]:
        """All cells of the row."""
        faults = (statistics.fmean(side) for side in (self.recorded_faults, self.run_faults))
        return [
            *super().cells(),
            ", ".join(f"{count:,.0f}" for count in faults),
            _spread(self.with_gaps),
            _error(self.spans()[0], self.with_gaps),
            _spread(self.plain),
            _spread(self.plain_run),
            _error(self.plain, self.plain_run),
        ]


def measure(name: str, make: Callable[[], Step], runs: int, folder: Path) -> Measured:
    """Record a model, make its program, and record and time both in turns."""
    step = make()
    record(step, folder / "first")
    trace, settings = load(folder / "first")[0], Settings(threads=1)
    program = prepare(trace, settings)
    execution = rehearsed(program, settings)
    pausing = Settings(threads=1, style=Style(gaps=True))
    paused = rehearsed(prepare(trace, pausing), pausing)
    found = Measured(name, *_coverage([program.plan]))
    for number in range(runs):
        times, faults = _recorded(step, folder / f"model {number}")
        found.recorded.append(times)
        found.recorded_faults += faults
        times, faults = _recorded(execution.iterate, folder / f"run {number}")
        found.run.append(times)
        found.run_faults += faults
        for _ in range(PLAIN):
            found.plain.append(_time_of(step))
            found.plain_run.append(execution.iterate())
            found.with_gaps.append(paused.iterate())
    return found


def measure_ranks(name: str, make: Callable[[], Step], runs: int, folder: Path) -> Recordings:
    """The same for a model on several ranks, each a process with one thread.

    Times are the sums over the ranks' operators, and the mean of their spans.
    """
    _record_ranks(make, folder / "first")
    traces = load(folder / "first")
    job = job_of(traces)
    plans = [prepare(trace, Settings(threads=1)).plan for trace in traces.values()]
    found = Recordings(name, "", _coverage(plans)[1])
    for number in range(runs):
        _record_ranks(make, folder / f"model {number}", STEPS)
        found.recorded.append(_of_ranks(folder / f"model {number}"))
        again = folder / f"run {number}"
        settings = Settings(threads=1, warmup=1, iterations=STEPS, record=again)
        done = run_all_ranks(traces, job, settings, TIMEOUT_S)
        found.run.append(_of_ranks(again))
    accounts = [outcome.account for outcome in done.outcomes.values()]
    run, of = sum(a.runs for a in accounts), sum(a.operations for a in accounts)
    found.operators = f"{run} of {of}"
    return found


def _record_ranks(make: Callable[[], Step], folder: Path, steps: int = 1) -> None:
    def program(rank: int) -> None:
        record(make(), folder, steps=steps, rank=rank)

    run_ranks([program], RANKS)


def _of_ranks(folder: Path) -> OperatorTimes:
    each = [times_of(trace, Choice()) for trace in load(folder).values()]
    own, calls = (
        {name: sum(side.get(name, 0) for side in sides) for side in sides for name in side}
        for sides in ([t.own_ns for t in each], [t.calls for t in each])
    )
    return OperatorTimes(round(statistics.fmean(t.span_ns for t in each)), own, calls)


def _coverage(plans: Sequence[Plan]) -> tuple[str, float]:
    """How many operators run, and the share of the recorded time that is in long ones."""
    accounts = [account_of(plan) for plan in plans]
    run, of = sum(a.runs for a in accounts), sum(a.operations for a in accounts)
    every = [operation.duration_ns for plan in plans for operation in plan.operations]
    long = sum(ns for ns in every if ns >= LONG_NS)
    return f"{run} of {of}", long / sum(a.recorded_span_ns for a in accounts)


def _recorded(step: Callable[[], object], folder: Path) -> tuple[OperatorTimes, list[int]]:
    """The times of a recording, and the page faults of each of its steps."""
    faults: list[int] = []
    record(partial(_count_faults, step, faults), folder, steps=STEPS)
    return times_of(load(folder)[0], Choice()), faults[-STEPS:]


def _count_faults(step: Callable[[], object], faults: list[int]) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step()
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)


def _time_of(step: Step) -> int:
    begin = time.perf_counter_ns()
    step()
    return time.perf_counter_ns() - begin


def _spread(values: Sequence[float]) -> str:
    low, high = min(values) / 1e6, max(values) / 1e6
    return f"{statistics.median(values) / 1e6:.2f} ({low:.2f} to {high:.2f})"


def _error(model: Sequence[float], again: Sequence[float]) -> str:
    return f"{statistics.median(again) / statistics.median(model) - 1:+.1%}"


def line(cells: Iterable[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"
