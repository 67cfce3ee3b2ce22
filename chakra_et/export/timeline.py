"""The timeline of a run: recorded and replayed, with dependencies and the critical path."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.definitions import EdgeKind
from chakra_et.errors import ChakraError
from chakra_et.export.recorded import CATEGORIES, Drawn, drawn, joined
from chakra_et.export.scene import Flows, Scene, Slices, Track
from chakra_et.graph import edge_rows
from chakra_et.model import UNKNOWN_NS, Trace, TraceSet
from chakra_et.replay import Replay, replay
from chakra_et.replay.columns import columns_of
from chakra_et.replay.matching import match_communication
from chakra_et.replay.planning import clock_offsets
from chakra_et.tables.places import Places

PATH: Final = "critical path"


def timeline(
    traces: Mapping[int, Trace],
    *,
    kinds: Collection[EdgeKind] | None = None,
    replayed: bool = False,
) -> Scene:
    """What a timeline of some ranks shows.

    Each rank is a process, its threads and streams are tracks; clocks are aligned as in a replay.
    Flows are the edges of `kinds`, by default those that lead from one track to another, but
    for calls. The critical path is that of the rank that ends last in a replay. With `replayed`,
    and where no start is known, the replayed timeline stands beside the recorded one.
    """
    traces = traces if isinstance(traces, TraceSet) else TraceSet(traces)
    notes: list[str] = []
    done: Replay | None = None
    try:
        done = replay(traces) if any(len(trace.nodes) for trace in traces.values()) else None
    except ChakraError as error:
        notes.append(f"no critical path: {error.problem}")
    timed = any((trace.nodes.start_ns != UNKNOWN_NS).any() for trace in traces.values())
    if not timed and done is None and notes:
        raise ChakraError(
            f"no node has a start, and a replay gives none: {notes[0].partition(': ')[2]}",
            remedy="chakra validate says what is wrong with the edges.",
        )
    runs = [("", traces)] if timed else []
    if done is not None and (replayed or not timed):
        runs.append((" replayed", done.traces))
    return _scene(runs, done, kinds, notes)


def _scene(
    runs: Sequence[tuple[str, Mapping[int, Trace]]],
    done: Replay | None,
    kinds: Collection[EdgeKind] | None,
    notes: list[str],
) -> Scene:
    parts: list[Slices] = []
    sources, targets, codes = [], [], []
    ties: list[list[int]] = []
    count = 0
    shown = runs[0][1] if runs else {}
    if done is not None and shown:
        parts.append(_path(shown, done))
        count = len(parts[0])
    for suffix, traces in runs:
        offsets, matches = _aligned(traces)
        slices: dict[int, tuple[int, Drawn]] = {}
        for rank, trace in traces.items():
            part = drawn(trace, rank, f"rank {rank}{suffix}", offsets[rank])
            slices[rank] = count, part
            source, target, kind = _edges(trace, part, kinds)
            sources.append(source + count)
            targets.append(target + count)
            codes.append(kind)
            parts.append(part.slices)
            count += len(part.slices)
        ties += _tied(matches, slices)
    nothing = np.zeros(0, np.int64)
    flows = Flows(
        [kind.label for kind in EdgeKind],
        np.concatenate([*sources, nothing]),
        np.concatenate([*targets, nothing]),
        np.concatenate([*codes, nothing]),
    )
    return Scene(joined(parts), flows, ties, notes)


def _aligned(traces: Mapping[int, Trace]) -> tuple[dict[int, int], list[dict[int, int]]]:
    """How far each rank's clock is ahead, and the rows of each matched communication by rank."""
    if len(traces) < 2:
        return dict.fromkeys(traces, 0), []
    matches = [match.members for match in match_communication(TraceSet(traces)).matches]
    place = {rank: i for i, rank in enumerate(traces)}
    members = [{place[rank]: row for rank, row in match.items()} for match in matches]
    offsets, _ = clock_offsets([columns_of(trace) for trace in traces.values()], members)
    return dict(zip(traces, offsets, strict=True)), matches


def _tied(
    matches: list[dict[int, int]], slices: Mapping[int, tuple[int, Drawn]]
) -> list[list[int]]:
    """The slices of the members of each communication of several ranks, those that are drawn."""
    tied = []
    for match in matches:
        found = []
        for rank, row in match.items():
            first, part = slices[rank]
            if part.slice_of[row] >= 0:
                found.append(first + int(part.slice_of[row]))
        if len(found) > 1:
            tied.append(found)
    return tied


def _edges(
    trace: Trace, part: Drawn, kinds: Collection[EdgeKind] | None
) -> tuple[Rows, Rows, Rows]:
    """Edges between slices, of some kinds; without, those from one track to another."""
    edges = edge_rows(trace)
    kind = trace.edges.kind[edges.place].astype(np.int64)
    source, target = part.slice_of[edges.source], part.slice_of[edges.target]
    use = (source >= 0) & (target >= 0)
    if kinds is not None:
        use &= np.isin(kind, [int(one) for one in kinds])
    else:
        track = part.slices.track
        use &= kind != EdgeKind.CALL
        use[use] = track[source[use]] != track[target[use]]
    return source[use], target[use], kind[use]


def _path(traces: Mapping[int, Trace], done: Replay) -> Slices:
    """The critical path of the rank that ends last, at the times of `traces`, as one track.

    Where pieces overlap, as those of ranks whose clocks differ, the later one is cut.
    """
    ends = {
        rank: int((one.nodes.start_ns + one.nodes.duration_ns).max()) - done.clock_offsets_ns[rank]
        for rank, one in done.traces.items()
        if len(one.nodes)
    }
    last = max(ends, key=lambda rank: ends[rank])
    ranks = list(done.traces)
    names: dict[str, int] = {}
    rows: list[tuple[int, int, int, int, int, int]] = []
    times = {rank: _own_times(trace) for rank, trace in traces.items()}
    kinds = {rank: Places(trace).kind for rank, trace in traces.items()}
    until = None
    for place, row in done.paths[last].nodes:
        rank = ranks[place]
        nodes = traces[rank].nodes
        begin, end = (int(column[row]) - done.clock_offsets_ns[rank] for column in times[rank])
        begin = begin if until is None else max(begin, until)
        if nodes.start_ns[row] == UNKNOWN_NS or end <= begin:
            continue
        until = end
        name = names.setdefault(nodes.names[int(nodes.name_code[row])], len(names))
        category = CATEGORIES.index(kinds[rank][row])
        rows.append((begin, end, name, category, int(nodes.id[row]), rank))
    columns = [np.array([row[place] for row in rows], np.int64) for place in (0, 1, 2, 3, 5)]
    start, end_ns, name_code, category_code, rank_of = columns
    return Slices(
        tracks=[Track(PATH, f"rank {last} (ends last)")],
        names=list(names),
        categories=list(CATEGORIES),
        track=np.zeros(len(rows), np.int64),
        start=start,
        end=end_ns,
        name=name_code,
        category=category_code,
        node=np.array([row[4] for row in rows], np.uint64),
        rank=rank_of,
    )


def _own_times(trace: Trace) -> tuple[Rows, Rows]:
    """When each node's own time began, and when it was over."""
    nodes = trace.nodes
    own = nodes.attributes.dense("own_start_ns", 0, np.int64)
    begin = np.where(nodes.attributes.present("own_start_ns"), own, nodes.start_ns)
    return begin, begin + nodes.duration_ns
