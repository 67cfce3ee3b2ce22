"""The clocks of ranks: what each is ahead of the first one's, and how fast it drifts.

All members of a communication end together (Lumos, dPRO). So the ends of what two ranks did
together differ by what their clocks do. For each pair of ranks the median of these differences is
taken, and the slope over time (Theil and Sen); the clocks are those that fit all pairs best (least
squares). A replay needs no more than one whole offset for each rank, and takes it from one chain of
pairs (`replay.planning.clock_offsets`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.errors import ChakraError
from chakra_et.model import UNKNOWN_NS, Trace, TraceSet
from chakra_et.replay.columns import Columns
from chakra_et.replay.matching import Match

Reals = npt.NDArray[np.float64]

_ENOUGH: Final = 8
"""Communications in common from which a drift is told."""
_SAMPLED: Final = 512
"""So many of a pair's communications are compared: slopes are taken of every two of them."""
_SURE: Final = 4.0
"""A slope is a drift from so many standard errors on; a smaller one is noise."""
_DEVIATION: Final = 1.4826
"""The standard deviation of normal values over their median absolute deviation."""
PPM: Final = 1e-6


@dataclass(frozen=True)
class Clock:
    """A rank's clock: at `since_ns` of the first rank's clock it is `ahead_ns` ahead of it.

    Every second it gains `drift_ppm` us: 0 if that cannot be told from noise, None if too little
    was done together. `residual_ns` is the median distance of ends of communications from their
    common end.
    """

    ahead_ns: float
    drift_ppm: float | None
    since_ns: int
    common: int
    residual_ns: float

    def to_common(self, time_ns: Rows) -> Rows:
        """Times of this clock on that of the first rank."""
        slope = (self.drift_ppm or 0.0) * PPM
        passed = (time_ns - self.since_ns).astype(np.float64) - self.ahead_ns
        return time_ns - np.rint(self.ahead_ns + slope * passed / (1 + slope)).astype(np.int64)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "ahead_ns": round(self.ahead_ns),
            "drift_ppm": self.drift_ppm,
            "communications": self.common,
            "residual_ns": round(self.residual_ns),
        }


def clocks(columns: Mapping[int, Columns], matches: Sequence[Match]) -> dict[int, Clock]:
    """The clock of every rank.

    Raises ChakraError if some ranks did nothing together with the others.
    """
    ranks = list(columns)
    times, ends = _ends(columns, matches)
    since = min((int(c.start[c.timed].min()) for c in columns.values() if c.timed.any()), default=0)
    pairs = {pair: _pair(np.array(found)) for pair, found in _pairs(times, ends, since).items()}
    apart = _apart(ranks, pairs)
    if apart:
        raise ChakraError(
            f"the clocks of ranks {apart[:8]} cannot be told: they take part in no communication "
            "with recorded times that leads to the first rank",
            remedy="Give the traces of all ranks of their groups.",
        )
    ahead = _fitted(ranks, {pair: (p.offset, p.count) for pair, p in pairs.items()})
    sloped = {pair: (p.slope, p.count) for pair, p in pairs.items() if p.slope is not None}
    drift = _fitted(ranks, sloped) if not _apart(ranks, sloped) else None
    found = {
        rank: (ahead[i], None if drift is None else float(drift[i]) / PPM)
        for i, rank in enumerate(ranks)
    }
    count, residual = _residuals(ranks, found, times, ends, since)
    return {
        rank: Clock(float(a), slope, since, count[rank], residual[rank])
        for rank, (a, slope) in found.items()
    }


def aligned(traces: TraceSet, told: Mapping[int, Clock]) -> TraceSet:
    """The traces with all starts on the clock of the first rank."""
    return TraceSet({rank: on_clock(trace, told[rank]) for rank, trace in traces.items()})


def on_clock(trace: Trace, clock: Clock) -> Trace:
    """A trace with its starts on the clock of the first rank; durations stay as recorded."""
    nodes = trace.nodes.take(np.arange(len(trace.nodes)))
    timed = nodes.start_ns != UNKNOWN_NS
    nodes.start_ns[timed] = clock.to_common(nodes.start_ns[timed])
    for name in ("own_start_ns", "release_ns"):
        for column in nodes.attributes.named(name):
            values = clock.to_common(np.asarray(column.values, np.int64))
            kind = column.key.kind
            rows = column.rows
            nodes.attributes.remove(column, rows)
            if kind is not None:
                nodes.attributes.add(name, kind, values, rows)
    return Trace(nodes, trace.edges, trace.metadata)


