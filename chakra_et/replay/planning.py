"""From traces to a plan: one graph over all ranks, with joints where ranks or streams meet."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from chakra_et.columns import Rows
from chakra_et.definitions import NodeType
from chakra_et.model import UNKNOWN_NS, EdgeKind
from chakra_et.replay.columns import Columns
from chakra_et.replay.engine import Plan
from chakra_et.replay.resolving import Waiting
from chakra_et.replay.scopes import calls_that_wait
from chakra_et.replay.transfers import Transfers


@dataclass
class Layout:
    """A plan, the calls that find their targets while running, where each rank's rows begin, and
    for each row the one that holds its end.
    """

    plan: Plan
    waiting: Waiting
    first: list[int]
    ends_at: Rows


class Planner:
    """Lays out the graph of all ranks, with any durations.

    `offsets[i]` is what the clock of rank i is ahead of the common one. Each match maps places in
    `ranks` to rows there; its members start on their own, and end when its transfer says, counted
    from the start of the last of them.
    """

    def __init__(
        self,
        ranks: Sequence[Columns],
        offsets: Sequence[int],
        matches: Sequence[dict[int, int]],
    ) -> None:
        self._ranks, self._matches = ranks, matches
        first = np.cumsum([0, *(len(columns) for columns in ranks)])
        self._total, self._first = int(first[-1]), first[:-1]
        self._members = [[int(first[i]) + row for i, row in match.items()] for match in matches]
        lag = np.concatenate([c.lag for c in ranks]) if self._total else np.zeros(0, np.int64)
        source, target = (
            np.concatenate([rows + f for rows, f in zip(column, self._first, strict=True)])
            for column in ([c.edges.source for c in ranks], [c.edges.target for c in ranks])
        )
        kind = np.concatenate([c.kind for c in ranks])
        returns = np.concatenate([c.returns for c in ranks])
        self._waiting, found_anew = calls_that_wait(ranks, self._first)
        stay = ~found_anew | (returns > 0)
        source, target, kind, returns = (part[stay] for part in (source, target, kind, returns))
        release = [c.release - offset for c, offset in zip(ranks, offsets, strict=True)]
        delay = np.concatenate([np.maximum(c.lag, 0) + c.late + c.contention for c in ranks])
        nothing = np.zeros(self._total, np.int64)
        self._builder = _Builder(nothing, delay, np.concatenate(release), source, target)
        # Work that overlaps its predecessor on the stream begins before that has ended.
        overlap = np.where((kind == EdgeKind.STREAM) & (lag[target] < 0), lag[target], 0)
        self._builder.delay(overlap + returns)

    def layout(
        self, durations: Sequence[Rows], transfers: Transfers, *, buffered: bool = False
    ) -> Layout:
        """The graph in which nodes of rank i take `durations[i]`, and matches take `transfers`.

        Sends that are `buffered` end without waiting for their receiver.
        """
        builder = copy(self._builder)
        builder.duration = np.append(np.concatenate(durations), builder.duration[self._total :])
        sends = [
            [buffered and bool(self._ranks[i].trace.nodes.type[row] == NodeType.COMM_SEND)
             for i, row in match.items()]
            for match in self._matches
        ]  # fmt: skip
        builder.join_ranks(self._members, sends, transfers)
        plan = Plan(
            builder.duration, builder.lag, builder.release, builder.source, builder.target,
            self._total,
        )  # fmt: skip
        # Work that meets other ranks has ended when the meeting has.
        waiting = replace(self._waiting, work=builder.ends_at[self._waiting.work])
        return Layout(plan, waiting, self._first.tolist(), builder.ends_at[: self._total])


class _Builder:
    """Columns of a plan that grow by joints."""

    def __init__(
        self, duration: Rows, lag: Rows, release: Rows, source: Rows, target: Rows
    ) -> None:
        self.duration = duration
        self.lag = lag
        self.release = release
        self.source = source
        self.target = target
        self.ends_at = np.arange(len(duration))

    def delay(self, delays: Rows) -> None:
        """Put a joint on each edge whose delay is not 0, of that duration; it may be negative."""
        edges = np.flatnonzero(delays)
        joints = self._add(delays[edges])
        self.source = np.append(self.source, joints)
        self.target = np.append(self.target, self.target[edges])
        self.target[edges] = joints

    def join_ranks(
        self, members: list[list[int]], free: list[list[bool]], transfers: Transfers
    ) -> None:
        """Let members of each match end after the last has started, and what waits for them wait.

        None ends before it has started. Members that are `free` end by themselves, after the common
        part of the transfer; the others wait for them all the same.
        """
        if not members:
            return
        rows = np.array([row for m in members for row in m], np.int64)
        match = np.repeat(np.arange(len(members)), [len(m) for m in members])
        alone = np.array([flag for flags in free for flag in flags], np.bool_)
        took = np.where(alone, transfers.common[match], transfers.of_members)
        early = np.flatnonzero(took < 0)
        meeting = self._add(np.zeros(len(members), np.int64))
        ending = self._add(np.maximum(took, 0))
        before = self._add(took[early])
        self.ends_at[rows] = ending
        self.duration[rows] = 0
        self.source = self.ends_at[self.source]
        ends_after = np.where(alone, rows, meeting[match])
        ends_after[early] = before
        self.source = np.concatenate(
            (self.source, rows, ends_after, meeting[match[early]], rows[early])
        )
        self.target = np.concatenate((self.target, meeting[match], ending, before, ending[early]))

    def _add(self, duration: Rows) -> Rows:
        """Append joints of given durations, and return their rows."""
        joints = np.arange(len(duration)) + len(self.duration)
        self.duration = np.append(self.duration, duration)
        nothing = np.zeros(len(duration), np.int64)
        self.lag = np.append(self.lag, nothing)
        # No joint holds anything back by itself.
        floor = int(self.release.min()) if len(self.release) else 0
        self.release = np.append(self.release, nothing + floor)
        self.ends_at = np.append(self.ends_at, joints)
        return joints


def clock_offsets(
    ranks: Sequence[Columns], matches: Sequence[dict[int, int]]
) -> tuple[list[int], list[int]]:
    """What each rank's clock is ahead of the first one's, in ns, and the ranks left unaligned.

    Members of a communication end together, so that the median difference of their recorded ends is
    the difference of their clocks; or of when the last of them came, where that is told.
    """
    gaps: dict[tuple[int, int], list[int]] = {}
    for members in matches:
        ends = {i: _moment(ranks[i], row) for i, row in members.items() if ranks[i].timed[row]}
        if len(ends) > 1:
            base = min(ends)
            for other in ends:
                if other != base:
                    gaps.setdefault((base, other), []).append(ends[other] - ends[base])
    offsets = {0: 0} if len(ranks) else {}
    frontier = [0]
    while frontier:
        here = frontier.pop()
        for (a, b), differences in gaps.items():
            for near, far, sign in ((a, b, 1), (b, a, -1)):
                if near == here and far not in offsets:
                    offsets[far] = offsets[here] + sign * round(float(np.median(differences)))
                    frontier.append(far)
    alone = [i for i in range(len(ranks)) if i not in offsets and ranks[i].timed.any()]
    return [offsets.get(i, 0) for i in range(len(ranks))], alone


def _moment(columns: Columns, row: int) -> int:
    """A moment of a communication that all of its members have in common."""
    met = int(columns.met[row])
    return int(columns.end[row]) if met == UNKNOWN_NS else met
