"""The critical path: the chain of nodes that no delay of anything else could lengthen less."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from chakra_et.graph import Adjacency
from chakra_et.replay.columns import Columns
from chakra_et.replay.engine import Times
from chakra_et.replay.planning import Layout

TOP: Final = 10
BOUNDS: Final = ("host", "device", "communication", "idle")


@dataclass
class CriticalPath:
    """The path in order of time.

    `nodes` holds (place of the rank, row). `bound_ns` says how much of the path host work, device
    work and communication take; `idle` is time in which the path waited for a release.
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
        """The share of the path that host work takes."""
        return self.bound_ns["host"] / self.length_ns if self.length_ns else 0.0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "length_ns": self.length_ns,
            "nodes": len(self.nodes),
            "bound_ns": dict(self.bound_ns),
            "top": [{"name": name, "ns": ns} for name, ns in self.by_name_ns],
        }


class PathFinder:
    """Finds critical paths; what all ranks share is prepared once, in lists, for walking."""

    def __init__(self, ranks: Sequence[Columns], layout: Layout, times: Times) -> None:
        plan = layout.plan
        found = np.array(times.found, np.int64).reshape(-1, 2)
        source, target = np.append(plan.source, found[:, 0]), np.append(plan.target, found[:, 1])
        before = Adjacency.of(len(plan), target, source)
        self.offsets, self.items = before.offsets.tolist(), before.items.tolist()
        self.start, self.end, self.lag = times.start.tolist(), times.end.tolist(), plan.lag.tolist()
        self.first, self.real = layout.first, plan.real
        self.names = [columns.trace.nodes.names for columns in ranks]
        self.name_codes = [columns.trace.nodes.name_code.tolist() for columns in ranks]
        self.bounds = [_bounds(columns) for columns in ranks]
        joints = np.flatnonzero(layout.ends_at != np.arange(len(layout.ends_at)))
        self.member = dict(zip(layout.ends_at[joints].tolist(), joints.tolist(), strict=True))

    def path_to(self, last: int) -> CriticalPath:
        """Walk back from row `last` of the plan, always to the predecessor that ended last."""
        bound = dict.fromkeys(BOUNDS, 0)
        by_name: Counter[tuple[int, int]] = Counter()
        path: list[tuple[int, int]] = []
        row, until = last, self.end[last]
        while row >= 0:
            ready, previous = self._latest(row)
            begin = self.start[row] - self.lag[row] if previous >= 0 else self.start[row]
            if begin > ready and previous >= 0:
                bound["idle"] += begin - ready
            else:
                begin = ready if previous >= 0 else begin
            real = row if row < self.real else self.member.get(row, -1)
            if real >= 0:
                rank = bisect_right(self.first, real) - 1
                local = real - self.first[rank]
                bound[self.bounds[rank][local]] += until - begin
                by_name[rank, self.name_codes[rank][local]] += until - begin
                path.append((rank, local))
            row, until = previous, min(ready, until)
        names: Counter[str] = Counter()
        for (rank, code), took in by_name.items():
            names[self.names[rank][code]] += took
        return CriticalPath(path[::-1], bound, names.most_common(TOP))

    def _latest(self, row: int) -> tuple[int, int]:
        """When the last predecessor of a row ended, and which it is; -1 if there is none."""
        candidates = self.items[self.offsets[row] : self.offsets[row + 1]]
        if not candidates:
            return 0, -1
        end = self.end
        best = candidates[0]
        for other in candidates:
            if end[other] > end[best]:
                best = other
        return end[best], best


def _bounds(columns: Columns) -> list[str]:
    """What bounds the path where it passes each node."""
    code = np.where(columns.communication, 2, columns.device.astype(np.int64))
    found: list[str] = np.array(BOUNDS, object)[code].tolist()
    return found
