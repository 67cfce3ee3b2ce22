"""Fill the table of docs/benchmark.md: how well runs repeat recordings, on this machine.

    python tools/benchmark_table.py [--runs 7] [--models NAME ...] [--print]

Each model is recorded; its recording becomes a program; then model and program are recorded in
turns, `--runs` times each, two steps at a time, and timed in turns without the profiler. Run it
on a machine that does nothing else (`.venv-torch/bin/python tools/benchmark_table.py`); it
takes about five minutes. With `--print` the table is printed, and the file is not changed.
"""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call"

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from recording import models
from recording.window import Step, record

from chakra_et.benchmark.account import Account, account_of
from chakra_et.benchmark.certificate import OperatorTimes, times_of
from chakra_et.benchmark.plan import Choice
from chakra_et.benchmark.program import Style
from chakra_et.benchmark.running import Settings, prepare, rehearsed
from chakra_et.loading import load

TARGET = Path(__file__).parents[1] / "docs" / "benchmark.md"
BEGIN, END = "<!-- table: tools/benchmark_table.py -->", "<!-- end of table -->"
STEPS = 2
"""Steps of one recording."""
PLAIN = 3
"""Steps without the profiler, for each recording."""
LEAST_SHARE = 0.01
LONG_NS = 50_000
HEAD = """\
| model | operators | in those above 50 us | recorded (ms) | run (ms) | error | operators off by more than 10 % | with recorded gaps (ms) | error | without profiler: model (ms) | run (ms) | error |
|---|---:|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|"""  # noqa: E501


@dataclass
class Measured:
    """What was measured of one model and its program; spans are those of a step, in ns."""

    name: str
    account: Account
    long_share: float
    recorded: list[OperatorTimes] = field(default_factory=list)
    run: list[OperatorTimes] = field(default_factory=list)
    with_gaps: list[int] = field(default_factory=list)
    """Without the profiler, but with the pauses that were recorded with it."""
    plain: list[int] = field(default_factory=list)
    plain_run: list[int] = field(default_factory=list)

    def row(self) -> str:
        """The line of the table."""
        model, again = ([t.span_ns / STEPS for t in side] for side in (self.recorded, self.run))
        cells = [
            self.name,
            f"{self.account.runs} of {self.account.operations}",
            f"{self.long_share:.0%}",
            _spread(model),
            _spread(again),
            _error(model, again),
            self._off(),
            _spread(self.with_gaps),
            _error(model, self.with_gaps),
            _spread(self.plain),
            _spread(self.plain_run),
            _error(self.plain, self.plain_run),
        ]
        return f"| {' | '.join(cells)} |"

    def _off(self) -> str:
        """Operators above a share of the time whose own time differs by more than a tenth."""
        total = statistics.median(sum(t.own_ns.values()) for t in self.recorded)
        names = {name for times in self.recorded for name in times.own_ns}
        found, told = [], 0
        for name in sorted(names):
            model, again = (
                statistics.median(t.own_ns.get(name, 0) for t in side)
                for side in (self.recorded, self.run)
            )
            if model < LEAST_SHARE * total:
                continue
            told += 1
            error = again / model - 1
            if abs(error) > 0.1:
                found.append(f"{name.removeprefix('aten::')} {error:+.0%}")
        return f"{len(found)} of {told}" + (f": {', '.join(found)}" if found else "")


def _spread(values: Sequence[float]) -> str:
    low, high = min(values) / 1e6, max(values) / 1e6
    return f"{statistics.median(values) / 1e6:.2f} ({low:.2f} to {high:.2f})"


def _error(model: Sequence[float], again: Sequence[float]) -> str:
    return f"{statistics.median(again) / statistics.median(model) - 1:+.1%}"


def measure(name: str, make: Callable[[], Step], runs: int, folder: Path) -> Measured:
    """Record a model, make its program, and record and time both in turns."""
    step = make()
    record(step, folder / "first")
    trace, settings = load(folder / "first")[0], Settings(threads=1)
    program = prepare(trace, settings)
    execution = rehearsed(program, settings)
    pausing = Settings(threads=1, style=Style(gaps=True))
    paused = rehearsed(prepare(trace, pausing), pausing)
    account = account_of(program.plan)
    long = sum(o.duration_ns for o in program.plan.operations if o.duration_ns >= LONG_NS)
    found = Measured(name, account, long / account.recorded_span_ns)
    for number in range(runs):
        found.recorded.append(_recorded(lambda: _model(step), folder / f"model {number}"))
        found.run.append(_recorded(execution.iterate, folder / f"run {number}"))
        for _ in range(PLAIN):
            found.plain.append(_model(step))
            found.plain_run.append(execution.iterate())
            found.with_gaps.append(paused.iterate())
    return found


def _recorded(step: Callable[[], int], folder: Path) -> OperatorTimes:
    def quietly() -> None:
        step()

    record(quietly, folder, steps=STEPS)
    return times_of(load(folder)[0], Choice())


def _model(step: Step) -> int:
    begin = time.perf_counter_ns()
    step()
    return time.perf_counter_ns() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--models", nargs="*", help="names; default: all")
    parser.add_argument("--print", action="store_true", help="print, and change no file")
    given = parser.parse_args()
    lines = []
    for size, programs in (("Large models", models.LARGE), ("Tiny models", models.TINY)):
        lines += [f"**{size}**", "", HEAD]
        for name, make in programs.items():
            if given.models and name not in given.models:
                continue
            with tempfile.TemporaryDirectory() as folder:
                lines.append(measure(name, make, given.runs, Path(folder)).row())
            print(lines[-1], file=sys.stderr)
        lines.append("")
    lines.append(
        f"PyTorch {torch.__version__}, one thread, {platform.machine()}; medians of {given.runs} "
        f"recordings of {STEPS} steps each, in turns (least to most in brackets)."
    )
    text = "\n".join(lines)
    if given.print:
        print(text)
        return 0
    before, rest = TARGET.read_text().split(BEGIN)
    _, after = rest.split(END)
    TARGET.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
