"""What a page reads of each rank: its times on the clock that all ranks share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import NodeType
from chakra_et.errors import ChakraError
from chakra_et.model import Trace, TraceSet, between_operations
from chakra_et.pages.intervals import Intervals
from chakra_et.replay import Replay, TransferModel, replay
from chakra_et.replay.columns import Columns, columns_of


@dataclass
class RankTimes:
    """One rank's nodes in time, in ns on the common clock.

    `start` and `end` are those of whole operations, what they called included; `shown` says which
    nodes have a place in time and are work of this rank.
    """

    rank: int
    trace: Trace
    columns: Columns
    start: Rows
    end: Rows
    shown: Mask
    offset_ns: int

    @property
    def span(self) -> tuple[int, int]:
        """First start and last end of what counts; twice 0 where nothing has a time."""
        use = self.shown & self.columns.counts
        if not use.any():
            return 0, 0
        return int(self.start[use].min()), int(self.end[use].max())

    @cached_property
    def has_device(self) -> bool:
        """Whether a device computes here, so that the host only serves it."""
        c = self.columns
        return bool((c.device & ~c.communication & self.shown & (self.end > self.start)).any())

    @cached_property
    def computing(self) -> Intervals:
        """When it computes: on a device, or on the host where no device does."""
        c = self.columns
        return self.between(c.device & ~c.communication) if self.has_device else self.own_times[0]

    def between(self, chosen: Mask) -> Intervals:
        """The times in which one of some nodes runs."""
        use = chosen & self.shown
        return Intervals.of(self.start[use], self.end[use])

    @cached_property
    def own_times(self) -> tuple[Intervals, Intervals]:
        """When operations of the host run, and when its threads are between operations."""
        parts = self.columns.parts
        ends = np.cumsum(parts.ns)
        first = np.searchsorted(parts.node, np.arange(len(self.start)))
        begin = self.columns.begin - self.offset_ns
        ends = ends + (begin - (ends - parts.ns)[first])[parts.node]
        host = self.shown & ~self.columns.device & self.columns.counts
        use, gap = host[parts.node], between_operations(self.trace.nodes, parts)
        pauses = use & gap
        work = use & ~gap
        return (
            Intervals.of((ends - parts.ns)[work], ends[work]),
            Intervals.of((ends - parts.ns)[pauses], ends[pauses]),
        )


@dataclass
class Run:
    """All ranks of a run, replayed if that can be.

    `recorded` is false where no trace has times: then all times are those of the replay.
    `problem` says why there is no replay.
    """

    traces: TraceSet
    ranks: dict[int, RankTimes]
    recorded: bool
    done: Replay | None
    problem: str | None = None
    untimed: dict[int, int] = field(default_factory=dict)

    @property
    def span(self) -> tuple[int, int]:
        """First start and last end of all ranks on the common clock, in ns."""
        spans = [times.span for times in self.ranks.values() if times.shown.any()]
        return (min(a for a, _ in spans), max(b for _, b in spans)) if spans else (0, 0)

    @property
    def nodes(self) -> int:
        """How many nodes all traces have."""
        return sum(len(trace.nodes) for trace in self.traces.values())


def make_run(traces: Mapping[int, Trace], network: TransferModel | None = None) -> Run:
    """Replay traces, transfers by a model if one is given, and put their times on one clock."""
    given = traces if isinstance(traces, TraceSet) else TraceSet(traces)
    done, problem = None, None
    try:
        done = replay(given, network=network) if len(given) else None
    except ChakraError as error:
        problem = str(error)
    columns = {rank: columns_of(trace) for rank, trace in given.items()}
    recorded = any(c.timed.any() for c in columns.values())
    if not recorded and done is not None:
        columns = {rank: columns_of(trace) for rank, trace in done.traces.items()}
    offsets = done.clock_offsets_ns if done is not None and recorded else {}
    ranks = {
        rank: _times(rank, given[rank], c, offsets.get(rank, 0)) for rank, c in columns.items()
    }
    untimed = {rank: int(np.count_nonzero(~c.timed)) for rank, c in columns.items()}
    return Run(given, ranks, recorded, done, problem, untimed)


def _times(rank: int, trace: Trace, columns: Columns, offset_ns: int) -> RankTimes:
    start, end = columns.start - offset_ns, columns.end - offset_ns
    shown = columns.timed & (trace.nodes.type != NodeType.METADATA)
    return RankTimes(rank, trace, columns, start, np.maximum(end, start), shown, offset_ns)
