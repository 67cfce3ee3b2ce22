"""Stream order: device work waits for what its stream did before."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.waits.stream_order import StreamOrder, overlaps

_REACH: Final = 64
"""How many neighbours are looked at around an overlap."""


def stream_edges(table: Activities, streams: StreamOrder) -> EdgeList:
    """Edges between neighbours on a stream.

    Evidence: recorded times. Work that begins in the second half of its predecessor, and outlasts
    it (programmatic dependent launch, or a clock that rounds), still waits for it, with a negative
    lag. Work that truly runs beside its predecessor waits for the last one that had ended instead,
    and whoever comes after waits for both.
    """
    order = streams.order
    lane, start, end = table.lane[order], table.start_ns[order], table.end_ns[order]
    overlap = overlaps(table, order)
    length = end - start
    beside = np.zeros(len(order), np.bool_)
    beside[1:] = (overlap[1:] > 0) & (2 * overlap[1:] >= np.minimum(length[1:], length[:-1]))
    neighbours = np.flatnonzero((lane[1:] == lane[:-1]) & ~beside[1:]) + 1
    found = [EdgeList.by(Evidence.STREAM_ORDER, order[neighbours - 1], order[neighbours])]
    loose = np.flatnonzero(beside)
    if len(loose):
        extra = _loose_edges(lane, start, end, beside, loose)
        found.append(EdgeList.by(Evidence.STREAM_OVERLAP, order[extra[:, 0]], order[extra[:, 1]]))
    return EdgeList.joined(found)


def _loose_edges(lane: Rows, start: Rows, end: Rows, beside: Mask, loose: Rows) -> Rows:
    """Pairs of places around overlaps: from the last ended one, and to the next that waits.

    What comes after a run of overlaps waits for those that nothing in the run waited for.
    """
    waited = {place: _last_ended(lane, start, end, place) for place in loose.tolist()}
    pairs = [(before, place) for place, before in waited.items() if before >= 0]
    waiters: dict[int, list[int]] = {}
    for before, place in pairs:
        waiters.setdefault(before, []).append(place)
    firm = np.append(np.flatnonzero(~beside), len(lane))
    following = firm[np.searchsorted(firm, loose)].tolist()
    for place, after in zip(loose.tolist(), following, strict=True):
        skipped = place - 1
        if after == len(lane) or lane[after] != lane[place] or end[skipped] > start[after]:
            continue
        between = [p for p in waiters.get(skipped, []) if p < after]
        if not any(p == after - 1 or end[p] <= start[after] for p in between):
            pairs.append((skipped, after))
    return np.array(pairs, np.int64).reshape(-1, 2)


def _last_ended(lane: Rows, start: Rows, end: Rows, place: int) -> int:
    """The place of the last work on a stream that had ended when another began; -1 for none."""
    before, nearest = place - 1, max(place - _REACH, -1)
    while before > nearest and lane[before] == lane[place] and end[before] > start[place]:
        before -= 1
    if before >= 0 and lane[before] == lane[place] and end[before] <= start[place]:
        return before
    return -1
