"""A simulated run beside the recorded one: rank by rank, and communication by communication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from chakra_et.model import UNKNOWN_NS, Trace, TraceSet, time_parts
from chakra_et.replay.columns import columns_of
from chakra_et.replay.figures import figures
from chakra_et.replay.matching import Match, match_communication
from chakra_et.replay.replay import timeline
from chakra_et.simulation.astra_log import AstraLog, SimulatedNodes


@dataclass(frozen=True)
class RankComparison:
    """One rank: times in ns, None where the recording or the log does not tell them.

    Exposed communication is what the simulator calls so: all time in which nothing computes.
    `figures` are the simulator's own: `cpu_ns`, `compute_ns`, `comm_ns`, `overlap_ns`.
    """

    recorded_ns: int | None
    simulated_ns: int | None
    recorded_exposed_comm_ns: int | None
    simulated_exposed_comm_ns: int | None
    figures: Mapping[str, int] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """The simulated time over the recorded one."""
        if not self.recorded_ns or self.simulated_ns is None:
            return None
        return self.simulated_ns / self.recorded_ns


@dataclass
class CallComparison:
    """All communications of one type and size: how many, and their transfers in ns.

    A transfer takes what the member takes that waits least. `recorded_ns` is None where the traces
    have no times.
    """

    type: str
    size_bytes: int
    count: int = 0
    recorded_ns: int | None = 0
    simulated_ns: int = 0


@dataclass
class Comparison:
    """A simulated run beside the recorded one.

    `simulated` holds the traces with the times that the log tells of their nodes, from 0 on; no
    rank where it tells none. `unfinished` are ranks of the traces that never finished, `notes` say
    what could not be compared.
    """

    ranks: dict[int, RankComparison]
    calls: list[CallComparison]
    simulated: TraceSet
    unfinished: list[int]
    critical: list[str]
    notes: list[str] = field(default_factory=list)

    @property
    def recorded_ns(self) -> int:
        """How long the recording of the longest rank is; 0 where there are no times."""
        return max((r.recorded_ns or 0 for r in self.ranks.values()), default=0)

    @property
    def simulated_ns(self) -> int:
        """When the last rank finished."""
        return max((r.simulated_ns or 0 for r in self.ranks.values()), default=0)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "recorded_ns": self.recorded_ns or None,
            "simulated_ns": self.simulated_ns or None,
            "ranks": {
                str(rank): {**asdict(found), "ratio": found.ratio}
                for rank, found in self.ranks.items()
            },
            "communication": [asdict(call) for call in self.calls],
            "unfinished": self.unfinished,
            "critical": self.critical,
            "notes": self.notes,
        }


def compare(traces: TraceSet, log: AstraLog) -> Comparison:
    """Put what a simulator's log says of traces beside the times that these have."""
    notes = _Notes()
    simulated: dict[int, Trace] = {}
    for rank, told in log.nodes.items():
        if rank in traces and (timed := _timed(traces[rank], told, rank, notes)) is not None:
            simulated[rank] = timed
    for rank in sorted(set(log.finish_ns) - set(traces)):
        notes.add("the log tells of it, and no trace is here", rank)
    return Comparison(
        {rank: _rank(trace, rank, log) for rank, trace in traces.items()},
        _calls(traces, simulated),
        TraceSet(simulated),
        [rank for rank in traces if rank not in log.finish_ns],
        log.critical,
        notes.told(),
    )


class _Notes:
    """What could not be compared: each fact once, with all ranks that it is about."""

    def __init__(self) -> None:
        self.ranks: dict[str, list[int]] = {}

    def add(self, fact: str, rank: int) -> None:
        self.ranks.setdefault(fact, []).append(rank)

    def told(self) -> list[str]:
        return [f"{_named(ranks)}: {fact}" for fact, ranks in self.ranks.items()]


def _named(ranks: list[int]) -> str:
    named = ", ".join(map(str, ranks[:8])) + ", …" * (len(ranks) > 8)
    return f"rank {named}" if len(ranks) == 1 else f"ranks {named}"


def _rank(trace: Trace, rank: int, log: AstraLog) -> RankComparison:
    columns = columns_of(trace)
    exposed, span = None, None
    if columns.timed.any():
        found = figures(columns, columns.parts, columns.start, columns.end)
        span = found.recorded_span_ns
        exposed = found.recorded.exposed_comm_ns + found.recorded.other_ns
    return RankComparison(
        span,
        log.finish_ns.get(rank),
        exposed,
        log.exposed_comm_ns.get(rank),
        log.figures.get(rank, {}),
    )


def _timed(trace: Trace, told: SimulatedNodes, rank: int, notes: _Notes) -> Trace | None:
    """The trace with simulated times; None, and a note, where the log is of another trace."""
    row = trace.nodes.rows_of(told.id)
    names = trace.nodes.name
    same = np.array(
        [r >= 0 and names[r] == name for r, name in zip(row.tolist(), told.name, strict=True)],
        np.bool_,
    )
    if 2 * np.count_nonzero(same) < len(same):
        notes.add(
            "most nodes of the log have other names here; give the traces that the simulator ran "
            "to compare nodes",
            rank,
        )
        return None
    if not same.all():
        notes.add(f"{np.count_nonzero(~same)} nodes of the log are not in the trace", rank)
    start = np.full(len(trace.nodes), UNKNOWN_NS)
    took = np.zeros(len(trace.nodes), np.int64)
    start[row[same]] = told.start_ns[same]
    took[row[same]] = (told.end_ns - told.start_ns)[same]
    if (start == UNKNOWN_NS).any():
        notes.add(f"{np.count_nonzero(start == UNKNOWN_NS)} nodes are not in the log", rank)
    return timeline(trace, start, took, time_parts(trace.nodes))


def _calls(traces: TraceSet, simulated: Mapping[int, Trace]) -> list[CallComparison]:
    """Communications of which the log tells all members, by type and size."""
    found: dict[tuple[str, int], CallComparison] = {}
    matches = match_communication(traces).matches if len(traces) > 1 else []
    for match in matches:
        took = _least(match, simulated)
        if took is None:
            continue
        kind = "message" if match.collective is None else match.collective.name
        call = found.setdefault((kind, match.size_bytes), CallComparison(kind, match.size_bytes))
        recorded = _least(match, traces)
        call.count += 1
        call.simulated_ns += took
        if call.recorded_ns is not None:
            call.recorded_ns = None if recorded is None else call.recorded_ns + recorded
    return sorted(found.values(), key=lambda call: -call.simulated_ns)


def _least(match: Match, traces: Mapping[int, Trace]) -> int | None:
    """The shortest duration of all members; None where one has no time."""
    durations = []
    for rank, row in match.members.items():
        if rank not in traces or traces[rank].nodes.start_ns[row] == UNKNOWN_NS:
            return None
        durations.append(int(traces[rank].nodes.duration_ns[row]))
    return min(durations)
