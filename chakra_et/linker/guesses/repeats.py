"""Repetition in a recording: the same activity in each of its steps, so that guesses can be tested.

A recording of several steps shows each edge several times. A guess that one step suggests and
another refutes, where the source ends after the target has begun, was a coincidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import among, codes, order_of
from chakra_et.columns import NO_ROW, UNTIMED, Mask, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.workers import Workers
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.joining.alignment import align
from chakra_et.linker.tallies import JoinTally
from chakra_et.recording import DeviceTrace, Kind

_STEP: Final = "ProfilerStep##"
_TRIES: Final = 4
"""How many annotations are tried as marks of steps."""
DIGIT_NS: Final = 1000
"""Profilers cut times, some of them at a microsecond."""
ALIKE: Final = 0.8
"""The share of activities of a step that must be found in the usual one."""
_CELLS: Final = 1 << 22
"""How many pairs of an edge and a step are looked at together."""


class Repeats(msgspec.Struct):
    """By activity the step that it is in and its number there, which is the same in all steps.

    `place[k, n]` is activity n of step k. All are `NO_ROW` where nothing is known.
    """

    step: Rows
    number: Rows
    place: Rows

    def __bool__(self) -> bool:
        return len(self.place) > 1

    def behind(self, count: int) -> Repeats:
        """The same for a table of so many rows, the last of which are in no step."""
        none = np.full(count - len(self.step), NO_ROW, np.int64)
        return Repeats(np.append(self.step, none), np.append(self.number, none), self.place)

    def of(self, edges: EdgeList) -> tuple[Rows, Rows, Rows]:
        """Numbers of sources (`NO_ROW`: unknown) and targets, and how many steps lie between."""
        source, target = self.number[edges.source], self.number[edges.target]
        apart = self.step[edges.target] - self.step[edges.source]
        source = np.where((source != NO_ROW) & (target != NO_ROW), source, NO_ROW)
        return source, target, apart


def find_repeats(table: Activities, device: DeviceTrace | None, workers: Workers) -> Repeats:
    """Steps, and what corresponds in them: host activities by order on each thread and by name,
    device work by its launch, transfers by who asked for them.
    """
    nothing = np.full(len(table), NO_ROW, np.int64)
    none = Repeats(nothing, nothing, np.zeros((0, 0), np.int64))
    if device is None or len(device) == 0:
        return none
    recorded = table.record != NO_ROW
    names = np.where(recorded, device.name[table.record], NO_ROW)
    for marks in _marks(table, device):
        found = _repeats(table, names, marks, workers)
        if found is not None:
            return found
    return none


def _repeats(table: Activities, names: Rows, marks: Rows, workers: Workers) -> Repeats | None:
    """The repeats from mark to mark; None where the steps are not alike."""
    begins, end = table.start_ns[marks], int(table.end_ns[marks[-1]])
    step = np.searchsorted(begins, table.start_ns, "right") - 1
    step[(table.start_ns == UNTIMED) | (table.start_ns >= end)] = NO_ROW
    launcher = np.where(table.launch != NO_ROW, table.launch, table.caller)
    launcher[~table.work] = NO_ROW
    launcher[workers.transfers] = workers.asked
    given = launcher != NO_ROW
    step[given] = step[launcher[given]]
    step[table.work & ~given] = NO_ROW
    number = _on_threads(table, names, step, len(begins), workers)
    # Transfers are not numbered by their place: they follow who asked.
    host = table.host_order[~among(table.host_order, workers.transfers)]
    host = host[step[host] != NO_ROW]
    if np.count_nonzero(number[host] != NO_ROW) < ALIKE * len(host):
        return None
    _of_launched(table, names, launcher, number)
    step[number == NO_ROW] = NO_ROW
    place = np.full((len(begins), int(number.max(initial=-1)) + 1), NO_ROW, np.int64)
    known = np.flatnonzero(step != NO_ROW)
    place[step[known], number[known]] = known
    return Repeats(step, number, place)


def _marks(table: Activities, device: DeviceTrace) -> Iterator[Rows]:
    """What may begin steps: annotations of one name that come again and again on one thread.

    Numbers in names are passed over. The profiler's own steps come first, then those that cover
    most time.
    """
    host = table.host_order
    rows = host[device.kind[table.record[host]] == Kind.ANNOTATION]
    names = device.names.in_order
    kinds: dict[tuple[int, str], list[int]] = {}
    for row in rows.tolist():
        name = names[device.name[table.record[row]]]
        kinds.setdefault((int(table.lane[row]), re.sub(r"\d+", "#", name)), []).append(row)
    found: list[tuple[bool, int, Rows]] = []
    for (_, name), same in kinds.items():
        mine = np.array(same, np.int64)
        apart = np.all(table.end_ns[mine[:-1]] <= table.start_ns[mine[1:]])
        covers = int((table.end_ns[mine] - table.start_ns[mine]).sum())
        if len(mine) > 1 and apart:
            found.append((name == _STEP, covers, mine))
    for *_, mine in sorted(found, key=lambda kind: kind[:2], reverse=True)[:_TRIES]:
        yield mine


def _on_threads(table: Activities, names: Rows, step: Rows, steps: int, workers: Workers) -> Rows:
    """Numbers of host activities: their places in the step of usual length."""
    number = np.full(len(table), NO_ROW, np.int64)
    order = table.host_order[step[table.host_order] != NO_ROW]
    order = order[~among(table.lane[order], table.lane[workers.transfers])]
    lengths = np.bincount(step[order], minlength=steps)
    usual = int(np.argsort(lengths, kind="stable")[steps // 2])
    mine = order[step[order] == usual]
    number[mine] = np.arange(len(mine))
    by_step = order[np.argsort(step[order], kind="stable")]
    borders = np.searchsorted(step[by_step], np.arange(steps + 1))
    lanes = [_by_lane(table, by_step[a:b]) for a, b in pairwise(borders.tolist())]
    for place, other in enumerate(lanes):
        for lane in () if place == usual else other.keys() & lanes[usual].keys():
            left, right = align(names[lanes[usual][lane]], names[other[lane]])
            number[other[lane][right]] = number[lanes[usual][lane][left]]
    return number


def _by_lane(table: Activities, rows: Rows) -> dict[int, Rows]:
    lanes, begins = np.unique(table.lane[rows], return_index=True)
    ends = [*begins[1:].tolist(), len(rows)]
    parts = zip(lanes.tolist(), begins.tolist(), ends[: len(begins)], strict=True)
    return {lane: rows[begin:end] for lane, begin, end in parts}


def _of_launched(table: Activities, names: Rows, launcher: Rows, number: Rows) -> None:
    """Numbers of what was launched or asked for: by who did it, and place and name among that."""
    rows = np.flatnonzero(launcher != NO_ROW)
    rows = rows[number[launcher[rows]] != NO_ROW]
    if len(rows) == 0:
        return
    rows = rows[order_of(launcher[rows], table.lane[rows], table.start_ns[rows])]
    first = np.flatnonzero(np.diff(launcher[rows], prepend=NO_ROW))
    lengths = np.diff(np.append(first, len(rows)))
    among = np.arange(len(rows)) - np.repeat(first, lengths)
    found = codes(number[launcher[rows]], among, names[rows])
    number[rows] = int(number.max()) + 1 + found


class Tried(msgspec.Struct):
    """How many guesses of a kind of edge other steps show, and how many they refute."""

    kind: str
    shown: int
    refuted: int

    def joins(self) -> list[JoinTally]:
        """The count as it stands in a report."""
        what, of = f"inferred {self.kind} edges that other steps show", self.shown + self.refuted
        return [JoinTally(what, "times", self.shown, of)] if of else []


def in_doubt(
    repeats: Repeats, edges: EdgeList, begin_ns: Rows, told: Rows | None, end_ns: Rows
) -> tuple[Mask, Tried]:
    """Which guesses another step, or another rank, refutes. `told` are pairs that ranks do."""
    wrong, shown = refuted(repeats, edges, begin_ns, end_ns)
    tried = Tried(
        edges.kind.label,
        int(np.count_nonzero(shown & edges.inferred)),
        int(np.count_nonzero(wrong & edges.inferred)),
    )
    if told is not None:
        keys = told[0] * len(end_ns) + told[1]
        wrong |= among(edges.source * len(end_ns) + edges.target, keys)
    return wrong & edges.inferred, tried


def refuted(repeats: Repeats, edges: EdgeList, begin_ns: Rows, end_ns: Rows) -> tuple[Mask, Mask]:
    """Which edges another step refutes, and which others show too.

    In another step the source ends (`end_ns`) after the target has begun (`begin_ns`), or it does
    so in none of those that have both.
    """
    wrong, shown = (np.zeros(len(edges), np.bool_) for _ in range(2))
    if not repeats:
        return wrong, shown
    source, target, apart = repeats.of(edges)
    known = np.flatnonzero(source != NO_ROW)
    pairs, which = np.unique(
        np.stack((source[known], target[known], apart[known])), axis=1, return_inverse=True
    )
    seen, against = (np.zeros(pairs.shape[1], np.int64) for _ in range(2))
    width = max(_CELLS // len(repeats.place), 1)
    for begin in range(0, pairs.shape[1], width):
        part = slice(begin, begin + width)
        seen[part], against[part] = _tried(repeats, pairs[:, part], begin_ns, end_ns)
    which = which.ravel()
    wrong[known] = against[which] > 0
    shown[known] = (against[which] == 0) & (seen[which] > 1)
    return wrong, shown


def _tried(repeats: Repeats, pairs: Rows, begin_ns: Rows, end_ns: Rows) -> tuple[Rows, Rows]:
    """In how many steps both ends of each edge occur, and in how many the times are against it."""
    source, target, apart = pairs
    steps = np.arange(len(repeats.place))[:, None]
    after = steps + apart
    inside = (after >= 0) & (after < len(repeats.place))
    first = repeats.place[steps, source]
    second = repeats.place[np.where(inside, after, 0), target]
    both = inside & (first != NO_ROW) & (second != NO_ROW)
    against = both & (end_ns[first] > begin_ns[second] + DIGIT_NS)
    return both.sum(axis=0), against.sum(axis=0)
