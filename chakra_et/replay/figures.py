"""Figures: how near a replay comes to the recording, and what the time went into."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.graph.intervals import covered
from chakra_et.model import TimeParts, between_operations
from chakra_et.replay.columns import Columns

Intervals = tuple[Rows, Rows]


@dataclass(frozen=True)
class Breakdown:
    """Where the time of a rank goes, in ns; the four parts add up to the span."""

    exposed_compute_ns: int
    overlap_ns: int
    exposed_comm_ns: int
    other_ns: int


@dataclass(frozen=True)
class Figures:
    """What a replay says of one rank.

    Shares are of the recorded span. `span_error` is signed; `kernel_start_error` holds the median
    and the 95th percentile of the absolute error in the start of device work, counted from the
    start of the rank. `unexplained` is the number of device nodes that started more than `LATE_NS`
    after all that they are known to wait for: what they waited for is in no file. `delays` sums up
    how long starts were delayed by what no edge tells, each with the `count` of nodes and the
    `ns`: `lag` of front ends, up to `LATE_NS` each; `late` and `contention` for longer ones;
    `outside` for waits for what lies outside the trace.
    """

    nodes: int
    span_ns: int
    recorded_span_ns: int
    span_error: float | None
    kernel_start_error: dict[str, float]
    recorded: Breakdown
    replayed: Breakdown
    edges: dict[str, dict[str, int]]
    unexplained: int
    delays: dict[str, dict[str, int]]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        content = asdict(self)
        recorded, replayed = content.pop("recorded"), content.pop("replayed")
        content["exposed_comm_ns"] = {
            "recorded": recorded["exposed_comm_ns"],
            "replayed": replayed["exposed_comm_ns"],
        }
        content["breakdown"] = {"recorded": recorded, "replayed": replayed}
        return content


LATE_NS = 20_000


def figures(columns: Columns, parts: TimeParts, start: Rows, end: Rows) -> Figures:
    """Compare replayed times of one rank, of durations of `parts`, with the recorded ones."""
    timed = columns.timed & columns.counts
    recorded_from, recorded_to = recorded_bounds(columns)
    # What had no time and took none has no place on the new timeline either.
    placed = (timed | (end > start)) & columns.counts
    begin, finish = _bounds(start[placed], end[placed])
    span = recorded_to - recorded_from
    kernels = columns.device & timed
    moved = (start - begin) - (columns.start - recorded_from)
    error = np.abs(moved[kernels]) / span if span else np.zeros(0)
    return Figures(
        nodes=len(columns),
        span_ns=finish - begin,
        recorded_span_ns=span,
        span_error=(finish - begin - span) / span if span else None,
        kernel_start_error={
            "median": float(np.median(error)) if len(error) else 0.0,
            "p95": float(np.percentile(error, 95)) if len(error) else 0.0,
        },
        recorded=recorded_breakdown(columns),
        replayed=_breakdown(columns, parts, start, end, placed, finish - begin),
        edges={
            kind.label: {"total": total, "inferred": guessed}
            for kind, (total, guessed) in columns.trace.edges.counts().items()
        },
        unexplained=_unexplained(columns),
        delays=_delays(columns),
    )


def recorded_breakdown(columns: Columns) -> Breakdown:
    """Where the recorded time of a rank went."""
    timed = columns.timed & columns.counts
    begin, end = recorded_bounds(columns)
    ends = columns.begin + columns.duration
    return _breakdown(columns, columns.parts, columns.begin, ends, timed, end - begin)


def recorded_bounds(columns: Columns) -> tuple[int, int]:
    """First recorded start and last end, in ns; threads that only poll do not count."""
    timed = columns.timed & columns.counts
    return _bounds(columns.start[timed], columns.end[timed])


def _bounds(start: Rows, end: Rows) -> tuple[int, int]:
    return (int(start.min()), int(end.max())) if len(start) else (0, 0)


def _breakdown(
    columns: Columns, parts: TimeParts, start: Rows, end: Rows, placed: Mask, span: int
) -> Breakdown:
    """Unions of intervals: computing and communicating, each alone and both at once."""
    busy, calls = work_intervals(columns, parts, start, end, placed)
    c, m = covered(*busy), covered(*calls)
    begins, ends = (np.concatenate(pair) for pair in zip(busy, calls, strict=True))
    both = c + m - covered(begins, ends)
    return Breakdown(c - both, both, m - both, max(span - (c + m - both), 0))


def recorded_work(columns: Columns) -> tuple[Intervals, Intervals]:
    """When a rank computed and when it communicated, in the recording."""
    ends = columns.begin + columns.duration
    timed = columns.timed & columns.counts
    return work_intervals(columns, columns.parts, columns.begin, ends, timed)


def work_intervals(
    columns: Columns, parts: TimeParts, start: Rows, end: Rows, placed: Mask
) -> tuple[Intervals, Intervals]:
    """Starts and ends of what computes, and of what communicates.

    Where a trace has no device work but communication, operations of the host are what computes.
    """
    communicates = columns.communication & placed
    computes = columns.device & ~columns.communication & placed
    on_host = not computes.any()
    if on_host:
        computes = ~columns.device & placed
    busy = _busy(columns, parts, computes, start) if on_host else (start[computes], end[computes])
    return busy, (start[communicates], end[communicates])


def _busy(columns: Columns, parts: TimeParts, chosen: Mask, start: Rows) -> tuple[Rows, Rows]:
    """Starts and ends of the parts of some nodes, less the time between operations."""
    begins, ends = parts.placed(start)
    use = chosen[parts.node] & ~between_operations(columns.trace.nodes, parts)
    return begins[use], ends[use]


def _unexplained(columns: Columns) -> int:
    ready = _ready(columns)
    held = columns.device & columns.timed & (ready > _NEVER)
    return int(np.count_nonzero(held & (columns.start - ready > LATE_NS)))


def _delays(columns: Columns) -> dict[str, dict[str, int]]:
    origin = int(columns.release.min()) if len(columns) else 0
    ready = np.maximum(_ready(columns), origin)
    waits = columns.timed & columns.counts
    delayed = np.maximum(columns.lag, 0) + columns.late + columns.contention
    outside = np.where(waits, np.maximum(columns.release - delayed - ready, 0), 0)
    found = {
        "lag": np.maximum(columns.lag, 0),
        "late": columns.late,
        "contention": columns.contention,
        "outside": outside,
    }
    return {
        what: {"count": int(np.count_nonzero(ns)), "ns": int(ns.sum())}
        for what, ns in found.items()
    }


_NEVER = np.iinfo(np.int64).min


def _ready(columns: Columns) -> Rows:
    """When the last of what each node waits for had ended in the recording."""
    ready = np.full(len(columns), _NEVER, np.int64)
    own_end = columns.begin + columns.duration
    np.maximum.at(ready, columns.edges.target, own_end[columns.edges.source])
    return ready
