"""The critical path: the chain of nodes that no delay of anything else could lengthen less.

The time of the path goes to those whose time it is (see `chakra_et.model.time_parts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.graph import Adjacency
from chakra_et.model import TimeParts
from chakra_et.replay.columns import Columns
from chakra_et.replay.engine import Times
from chakra_et.replay.pieces import Form, Pieces
from chakra_et.replay.planning import Layout

TOP: Final = 10
BOUNDS: Final = ("host", "device", "communication", "gap", "late", "contention", "idle")
_UNEXPLAINED: Final = ("late", "contention", "idle")
_BOUND: Final = np.array(
    [BOUNDS.index(what) for what in ("host", "gap", "gap", "gap", "late", "contention")], np.int64
)
"""What bounds the path in a piece of each `Form`; of work it is the node that says so."""


@dataclass
class CriticalPath:
    """The path in order of time.

    `nodes` holds (place of the rank, row). `bound_ns` says how much of the path host work, device
    work, communication and gaps on host threads take, and how much are delays of starts that no
    edge explains: `late` ones, `contention` with other streams of the device, and `idle` time, in
    which the path waited for what lies outside the trace. `by_name_ns` has the names whose own
    time takes most of the path; gaps are named after what ran before them.
    """

    nodes: list[tuple[int, int]]
    bound_ns: dict[str, int]
    by_name_ns: list[tuple[str, int]]

    @property
    def length_ns(self) -> int:
        """From the start of the path to its end."""
        return sum(self.bound_ns.values())

    @property
    def host_bound_share(self) -> float:
        """The share of the path that the host takes, its gaps included."""
        host = self.bound_ns["host"] + self.bound_ns["gap"]
        return host / self.length_ns if self.length_ns else 0.0

    @property
    def explained_share(self) -> float:
        """The share of the path that work and edges explain, 1 less the delays of starts."""
        unexplained = sum(self.bound_ns[what] for what in _UNEXPLAINED)
        return 1 - unexplained / self.length_ns if self.length_ns else 1.0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "length_ns": self.length_ns,
            "nodes": len(self.nodes),
            "bound_ns": dict(self.bound_ns),
            "explained_share": self.explained_share,
            "top": [{"name": name, "ns": ns} for name, ns in self.by_name_ns],
        }


class PathFinder:
    """Finds critical paths; what the paths of all ranks share is prepared once."""

    def __init__(
        self, ranks: Sequence[Columns], parts: Sequence[TimeParts], layout: Layout, times: Times
    ) -> None:
        plan = layout.plan
        found = np.array(times.found, np.int64).reshape(-1, 2)
        source, target = np.append(plan.source, found[:, 0]), np.append(plan.target, found[:, 1])
        self.end = times.end
        self.begin = times.start - plan.lag
        self.start = times.start
        self.previous = _latest(len(plan), source, target, times.end)
        self.steps: list[int] = self.previous.tolist()
        self.first = np.array(layout.first, np.int64)
        self.names = [columns.trace.nodes.names for columns in ranks]
        self.name_code = np.concatenate([c.trace.nodes.name_code for c in ranks]).astype(np.int64)
        self.bound = np.concatenate([_bounds(columns) for columns in ranks])
        self.pieces = Pieces.of(ranks, parts, self.first)
        self.real = plan.real
        # A row of the engine's own that ends a node stands for that node.
        self.node = np.full(len(plan), -1, np.int64)
        self.node[layout.ends_at] = np.arange(len(layout.ends_at))
        self.node[: plan.real] = np.arange(plan.real)

    def path_to(self, last: int, origin: int) -> CriticalPath:
        """Walk back from row `last` of the plan, always to the predecessor that ended last.

        What the path begins with waited from `origin` on, if it begins later.
        """
        steps, walked, row = self.steps, [], last
        while row >= 0:
            walked.append(row)
            row = steps[row]
        path = np.array(walked, np.int64)
        until = np.minimum.accumulate(self.end[path])
        # All rows but the last one, where the path begins, have one before them.
        ready = until[1:]
        begin = np.append(ready, self.start[path[-1]])
        idle = np.clip(self.begin[path[:-1]] - ready, 0, until[:-1] - ready)
        begin[:-1] += idle
        took, known = until - begin, self.node[path] >= 0
        # What a row of the engine's own takes, such as the return of a copy, counts for the node
        # that waits for it.
        nodes = self.node[path[np.maximum.accumulate(np.where(known, np.arange(len(path)), 0))]]
        # Only where a node begins did it wait; what else it takes is its own.
        follows = np.append(np.ones(len(ready), np.bool_), False)
        pieces = self.pieces.passed(nodes, took, path < self.real, follows)
        sums = np.zeros(len(BOUNDS), np.int64)
        bound = np.where(pieces.form == Form.WORK, self.bound[pieces.node], _BOUND[pieces.form])
        np.add.at(sums, bound, pieces.ns)
        sums[BOUNDS.index("idle")] += idle.sum() + max(int(self.start[path[-1]]) - origin, 0)
        rank = np.searchsorted(self.first, nodes, "right") - 1
        places = zip(rank[known].tolist(), (nodes - self.first[rank])[known].tolist(), strict=True)
        top = pieces.by_name(self.names, self.name_code, self.first)[:TOP]
        return CriticalPath(list(places)[::-1], dict(zip(BOUNDS, sums.tolist(), strict=True)), top)


def _latest(count: int, source: Rows, target: Rows, end: Rows) -> Rows:
    """Of what each row waits for, the one that ended last; -1 where it waits for nothing."""
    before = Adjacency.of(count, target, source)
    waiting = np.flatnonzero(np.diff(before.offsets))
    latest = np.full(count, -1, np.int64)
    if len(waiting):
        begins, ended = before.offsets[waiting], end[before.items]
        last = np.repeat(np.maximum.reduceat(ended, begins), np.diff(before.offsets)[waiting])
        place = np.where(ended == last, np.arange(len(ended)), len(ended))
        latest[waiting] = before.items[np.minimum.reduceat(place, begins)]
    return latest


def _bounds(columns: Columns) -> Rows:
    """What bounds the path where it passes each node: places in `BOUNDS`."""
    return np.where(columns.communication, 2, columns.device.astype(np.int64))
