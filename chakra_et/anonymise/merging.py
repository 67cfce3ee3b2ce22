"""Coarse structure: runs of operations that only follow each other become one node."""

from __future__ import annotations

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import NodeType
from chakra_et.model import EdgeKind, Edges, Trace

_DELAYS = ("lag_ns", "late_ns", "contention_ns", "return_ns", "release_ns")


def merged(trace: Trace) -> Trace:
    """The trace without edges of calls, and with one node for each run of operations.

    A run is what one thread or stream does where nothing else waits for any of it but the last, or
    is waited for by any but the first. Its node has the duration of all, so that a replay takes as
    long.
    """
    edges, source = trace.edges, trace.source_rows()
    leads = np.flatnonzero((edges.kind != EdgeKind.CALL) & (source >= 0))
    head = _heads(trace, source[leads], edges.target[leads])
    first = head == np.arange(len(head))
    duration = np.zeros(len(head), np.int64)
    np.add.at(duration, head, trace.nodes.duration_ns)
    nodes = trace.nodes.take(np.flatnonzero(first))
    nodes.duration_ns[:] = duration[first]
    place = np.cumsum(first) - 1
    kept = leads[head[source[leads]] != head[edges.target[leads]]]
    changed = Edges.collect(
        len(nodes),
        place[head[edges.target[kept]]],
        trace.nodes.id[head[source[kept]]],
        edges.kind[kept],
        edges.inferred[kept],
    )
    for column in nodes.attributes.named("time_parts"):
        nodes.attributes.remove(column, column.rows)
    return Trace(nodes, changed, trace.metadata)


def _heads(trace: Trace, source: Rows, target: Rows) -> Rows:
    """For each row the first of its run."""
    count = len(trace.nodes)
    plain = _plain(trace)
    ins, outs = np.bincount(target, minlength=count), np.bincount(source, minlength=count)
    attributes = trace.nodes.attributes
    lane = np.stack([
        np.where(attributes.present(name), attributes.dense(name, 0, np.int64), -1)
        for name in ("thread", "device", "stream")
    ])  # fmt: skip
    joins = (ins[target] == 1) & (outs[source] == 1) & plain[source] & plain[target]
    joins &= (lane[:, source] == lane[:, target]).all(axis=0)
    before = np.full(count, -1, np.int64)
    before[target[joins]] = source[joins]
    head = np.where(before >= 0, before, np.arange(count))
    for _ in range(count.bit_length()):
        head = head[head]
    # A run that goes in a circle has no first: it stays as it is, and a replay names it.
    circle = before[head] >= 0
    head[circle] = np.flatnonzero(circle)
    return head


def _plain(trace: Trace) -> Mask:
    """Nodes that may be merged: they compute, wait for no device, and start when they may."""
    nodes, attributes = trace.nodes, trace.nodes.attributes
    plain = (nodes.type == NodeType.COMP) & ~attributes.present("sync_on")
    plain &= ~attributes.dense("polling", False, np.bool_)
    for name in _DELAYS:
        plain &= attributes.dense(name, 0, np.int64) == 0
    return np.asarray(plain)
