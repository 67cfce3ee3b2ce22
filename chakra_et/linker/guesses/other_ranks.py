"""Guesses that other ranks refute: the ranks of a run do the same, each at times of its own.

Each rank says what it did, in order, and between which of that it guesses a wait (`account_of`).
What another rank shows to have been otherwise (`judged_by_others`) is left out when its conversion
is made anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import distinct
from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.guesses.repeats import ALIKE, DIGIT_NS
from chakra_et.linker.joining.alignment import align
from chakra_et.linker.tallies import JoinTally
from chakra_et.recording import DeviceTrace

ASKED: Final = 7
"""So many other ranks are asked."""


class History(msgspec.Struct):
    """What one rank did, thread by thread, and the guesses about it.

    `row` is the row of each activity in the table of its rank, `thread` who did it or launched it,
    `name` a code of `names`. Guess i is that `target[i]` waited for `source[i]`, places in `row`.
    """

    row: Rows
    thread: Rows
    name: Rows
    names: list[str]
    begin_ns: Rows
    end_ns: Rows
    source: Rows
    target: Rows

    def __len__(self) -> int:
        return len(self.source)


class Guesses(msgspec.Struct):
    """All guesses of one rank, by the kind of edge."""

    histories: dict[str, History] = msgspec.field(default_factory=dict)


class Verdict(msgspec.Struct):
    """What other ranks say of a rank's guesses, by kind of edge.

    `refuted` are pairs of rows, source and target of each guess that one refutes; `shown` is how
    many hold in all of them that have both ends.
    """

    refuted: dict[str, Rows] = msgspec.field(default_factory=dict)
    shown: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def any_refuted(self) -> bool:
        """Whether a guess is refuted."""
        return any(pairs.shape[1] for pairs in self.refuted.values())

    def joins(self) -> list[JoinTally]:
        """The verdict as it stands in a report."""
        return [
            JoinTally(f"inferred {kind} edges that other ranks show", "times", shown, shown + wrong)
            for kind, shown in self.shown.items()
            for wrong in [self.refuted[kind].shape[1]]
            if shown + wrong
        ]


def refuted_by(verdicts: Mapping[int, Verdict] | None, rank: int | None) -> Mapping[str, Rows]:
    """The pairs of rows that others refute of a rank's guesses, by kind of edge."""
    verdict = None if rank is None else (verdicts or {}).get(rank)
    return {} if verdict is None else verdict.refuted


def account_of(
    table: Activities,
    device: DeviceTrace | None,
    begin_ns: Rows,
    end_ns: Rows,
    edges: Sequence[EdgeList],
) -> Guesses:
    """The guesses of a rank, of events and threads.

    `begin_ns` is when what waits had begun to work, `end_ns` when host work had ended.
    Device work stands in the order in which threads launched it, host activities in that of their
    threads.
    """
    if device is None or len(device) == 0:
        return Guesses()
    events, threads = edges
    names, name = device.names.in_order, device.name[table.record]
    work = np.flatnonzero(table.work & (table.launch != NO_ROW))
    launch = table.launch[work]
    host = table.host_order[table.record[table.host_order] != NO_ROW]
    issued = (table.start_ns[work], table.lane[work], table.start_ns[launch], table.lane[launch])
    found: dict[str, History] = {}
    for guessed, rows, thread in (
        (events, work[np.lexsort(issued)], table.lane[table.launch]),
        (threads, host, table.lane),
    ):
        place = np.full(len(table), NO_ROW, np.int64)
        place[rows] = np.arange(len(rows))
        source, target = place[guessed.source], place[guessed.target]
        use = guessed.inferred & (source != NO_ROW) & (target != NO_ROW)
        if use.any():
            found[guessed.kind.label] = History(
                row=rows,
                thread=thread[rows],
                name=name[rows].astype(np.int64),
                names=names,
                begin_ns=begin_ns[rows],
                end_ns=np.where(table.work, table.end_ns, end_ns)[rows],
                source=source[use],
                target=target[use],
            )
    return Guesses(found)


def judged_by_others(accounts: Sequence[tuple[int, Guesses]]) -> dict[int, Verdict]:
    """By rank, which guesses another rank refutes: there the source ends after the target begins.

    Each rank is held against the next ones, in a circle.
    """
    return {rank: judged(own, _next(accounts, place)) for place, (rank, own) in enumerate(accounts)}


def judged(own: Guesses, others: Iterable[Guesses]) -> Verdict:
    """Which of a rank's guesses one of some others refutes."""
    verdict = Verdict()
    seen = {kind: np.zeros(len(history), np.bool_) for kind, history in own.histories.items()}
    wrong = {kind: np.zeros(len(history), np.bool_) for kind, history in own.histories.items()}
    for other in others if own.histories else ():
        for kind in own.histories.keys() & other.histories.keys():
            both, against = _compared(own.histories[kind], other.histories[kind])
            seen[kind] |= both
            wrong[kind] |= against
    for kind, history in own.histories.items():
        source, target = history.source[wrong[kind]], history.target[wrong[kind]]
        verdict.refuted[kind] = np.stack((history.row[source], history.row[target]))
        verdict.shown[kind] = int(np.count_nonzero(seen[kind] & ~wrong[kind]))
    return verdict


def _next(accounts: Sequence[tuple[int, Guesses]], place: int) -> Iterator[Guesses]:
    """The next ranks in the circle, one by one: a run may have more than memory holds."""
    for step in range(1, min(ASKED + 1, len(accounts))):
        yield accounts[(place + step) % len(accounts)][1]


def _compared(own: History, other: History) -> tuple[Mask, Mask]:
    """Of which guesses another rank has both ends, and which it refutes; none if it did else."""
    codes = {name: code for code, name in enumerate(own.names)}
    translate = np.array([codes.get(n, -1 - code) for code, n in enumerate(other.names)], np.int64)
    name = translate[other.name]
    same = np.full(len(own.row), NO_ROW, np.int64)
    for mine, theirs in _threads(own, other, name):
        left, right = align(own.name[mine], name[theirs])
        same[mine[left]] = theirs[right]
    if np.count_nonzero(same != NO_ROW) < ALIKE * min(len(own.row), len(other.row)):
        same[:] = NO_ROW
    source, target = same[own.source], same[own.target]
    both = (source != NO_ROW) & (target != NO_ROW)
    return both, both & (other.end_ns[source] > other.begin_ns[target] + DIGIT_NS)


def _threads(own: History, other: History, name: Rows) -> Iterator[tuple[Rows, Rows]]:
    """Threads of both ranks, those together that share most names."""
    mine, theirs = (
        {lane: np.flatnonzero(lanes == lane) for lane in distinct(lanes).tolist()}
        for lanes in (own.thread, other.thread)
    )
    counts = {lane: Counter(own.name[rows].tolist()) for lane, rows in mine.items()}
    others = {lane: Counter(name[rows].tolist()) for lane, rows in theirs.items()}
    shared = [
        ((first & second).total(), a, b)
        for a, first in counts.items()
        for b, second in others.items()
    ]
    for count, a, b in sorted(shared, key=lambda each: -each[0]):
        if count and a in mine and b in theirs:
            yield mine.pop(a), theirs.pop(b)
