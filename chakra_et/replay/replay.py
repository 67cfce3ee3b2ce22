"""Replay: run traces by their edges, and get times back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from chakra_et.columns import Rows
from chakra_et.errors import ChakraError
from chakra_et.graph import find_cycle
from chakra_et.io.memory import collection_paused
from chakra_et.model import UNKNOWN_NS, Nodes, TimeParts, Trace, TraceSet, set_time_parts
from chakra_et.replay.columns import MET, Columns
from chakra_et.replay.critical import BOUNDS, CriticalPath, PathFinder
from chakra_et.replay.engine import Times, run
from chakra_et.replay.figures import Figures, figures
from chakra_et.replay.matching import Match
from chakra_et.replay.meetings import Meetings
from chakra_et.replay.network import TransferModel
from chakra_et.replay.planning import Layout, Planner
from chakra_et.replay.processors import Processors
from chakra_et.replay.resolving import run_resolving
from chakra_et.replay.settling import settled
from chakra_et.replay.transfers import Transfers, transfer_times
from chakra_et.replay.what_if import Duration, changed_parts


@dataclass(frozen=True)
class _Ran:
    """What a replay ran, and how: all that its timelines and critical paths are made of."""

    given: TraceSet
    ranks: list[Columns]
    parts: list[TimeParts]
    layout: Layout
    times: Times
    ends: Rows
    offsets: list[int]

    def rows(self, place: int) -> slice:
        """The rows of the plan that are nodes of a rank."""
        first = self.layout.first[place]
        return slice(first, first + len(self.ranks[place]))

    def spans(self, place: int) -> tuple[Rows, Rows]:
        """Start and end of each node of a rank, on its own clock."""
        rows, offset = self.rows(place), self.offsets[place]
        return self.times.start[rows] + offset, self.ends[rows] + offset

    def timelines(self) -> TraceSet:
        """The traces with these times."""
        made = {}
        for place, (rank, trace) in enumerate(self.given.items()):
            start, end = self.spans(place)
            made[rank] = timeline(trace, start, end - start, self.parts[place])
        return TraceSet(made)

    @cached_property
    def finder(self) -> PathFinder:
        """What finds paths in all ranks."""
        return PathFinder(self.ranks, self.parts, self.layout, self.times)

    def path(self, place: int) -> CriticalPath:
        """The path to the last node of a rank that counts."""
        counts = np.flatnonzero(self.ranks[place].counts)
        if not len(counts):
            return CriticalPath([], dict.fromkeys(BOUNDS, 0), [])
        rows = self.rows(place)
        last = int(counts[np.argmax(self.ends[rows][counts])])
        origin = int(self.times.start[rows][counts].min())
        return self.finder.path_to(int(self.layout.ends_at[rows.start + last]), origin)


class CriticalPaths(Mapping[int, CriticalPath]):
    """The critical path of each rank, found when it is asked for, and then kept."""

    def __init__(self, ran: _Ran) -> None:
        self._ran = ran
        self._places = {rank: place for place, rank in enumerate(ran.given)}
        self._found: dict[int, CriticalPath] = {}

    def __getitem__(self, rank: int) -> CriticalPath:
        if rank not in self._found:
            self._found[rank] = self._ran.path(self._places[rank])
        return self._found[rank]

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@dataclass
class Replay:
    """The outcome for all ranks.

    `paths` are found when they are asked for, and so are `traces`: a what-if shows one path of
    many. `unmatched` counts communication nodes that ran without a counterpart, by reason.
    """

    figures: dict[int, Figures]
    paths: Mapping[int, CriticalPath]
    matched: int
    unmatched: dict[str, int]
    clock_offsets_ns: dict[int, int]
    _ran: _Ran

    @cached_property
    def traces(self) -> TraceSet:
        """The replayed timelines: the traces that were given, with new starts and durations."""
        return self._ran.timelines()

    @property
    def trace(self) -> Trace:
        """The timeline of the first rank."""
        return next(iter(self.traces.values()))

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `docs/replay.md` explains the keys."""
        return {
            "ranks": {
                str(rank): {
                    **self.figures[rank].as_dict(),
                    "host_bound_share": self.paths[rank].host_bound_share,
                    "critical_path": self.paths[rank].as_dict(),
                }
                for rank in self.figures
            },
            "communication": {"matched": self.matched, "unmatched": self.unmatched},
            "clock_offsets_ns": {str(rank): ns for rank, ns in self.clock_offsets_ns.items()},
        }


