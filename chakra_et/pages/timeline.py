"""What a timeline draws, in compact columns: every operation, or blocks of those that are short."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.definitions import NodeType
from chakra_et.pages.lanes import DEEPEST, Lane, Placed, lanes_of
from chakra_et.pages.path import RunPath
from chakra_et.pages.ranks import RankTimes
from chakra_et.passes.host_time import IDLE
from chakra_et.shown import shown

MOST_BOXES: Final = 24_000
"""So many boxes a page draws at most; 20 bytes each."""
MOST_STRETCHES: Final = 6_000
KINDS: Final = ("host", "annotation", "device", "memory", "communication")
_NAME_WIDTH: Final = 200
_MEMORY: Final = ("gpu_memcpy", "gpu_memset")
NOWHERE: Final = np.zeros(0, np.int64)


@dataclass
class Boxes:
    """Columns of what is drawn, one entry for each box; times count from the begin of the window.

    `count` is how many operations a box stands for, `busy` how much of it they take, in ns.
    """

    lane: Rows
    depth: Rows
    kind: Rows
    name: Rows
    start: Rows
    length: Rows
    node: npt.NDArray[np.uint64]
    count: Rows
    busy: Rows

    def __len__(self) -> int:
        return len(self.lane)


@dataclass
class Timeline:
    """A window of a run: lanes, boxes, names, and the stretches of the critical path in it.

    Operations that are shorter than `joined_ns` were joined with their neighbours into blocks. A
    long path is drawn in stretches of `path_step_ns`, each where most of it is; else that is 0.
    """

    begin_ns: int
    end_ns: int
    lanes: list[Lane]
    names: list[str]
    boxes: Boxes
    path: dict[str, Rows]
    path_step_ns: int
    operations: int
    joined_ns: int
    joined: int

    def as_dict(self) -> dict[str, Any]:
        """For the page: columns of numbers as base64 of little-endian arrays."""
        boxes = self.boxes
        told = {
            name: _packed(getattr(boxes, name))
            for name in ("lane", "depth", "kind", "name", "start", "length", "count", "busy")
        }
        return {
            "span": self.end_ns - self.begin_ns,
            "lanes": [[lane.group, lane.label, lane.kind, lane.depth] for lane in self.lanes],
            "names": self.names,
            "kinds": KINDS,
            "boxes": {**told, "node": _packed(boxes.node)},
            "path": {name: _packed(column) for name, column in self.path.items()},
        }


def make_timeline(
    groups: Mapping[str, RankTimes],
    span: tuple[int, int],
    path: RunPath | None = None,
    window: tuple[int, int] | None = None,
) -> Timeline:
    """Lay out a window of a span, in ns from its begin; the whole of it by default.

    `groups` are ranks under the names that they have on the page; a path runs through those that
    are called by the number of their rank.
    """
    begin, end = span
    if window is not None:
        begin, end = begin + window[0], min(begin + window[1], end)
    lanes: list[Lane] = []
    names: dict[str, int] = {}
    placed: dict[str, tuple[Placed, int]] = {}
    for group, times in groups.items():
        mine, found = lanes_of(group, times)
        placed[group] = found, len(lanes)
        lanes += mine
    parts = [_boxes(groups[group], *place, names) for group, place in placed.items()]
    boxes = _within(_joint(parts), begin, end)
    operations = len(boxes)
    boxes, joined_ns, joined = _fitted(boxes, end - begin)
    on_path, path_step_ns = (
        ({}, 0) if path is None else _stretches(groups, path, placed, begin, end)
    )
    shorter = [shown(name)[:_NAME_WIDTH] for name in names]
    return Timeline(
        begin, end, lanes, shorter, boxes, on_path, path_step_ns, operations, joined_ns, joined
    )


def _boxes(times: RankTimes, placed: Placed, first_lane: int, names: dict[str, int]) -> Boxes:
    row = placed.row
    took = times.end[row] - times.start[row]
    return Boxes(
        placed.lane + first_lane,
        placed.depth,
        kinds_of(times)[row],
        _codes(times, row, names),
        times.start[row],
        took,
        times.trace.nodes.id[row],
        np.ones(len(row), np.int64),
        took,
    )


def kinds_of(times: RankTimes) -> Rows:
    """What each node is: a place in `KINDS`; idle time of a device is the host's."""
    c, nodes = times.columns, times.trace.nodes
    category = nodes.attributes.dense("category", None, object)
    moves = np.isin(nodes.type, (NodeType.MEM_LOAD, NodeType.MEM_STORE))
    moves |= np.array([one in _MEMORY for one in category.tolist()], np.bool_)
    annotates = np.array([one == "user_annotation" for one in category.tolist()], np.bool_)
    host = np.where(annotates, KINDS.index("annotation"), KINDS.index("host"))
    kind = np.where(c.device, KINDS.index("device"), host)
    kind = np.where(nodes.name == IDLE, KINDS.index("host"), kind)
    kind = np.where(moves, KINDS.index("memory"), kind)
    return np.where(c.communication, KINDS.index("communication"), kind)


