"""Graphs with one kind of edge left out, or pointed at a wrong neighbour."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chakra_et.definitions import Kind
from chakra_et.model import EdgeKind, Edges, Trace
from chakra_et.passes.edit import WAITS_ON, copied, drop_attribute, without_waits
from chakra_et.predict.lanes import lanes_of
from chakra_et.replay.columns import columns_of

Rows = npt.NDArray[np.int64]


def without(trace: Trace, kind: EdgeKind) -> Trace:
    """The trace without the edges of a kind; without `sync` edges, calls do not wait."""
    if kind == EdgeKind.SYNC:
        return without_waits(trace, np.ones(len(trace.nodes), np.bool_))
    keep = trace.edges.kind != kind
    return _with_edges(
        trace, trace.edges.target[keep], trace.edges.source[keep],
        trace.edges.kind[keep], trace.edges.inferred[keep],
    )  # fmt: skip


def misdirected(trace: Trace, kind: EdgeKind) -> Trace:
    """The trace with each edge of a kind from what precedes its true source on the same lane.

    Calls that wait for a stream wait for another one instead.
    """
    before = _before(trace)
    row = trace.source_rows()
    moved = (trace.edges.kind == kind) & (row >= 0)
    moved &= before[np.maximum(row, 0)] >= 0
    source = trace.edges.source.copy()
    source[moved] = trace.nodes.id[before[row[moved]]]
    return _with_edges(
        _with_other_waits(trace) if kind == EdgeKind.SYNC else trace,
        trace.edges.target, source, trace.edges.kind, trace.edges.inferred,
    )  # fmt: skip


def _before(trace: Trace) -> Rows:
    """For each node the one before it on its thread or stream, else -1."""
    before = np.full(len(trace.nodes), -1, np.int64)
    for lane in lanes_of(columns_of(trace)):
        before[lane.rows[1:]] = lane.rows[:-1]
    return before


def _with_edges(
    trace: Trace, target: Rows, source: npt.NDArray[np.uint64],
    kind: npt.NDArray[np.uint8], inferred: npt.NDArray[np.bool_],
) -> Trace:  # fmt: skip
    edges = Edges.collect(len(trace.nodes), target, source, kind, inferred)
    return Trace(trace.nodes, edges, trace.metadata)


def _with_other_waits(trace: Trace) -> Trace:
    """The trace with calls that wait for the stream after theirs, or for one stream of a device."""
    attributes = trace.nodes.attributes
    on_stream = attributes.present("stream")
    streams = np.unique(attributes.dense("stream", 0, np.int64)[on_stream]).tolist()
    device = attributes.dense("device", 0, np.int64)[on_stream]
    changed = copied(trace)
    drop_attribute(changed.nodes.attributes, WAITS_ON, np.arange(len(trace.nodes)))
    if not streams:
        return changed
    for column in attributes.named(WAITS_ON):
        texts = [_other_wait(str(value), streams, int(device[0])) for value in column.values]
        changed.nodes.attributes.add(WAITS_ON, Kind.STRING, texts, column.rows)
    return changed


def _other_wait(text: str, streams: list[int], device: int) -> str:
    """What a call waits for, `stream 0 7` or `device 0`, as another stream than its own."""
    what, *numbers = map(str, text.split())
    on, stream = [*map(int, numbers), device, -1][:2] if what == "stream" else (device, -1)
    place = streams.index(stream) if stream in streams else -1
    return f"stream {on} {streams[(place + 1) % len(streams)]}"
