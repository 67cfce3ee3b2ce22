"""What a graph foretells of a run that it has not seen, beside what simpler ways foretell."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chakra_et.graph.intervals import covered
from chakra_et.model import Trace
from chakra_et.predict import Moved, times_of
from chakra_et.replay import Replay, replay
from chakra_et.replay.columns import Columns, columns_of

Rows = npt.NDArray[np.int64]

NAIVE = ("same span", "main thread", "longer")
"""The simpler ways: the span of the first run again, the sum of what the main thread of the other
did, and the longer one of that and of the time in which the device was at work."""


@dataclass(frozen=True)
class Prediction:
    """The span of run `b` foretold from run `a`: errors as shares of the span that was recorded."""

    run: str
    a: Any
    b: Any
    change: float
    error: float
    start_p95: float
    naive: tuple[float, ...]
    missing: int
    extra: int

    @property
    def best_naive(self) -> float:
        """The smallest error of the simpler ways."""
        return min(abs(error) for error in self.naive)


def predictions(run: str, traces: Mapping[Any, Trace]) -> Iterator[Prediction]:
    """Every trace of a run foretold from every other one that does the same work."""
    spans = {key: span_ns(replay(trace)) for key, trace in traces.items()}
    columns = {key: columns_of(trace) for key, trace in traces.items()}
    simple = {key: (main_thread_ns(mine), device_ns(mine)) for key, mine in columns.items()}
    for a in traces:
        for b in traces:
            if a != b:
                moved = times_of(traces[a], traces[b])
                if not moved.same_work:
                    print(f"{run}: {a} and {b} do different work", file=sys.stderr)
                    continue
                done, recorded = replay(moved.trace), spans[b]
                main, device = simple[b]
                foretold = (spans[a], main, max(main, device))
                naive = tuple(ns / recorded - 1 for ns in foretold)
                yield Prediction(
                    run, a, b, spans[a] / recorded - 1, span_ns(done) / recorded - 1,
                    start_error(moved, done, traces[b]) / recorded, naive,
                    moved.missing, moved.extra,
                )  # fmt: skip


def span_ns(done: Replay) -> int:
    """The span of a replay of one rank."""
    return next(iter(done.figures.values())).span_ns


def start_error(moved: Moved, done: Replay, recorded: Trace) -> float:
    """How far off device work and communication starts, from the start of the trace: the 95th
    percentile in ns."""
    there, here = columns_of(recorded), columns_of(moved.trace)
    rows = np.flatnonzero((moved.place >= 0) & (here.device | here.communication))
    if not len(rows):
        return 0.0
    start = done.trace.nodes.start_ns
    counts = here.counts & here.timed
    foretold = start[rows] - start[counts].min()
    place = moved.place[rows]
    actual = there.start[place] - there.start[there.counts & there.timed].min()
    return float(np.percentile(np.abs(foretold - actual), 95))


def main_thread_ns(columns: Columns) -> int:
    """The time in which the thread with most operations was in any, waits included."""
    attributes = columns.trace.nodes.attributes
    thread = attributes.dense("thread", -1, np.int64)
    annotation = np.zeros(len(columns), np.bool_)
    for column in attributes.named("category"):
        annotation[column.rows] = [value == "user_annotation" for value in column.values]
    host = ~columns.device & columns.timed & ~annotation
    threads, counts = np.unique(thread[host], return_counts=True)
    if not len(threads):
        return 0
    return busy_ns(columns, host & (thread == threads[np.argmax(counts)]))


def device_ns(columns: Columns) -> int:
    """The time in which any device work ran."""
    return busy_ns(columns, columns.device & columns.timed)


def busy_ns(columns: Columns, mask: npt.NDArray[np.bool_]) -> int:
    """The time that some rows cover."""
    return covered(columns.start[mask], columns.end[mask])
