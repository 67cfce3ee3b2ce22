"""The critical path of a run: of the rank that ends last, through all ranks that it waited for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chakra_et.columns import Rows
from chakra_et.model import UNKNOWN_NS
from chakra_et.pages.ranks import Run
from chakra_et.replay import CriticalPath


@dataclass(frozen=True)
class RunPath:
    """The path in order of time; one entry of each column for each node that it passes.

    `rank` and `row` name the node. The path is in it from `since_ns` on, before `until_ns`, on the
    replayed timeline and the common clock: from the end of the node before it to its own end.
    """

    of_rank: int
    whole: CriticalPath
    rank: Rows
    row: Rows
    since_ns: Rows
    until_ns: Rows

    @property
    def took_ns(self) -> Rows:
        """How much of the path each node takes, with the delay of its start."""
        return np.asarray(self.until_ns - self.since_ns)

    @property
    def lead_ns(self) -> int:
        """How long the path's last rank had been recorded before the path began."""
        return self.whole.length_ns - int(self.took_ns.sum())

    @property
    def bound_ns(self) -> dict[str, int]:
        """What bounds the path, as `CriticalPath` has it, but for the time before it began."""
        found = dict(self.whole.bound_ns)
        found["idle"] = max(found["idle"] - max(self.lead_ns, 0), 0)
        return found

    @property
    def length_ns(self) -> int:
        """From the begin of the path to its end."""
        return sum(self.bound_ns.values())

    def by_rank_ns(self) -> dict[int, int]:
        """How much of the path each rank takes."""
        ranks = np.unique(self.rank).tolist()
        return {rank: int(self.took_ns[self.rank == rank].sum()) for rank in ranks}


def run_path(run: Run) -> RunPath | None:
    """The path of the rank that ends last; None without a replay, or if nothing takes time."""
    if run.done is None:
        return None
    ranks = list(run.traces)
    ends = {rank: _ends(run, rank) for rank in ranks}
    there = [rank for rank in ranks if run.done.paths[rank].nodes]
    if not there:
        return None
    last = max(there, key=lambda rank: (_end_of(run, rank, ends[rank]), -rank))
    path = run.done.paths[last]
    places = np.array(path.nodes, np.int64)
    rank, row = np.array(ranks, np.int64)[places[:, 0]], places[:, 1]
    until = np.array([ends[r][n] for r, n in zip(rank.tolist(), row.tolist(), strict=True)])
    # What has no time takes none.
    timed = until != UNKNOWN_NS
    if not timed.any():
        return None
    rank, row, until = rank[timed], row[timed], until[timed]
    # What follows may begin before the end of what it waits for, as work that overlaps does.
    until = np.minimum.accumulate(until[::-1])[::-1]
    first = int(_starts(run, int(rank[0]))[row[0]])
    since = np.append(min(first, int(until[0])), until[:-1])
    found = RunPath(last, path, rank, row, since, until)
    return found if found.length_ns > 0 else None


def _starts(run: Run, rank: int) -> Rows:
    """The replayed start of every node of a rank on the common clock; unknown ones stay so."""
    assert run.done is not None
    start = run.done.traces[rank].nodes.start_ns
    shift = run.done.clock_offsets_ns[rank]
    return np.asarray(np.where(start == UNKNOWN_NS, UNKNOWN_NS, start - shift))


def _ends(run: Run, rank: int) -> Rows:
    assert run.done is not None
    start = _starts(run, rank)
    took = run.done.traces[rank].nodes.duration_ns
    return np.asarray(np.where(start == UNKNOWN_NS, UNKNOWN_NS, start + took))


def _end_of(run: Run, rank: int, ends: Rows) -> int:
    """When the path of a rank ends."""
    assert run.done is not None
    return int(ends[run.done.paths[rank].nodes[-1][1]])
