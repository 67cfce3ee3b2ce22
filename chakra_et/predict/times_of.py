"""The graph of one run with the durations of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.definitions import Kind
from chakra_et.model import Trace, set_time_parts
from chakra_et.passes.edit import without_waits
from chakra_et.predict.extra import Run, inserted
from chakra_et.predict.lanes import lanes_of
from chakra_et.predict.places import Places, same_places
from chakra_et.replay.columns import Columns, columns_of
from chakra_et.replay.figures import recorded_bounds

_RELEASE: Final = "release_ns"
_ALIKE: Final = 0.5
"""Traces of one program were found to share 0.88 of their order and more, stages of a pipeline
0.04."""
_ALONE: Final = 0.05
"""So much of what both do may be done by one alone: it was up to 0.01, and 0.13 in stages."""


@dataclass(frozen=True)
class Moved:
    """A trace with the times of another, and what had no counterpart.

    `place[i]` is the row of the other trace whose time row i has, or -1. The other trace has no
    counterpart of `missing` nodes: they take no time, and wait for no device. This one has none of
    `extra` nodes of the other, which take `extra_ns`: on a thread they become nodes of their own
    behind all others, on a stream their time goes to the work before them.
    `alike` is the share of this trace's host operations that stand in the same order in both.
    """

    trace: Trace
    place: Rows
    missing: int
    extra: int
    extra_ns: int
    alike: float = 1.0

    @property
    def same_work(self) -> bool:
        """Whether both do the same work, so that the graph of one can foretell the other.

        They do not where most stands in another order, and much has no counterpart at all.
        """
        both = 2 * int((self.place >= 0).sum())
        alone = self.missing + self.extra
        return self.alike >= _ALIKE or alone <= _ALONE * (both + alone)


def times_of(trace: Trace, other: Trace) -> Moved:
    """`trace` with the durations that `other` recorded for the same operations.

    Edges, and the delays that an attribute tells, stay those of `trace`. Only times of work are
    taken over (own times of host operations, pauses of threads, device work, transfers), and what
    was known when the other run began: until when work from before it occupied the device. When
    anything started, and how long a call waited, is for a replay to find.
    """
    here, there = columns_of(trace), columns_of(other)
    places = same_places(here, there)
    place = places.row
    duration, runs, extra_ns = _durations(here, there, places)
    nodes = trace.nodes.take(np.arange(len(trace.nodes)))
    nodes.duration_ns[:] = duration
    set_time_parts(nodes, here.parts.fitted(duration))
    for column in nodes.attributes.named(_RELEASE):
        nodes.attributes.remove(column, column.rows)
    known = other.nodes.attributes.present(_RELEASE)
    rows = np.flatnonzero(place >= 0)
    rows = rows[known[place[rows]]]
    if len(rows):
        released = other.nodes.attributes.dense(_RELEASE, 0, np.int64)[place[rows]]
        nodes.attributes.add(_RELEASE, Kind.INT64, released + _origin(here) - _origin(there), rows)
    missing = int((place < 0).sum())
    extra = len(there) - len(here) + missing
    moved = without_waits(Trace(nodes, trace.edges, trace.metadata), place < 0)
    none = np.full(len(runs), -1, np.int64)
    return Moved(
        inserted(moved, runs), np.append(place, none), missing, extra, extra_ns, places.alike(here)
    )


def _durations(here: Columns, there: Columns, places: Places) -> tuple[Rows, list[Run], int]:
    """A duration for each row, the work that has no place here, and how long it takes.

    Such work comes after what precedes it on its lane, of the operations whose order both share.
    On a stream its time goes to the work before it.
    """
    counterpart = np.full(len(there), -1, np.int64)
    placed = np.flatnonzero(places.row >= 0)
    counterpart[places.row[placed]] = placed
    duration = np.zeros(len(here), np.int64)
    duration[placed] = there.duration[places.row[placed]]
    runs: list[Run] = []
    extra_ns = 0
    for lane in lanes_of(there):
        at = counterpart[lane.rows]
        extra = np.flatnonzero(at < 0)
        extra_ns += int(there.duration[lane.rows[extra]].sum())
        ordered = np.flatnonzero((at >= 0) & (places.in_order[at] | (lane.kind == "stream")))
        if not len(extra) or not len(ordered):
            continue
        before = np.searchsorted(ordered, extra) - 1
        length = np.zeros(len(ordered) + 1, np.int64)
        np.add.at(length, before, there.duration[lane.rows[extra]])
        # What comes before all others is counted last.
        if lane.kind == "stream":
            duration[at[ordered]] += length[:-1]
            duration[at[ordered[0]]] += length[-1]
        else:
            runs += [Run(int(at[ordered[i]]), False, int(length[i]))
                     for i in np.flatnonzero(length[:-1]).tolist()]  # fmt: skip
            runs += [Run(int(at[ordered[0]]), True, int(length[-1]))] if length[-1] else []
    return duration, runs, extra_ns


def _origin(columns: Columns) -> int:
    return int(columns.start[columns.timed].min()) if columns.timed.any() else 0


def recorded_span_ns(trace: Trace) -> int:
    """From the first recorded start to the last end, threads that only poll left out."""
    begin, end = recorded_bounds(columns_of(trace))
    return end - begin
