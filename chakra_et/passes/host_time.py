"""Host time folded into the time of the device.

Some simulators lose their statistics as soon as one node runs on a host processor. What the host
does matters to the network by its delays alone, and a delay can be told by a node on the device: an
idle one, as long as the device stood still because the host was late.

Where nothing runs on a device, the host is what computes, and its nodes become device work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import Kind, NodeType
from chakra_et.errors import ChakraError
from chakra_et.model import EdgeKind, Edges, Trace, TraceSet
from chakra_et.passes.base import Change, PassResult, run_pass, trace_pass
from chakra_et.passes.edit import (
    appended,
    copied,
    drop_attribute,
    rebuilt,
    set_attribute,
    without_nodes,
)
from chakra_et.replay import replay
from chakra_et.validators.ordering import issue_order
from chakra_et.validators.view import TraceView

IDLE: Final = "host time"
"""The name of a node that stands for the time in which a device waited for the host."""
_COMMUNICATION: Final = (NodeType.COMM_SEND, NodeType.COMM_RECV, NodeType.COMM_COLL)
_NONE: Final = -1
_TOLD: Final = ("lag_ns", "late_ns", "contention_ns", "release_ns", "return_ns", "sync_on")
"""Why starts were late: idle time stands for all of it."""


@trace_pass(
    "fold-host",
    "No node on a host processor; its time is idle time of the device.",
    requires="ET105",
    ensures="ET705",
)
def fold_host(trace: Trace, rank: int) -> tuple[Trace, list[Change]]:
    """Fold host nodes, by the times of the recording."""
    view = TraceView(trace, rank)
    if not view.on_host.any():
        return trace, []
    on_device = (view.nodes.type == NodeType.COMP) & ~view.on_host
    # A device node without a duration, such as a marker, is no reason to fold.
    if not view.nodes.duration_ns[on_device].any() or not view.timed[on_device].all():
        return _onto_device(view)
    return _folded(view, on_device)


@run_pass(
    "replay-starts", "Starts for all nodes, where host time is to be folded.", requires="ET105"
)
def replay_starts(traces: TraceSet) -> PassResult:
    """Start nodes where a replay of all ranks does, if a rank with host nodes has no starts."""
    untold = [rank for rank, trace in traces.items() if _lacks_starts(TraceView(trace, rank))]
    if not untold:
        return PassResult(traces, [])
    try:
        replayed = replay(traces).traces
    except ChakraError:
        return PassResult(traces, [])
    what = "nodes started where a replay does, as no starts are known"
    changes = [Change(what, len(traces[rank].nodes), rank) for rank in untold]
    told = {rank: replayed[rank] if rank in untold else trace for rank, trace in traces.items()}
    return PassResult(TraceSet(told), changes)


def _lacks_starts(view: TraceView) -> bool:
    return bool(view.on_host.any() and not view.timed.any())


@trace_pass("drop-polls", "No thread that only polls.", requires="ET105")
def drop_polls(trace: Trace, rank: int) -> tuple[Trace, list[Change]]:
    """Drop what only asks, again and again, whether work is done: it would last as long as ever."""
    polls = trace.nodes.attributes.dense("polling", False, np.bool_)
    if not polls.any() or polls.all():
        return trace, []
    changes = [Change("nodes of threads that only poll dropped", int(polls.sum()))]
    return without_nodes(trace, polls), changes


def _onto_device(view: TraceView) -> tuple[Trace, list[Change]]:
    """Host nodes as device work: one runs at a time either way."""
    trace = copied(view.trace)
    rows = np.flatnonzero(view.on_host)
    set_attribute(
        trace.nodes.attributes, "is_cpu_op", Kind.BOOL, rows, np.zeros(len(rows), np.bool_)
    )
    what = "host nodes made device work, as nothing else runs on the device"
    if not view.timed.any():
        what = "host nodes made device work, as no starts are known to fold them by"
    return trace, [Change(what, len(rows))]


@dataclass
class _Timeline:
    """What the device does, one thing after the other, idle time included.

    An item is a node's row, or -1 - i for the idle time i.
    """

    cursor: int
    items: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    idle_start: list[int] = field(default_factory=list)
    idle_duration: list[int] = field(default_factory=list)
    waits: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of an item and one that it waits for."""
    overlap_ns: int = 0
    """Time in which device nodes ran side by side."""
    short_ns: int = 0
    """Idle time too short for the simulator, until the next idle time takes it over."""

    def last(self) -> int | None:
        """The item that ends last."""
        return self.items[-1] if self.items else None

    def append(self, item: int, end: int) -> None:
        """Put an item behind the last one, which it waits for."""
        if self.items:
            self.waits.append((item, self.items[-1]))
        self.items.append(item)
        self.cursor = max(self.cursor, end)
        self.ends.append(self.cursor)

    def idle_until(self, start: int, behind: int, after: int | None) -> None:
        """Stand still until `start` from the cursor on, or from `behind`, when `after` ended."""
        begin = max(self.cursor, behind)
        if start <= begin:
            return
        idle = start - begin + self.short_ns
        self.short_ns = idle if idle < _RESOLUTION_NS else 0
        if self.short_ns:
            return
        item = -1 - len(self.idle_start)
        self.idle_start.append(begin)
        self.idle_duration.append(idle)
        self.append(item, start)
        if after is not None and behind == begin:
            self.waits.append((item, after))

    def ended_by(self, time: int) -> int | None:
        """The last item that has ended at a time."""
        place = int(np.searchsorted(self.ends[-_BACK:], time, "right"))
        place += max(0, len(self.ends) - _BACK)
        return self.items[place - 1] if place else None


