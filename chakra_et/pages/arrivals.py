"""Who waits for whom in communication, which begins when the last member arrives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chakra_et.analyze import clocks, skews
from chakra_et.errors import ChakraError
from chakra_et.pages.intervals import Intervals
from chakra_et.pages.ranks import RankTimes, Run
from chakra_et.pages.text import share
from chakra_et.replay.matching import Match, match_communication


@dataclass(frozen=True)
class Meeting:
    """One communication of several ranks: where each member arrived, on the common clock.

    `waited_ns` says how long each member waited for the last one, as long as its own work lasted;
    `exposed_ns`, how much of that it did not compute.
    """

    name: str
    place: str
    size_bytes: int
    rows: dict[int, int]
    waited_ns: dict[int, int]
    exposed_ns: dict[int, int]
    last: int
    arrived_ns: int

    @property
    def skew_ns(self) -> int:
        """From the first arrival to the last."""
        return max(self.waited_ns.values())


@dataclass
class Arrivals:
    """All meetings of a run, and what they cost each rank in ns.

    `waits` are the times in which a rank waited for others, `waited_ns` how much of them it did not
    compute; `awaited_ns` the mean time in which the other members waited so for it, where it was
    the last; `last` how often it was. `causes` says of meetings, by their places, in what the last
    rank fell behind.
    """

    meetings: list[Meeting]
    waits: dict[int, Intervals]
    waited_ns: dict[int, int]
    awaited_ns: dict[int, int]
    last: dict[int, int]
    unmatched: dict[str, int]
    causes: dict[str, str]


def arrivals(run: Run) -> Arrivals:
    """The meetings of a run. Without clocks that were aligned, or without times, there are none."""
    nothing = dict.fromkeys(run.ranks, 0)
    found = Arrivals([], {}, dict(nothing), dict(nothing), dict(nothing), {}, {})
    if len(run.ranks) > 1 and run.done is not None:
        matching = match_communication(run.traces)
        found.unmatched = dict(run.done.unmatched)
        apart = any(reason.startswith("clocks of ranks") for reason in found.unmatched)
        for match in matching.matches if not apart else ():
            meeting = _meeting(run, match.members, match.place, match.size_bytes)
            if meeting is not None:
                found.meetings.append(meeting)
                _count(found, meeting)
        if found.meetings and run.recorded:
            found.causes = _causes(run, matching.matches)
    found.waits = {rank: _waits(run, rank, found.meetings) for rank in run.ranks}
    found.waited_ns = {
        rank: (waits - run.ranks[rank].computing).length_ns for rank, waits in found.waits.items()
    }
    return found


def _causes(run: Run, matches: list[Match]) -> dict[str, str]:
    columns = {rank: times.columns for rank, times in run.ranks.items()}
    try:
        told = skews(columns, matches, clocks(columns, matches))
    except ChakraError:
        return {}
    return {
        one.place: one.cause if one.share is None else f"{one.cause} ({share(one.share)} of it)"
        for one in told
        if one.cause is not None
    }


def _meeting(run: Run, members: dict[int, int], place: str, size: int) -> Meeting | None:
    together = len(members) > 1  # groups of a single rank communicate with nobody
    if not together or not all(run.ranks[rank].shown[row] for rank, row in members.items()):
        return None
    starts = {rank: int(run.ranks[rank].start[row]) for rank, row in members.items()}
    last = max(starts, key=lambda rank: (starts[rank], -rank))
    waited = {
        rank: min(starts[last] - start, int(run.ranks[rank].end[members[rank]]) - start)
        for rank, start in starts.items()
    }
    name = run.traces[last].nodes[members[last]].name
    exposed = {
        rank: ns - _computed(run.ranks[rank], starts[rank], ns) for rank, ns in waited.items()
    }
    return Meeting(name, place, size, members, waited, exposed, last, starts[last])


def _computed(times: RankTimes, start: int, ns: int) -> int:
    """How much a rank computes in some ns from a start on."""
    before, after = times.computing.until(np.array([start, start + ns])).tolist()
    return int(after - before)


def _count(found: Arrivals, meeting: Meeting) -> None:
    others = [ns for rank, ns in meeting.exposed_ns.items() if rank != meeting.last]
    found.last[meeting.last] += 1
    found.awaited_ns[meeting.last] += sum(others) // len(others)


def _waits(run: Run, rank: int, meetings: list[Meeting]) -> Intervals:
    mine = [m for m in meetings if m.waited_ns.get(rank)]
    start = np.array([run.ranks[rank].start[m.rows[rank]] for m in mine], np.int64)
    return Intervals.of(start, start + np.array([m.waited_ns[rank] for m in mine], np.int64))
