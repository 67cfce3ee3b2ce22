"""Rules about starts and durations."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import NodeType
from chakra_et.model import EdgeKind
from chakra_et.model.time_parts import unreadable
from chakra_et.validators.finding import NOTHING, Hits
from chakra_et.validators.rule import trace_rule
from chakra_et.validators.view import ABSENT, TraceView

_DAY_NS: Final = 86_400 * 10**9
_SECOND_NS: Final = 10**9
_ENOUGH: Final = 20
"""Nodes from which on a trace is judged by its median or its sum."""


@trace_rule(
    "ET301",
    "A start or a duration is negative.",
    why="The fields of the format are unsigned; a reader sees 584942 years.",
    cure="Move the time base before the first node.",
    kin="ET303 ET304 ET305 ET306 ET307 ET311",
)
def negative(view: TraceView) -> Hits:
    """Times below zero, in a file that tells them in nanoseconds or in memory."""
    start, duration = view.nodes.start_ns, view.nodes.duration_ns
    rows = np.flatnonzero((view.timed & (start < 0)) | (duration < 0))
    return view.hits(rows, lambda i: f"start {start[rows[i]]} ns, duration {duration[rows[i]]} ns")


@trace_rule(
    "ET302",
    "A node lasts for more than a day.",
    why="An overflow, or a time in another unit: the simulation takes it as it stands.",
    cure="Find the producer's unit; the format has microseconds, and nanoseconds in duration_ns.",
    kin="ET305 ET306 ET308 ET310",
)
def absurd(view: TraceView) -> Hits:
    """Durations that no kernel and no operator has."""
    rows = np.flatnonzero(view.nodes.duration_ns > _DAY_NS)
    return view.hits(rows, lambda i: f"{view.nodes.duration_ns[rows[i]] / 1e9:.0f} s")


@trace_rule(
    "ET303",
    "No node takes any time.",
    why="The simulation is one of communication alone.",
    cure="Record a profile with times, and convert with it.",
    kin="ET311",
)
def timeless(view: TraceView) -> Hits:
    """A trace of more than a few COMP nodes, all of no duration."""
    rows = view.of_type(NodeType.COMP)
    if len(rows) < _ENOUGH or view.nodes.duration_ns[rows].any():
        return NOTHING
    return view.whole(f"all {len(rows)} COMP nodes have a duration of 0")


@trace_rule(
    "ET304",
    "Device work starts before the call that launches it.",
    why="The clocks of host and device are not aligned; waits computed from them are wrong.",
    cure="Record again; the clock of the device drifts in long recordings.",
    kin="ET307",
)
def before_launch(view: TraceView) -> Hits:
    """Targets of launch edges that start before their source."""
    edges = _backward(view, view.edges.kind == EdgeKind.LAUNCH)
    return view.hits(view.target[edges], lambda i: _by_how_much(view, edges[i]))


@trace_rule(
    "ET305",
    "Work overlaps on one stream.",
    why="A stream runs one thing after the other; a replay in order takes longer.",
    cure="None needed where kernels chain (programmatic launch); else look at the device's clock.",
    kin="ET302",
)
def stream_overlap(view: TraceView) -> Hits:
    """Device nodes that start before the one before them on the stream ended."""
    stream, device = view.integers("stream"), view.integers("device")
    rows = np.flatnonzero((stream != ABSENT) & view.timed & ~view.on_host)
    return _overlaps(view, rows, [device[rows], stream[rows]], view.nodes.start_ns[rows])


@trace_rule(
    "ET306",
    "Host nodes overlap on one thread.",
    why="The same time counts twice: a replay takes longer than the recording.",
    cure="Write own segments as durations, not those that contain callees; `chakra convert` does.",
    kin="ET302",
)
def thread_overlap(view: TraceView) -> Hits:
    """Host nodes whose own time starts before that of the one before them on the thread ended."""
    thread = view.integers("thread")
    rows = np.flatnonzero((thread != ABSENT) & view.timed & view.on_host)
    return _overlaps(view, rows, [thread[rows]], view.own_start_ns[rows])


@trace_rule(
    "ET307",
    "A node starts before one that it waits for.",
    why="Either the edge or the clock is wrong; a replay shifts everything after it.",
    cure="Look at the edge's kind: those of other threads and streams are the doubtful ones.",
    kin="ET304 ET305 ET306",
)
def clock_regress(view: TraceView) -> Hits:
    """Recorded edges against the order of starts; launches are ET304's affair."""
    edges = _backward(view, (view.edges.kind != EdgeKind.LAUNCH) & ~view.edges.inferred)
    return view.hits(view.target[edges], lambda i: _by_how_much(view, edges[i]))


