"""Where each node is drawn: a lane for each thread, stream and kind of communication of a rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chakra_et.columns import Rows
from chakra_et.pages.ranks import RankTimes

DEEPEST = 7
"""Calls that lie deeper are drawn at this depth."""


@dataclass(frozen=True)
class Lane:
    """A row of a timeline: `depth` levels of calls, the work of one thread or stream.

    `group` is what lanes stand together by: a rank, or a rank as it was simulated.
    """

    group: str
    label: str
    kind: str
    """`host`, `device` or `communication`."""
    depth: int


@dataclass(frozen=True)
class Placed:
    """The nodes of a rank that are drawn: row, place of the lane, depth in it."""

    row: Rows
    lane: Rows
    depth: Rows


def lanes_of(group: str, times: RankTimes) -> tuple[list[Lane], Placed]:
    """The lanes of one rank, threads before streams before communication, and its nodes in them.

    Nodes that take no time have no place.
    """
    nodes, c = times.trace.nodes, times.columns
    row = np.flatnonzero(times.shown & (times.end > times.start))
    attributes = nodes.attributes
    thread = attributes.dense("thread", -1, np.int64)
    thread = np.where(thread < 0, attributes.dense("tid", -1, np.int64), thread)
    device, stream = (attributes.dense(name, -1, np.int64) for name in ("device", "stream"))
    order = np.where(c.communication, 2, c.device.astype(np.int64))
    first = np.where(order == 0, thread, device)
    second = np.where(order == 0, 0, stream)
    key = np.stack((order, first, second), axis=1)[row]
    known, lane = np.unique(key, axis=0, return_inverse=True)
    lane = np.asarray(lane, np.int64).reshape(-1)
    depth = np.zeros(len(row), np.int64)
    lanes = []
    for place, (kind, one, two) in enumerate(known.tolist()):
        mine = np.flatnonzero(lane == place)
        if kind == 0:
            depth[mine] = _depths(times.start[row[mine]], times.end[row[mine]])
        deepest = int(depth[mine].max()) + 1
        lanes.append(Lane(group, _label(kind, one, two), _KINDS[kind], deepest))
    return lanes, Placed(row, lane, depth)


_KINDS = ("host", "device", "communication")


def _label(kind: int, first: int, second: int) -> str:
    if kind == 0:
        return f"thread {first}" if first >= 0 else "host"
    words = "communication" if kind == 2 else "device"
    place = f" {first}" if first >= 0 and kind == 1 else ""
    return f"{words}{place}, stream {second}" if second >= 0 else words + place


def _depths(start: Rows, end: Rows) -> Rows:
    """How many of some nested intervals are open around each."""
    order = np.lexsort((-end, start))
    depth = np.zeros(len(start), np.int64)
    ended = np.searchsorted(np.sort(end), start[order], "right")
    depth[order] = np.clip(np.arange(len(start)) - ended, 0, DEEPEST)
    return depth
