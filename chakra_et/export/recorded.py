"""The slices of a trace: its nodes where and when they ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.export.scene import Slices, Track, nested
from chakra_et.model import UNKNOWN_NS, Trace
from chakra_et.tables.places import Places

CATEGORIES: Final = ("host", "compute", "communication", "memory", "annotation")
_NONE: Final = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Drawn:
    """The slices of one trace, and the slice of each node; -1 for those that are not drawn."""

    slices: Slices
    slice_of: Rows


def drawn(trace: Trace, rank: int, process: str, ahead_ns: int = 0) -> Drawn:
    """Nodes with a start, as slices of a process; its clock is so much ahead of the others'.

    A host node lasts as long as it was open, where that is known (`inclusive_ns`); else, as on a
    replayed timeline, as long as its own segment. What is only left of a caller behind a wait
    (`rest_of`) is not drawn beside that caller.
    """
    nodes, places = trace.nodes, Places(trace)
    start, end = node_times(trace)
    attributes = nodes.attributes
    whole = attributes.present("inclusive_ns")
    seen = (
        (nodes.start_ns != UNKNOWN_NS) & places.ran & ~(attributes.present("rest_of") & whole.any())
    )
    lane, lanes = places.lane
    rows = np.flatnonzero(seen)
    rows = rows[np.lexsort((rows, -end[rows], start[rows], lane[rows]))]
    line = _lines(lane[rows], start[rows], end[rows])
    keys, track = np.unique(np.stack((lane[rows], line)), axis=1, return_inverse=True)
    tracks = [Track(process, lanes[of] + f" ({n + 1})" * bool(n)) for of, n in keys.T.tolist()]
    order = np.argsort(track.ravel(), kind="stable")
    rows = rows[order]
    slice_of = np.full(len(nodes), -1, np.int64)
    slice_of[rows] = np.arange(len(rows))
    sides = {name: place for place, name in enumerate(CATEGORIES)}
    side = np.array([sides[name] for name in places.kind[rows].tolist()], np.int64)
    slices = Slices(
        tracks=tracks,
        names=nodes.names,
        categories=list(CATEGORIES),
        track=track.ravel()[order],
        start=start[rows] - ahead_ns,
        end=end[rows] - ahead_ns,
        name=nodes.name_code[rows].astype(np.int64),
        category=np.where(places.annotation[rows], sides["annotation"], side),
        node=nodes.id[rows],
        rank=np.full(len(rows), rank, np.int64),
    )
    return Drawn(slices, slice_of)


def node_times(trace: Trace) -> tuple[Rows, Rows]:
    """Start and end of every node, as it would be drawn; of no use where no start is known."""
    nodes = trace.nodes
    inclusive = nodes.attributes.dense("inclusive_ns", -1, np.int64)
    own = nodes.attributes.dense("own_start_ns", 0, np.int64)
    begin = np.where(nodes.attributes.present("own_start_ns"), own, nodes.start_ns)
    whole = inclusive >= 0
    start = np.where(whole, nodes.start_ns, begin)
    return start, np.where(
        whole, nodes.start_ns + inclusive, begin + np.maximum(nodes.duration_ns, 0)
    )


def _lines(lane: Rows, start: Rows, end: Rows) -> Rows:
    """For each lane, on how many lines its slices lie, so that they nest."""
    if len(lane) == 0:
        return _NONE
    borders = np.flatnonzero(np.append(True, lane[1:] != lane[:-1]))
    parts = [
        nested(start[a:b], end[a:b])[0]
        for a, b in zip(borders.tolist(), [*borders[1:].tolist(), len(lane)], strict=True)
    ]
    return np.concatenate([*parts, _NONE])


def joined(parts: list[Slices]) -> Slices:
    """Slices of several traces as one; names are those of all."""
    numbers: dict[str, int] = {}
    tracks: list[Track] = []
    columns: dict[str, list[npt.NDArray[np.int64]]] = {"track": [], "name": []}
    for part in parts:
        code = np.array([numbers.setdefault(n, len(numbers)) for n in part.names], np.int64)
        columns["track"].append(part.track + len(tracks))
        columns["name"].append(code[part.name] if len(code) else part.name)
        tracks += part.tracks
    return Slices(
        tracks=tracks,
        names=list(numbers),
        categories=list(CATEGORIES),
        track=np.concatenate([*columns["track"], _NONE]),
        start=np.concatenate([*(p.start for p in parts), _NONE]),
        end=np.concatenate([*(p.end for p in parts), _NONE]),
        name=np.concatenate([*columns["name"], _NONE]),
        category=np.concatenate([*(p.category for p in parts), _NONE]),
        node=np.concatenate([*(p.node for p in parts), np.zeros(0, np.uint64)]),
        rank=np.concatenate([*(p.rank for p in parts), _NONE]),
    )
