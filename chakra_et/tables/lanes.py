"""Threads and streams: how busy each is."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chakra_et.graph.intervals import covered
from chakra_et.model import UNKNOWN_NS, Trace
from chakra_et.replay.columns import columns_of
from chakra_et.tables.places import Places
from chakra_et.tables.table import Table, stacked, texts


def lane_table(traces: Mapping[int, Trace]) -> Table:
    """Threads, streams and links of each rank: nodes, own time, and how much of it is busy.

    A thread is busy while something is open on it, a stream while it has work. `busy_share` is of
    the span of the rank.
    """
    tables = [_of_rank(rank, trace) for rank, trace in traces.items()]
    return stacked(tables) if tables else Table("streams", {})


def _of_rank(rank: int, trace: Trace) -> Table:
    places, columns = Places(trace), columns_of(trace)
    lane, names = places.lane
    timed = columns.timed & places.ran
    end = np.maximum(columns.end, columns.start)
    first = int(columns.start[timed].min()) if timed.any() else 0
    span = int(end[timed].max()) - first if timed.any() else 0
    count = np.bincount(lane[places.ran], minlength=len(names))
    busy, starts = [], []
    for number in range(len(names)):
        mine = timed & (lane == number)
        busy.append(covered(columns.start[mine], end[mine]))
        starts.append(int(columns.start[mine].min()) if mine.any() else UNKNOWN_NS)
    own = np.zeros(len(names), np.int64)
    counted = places.ran & ~places.carried
    np.add.at(own, lane[counted], trace.nodes.self_ns[counted])
    known = np.array(starts, np.int64) != UNKNOWN_NS
    table = {
        "rank": np.full(len(names), rank, np.int64),
        "stream": texts(names),
        "nodes": count,
        "self_ns": own,
        "busy_ns": np.array(busy, np.int64),
        "busy_share": np.where(known, np.array(busy, np.float64) / max(span, 1), np.nan),
    }
    return Table("streams", table, "busy_share is of the rank's span").take(count > 0)
