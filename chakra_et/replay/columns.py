"""What a replay reads from one trace, in columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import NodeType
from chakra_et.graph import EdgeRows, edge_rows
from chakra_et.model import UNKNOWN_NS, EdgeKind, TimeParts, Trace, time_parts

MET: Final = "met_ns"
"""The attribute of communications whose duration holds no wait for other ranks: when, on the clock
of the rank, the last member came. Edits give it to nodes whose starts tell that no more."""

_COMMUNICATION = (NodeType.COMM_SEND, NodeType.COMM_RECV, NodeType.COMM_COLL)


@dataclass
class Columns:
    """One rank's nodes and edges. Times in ns; `start` and `end` are the recorded ones.

    `begin` is the recorded start of a node's own time, which its duration counts from.
    A node starts `lag`, `late` and `contention` after all that it waits for: what a front end
    takes, what nothing explains, and what other streams of the device may have caused.
    `returns[e]` is how long after the end of its source edge e lets its target begin: the time
    that a blocking copy takes to return, before a call that waits for something else, too.
    `counts` is false for threads that only poll, which are no part of the workload.
    `device` marks work that occupies no host processor, `communication` transfers between ranks.
    `parts` says whose time the durations are.
    `timed` is false for nodes whose start is not known. `release` is the recorded start of nodes
    that no host work leads to (first of a thread, device work that was launched before the trace
    began), else the start of the trace, or when work outside the trace let go of the node.
    `met` is when the last member of a communication came, where `MET` tells it, else `UNKNOWN_NS`.
    """

    trace: Trace
    start: Rows
    begin: Rows
    end: Rows
    duration: Rows
    parts: TimeParts
    lag: Rows
    late: Rows
    contention: Rows
    returns: Rows
    release: Rows
    timed: Mask
    counts: Mask
    device: Mask
    communication: Mask
    met: Rows
    edges: EdgeRows
    kind: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.start)


def columns_of(trace: Trace) -> Columns:
    """The columns of a trace."""
    nodes, attributes = trace.nodes, trace.nodes.attributes
    edges = edge_rows(trace)
    kind = trace.edges.kind[edges.place]
    timed = nodes.start_ns != UNKNOWN_NS
    origin = int(nodes.start_ns[timed].min()) if timed.any() else 0
    start = np.where(timed, nodes.start_ns, origin)
    communication = np.isin(nodes.type, _COMMUNICATION)
    device = ~attributes.dense("is_cpu_op", False, np.bool_)
    inclusive = attributes.dense("inclusive_ns", -1, np.int64)
    known = inclusive >= 0
    own_start = attributes.dense("own_start_ns", 0, np.int64)
    begin = np.where(attributes.present("own_start_ns"), own_start, start)
    lag = attributes.dense("lag_ns", 0, np.int64)
    late, contention = (
        np.maximum(attributes.dense(name, 0, np.int64), 0) for name in ("late_ns", "contention_ns")
    )
    released = np.full(len(nodes), origin, np.int64)
    outside = attributes.present("release_ns")
    delay = np.maximum(lag, 0) + late + contention
    released[outside] = (attributes.dense("release_ns", 0, np.int64) + delay)[outside]
    return Columns(
        trace=trace,
        start=start,
        begin=begin,
        end=np.where(known, start + inclusive, begin + nodes.duration_ns),
        duration=nodes.duration_ns,
        parts=time_parts(nodes),
        lag=lag,
        late=late,
        contention=contention,
        returns=_returns(trace, edges, kind),
        release=np.where(
            _held(trace, edges, kind) | (outside & ~timed), np.maximum(released, origin), start
        ),
        timed=timed,
        counts=_counts(trace),
        device=device,
        communication=communication,
        met=attributes.dense(MET, UNKNOWN_NS, np.int64),
        edges=edges,
        kind=kind,
    )


def _held(trace: Trace, edges: EdgeRows, kind: npt.NDArray[np.uint8]) -> Mask:
    """Which nodes something on the host leads to."""
    # Who called a node does not begin it, but on the same thread, which program order tells.
    # Where program order and launches are told, data says nothing of what begins a node.
    told = np.isin(kind, (EdgeKind.PROGRAM, EdgeKind.LAUNCH)).any()
    others = (*_DEVICE_KINDS, EdgeKind.DATA, EdgeKind.CALL) if told else _DEVICE_KINDS
    begins = ~np.isin(kind, others)
    if told:
        # What a thread begins with may wait for a device, but nothing else calls for it.
        begins &= (kind != EdgeKind.SYNC) | ~trace.nodes.attributes.present("thread")[edges.target]
    held = np.zeros(len(trace.nodes), np.bool_)
    held[edges.target[begins]] = True
    return held


def _counts(trace: Trace) -> Mask:
    """All nodes but those of threads that only poll; all nodes if there are no others."""
    polls = trace.nodes.attributes.dense("polling", False, np.bool_)
    return np.asarray(~polls | polls.all())


def _returns(trace: Trace, edges: EdgeRows, kind: npt.NDArray[np.uint8]) -> Rows:
    """Times to return, of the edges from a copy into what follows its call on the thread."""
    returns = trace.nodes.attributes.dense("return_ns", 0, np.int64)
    if not returns.any():
        return np.zeros(len(kind), np.int64)
    launch = np.full(len(returns), -1, np.int64)
    before = np.full(len(returns), -1, np.int64)
    for column, wanted in ((launch, EdgeKind.LAUNCH), (before, EdgeKind.PROGRAM)):
        column[edges.target[kind == wanted]] = edges.source[kind == wanted]
    source, target = edges.source, edges.target
    of_copy = (kind == EdgeKind.SYNC) & (launch[source] >= 0) & (launch[source] == before[target])
    return np.where(of_copy, returns[target], 0)


_DEVICE_KINDS = (EdgeKind.STREAM, EdgeKind.EVENT, EdgeKind.GROUP)
"""Kinds of edges that only hold device work back; what begins it is a launch."""
