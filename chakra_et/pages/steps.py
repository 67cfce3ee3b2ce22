"""Steps of a run, and what each rank does in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from chakra_et.pages.intervals import NEVER, Intervals
from chakra_et.pages.ranks import RankTimes

PARTS: Final = ("compute", "overlap", "transfer", "waiting", "host", "gap", "idle")
"""What a rank does at each moment: the first of these that holds.

Computing alone; computing and communicating at once; communicating alone, as all ranks are there,
or waiting in a communication for the last one; operations of the host while the device has nothing
to do; the host between operations, mostly Python; nothing.
"""
_STEP: Final = re.compile(r"ProfilerStep#(\d+)|step[ _#:]*(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Step:
    """A step of one rank, from its own begin to that of the next, and its time by `PARTS` in ns."""

    rank: int
    name: str
    start_ns: int
    end_ns: int
    ns: dict[str, int]

    @property
    def length_ns(self) -> int:
        """How long it took."""
        return self.end_ns - self.start_ns


def steps_of(times: RankTimes, waits: Intervals | None = None) -> list[Step]:
    """The steps that annotations tell, and what lies before them; without any, one for all.

    `waits` are the times in which the rank waits for others in a communication.
    """
    begin, end = times.span
    if begin == end:
        return []
    named = _annotated(times)
    bounds = [start for start, _ in named]
    names = [name for _, name in named]
    if not bounds:
        bounds, names = [begin], ["all"]
    elif bounds[0] > begin:
        bounds, names = [begin, *bounds], ["before", *names]
    edges = np.array([*bounds, end], np.int64)
    sums = {
        part: np.diff(found.until(edges)) for part, found in activity(times, waits or NEVER).items()
    }
    idle = np.diff(edges) - sum(sums.values())
    return [
        Step(
            times.rank,
            name,
            int(edges[i]),
            int(edges[i + 1]),
            {**{part: int(ns[i]) for part, ns in sums.items()}, "idle": int(idle[i])},
        )
        for i, name in enumerate(names)
    ]


def activity(times: RankTimes, waits: Intervals) -> dict[str, Intervals]:
    """When the rank does what, by all of `PARTS` but idle: disjoint sets of times.

    Where a trace has no device work but communication, operations of the host are what computes.
    """
    c = times.columns
    host, gap = times.own_times
    talks, computes = times.between(c.communication), times.computing
    busy = computes | talks
    exposed = talks - computes
    return {
        "compute": computes - talks,
        "overlap": computes & talks,
        "transfer": exposed - waits,
        "waiting": exposed & waits,
        "host": host - busy,
        "gap": gap - (busy | host),
    }


def _annotated(times: RankTimes) -> list[tuple[int, str]]:
    """Start and name of each step that an annotation tells, in order of time.

    The names of a profiler's steps count first; others only where there are none.
    """
    names = times.trace.nodes.names
    for group in (1, 2):
        codes = [i for i, name in enumerate(names) if (m := _STEP.fullmatch(name)) and m[group]]
        mask = np.isin(times.trace.nodes.name_code, codes) & times.shown & ~times.columns.device
        if mask.any():
            found: dict[str, int] = {}
            for row in np.flatnonzero(mask).tolist():
                name, start = names[times.trace.nodes.name_code[row]], int(times.start[row])
                found[name] = min(start, found.get(name, start))
            return sorted((start, name) for name, start in found.items())
    return []