@dataclass(frozen=True)
class _Pair:
    """What one rank's clock is ahead of another's, at the time from which all is counted."""

    offset: float
    slope: float | None
    count: int


def _ends(
    columns: Mapping[int, Columns], matches: Sequence[Match]
) -> tuple[list[float], list[dict[int, int]]]:
    """When each communication ended, on the clock of its first member, and on that of each."""
    times, ends = [], []
    for match in matches:
        members = {
            rank: int(columns[rank].end[row])
            for rank, row in match.members.items()
            if columns[rank].timed[row]
        }
        if len(members) > 1:
            times.append(float(members[min(members)]))
            ends.append(members)
    return times, ends


def _pairs(
    times: Sequence[float], ends: Sequence[Mapping[int, int]], since: int
) -> dict[tuple[int, int], list[tuple[float, int]]]:
    """For each pair of ranks when, and by how much, the ends of what they did together differ."""
    found: dict[tuple[int, int], list[tuple[float, int]]] = defaultdict(list)
    for time, members in zip(times, ends, strict=True):
        first = min(members)
        for rank, end in members.items():
            if rank != first:
                found[first, rank].append((time - since, end - members[first]))
    return found


def _pair(points: npt.NDArray[np.float64]) -> _Pair:
    """The line through the differences of a pair that half of them lie above."""
    time, gap = points[:, 0], points[:, 1]
    if len(time) < _ENOUGH or np.ptp(time) == 0:
        return _Pair(float(np.median(gap)), None, len(time))
    chosen = np.unique(np.linspace(0, len(time) - 1, min(len(time), _SAMPLED)).astype(np.int64))
    a, b = np.triu_indices(len(chosen), 1)
    span = time[chosen][b] - time[chosen][a]
    apart = span != 0
    slope = float(np.median((gap[chosen][b] - gap[chosen][a])[apart] / span[apart]))
    rest = gap - slope * time
    noise = _DEVIATION * float(np.median(np.abs(rest - np.median(rest))))
    if abs(slope) * float(np.std(time)) * np.sqrt(len(time)) < _SURE * noise:
        slope = 0.0
    return _Pair(float(np.median(gap - slope * time)), slope, len(time))


def _apart(ranks: Sequence[int], pairs: Mapping[tuple[int, int], Any]) -> list[int]:
    """The ranks that no chain of pairs leads to from the first."""
    near: dict[int, set[int]] = defaultdict(set)
    for a, b in pairs:
        near[a].add(b)
        near[b].add(a)
    reached, frontier = {ranks[0]}, [ranks[0]]
    while frontier:
        new = near[frontier.pop()] - reached
        reached |= new
        frontier += new
    return sorted(set(ranks) - reached)


def _fitted(
    ranks: Sequence[int], pairs: Mapping[tuple[int, int], tuple[float, int]]
) -> npt.NDArray[np.float64]:
    """The value of each rank, 0 for the first, that fits the differences of pairs best."""
    place = {rank: i for i, rank in enumerate(ranks)}
    matrix = np.zeros((len(pairs) + 1, len(ranks)))
    right = np.zeros(len(pairs) + 1)
    matrix[-1, 0] = 1.0
    for row, ((a, b), (difference, count)) in enumerate(pairs.items()):
        weight = np.sqrt(count)
        matrix[row, place[b]], matrix[row, place[a]] = weight, -weight
        right[row] = weight * difference
    fitted = np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], np.float64)
    return np.asarray(fitted - fitted[0])


def _residuals(
    ranks: Sequence[int],
    found: Mapping[int, tuple[float, float | None]],
    times: Sequence[float],
    ends: Sequence[Mapping[int, int]],
    since: int,
) -> tuple[dict[int, int], dict[int, float]]:
    """How many communications each rank has, and how far from their common end it ended."""
    off: dict[int, list[float]] = {rank: [] for rank in ranks}
    for time, members in zip(times, ends, strict=True):
        common = {}
        for rank, end in members.items():
            ahead, slope = found[rank]
            common[rank] = end - ahead - (slope or 0.0) * PPM * (time - since)
        middle = float(np.median(list(common.values())))
        for rank, here in common.items():
            off[rank].append(abs(here - middle))
    counts = {rank: len(gaps) for rank, gaps in off.items()}
    return counts, {rank: float(np.median(gaps)) if gaps else 0.0 for rank, gaps in off.items()}
