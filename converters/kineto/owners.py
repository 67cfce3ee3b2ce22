"""Whose the rows of devices are, where the profiles of several processes were merged into one file.

Device rows carry the number of a device, not of a process. Each evidence rules processes out, the
best first: what rows say of their rank, and labels of theirs; correlation ids, of which a stranger
has fewer; and where rows stand in the file, as merging puts one profile behind another. What is
still open then follows from each process having a device of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.codes import codes
from chakra_et.converters.kineto.categories import Role
from chakra_et.converters.kineto.device_trace import NO_ID, DeviceTrace

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Mark = tuple[Any, ...]
"""What tells processes apart: a rank in a group, a rank in a label, the beginning of a label."""

_MEMBER_KEY: Final = b'"Rank"'
_KINDS: Final = ("memcpy", "memset")
"""What categories of work and names of the calls that launch it have in common."""
_RANK: Final = re.compile(r"\brank[-_ :#]*(\d+)", re.IGNORECASE)
_BEGINNING: Final = re.compile(r"(.*\D)\d+", re.DOTALL)
_NUMBERED: Final = re.compile(r"\[?[A-Za-z]*[-_]?(\d+)[\]\s_:/-]+")
"""The beginning of a label that holds a rank: `[TP01] `, `rank1_`, `1_`."""
_WEAK: Final = 0.5
"""A process is ruled out that has less than this share of the evidence for another one."""
_SOME: Final = 0.1
"""Share of a device's rows that have to be of a second process before the device is of both."""


class _Member(msgspec.Struct, gc=False):
    """What a record of a collective says of the group and of the place in it."""

    group: Any = msgspec.field(default=None, name="Process Group Name")
    ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    rank: Any = msgspec.field(default=None, name="Rank")


@dataclass
class _Piece:
    """Rows of one device that are of one process, and those that it may be."""

    rows: Rows
    device: int
    may_be: list[int]
    alike: dict[int, float] = field(default_factory=dict)
    """How many rows have ids that a process used in calls, by process."""

    def keep(self, scores: dict[int, float]) -> None:
        """Rule out processes for which evidence is much weaker than for another one."""
        most = max(scores[pid] for pid in self.may_be)
        if most > 0:
            self.may_be = [pid for pid in self.may_be if scores[pid] >= _WEAK * most]


@dataclass
class Owners:
    """The process of each row, and the rank of each process as far as it is told."""

    pid: Rows
    ranks: dict[int, int]
    unsure: list[int] = field(default_factory=list)
    """Devices that went to a process only because it had none."""


def find_owners(device: DeviceTrace, pids: list[int]) -> Owners:
    """The process, one of `pids`, of each row; rows of host threads say theirs."""
    owner = np.full(len(device), pids[0], np.int64)
    own = (device.role <= Role.CALL) & np.isin(device.pid, pids)
    owner[own] = device.pid[own]
    marks = _Marks(device, np.flatnonzero(own), pids)
    block = _blocks(device.pid, own, pids)
    calls = {pid: _Calls(device, own, pid) for pid in pids}
    pieces = _pieces(device, np.flatnonzero(~own), block, marks, calls)
    found = Owners(owner, marks.ranks())
    for piece in pieces:
        piece.keep(marks.scores(piece.rows))
        piece.alike = {pid: _alike(device, piece.rows, calls[pid]) for pid in pids}
        piece.keep(piece.alike)
        piece.keep({pid: float(np.count_nonzero(block[piece.rows] == pid)) for pid in pids})
    _each_its_own(device, pieces, found)
    for piece in pieces:
        owner[piece.rows] = piece.may_be[0]
    return found


def _pieces(
    device: DeviceTrace, rows: Rows, block: Rows, marks: _Marks, calls: dict[int, _Calls]
) -> list[_Piece]:
    """Rows by device, and by process where one device number is that of several."""
    marked = marks.process_of(rows)
    told = np.where(marked != NO_ID, marked, _only_caller(device, rows, calls))
    place = codes(device.pid[rows], device.device[rows], block[rows])
    pieces = []
    for number in np.unique(place).tolist():
        mine = np.flatnonzero(place == number)
        own, counts = np.unique(told[mine], return_counts=True)
        if np.count_nonzero(counts[own != NO_ID] > _SOME * len(mine)) > 1:
            open_ones = mine[told[mine] == NO_ID]
            told[open_ones] = _in_turn(device, rows[open_ones], calls)
            parts = [mine[told[mine] == pid] for pid in np.unique(told[mine]).tolist()]
        else:
            parts = [mine]
        for part in parts:
            number = int(device.device[rows[part[0]]])
            at = int(device.pid[rows[part[0]]]) if number == NO_ID else number
            pieces.append(_Piece(rows[part], at, list(calls)))
    return pieces