def replay(
    traces: Trace | Mapping[int, Trace],
    *,
    duration: Duration | None = None,
    scale: Sequence[tuple[str, float]] = (),
    network: TransferModel | None = None,
    processors: Processors | None = None,
) -> Replay:
    """Run one trace, or the traces of several ranks together.

    Durations are the recorded ones, each part of them times the factor of each selector in `scale`
    that names its owner; `duration` is asked about every node and may give another time in ns for
    all that the node owns, or None. Of several
    ranks, communications take from the arrival of their last member what they took from there in
    the recording, or what `network` says. Sends wait for their receivers, unless ranks would then
    wait for each other in a circle. With `processors`, durations are those of work that has one to
    itself, and last longer where more wants them than there are.

    Raises ChakraError when edges form a cycle, or when ranks wait for each other in a cycle.
    """
    if isinstance(traces, Trace):
        traces = {traces.rank or 0: traces}
    given = traces if isinstance(traces, TraceSet) else TraceSet(traces)
    met = Meetings.of(given)
    ranks, matches, offsets = met.ranks, met.matches, met.offsets
    parts = [changed_parts(columns, duration, scale) for columns in ranks]
    transfers = transfer_times(ranks, _durations(ranks, parts), offsets, matches, network)
    timed = partial(_timed, met, Planner(ranks, offsets, met.members))
    if processors is None:
        layout, times = timed(parts, transfers)
    else:
        parts, layout, times = settled(met, parts, transfers, processors, timed)
    if not times.done.all():
        raise _stuck(given, ranks, layout, times, [match for match, _ in matches])
    unmatched = dict(met.matching.unmatched)
    if met.unaligned and len(ranks) > 1:
        named = [rank for i, rank in enumerate(given) if i in met.unaligned]
        unmatched[f"clocks of ranks {named} could not be aligned"] = len(named)
    matched = met.matching.matched_nodes
    return _outcome(given, ranks, parts, layout, times, offsets, unmatched, matched)


def _durations(ranks: Sequence[Columns], parts: Sequence[TimeParts]) -> list[Rows]:
    return [part.by_node(len(columns)) for part, columns in zip(parts, ranks, strict=True)]


def _timed(
    met: Meetings, planner: Planner, parts: Sequence[TimeParts], transfers: Transfers
) -> tuple[Layout, Times]:
    """Lay out the graph with some durations, and run it."""
    durations = _durations(met.ranks, parts)
    layout = planner.layout(durations, transfers)
    times = _run(layout)
    if not times.done.all() and met.members:
        # Where sends are followed by receives in a ring, only buffered sends can have run.
        layout = planner.layout(durations, transfers, buffered=True)
        times = _run(layout)
    return layout, times


def _run(layout: Layout) -> Times:
    try:
        with collection_paused():
            if layout.waiting.scopes:
                return run_resolving(layout.plan, layout.waiting)
            return run(layout.plan)
    except OverflowError as error:
        raise ChakraError(
            "the times of the trace are too large to add up: they do not fit into 64 bits",
            remedy="Times are nanoseconds since 1970. chakra info --node shows those of a node.",
        ) from error


def _outcome(
    given: TraceSet,
    ranks: list[Columns],
    parts: list[TimeParts],
    layout: Layout,
    times: Times,
    offsets: list[int],
    unmatched: dict[str, int],
    matched: int,
) -> Replay:
    ran = _Ran(given, ranks, parts, layout, times, times.end[layout.ends_at], offsets)
    found = {
        rank: figures(ranks[place], parts[place], *ran.spans(place))
        for place, rank in enumerate(given)
    }
    clocks = dict(zip(given, offsets, strict=True))
    return Replay(found, CriticalPaths(ran), matched, unmatched, clocks, ran)


def timeline(trace: Trace, start: Rows, duration: Rows, parts: TimeParts) -> Trace:
    """A trace with other times: own starts, inclusive and exclusive times of the recording go.

    On the new timeline own time begins with the start. `parts` are those of the durations, before
    transfers met those of other ranks.
    """
    nodes = trace.nodes
    keep = (nodes.start_ns == UNKNOWN_NS) & (duration == 0)
    moved = nodes.take(np.arange(len(nodes)))
    replayed = Nodes(
        id=moved.id,
        type=moved.type,
        name_code=moved.name_code,
        names=moved.names,
        start_ns=np.where(keep, UNKNOWN_NS, start),
        duration_ns=duration,
        input_code=moved.input_code,
        output_code=moved.output_code,
        texts=moved.texts,
        attributes=moved.attributes,
        extra=moved.extra,
        exact_start=~keep,
        exact_duration=~keep,
    )
    for name in ("own_start_ns", "inclusive_ns", "exclusive_ns", MET):
        for column in replayed.attributes.named(name):
            replayed.attributes.remove(column, column.rows)
    set_time_parts(replayed, parts.fitted(duration))
    return Trace(replayed, trace.edges, trace.metadata)


def _stuck(
    given: TraceSet,
    ranks: Sequence[Columns],
    layout: Layout,
    times: Times,
    matches: Sequence[Match],
) -> ChakraError:
    """What to say when some nodes never start."""
    for columns, (rank, trace) in zip(ranks, given.items(), strict=True):
        cycle = find_cycle(len(columns), columns.edges.source, columns.edges.target)
        if cycle:
            shown = " -> ".join(
                f"{trace.nodes[row].id} {trace.nodes[row].name[:60]!r}"
                for row in [*cycle, cycle[0]][:8]
            )
            return ChakraError(
                f"the edges of rank {rank} form a cycle: {shown}",
                remedy="Run chakra validate to list what is wrong with the edges.",
            )
    ran = times.done[layout.ends_at]
    rank_places = {rank: place for place, rank in enumerate(given)}
    for match in matches:
        rows = [layout.first[rank_places[rank]] + row for rank, row in match.members.items()]
        if not all(ran[row] for row in rows):
            return ChakraError(
                f"ranks wait for each other in a cycle, first at {match.place}",
                remedy="Ranks must issue the communications of a group in one order.",
            )
    return ChakraError("some nodes never start", remedy="Run chakra validate to see why.")
