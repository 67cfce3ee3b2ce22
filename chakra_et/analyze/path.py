"""The critical path of a job, as the stretches that it spends on one rank after the other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from chakra_et.model import UNKNOWN_NS, TraceSet
from chakra_et.replay import Replay, replay


@dataclass(frozen=True)
class Stretch:
    """A part of the path on one rank, until the next part begins.

    A part begins with its first node, or when the last node of the part before does, if that is
    later: of a communication of several ranks the path passes the one that came last.

    `longest` is the node that takes most of it, and `longest_ns` how long that lasts.
    """

    rank: int
    nodes: int
    first: str
    last: str
    ns: int
    longest: str
    longest_ns: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dict(self.__dict__)


def job_path(traces: TraceSet) -> tuple[Replay, int, list[Stretch]]:
    """A replay of all ranks, the rank that ends last, and the path that leads there."""
    done = replay(traces)
    ranks = list(done.traces)
    ends = {rank: _end(done, rank) for rank in ranks}
    last = max(ranks, key=ends.__getitem__)
    stretches = []
    path = done.paths[last].nodes
    parts = [
        (ranks[place], [row for _, row in rows])
        for place, rows in ((k, list(g)) for k, g in groupby(path, key=lambda item: item[0]))
    ]
    begins = [_begin(done, rank, rows) for rank, rows in parts]
    # The path goes on where the last member of a communication joined it, not the first.
    joined = [_begin(done, rank, rows[-1:]) for rank, rows in parts[:-1]]
    begins = [begins[0], *map(max, joined, begins[1:]), ends[last]]
    for number, (rank, rows) in enumerate(parts):
        nodes = done.traces[rank].nodes
        most = rows[int(np.argmax(nodes.duration_ns[rows]))]
        stretches.append(
            Stretch(
                rank,
                len(rows),
                nodes[rows[0]].name,
                nodes[rows[-1]].name,
                begins[number + 1] - begins[number],
                nodes[most].name,
                int(nodes.duration_ns[most]),
            )
        )
    return done, last, stretches


def _begin(done: Replay, rank: int, rows: list[int]) -> int:
    """When the first of some nodes that has a time begins."""
    starts = done.traces[rank].nodes.start_ns[rows]
    known = starts[starts != UNKNOWN_NS]
    return (int(known[0]) if len(known) else 0) - done.clock_offsets_ns[rank]


def _end(done: Replay, rank: int) -> int:
    nodes = done.traces[rank].nodes
    return int((nodes.start_ns + nodes.duration_ns).max(initial=0)) - done.clock_offsets_ns[rank]
