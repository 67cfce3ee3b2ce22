"""The order of device work on each stream."""

from __future__ import annotations

import msgspec
import numpy as np

from chakra_et.codes import order_of
from chakra_et.columns import EVER, Rows
from chakra_et.linker.activities import Activities


class StreamOrder(msgspec.Struct):
    """Device work by stream and start, and how many neighbours on a stream overlap in time."""

    order: Rows
    overlaps: int


def stream_order(table: Activities) -> StreamOrder:
    """The order of each stream: by start; where starts are equal, as launched, then as recorded."""
    rows = np.flatnonzero(table.work)
    launched = table.start_ns[table.launch[rows]]
    launched[table.launch[rows] < 0] = EVER
    keys = (table.start_ns[rows], table.end_ns[rows], launched, table.record[rows])
    order = rows[order_of(table.lane[rows], *keys)]
    return StreamOrder(order, int(np.count_nonzero(overlaps(table, order) > 0)))


def overlaps(table: Activities, order: Rows) -> Rows:
    """For how long each activity ran beside its predecessor on the stream, 0 where it did not."""
    lane = table.lane[order]
    result = np.zeros(len(order), np.int64)
    if len(order):
        overlap = table.end_ns[order][:-1] - table.start_ns[order][1:]
        result[1:] = np.where(lane[1:] == lane[:-1], np.maximum(overlap, 0), 0)
    return result