def _in_turn(device: DeviceTrace, rows: Rows, calls: dict[int, _Calls]) -> Rows:
    """Work of one id goes to the processes that called with it, in the order of their calls."""
    pid = np.repeat(list(calls), [len(own.ids) for own in calls.values()])
    ids = np.concatenate([own.ids for own in calls.values()])
    start = device.start_ns[np.concatenate([own.rows for own in calls.values()])]
    turn, mine = _turns(ids, start), _turns(device.correlation[rows], device.start_ns[rows])
    key = codes(np.append(ids, device.correlation[rows]), np.append(turn, mine))
    process = np.full(int(key.max(initial=0)) + 1, NO_ID, np.int64)
    process[key[: len(ids)]] = pid
    found: Rows = process[key[len(ids) :]]
    return found


def _turns(ids: Rows, start: Rows) -> Rows:
    """The place of each entry among those with its id, by start."""
    order = np.lexsort((start, ids))
    first = np.append(True, ids[order][1:] != ids[order][:-1])[: len(ids)]
    begin = np.maximum.accumulate(np.where(first, np.arange(len(ids)), 0))
    turn = np.empty(len(ids), np.int64)
    turn[order] = np.arange(len(ids)) - begin
    return turn


def _only_caller(device: DeviceTrace, rows: Rows, calls: dict[int, _Calls]) -> Rows:
    """The only process with a call of the same correlation id as each row; `NO_ID` if several."""
    found, times = np.full(len(rows), NO_ID, np.int64), np.zeros(len(rows), np.int64)
    for pid, own in calls.items():
        same = np.isin(device.correlation[rows], own.ids)
        found[same] = pid
        times += same
    return np.where(times == 1, found, NO_ID)


class _Calls:
    """The calls of a process by correlation id, in `ids` ascending, the first one of each."""

    def __init__(self, device: DeviceTrace, own: Mask, pid: int) -> None:
        calls = np.flatnonzero(own & (device.role == Role.CALL) & (device.pid == pid))
        calls = calls[device.correlation[calls] > 0]
        self.ids, first = np.unique(device.correlation[calls], return_index=True)
        self.rows = calls[first]


def _alike(device: DeviceTrace, rows: Rows, calls: _Calls) -> float:
    """How many rows have the id of a call that was made before them, for work of their kind."""
    if len(calls.ids) == 0:
        return 0.0
    place = np.minimum(np.searchsorted(calls.ids, device.correlation[rows]), len(calls.ids) - 1)
    same = calls.ids[place] == device.correlation[rows]
    rows, made = rows[same], calls.rows[place[same]]
    fits = device.start_ns[rows] >= device.start_ns[made]
    for kind in _KINDS:
        of_work = np.array([kind in name.lower() for name in device.categories.in_order], np.bool_)
        of_call = np.array([kind in name.lower() for name in device.names.in_order], np.bool_)
        fits &= of_work[device.category[rows]] == of_call[device.name[made]]
    return float(np.count_nonzero(fits))


def _blocks(pid: Rows, own: Mask, pids: list[int]) -> Rows:
    """The process whose part of the file each row stands in; `NO_ID` where these overlap."""
    rows_of = {p: np.flatnonzero(own & (pid == p)) for p in pids}
    spans = sorted((int(rows[0]), int(rows[-1]), p) for p, rows in rows_of.items())
    if any(after[0] < before[1] for before, after in pairwise(spans)):
        return np.full(len(pid), NO_ID, np.int64)
    begins = np.array([begin for begin, _, _ in spans[1:]], np.int64)
    part = np.searchsorted(begins, np.arange(len(pid)), "right")
    return np.array([p for _, _, p in spans], np.int64)[part]


def _each_its_own(device: DeviceTrace, pieces: list[_Piece], found: Owners) -> None:
    """Give what may be of several processes to those without a device, the likeliest first.

    Where processes are as likely, devices and ranks go in order.
    """
    work = [piece for piece in pieces if (device.role[piece.rows] == Role.WORK).any()]
    taken = {piece.may_be[0] for piece in work if len(piece.may_be) == 1}
    unsure = [piece for piece in work if len(piece.may_be) > 1]
    offers = sorted(
        (-piece.alike[pid], piece.device, found.ranks.get(pid, NO_ID), pid, place)
        for place, piece in enumerate(unsure)
        for pid in piece.may_be
    )
    for of_taken in (False, True):
        for *_, pid, place in offers:
            piece = unsure[place]
            if len(piece.may_be) > 1 and (of_taken or pid not in taken):
                piece.may_be = [pid]
                taken.add(pid)
    found.unsure += [piece.device for piece in unsure]


class _Marks:
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
        for pid in np.unique(self.device.pid[rows]).tolist():
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
    known = isinstance(ranks, list) and 0 <= place < len(ranks) and isinstance(ranks[place], int)
    return int(ranks[place]) if known else None