def _codes(times: RankTimes, row: Rows, names: dict[str, int]) -> Rows:
    """The place of each node's name among the names of all ranks."""
    own = times.trace.nodes.name_code[row]
    used = np.unique(own)
    place = np.zeros(int(used.max()) + 1 if len(used) else 0, np.int64)
    for code in used.tolist():
        place[code] = names.setdefault(times.trace.nodes.names[code], len(names))
    return place[own]


def _joint(parts: Iterable[Boxes]) -> Boxes:
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return Boxes(*(np.concatenate(column) for column in columns))


def _take(boxes: Boxes, chosen: Any) -> Boxes:
    return Boxes(*(column[chosen] for column in vars(boxes).values()))


def _within(boxes: Boxes, begin: int, end: int) -> Boxes:
    """The boxes in a window, counted from its begin."""
    kept = _take(boxes, (boxes.start < end) & (boxes.start + boxes.length > begin))
    until = np.minimum(kept.start + kept.length, end)
    kept.start = np.maximum(kept.start, begin) - begin
    kept.length = until - begin - kept.start
    kept.busy = kept.length
    return kept


def _fitted(boxes: Boxes, span: int) -> tuple[Boxes, int, int]:
    """At most `MOST_BOXES`: what is short is joined with its neighbours, ever longer ones.

    Also below how many ns operations were joined, and how many of them.
    """
    limit = max(span // MOST_BOXES, 1)
    found = boxes
    joined_ns = joined = 0
    while len(found) > MOST_BOXES:
        short = boxes.length < limit
        found, joined_ns, joined = _blocks(boxes, short, limit), limit, int(short.sum())
        limit *= 2
    return found, joined_ns, joined


def _blocks(boxes: Boxes, short: npt.NDArray[np.bool_], width: int) -> Boxes:
    """Short boxes of one lane, depth and kind that begin in the same `width` ns become one."""
    rest = _take(boxes, short)
    row = (rest.lane * (DEEPEST + 1) + rest.depth) * len(KINDS) + rest.kind
    _, first, block = np.unique(
        row * (int(boxes.start.max()) // width + 1) + rest.start // width,
        return_index=True,
        return_inverse=True,
    )
    known = _take(rest, first)
    count = np.bincount(block, minlength=len(known))
    start = np.full(len(known), np.iinfo(np.int64).max)
    end, busy = np.zeros(len(known), np.int64), np.zeros(len(known), np.int64)
    np.minimum.at(start, block, rest.start)
    np.maximum.at(end, block, rest.start + rest.length)
    np.add.at(busy, block, rest.busy)
    made = replace(known, start=start, length=end - start, count=count, busy=busy)
    return _joint([_take(boxes, ~short), made])


def _stretches(
    groups: Mapping[str, RankTimes],
    path: RunPath,
    placed: Mapping[str, tuple[Placed, int]],
    begin: int,
    end: int,
) -> tuple[dict[str, Rows], int]:
    """The path in the window as stretches in lanes; and of how many ns each is, if of equal ones.

    These are taken where there are too many others.
    """
    lane, depth = np.full(len(path.row), -1, np.int64), np.zeros(len(path.row), np.int64)
    for group, (found, first) in placed.items():
        times = groups[group]
        mine = np.flatnonzero(path.rank == times.rank) if group == str(times.rank) else NOWHERE
        at = np.full(len(times.trace.nodes), -1, np.int64)
        at[found.row] = np.arange(len(found.row))
        place = at[path.row[mine]]
        there = place >= 0
        lane[mine[there]] = found.lane[place[there]] + first
        depth[mine[there]] = found.depth[place[there]]
    kept = (path.took_ns > 0) & (lane >= 0) & (path.until_ns > begin) & (path.since_ns < end)
    since = np.maximum(path.since_ns[kept], begin) - begin
    until = np.minimum(path.until_ns[kept], end) - begin
    lane, depth = lane[kept], depth[kept]
    whole = {"lane": lane, "depth": depth, "start": since, "length": until - since}
    if len(lane) <= MOST_STRETCHES:
        return whole, 0
    width = -(-(end - begin) // MOST_STRETCHES)
    return _thinned(whole, width), width


def _thinned(path: dict[str, Rows], width: int) -> dict[str, Rows]:
    """Of all stretches that begin in the same `width` ns one, where the longest of them is."""
    place = path["start"] // width
    order = np.lexsort((-path["length"], place))
    longest = order[np.append(True, place[order][1:] != place[order][:-1])]
    first = np.flatnonzero(np.append(True, place[1:] != place[:-1]))
    until = np.append(path["start"][first[1:]], path["start"][-1] + path["length"][-1])
    start = path["start"][first]
    return {
        "lane": path["lane"][longest],
        "depth": path["depth"][longest],
        "start": start,
        "length": until - start,
    }


def _packed(column: npt.NDArray[Any]) -> list[str]:
    """A type that the page knows, and the numbers in base64; the least type that holds them."""
    top = int(column.max()) if len(column) else 0
    kinds = (("u1", 1 << 8), ("u2", 1 << 16), ("u4", 1 << 32), ("u8", 1 << 64))
    kind = next(kind for kind, beyond in kinds if top < beyond)
    return [kind, base64.b64encode(column.astype(f"<{kind}").tobytes()).decode()]
