"""The critical path: the chain of nodes that no delay of anything else could lengthen less."""

from __future__ import annotations

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


def critical_path(
    ranks: Sequence[Columns], layout: Layout, times: Times, last: int
) -> CriticalPath:
    """Walk back from row `last` of the plan, always to the predecessor that ended last."""
    plan = layout.plan
    found = np.array(times.found, np.int64).reshape(-1, 2)
    source, target = np.append(plan.source, found[:, 0]), np.append(plan.target, found[:, 1])
    before = Adjacency.of(len(plan), target, source)
    bound = {"host": 0, "device": 0, "communication": 0, "idle": 0}
    by_name: Counter[tuple[int, int]] = Counter()
    path: list[tuple[int, int]] = []
    owner = np.searchsorted(np.array(layout.first), np.arange(plan.real), "right") - 1
    member = {int(end): row for row, end in enumerate(layout.ends_at.tolist()) if end != row}
    row, until = last, int(times.end[last])
    while True:
        real = row if row < plan.real else member.get(row, -1)
        ready, previous = _latest(before, times, row)
        begin = ready if previous >= 0 else int(times.start[row])
        if previous >= 0 and times.start[row] - plan.lag[row] > ready:
            bound["idle"] += int(times.start[row] - plan.lag[row]) - ready
            begin = int(times.start[row] - plan.lag[row])
        took = until - begin
        until = min(ready, until) if previous >= 0 else begin
        if real >= 0:
            rank = int(owner[real])
            local = real - layout.first[rank]
            bound[_bound(ranks[rank], local)] += took
            by_name[rank, int(ranks[rank].trace.nodes.name_code[local])] += took
            path.append((rank, local))
        if previous < 0:
            break
        row = previous
    names: Counter[str] = Counter()
    for (rank, code), took in by_name.items():
        names[ranks[rank].trace.nodes.names[code]] += took
    return CriticalPath(path[::-1], bound, names.most_common(TOP))


def _latest(before: Adjacency, times: Times, row: int) -> tuple[int, int]:
    """When the last predecessor of a row ended, and which it is; -1 if there is none."""
    candidates = before.at(row)
    if len(candidates) == 0:
        return 0, -1
    best = int(candidates[np.argmax(times.end[candidates])])
    return int(times.end[best]), best


def _bound(columns: Columns, row: int) -> str:
    if columns.communication[row]:
        return "communication"
    return "device" if columns.device[row] else "host"