_RESOLUTION_NS: Final = 500
"""Durations below this become 0 in whole microseconds."""
_BACK: Final = 256
"""How far back the start of a communication may lie behind the end of the device's work."""


def _folded(view: TraceView, on_device: Mask) -> tuple[Trace, list[Change]]:
    nodes = view.nodes
    communicates = np.isin(nodes.type, _COMMUNICATION) & view.timed
    kept = np.flatnonzero(on_device | communicates)
    kept = kept[np.lexsort((kept, nodes.start_ns[kept]))]
    latest = _latest_before(view, np.flatnonzero(communicates))
    start, end = nodes.start_ns, view.own_start_ns + nodes.duration_ns
    # Threads that only poll last as long as the run does.
    timed = np.flatnonzero(view.timed & ~(view.integers("polling") == 1))
    line = _Timeline(int(start[timed].min()))
    for row in kept.tolist():
        before = latest[row]
        comm = None if before == _NONE else before
        line.idle_until(int(start[row]), line.cursor if comm is None else int(end[comm]), comm)
        if comm is not None:
            line.waits.append((row, comm))
        if communicates[row]:
            item = line.ended_by(int(start[row]))
            if item is not None:
                line.waits.append((row, item))
        else:
            line.overlap_ns += max(min(line.cursor, int(end[row])) - int(start[row]), 0)
            line.append(row, int(end[row]))
    rest = latest_end = int(end[timed].max())
    last_comm = max(kept[communicates[kept]].tolist(), key=lambda r: int(end[r]), default=None)
    if last_comm is not None:
        line.idle_until(latest_end, int(end[last_comm]), last_comm)
    else:
        line.idle_until(rest, line.cursor, None)
    folded = int(np.count_nonzero(view.on_host))
    changes = [
        Change("host nodes folded into idle device time", folded),
        Change("nodes of idle device time added", len(line.idle_start)),
        Change("ns of idle device time", sum(line.idle_duration)),
    ]
    if line.overlap_ns:
        what = "ns in which device nodes ran side by side, now one after the other"
        changes.append(Change(what, line.overlap_ns))
    return _built(view.trace, kept, line), changes


def _latest_before(view: TraceView, communication: Rows) -> list[int]:
    """For each node the communication that it waits for, over whatever nodes; the latest one.

    A device runs one communication after the other, so the latest stands for those before it.
    """
    count = len(view.nodes)
    rank = np.full(count, _NONE, np.int64)
    by_start = communication[np.lexsort((communication, view.nodes.start_ns[communication]))]
    rank[by_start] = np.arange(len(by_start))
    own, source = rank.tolist(), view.source.tolist()
    offsets = view.edges.offsets.tolist()
    found = [_NONE] * count
    for row in _topological(view):
        best = _NONE
        for parent in source[offsets[row] : offsets[row + 1]]:
            if parent >= 0 and parent != row:
                best = max(best, found[parent], own[parent])
        found[row] = best
    by_rank = by_start.tolist()
    return [_NONE if place == _NONE else by_rank[place] for place in found]


def _topological(view: TraceView) -> list[int]:
    """Rows in an order in which each follows what it waits for."""
    if bool((view.source < view.target).all()):
        return list(range(len(view.nodes)))
    order: list[int] = issue_order(view.trace).tolist()
    return order


def _built(trace: Trace, kept: Rows, line: _Timeline) -> Trace:
    """The trace of the kept nodes and the idle times, with the waits of the timeline."""
    place = {row: new for new, row in enumerate(kept.tolist())}
    first_id = int(trace.nodes.id.max()) + 1
    idle = len(line.idle_start)
    ids = np.concatenate(
        [trace.nodes.id[kept], np.arange(first_id, first_id + idle, dtype=np.uint64)]
    )

    def new_row(item: int) -> int:
        return place[item] if item >= 0 else len(kept) - 1 - item

    target = np.array([new_row(item) for item, _ in line.waits], np.int64)
    source = np.array([new_row(other) for _, other in line.waits], np.int64)
    both = target != source
    target, source = target[both], source[both]
    edges = Edges.collect(
        len(ids),
        target,
        ids[source],
        np.full(len(target), EdgeKind.STREAM, np.uint8),
        np.ones(len(target), np.bool_),
    )
    inner = rebuilt(trace, kept, Edges.empty(len(kept)), np.zeros(0, np.int64))
    for name in _TOLD:
        drop_attribute(inner.nodes.attributes, name, np.arange(len(kept)))
    nodes = appended(
        inner.nodes,
        np.array(line.idle_start, np.int64),
        np.array(line.idle_duration, np.int64),
        NodeType.COMP,
        IDLE,
        first_id,
    )
    rows = np.arange(len(kept), len(ids))
    nodes.attributes.add("is_cpu_op", Kind.BOOL, np.zeros(idle, np.bool_), rows)
    return Trace(nodes, edges, inner.metadata)