@trace_rule(
    "ET308",
    "Durations seem to be in a unit other than microseconds.",
    why="Cycles or nanoseconds in duration_micros make a simulation a thousand times too long.",
    cure="Divide by 1000; converters of text workloads and some forks write such files.",
    kin="ET302",
)
def other_unit(view: TraceView) -> Hits:
    """A median of device work beyond a second."""
    rows = view.of_type(NodeType.COMP)
    took = view.nodes.duration_ns[rows[~view.on_host[rows]]]
    took = took[took > 0]
    if len(took) < _ENOUGH or np.median(took) < _SECOND_NS:
        return NOTHING
    return view.whole(f"the median of {len(took)} device nodes is {np.median(took) / 1e9:.1f} s")


@trace_rule(
    "ET309",
    "Durations are below the resolution of the simulator.",
    why="ASTRA-sim counts whole microseconds, and takes 1 ns for 0.",
    cure="None needed if their sum is small; `chakra fix` tells how much is lost.",
)
def below_resolution(view: TraceView) -> Hits:
    """Nodes of less than half a microsecond, told once with their sum."""
    took = view.nodes.duration_ns
    rows = np.flatnonzero((took > 0) & (took < 500))
    if len(rows) == 0:
        return NOTHING
    return view.whole(f"{len(rows)} nodes of {took[rows].sum() / 1e3:.1f} us together")


@trace_rule(
    "ET310",
    "The device is idle nearly all the time.",
    why="Records are missing, or the run was bound by the host: a faster network changes nothing.",
    cure="Compare with the profile; record fewer steps, without stack traces.",
)
def device_idle(view: TraceView) -> Hits:
    """Device work that covers less than a hundredth of the span from its first to its last."""
    rows = np.flatnonzero((view.integers("stream") != ABSENT) & view.timed & ~view.on_host)
    if len(rows) < _ENOUGH:
        return NOTHING
    start = view.nodes.start_ns[rows]
    end = start + view.nodes.duration_ns[rows]
    span, busy = int(end.max() - start.min()), int(view.nodes.duration_ns[rows].sum())
    if busy * 100 >= span:
        return NOTHING
    return view.whole(f"{busy / 1e6:.3f} ms of work in {span / 1e6:.3f} ms")


@trace_rule(
    "ET311",
    "time_parts cannot be read, or do not fit their node.",
    why="Time counts for the wrong operation, in tables by name and in every what-if.",
    cure="Drop the attribute; what changes ids, durations or nodes has to change it, too.",
)
def unfit_parts(view: TraceView) -> Hits:
    """Parts in another form, of nodes that are not there, or of more than the duration."""
    rows = unreadable(view.nodes)
    texts = view.texts("time_parts")
    return view.hits(rows, lambda i: f"{texts[rows[i]]!r} in {view.nodes.duration_ns[rows[i]]} ns")


def _backward(view: TraceView, chosen: Mask) -> Rows:
    """Edges among `chosen` whose target starts before their source does."""
    edges = np.flatnonzero(chosen & view.sound_edges)
    source, target = view.source[edges], view.target[edges]
    known = view.timed[source] & view.timed[target]
    edges, source, target = edges[known], source[known], target[known]
    return edges[view.begin_ns[target] < view.nodes.start_ns[source]]


def _by_how_much(view: TraceView, edge: int) -> str:
    source, target = int(view.source[edge]), int(view.target[edge])
    early = view.nodes.start_ns[source] - view.begin_ns[target]
    kind = EdgeKind(int(view.edges.kind[edge])).label
    return f"{early} ns before node {view.nodes.id[source]}, for which it waits ({kind})"


def _overlaps(view: TraceView, rows: Rows, lanes: list[Rows], start: Rows) -> Hits:
    """Neighbours in a lane of which the later one starts too early."""
    # Of nodes that start together, what takes no time comes first.
    order = np.lexsort((rows, view.nodes.duration_ns[rows], start, *lanes))
    same = np.ones(max(len(rows) - 1, 0), np.bool_)
    for lane in lanes:
        same &= lane[order][1:] == lane[order][:-1]
    end = (start + view.nodes.duration_ns[rows])[order]
    late = np.flatnonzero(same & (start[order][1:] < end[:-1]))
    later, earlier = rows[order[late + 1]], rows[order[late]]
    return view.hits(
        later,
        lambda i: (
            f"{end[late[i]] - start[order[late[i] + 1]]} ns before the end of "
            f"node {view.nodes.id[earlier[i]]}"
        ),
    )
