"""Whose the rows of devices are, where the profiles of several processes were merged into one file.

Device rows carry the number of a device, not of a process. Each evidence rules processes out, the
best first: what rows say of their rank, and labels of theirs; correlation ids, of which a stranger
has fewer; and where rows stand in the file, as merging puts one profile behind another. What is
still open then follows from each process having a device of its own.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import among, codes, distinct
from chakra_et.columns import Mask, Rows
from chakra_et.converters.kineto.process_marks import Marks
from chakra_et.recording import NO_ID, DeviceTrace, Role

_KINDS: Final = ("memcpy", "memset")
"""What categories of work and names of the calls that launch it have in common."""
_WEAK: Final = 0.5
"""A process is ruled out that has less than this share of the evidence for another one."""
_SOME: Final = 0.1
"""Share of a device's rows that have to be of a second process before the device is of both."""


class _Piece(msgspec.Struct):
    """Rows of one device that are of one process, and those that it may be."""

    rows: Rows
    device: int
    may_be: list[int]
    in_turn: bool = False
    """Whether only turns tell whose the rows are."""
    alike: dict[int, float] = msgspec.field(default_factory=dict)
    """How many rows have ids that a process used in calls, by process."""

    def keep(self, scores: dict[int, float]) -> None:
        """Rule out processes for which evidence is much weaker than for another one."""
        most = max(scores[pid] for pid in self.may_be)
        if most > 0:
            self.may_be = [pid for pid in self.may_be if scores[pid] >= _WEAK * most]


class Owners(msgspec.Struct):
    """The process of each row, and the rank of each process as far as it is told."""

    pid: Rows
    ranks: dict[int, int]
    unsure: list[int] = msgspec.field(default_factory=list)
    """Devices that went to a process only because it had none, or in turn."""


def find_owners(device: DeviceTrace, pids: list[int]) -> Owners:
    """The process, one of `pids`, of each row; rows of host threads say theirs."""
    owner = np.full(len(device), pids[0], np.int64)
    own = (device.role <= Role.CALL) & among(device.pid, pids)
    owner[own] = device.pid[own]
    marks = Marks(device, np.flatnonzero(own), pids)
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
    device: DeviceTrace, rows: Rows, block: Rows, marks: Marks, calls: dict[int, _Calls]
) -> list[_Piece]:
    """Rows by device, and by process where one device number is that of several."""
    marked = marks.process_of(rows)
    told = np.where(marked != NO_ID, marked, _only_caller(device, rows, calls))
    place = codes(device.pid[rows], device.device[rows], block[rows])
    work = device.role[rows] == Role.WORK
    few = _fewer_devices(device, rows[work], calls)
    pieces = []
    for number in distinct(place).tolist():
        mine = np.flatnonzero(place == number)
        several = _several(told[mine])
        in_turn = few and _of_each_caller(device, rows[mine[work[mine]]], calls)
        if several or in_turn:
            open_ones = mine[told[mine] == NO_ID]
            told[open_ones] = _in_turn(device, rows[open_ones], calls)
        for pid in distinct(told[mine]).tolist() if several or in_turn else [NO_ID]:
            part = rows[mine[told[mine] == pid]] if several or in_turn else rows[mine]
            may_be = list(calls) if pid == NO_ID else [pid]
            at = _number(device, int(part[0]))
            pieces.append(_Piece(part, at, may_be, in_turn=in_turn and not several))
    return pieces


def _several(told: Rows) -> bool:
    """Whether rows tell of more than one process, each of them often."""
    counts = np.unique(told[told != NO_ID], return_counts=True)[1]
    return bool(np.count_nonzero(counts > _SOME * len(told)) > 1)


def _number(device: DeviceTrace, row: int) -> int:
    """The number of a row's device: its own, else that of its process."""
    told = int(device.device[row])
    return int(device.pid[row]) if told == NO_ID else told


def _fewer_devices(device: DeviceTrace, work: Rows, calls: dict[int, _Calls]) -> bool:
    """Whether there are fewer numbers of devices than processes that call, so that some share."""
    numbers = len(distinct(codes(device.pid[work], device.device[work])))
    return numbers < sum(len(own.ids) > 0 for own in calls.values())


def _of_each_caller(device: DeviceTrace, work: Rows, calls: dict[int, _Calls]) -> bool:
    """Whether most work comes as often with an id as processes called with it, twice or more."""
    ids, times = np.unique(device.correlation[work], return_counts=True)
    callers = np.sum([among(ids, own.ids) for own in calls.values()], axis=0)
    alike = (callers > 1) & (times == callers)
    return bool(2 * times[alike].sum() > len(work))


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
        same = among(device.correlation[rows], own.ids)
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
    """Give what may be of several processes to those with fewer devices, the likeliest first.

    Ids are given once in a process, so that two of its devices have none in common. Where processes
    are as likely, devices and ranks go in order: of two that have two each, the first has 0 and 1.
    """
    work = [piece for piece in pieces if (device.role[piece.rows] == Role.WORK).any()]
    held: dict[int, list[_Piece]] = {pid: [] for piece in work for pid in piece.alike}
    for piece in work:
        if len(piece.may_be) == 1:
            held[piece.may_be[0]].append(piece)
    unsure = [piece for piece in work if len(piece.may_be) > 1]
    offers = sorted(
        (-piece.alike[pid], piece.device, found.ranks.get(pid, NO_ID), pid, place)
        for place, piece in enumerate(unsure)
        for pid in piece.may_be
    )
    share = len(work) // max(len(held), 1)
    for room, apart in ((max(share, 1), True), (share + 1, True), (len(work), False)):
        for *_, pid, place in offers:
            piece, mine = unsure[place], held[pid]
            if len(piece.may_be) == 1 or len(mine) >= room:
                continue
            if not (apart and any(_share_ids(device, piece, other) for other in mine)):
                piece.may_be = [pid]
                mine.append(piece)
    found.unsure += [piece.device for piece in unsure]
    found.unsure += [piece.device for piece in work if piece.in_turn]


def _share_ids(device: DeviceTrace, one: _Piece, other: _Piece) -> bool:
    """Whether work on two devices has ids in common, and so is of two processes."""
    ids, others = (distinct(device.correlation[piece.rows]) for piece in (one, other))
    common = np.intersect1d(ids[ids > 0], others[others > 0])
    return len(common) > _SOME * min(len(ids), len(others))
