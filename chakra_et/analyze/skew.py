"""Skew: who came late to a communication, how long the others waited, and what made it late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.analyze.clocks import Clock
from chakra_et.columns import Rows
from chakra_et.model import EdgeKind
from chakra_et.predict import same_places
from chakra_et.replay.columns import Columns
from chakra_et.replay.matching import Match
from chakra_et.replay.pieces import pieces_of

BEFORE: Final = "before the trace began"
"""The cause of a skew that was there when the recording, or the last meeting, began."""
_ORDER: Final = (EdgeKind.CALL, EdgeKind.DATA)
"""Edges that say nothing of when a node begins."""


@dataclass(frozen=True)
class Skew:
    """One communication: when its members arrived, counted from the first of them, in ns.

    `cause` is the operation in which the last member fell behind the first by half of the skew, for
    good, and `share` how much of the skew it lost there; None where that cannot be told.
    """

    place: str
    arrived_ns: dict[int, int]
    cause: str | None
    share: float | None

    @property
    def skew_ns(self) -> int:
        """How long the first member waited for the last."""
        return max(self.arrived_ns.values())

    @property
    def last(self) -> int:
        """The rank that came last."""
        return max(self.arrived_ns, key=self.arrived_ns.__getitem__)

    @property
    def first(self) -> int:
        """The rank that came first."""
        return min(self.arrived_ns, key=self.arrived_ns.__getitem__)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "communication": self.place,
            "skew_ns": self.skew_ns,
            "last": self.last,
            "arrived_ns": {str(rank): ns for rank, ns in self.arrived_ns.items()},
            "cause": self.cause,
            "share": self.share,
        }


def skews(
    columns: Mapping[int, Columns],
    matches: Sequence[Match],
    told: Mapping[int, Clock],
    explained: int = 10,
) -> list[Skew]:
    """The skew of every communication, the largest first, with the causes of so many of them."""
    met = {rank: np.zeros(len(c), np.bool_) for rank, c in columns.items()}
    begins = {rank: told[rank].to_common(c.begin) for rank, c in columns.items()}
    found = []
    for match in matches:
        if all(columns[rank].timed[row] for rank, row in match.members.items()):
            arrived = {rank: int(begins[rank][row]) for rank, row in match.members.items()}
            first = min(arrived.values())
            found.append((match, {rank: at - first for rank, at in arrived.items()}))
        for rank, row in match.members.items():
            met[rank][row] = True
    found.sort(key=lambda item: -max(item[1].values()))
    causes = _Causes(columns, begins, met)
    result = []
    for number, (match, arrived) in enumerate(found):
        skew = Skew(match.place, arrived, None, None)
        if number < explained and skew.skew_ns:
            cause, share = causes.of(match, skew)
            skew = Skew(match.place, arrived, cause, share)
        result.append(skew)
    return result


class _Causes:
    """Finds where a rank fell behind another one, on its way to where both meet."""

    def __init__(
        self,
        columns: Mapping[int, Columns],
        begins: Mapping[int, Rows],
        met: Mapping[int, npt.NDArray[np.bool_]],
    ) -> None:
        self.columns, self.begins, self.met = columns, begins, met
        self.before: dict[int, Rows] = {}
        self.places: dict[tuple[int, int], Rows] = {}

    def of(self, match: Match, skew: Skew) -> tuple[str | None, float | None]:
        """The cause of a skew, and its share."""
        late, early = skew.last, skew.first
        columns, way = self.columns[late], self._way(late, match.members[late])
        place = self._place(late, early)
        way = way[place[way] >= 0]
        if len(way) < 2:
            return None, None
        behind = self.begins[late][way] - self.begins[early][place[way]]
        before = np.flatnonzero(2 * behind < skew.skew_ns)
        if not len(before):
            return BEFORE, None
        if before[-1] == len(way) - 1:
            return None, None
        at = int(before[-1])
        lost = int(behind[at + 1]) - max(int(behind[at]), 0)
        row, there = int(way[at]), int(place[way[at]])
        name = _name(columns, self.columns[early], row, there)
        return name, min(lost / skew.skew_ns, 1.0)

    def _way(self, rank: int, row: int) -> Rows:
        """What led to a row since the rank last met others, in the order of time."""
        if rank not in self.before:
            self.before[rank] = _latest(self.columns[rank])
        before, met = self.before[rank], self.met[rank]
        way = [row]
        while before[way[-1]] >= 0 and not (met[way[-1]] and len(way) > 1):
            way.append(int(before[way[-1]]))
        return np.array(way[::-1], np.int64)

    def _place(self, rank: int, other: int) -> Rows:
        if (rank, other) not in self.places:
            self.places[rank, other] = same_places(self.columns[rank], self.columns[other]).row
        return self.places[rank, other]


def _latest(columns: Columns) -> Rows:
    """For each row the one it waits for that ended last; -1 if it waits for none."""
    leads = ~np.isin(columns.kind, _ORDER)
    source, target = columns.edges.source[leads], columns.edges.target[leads]
    end = (columns.begin + columns.duration)[source]
    order = np.lexsort((end, target))
    latest = np.full(len(columns), -1, np.int64)
    latest[target[order]] = source[order]
    return latest


def _name(late: Columns, early: Columns, row: int, there: int) -> str:
    """Whose time took longer: an operation's, or a pause of Python's."""
    took = pieces_of(late.trace.nodes, late.parts, row)
    took.subtract(pieces_of(early.trace.nodes, early.parts, there))
    name, longer = max(took.items(), key=lambda item: item[1])
    return name if longer > 0 else str(late.trace.nodes[row].name)
