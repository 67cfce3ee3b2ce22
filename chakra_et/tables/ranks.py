"""Where the time of each rank goes: computing, communicating, waiting; as a whole and by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.graph.intervals import covered, covered_within, union
from chakra_et.model import Trace
from chakra_et.recording.libraries import STEP
from chakra_et.replay.columns import columns_of
from chakra_et.replay.figures import recorded_breakdown, recorded_work
from chakra_et.tables.places import Places
from chakra_et.tables.table import Table, stacked

_UNTIMED: Final = "no start is recorded: chakra replay IN -o OUT gives a timeline"


def rank_table(traces: Mapping[int, Trace]) -> Table:
    """The span of each rank and what it went into: the four parts of `chakra replay`'s breakdown.

    Computing is device work that does not communicate, or operations of the host in a trace
    without such. Spans are 0 where no start is known, and the note says so.
    """
    rows, timed = [], False
    for rank, trace in traces.items():
        columns = columns_of(trace)
        timed |= bool(columns.timed.any())
        found = recorded_breakdown(columns)
        parts = (
            found.exposed_compute_ns,
            found.overlap_ns,
            found.exposed_comm_ns,
            found.other_ns,
        )
        rows.append((rank, len(trace.nodes), len(trace.edges), sum(parts), *parts))
    names = (
        "rank", "nodes", "edges", "span_ns",
        "compute_ns", "overlap_ns", "exposed_comm_ns", "other_ns",
    )  # fmt: skip
    note = "compute_ns is exposed; overlap_ns is of both"
    return _table("ranks", names, rows, note if timed or not rows else _UNTIMED)


def device_table(traces: Mapping[int, Trace]) -> Table:
    """The time from the first to the last device work of each rank, as HTA breaks it down.

    `busy_ns` and `idle_ns` add up to `span_ns`; `compute_ns`, `communication_ns` and `memory_ns`
    are unions of intervals of that kind (memory: copies and memsets), which may overlap;
    `compute_alone_ns` and so on the parts in which nothing of another kind ran.
    """
    rows = []
    for rank, trace in traces.items():
        places, columns = Places(trace), columns_of(trace)
        timed = columns.timed & ~places.on_host & places.ran
        start, end = columns.start, columns.start + columns.duration
        every = start[timed], end[timed]
        span = int(every[1].max() - every[0].min()) if timed.any() else 0
        busy = covered(*every)
        kinds, alone = [], []
        for kind in ("compute", "communication", "memory"):
            mine = timed & (places.kind == kind)
            others = timed & ~mine
            kinds.append(covered(start[mine], end[mine]))
            alone.append(busy - covered(start[others], end[others]))
        rows.append((rank, span, busy, span - busy, *kinds, *alone))
    names = (
        "rank", "span_ns", "busy_ns", "idle_ns", "compute_ns", "communication_ns", "memory_ns",
        "compute_alone_ns", "communication_alone_ns", "memory_alone_ns",
    )  # fmt: skip
    return _table("devices", names, rows, "from the first to the last device work")


def step_table(traces: Mapping[int, Trace]) -> Table:
    """The profiler's steps of each rank, and what ran while each was open on the host.

    Computing and communicating are those of `ranks`. Device work may end after the step that
    launched it: times are those within the step's own interval.
    """
    tables = [_steps(rank, trace) for rank, trace in traces.items()]
    return stacked(tables) if tables else Table("steps", {})


def _steps(rank: int, trace: Trace) -> Table:
    nodes, places, columns = trace.nodes, Places(trace), columns_of(trace)
    number = {
        code: int(match[1])
        for code, name in enumerate(nodes.names)
        if (match := STEP.fullmatch(name)) is not None
    }
    is_step = np.isin(nodes.name_code, list(number)) & columns.timed & places.on_host
    # What is left of a step behind a wait is no step of its own.
    rows = np.flatnonzero(is_step & ~nodes.attributes.present("rest_of"))
    rows = rows[np.argsort(columns.start[rows], kind="stable")]
    begin, until = columns.start[rows], columns.end[rows]
    busy, calls = recorded_work(columns)
    every = np.append(busy[0], calls[0]), np.append(busy[1], calls[1])
    c, m, both = (covered_within(*work, begin, until) for work in (busy, calls, every))
    columns_of_table = {
        "rank": np.full(len(rows), rank, np.int64),
        "step": np.array([number[int(nodes.name_code[row])] for row in rows], np.int64),
        "node": nodes.id[rows],
        "start_ns": begin,
        "duration_ns": until - begin,
        "compute_ns": both - m,
        "overlap_ns": c + m - both,
        "exposed_comm_ns": both - c,
        "other_ns": until - begin - both,
    }
    return Table("steps", columns_of_table, "what ran within the interval of each step")


def idle_table(traces: Mapping[int, Trace]) -> Table:
    """Gaps between pieces of work on each stream, by what held the next one back.

    `host_ns`: it was launched only after the stream had run dry. `short_ns`: other gaps of up to
    30 us, as there are between pieces that stand ready. `other_ns`: it had been launched, and
    waited for something else.
    """
    rows = []
    for rank, trace in traces.items():
        places, columns = Places(trace), columns_of(trace)
        lane, names = places.lane
        work = columns.timed & ~places.on_host & trace.nodes.attributes.present("stream")
        for number, name in enumerate(names):
            chosen = np.flatnonzero(work & (lane == number))
            if len(chosen):
                rows.append((rank, name, *_gaps(columns.start, columns.duration, places, chosen)))
    names_of = ("rank", "stream", "host_ns", "short_ns", "other_ns")
    columns_of_table = {
        name: np.array([row[i] for row in rows], object if name == "stream" else np.int64)
        for i, name in enumerate(names_of)
    }
    return Table("idle", columns_of_table, "gaps between pieces of work on a stream")


_SHORT_NS: Final = 30_000


def _gaps(start: Rows, duration: Rows, places: Places, chosen: Rows) -> tuple[int, int, int]:
    chosen = chosen[np.argsort(start[chosen], kind="stable")]
    begins, ends = union(start[chosen], (start + duration)[chosen])
    first = chosen[np.searchsorted(start[chosen], begins[1:])]
    gap = begins[1:] - ends[:-1]
    launch = places.launcher[first]
    asked = np.where(launch >= 0, start[launch], np.iinfo(np.int64).min)
    host = asked > ends[:-1]
    short = ~host & (gap <= _SHORT_NS)
    other = ~host & ~short
    return int(gap[host].sum()), int(gap[short].sum()), int(gap[other].sum())


def _table(name: str, names: tuple[str, ...], rows: Sequence[tuple[int, ...]], note: str) -> Table:
    numbers = np.array(rows, np.int64).reshape(-1, len(names))
    return Table(name, dict(zip(names, numbers.T, strict=True)), note)
