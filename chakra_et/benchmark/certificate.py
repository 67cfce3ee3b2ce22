"""A run compared with the recording that it was made from: its span, and each operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from chakra_et.benchmark.host_tree import HostTree
from chakra_et.benchmark.plan import Choice
from chakra_et.benchmark.selection import Candidates
from chakra_et.benchmark.window import nodes_in
from chakra_et.columns import Rows
from chakra_et.model import Trace
from chakra_et.recording.libraries import STEP
from chakra_et.tables.table import Table, texts


@dataclass(frozen=True)
class OperatorTimes:
    """Own times of operators by name in a window, and the span of the window, in ns."""

    span_ns: int
    own_ns: dict[str, int]
    calls: dict[str, int]
    python_ns: int = 0
    """The own time of operators on classes of tensors written in Python, which are not among them:
    it is Python's, and the operators that they call bear the same names."""


@dataclass(frozen=True)
class Certificate:
    """How well a run repeats a recording. All times are with the profiler, on both sides."""

    recorded: OperatorTimes
    run: OperatorTimes
    iterations: int
    """Times of the run are of so many iterations together."""

    @property
    def run_span_ns(self) -> float:
        """What an iteration took in the mean."""
        return self.run.span_ns / self.iterations

    @property
    def span_error(self) -> float:
        """By how much an iteration is longer than what was recorded, as a share of that."""
        recorded = self.recorded.span_ns
        return self.run_span_ns / recorded - 1 if recorded else float("nan")

    def table(self, least_share: float = 0.01) -> Table:
        """Operators that take at least a share of the operators' time, the longest first.

        `error_share` is how much longer an iteration takes for all calls of the operator.
        """
        total = sum(self.recorded.own_ns.values()) or 1
        names = [n for n, ns in self.recorded.own_ns.items() if ns >= least_share * total]
        recorded = np.array([self.recorded.own_ns[n] for n in names], np.int64)
        run = np.array([self.run.own_ns.get(n, 0) / self.iterations for n in names], np.float64)
        columns = {
            "name": texts(names),
            "calls": np.array([self.recorded.calls[n] for n in names], np.int64),
            "run_calls": np.array([self.run.calls.get(n, 0) / self.iterations for n in names]),
            "recorded_ns": recorded,
            "run_ns": np.rint(run).astype(np.int64),
            "of_recorded_share": recorded / total,
            "error_share": run / np.maximum(recorded, 1) - 1,
        }
        return Table("operators, own time with the profiler", columns).by("recorded_ns")

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "recorded_span_ns": self.recorded.span_ns,
            "run_span_ns": round(self.run_span_ns),
            "span_error_share": self.span_error,
            "recorded_python_ns": self.recorded.python_ns,
            "operators": self.table(0).as_dicts(),
        }


def certificate(
    recorded: Trace, run: Trace, choice: Choice | None = None, iterations: int | None = None
) -> Certificate:
    """Compare a recording, or the part of it that was chosen, with the recording of its run.

    Each step of the run's recording is an iteration, unless their number is given.
    """
    count = iterations or max(len(_steps(run)), 1)
    return Certificate(times_of(recorded, choice or Choice()), times_of(run, Choice()), count)


def times_of(trace: Trace, choice: Choice) -> OperatorTimes:
    """The own times of the operators in a part of a trace."""
    tree = HostTree.of(trace)
    schemas = trace.nodes.attributes.dense("op_schema", "", object).tolist()
    window = nodes_in(tree, choice.window)
    candidates = Candidates.of(tree, schemas)
    every_own = trace.nodes.attributes.dense("exclusive_ns", 0, np.int64)
    in_python = candidates.operators & window & candidates.in_python
    rows = np.flatnonzero(candidates.operators & window & ~candidates.in_python)
    own = every_own[rows]
    code = trace.nodes.name_code[rows]
    found, place = np.unique(code, return_inverse=True)
    names = [trace.nodes.names[name] for name in found.tolist()]
    sums = np.zeros(len(found), np.int64)
    np.add.at(sums, place, own)
    calls = np.bincount(place, minlength=len(found))
    steps = _steps(trace)
    steps = steps[window[steps]]
    return OperatorTimes(
        int(tree.inclusive_ns[steps].sum()) if len(steps) else _span(tree, rows),
        dict(zip(names, sums.tolist(), strict=True)),
        dict(zip(names, calls.tolist(), strict=True)),
        int(every_own[in_python].sum()),
    )


def _steps(trace: Trace) -> Rows:
    is_step = np.array([bool(STEP.fullmatch(name)) for name in trace.nodes.names] or [False])
    return np.flatnonzero(is_step[trace.nodes.name_code])


def _span(tree: HostTree, rows: Rows) -> int:
    rows = rows[tree.timed[rows]]
    if not len(rows):
        return 0
    start = tree.trace.nodes.start_ns[rows]
    return int((start + tree.inclusive_ns[rows]).max() - start.min())
