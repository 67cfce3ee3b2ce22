"""What tells processes apart that are in one profile: ranks in groups, and labels."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final

import msgspec
import numpy as np

from chakra_et.codes import distinct
from chakra_et.columns import Rows
from chakra_et.patterns import lazy_pattern
from chakra_et.recording import NO_ID, DeviceTrace

Mark = tuple[Any, ...]
"""What tells processes apart: a rank in a group, a rank in a label, the beginning of a label."""

_MEMBER_KEY: Final = '"Rank"'
_RANK: Final = lazy_pattern(r"\brank[-_ :#]*(\d{1,9})(?!\d)", re.IGNORECASE)
_BEGINNING: Final = lazy_pattern(r"(.*\D)\d+", re.DOTALL)
_NUMBERED: Final = lazy_pattern(r"\[?[A-Za-z]*[-_]?(\d{1,9})[\]\s_:/-]+")
"""The beginning of a label that holds a rank: `[TP01] `, `rank1_`, `1_`."""


class _Member(msgspec.Struct, gc=False):
    """What a record of a collective says of the group and of the place in it."""

    group: Any = msgspec.field(default=None, name="Process Group Name")
    ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    rank: Any = msgspec.field(default=None, name="Rank")


class Marks:
    """What tells the processes apart, by what their own rows and labels say."""

    def __init__(self, device: DeviceTrace, own: Rows, pids: list[int]) -> None:
        self.device = device
        self.labels = {pid: _label_marks(texts) for pid, texts in device.labels.items()}
        self.of: dict[int, Counter[Mark]] = {pid: Counter() for pid in pids}
        for row in own.tolist():
            self.of[int(device.pid[row])].update(self._told(row))
        for pid, marks in self.of.items():
            marks.update(self.labels.get(pid, ()))
        times = Counter(mark for marks in self.of.values() for mark in marks)
        for marks in self.of.values():
            for mark in [mark for mark in marks if times[mark] > 1]:
                del marks[mark]

    def _told(self, row: int) -> list[Mark]:
        """The place in its group that a record tells; that of others if it names a root."""
        args = self.device.args[row]
        if _MEMBER_KEY not in args:
            return []
        try:
            told = msgspec.json.decode(args, type=_Member)
        except (msgspec.DecodeError, RecursionError):
            return []
        return [("member", str(told.group), str(told.ranks), str(told.rank))]

    def scores(self, rows: Rows) -> dict[int, float]:
        """How often the rows say what only one of the processes says."""
        said: Counter[Mark] = Counter()
        for row in rows.tolist():
            said.update(self._told(row))
        for pid in distinct(self.device.pid[rows]).tolist():
            said.update(dict.fromkeys(self.labels.get(pid, ()), len(rows)))
        return {pid: float(sum(said[mark] for mark in marks)) for pid, marks in self.of.items()}

    def process_of(self, rows: Rows) -> Rows:
        """The only process that says of itself what a row says; `NO_ID` if there is none."""
        owner = {mark: pid for pid, marks in self.of.items() for mark in marks}
        found = (
            next((owner[mark] for mark in self._told(row) if mark in owner), NO_ID)
            for row in rows.tolist()
        )
        return np.fromiter(found, np.int64, len(rows))

    def ranks(self) -> dict[int, int]:
        """The rank that each process tells most often, if no other one tells the same."""
        told = {}
        for pid, marks in self.of.items():
            votes: Counter[int] = Counter()
            for mark, count in marks.items():
                if (rank := _rank(mark)) is not None:
                    votes[rank] += count
            if votes:
                told[pid] = votes.most_common(1)[0][0]
        times = Counter(told.values())
        return {pid: rank for pid, rank in told.items() if times[rank] == 1}


def ranks_in_labels(texts: set[str]) -> set[int]:
    """The ranks that labels of a process name in so many words."""
    return {int(match[1]) for text in texts if (match := _RANK.search(text))}


def _label_marks(texts: set[str]) -> list[Mark]:
    """What the labels of a process say: a rank, or how they begin (`[TP01] 4711`, `1_4711`)."""
    marks: list[Mark] = []
    for text in texts:
        if match := _RANK.search(text):
            marks.append(("rank", int(match[1])))
        if match := _BEGINNING.fullmatch(text):
            marks.append(("beginning", match[1]))
    return marks


def _rank(mark: Mark) -> int | None:
    """The global rank that a mark tells."""
    if mark[0] == "rank":
        return int(mark[1])
    if mark[0] == "beginning":
        match = _NUMBERED.fullmatch(mark[1])
        return int(match[1]) if match else None
    try:
        ranks, place = msgspec.json.decode(mark[2]), int(mark[3])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if not isinstance(ranks, list) or not 0 <= place < len(ranks):
        return None
    rank = ranks[place]
    return rank if isinstance(rank, int) and 0 <= rank < 1 << 31 else None
