"""Which nodes of two traces stand for each other: those of one name, at one place of their lane."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.linker.joining.alignment import align
from chakra_et.model import EdgeKind
from chakra_et.predict.lanes import Lane, lanes_of, paired
from chakra_et.replay.columns import Columns

_COUNTER: Final = re.compile(r"#\d+")
"""What numbers a step, as in `ProfilerStep#4`: another step has another one."""


@dataclass(frozen=True)
class Places:
    """For each row of a trace the row of another one at the same place (`row`), else -1.

    `in_order` marks those that stand in the same order on their thread in both.
    """

    row: Rows
    in_order: Mask

    def alike(self, columns: Columns) -> float:
        """The share of all but device work that stands in the same order; 1 where there is none.

        Ranks of one program have nearly all of it, stages of a pipeline next to nothing: what one
        waits for there says nothing of the other.
        """
        host = ~(columns.device & columns.trace.nodes.attributes.present("stream"))
        return float(self.in_order[host].mean()) if host.any() else 1.0


def same_places(left: Columns, right: Columns) -> Places:
    """Which rows of `right` stand for those of `left`.

    Lanes are paired first. On each pair of threads the sequences of operations are aligned, an
    operation being its name and those of all its callers and of the work that it launches, so that
    what one side has alone shifts nothing. Device work is at the same place if its launch is. What
    is left, as it changed its order or has no launch, is matched in turn by name.
    """
    found = np.full(len(left), -1, np.int64)
    in_order = np.zeros(len(left), np.bool_)
    known: dict[tuple[int, ...], int] = {}
    names: dict[str, int] = {}
    name, other_name = (_names(side, names) for side in (left, right))
    path, other_path = (
        _paths(side, _with_work(side, codes, known), known)
        for side, codes in ((left, name), (right, other_name))
    )
    pairs = paired(lanes_of(left), lanes_of(right), name, other_name)
    for a, b in pairs:
        if a.kind != "stream":
            at, other = align(path[a.rows], other_path[b.rows])
            found[a.rows[at]] = b.rows[other]
            in_order[a.rows[at]] = True
            _rest(found, a, b, name, other_name)
    _follow_launches(found, left, right, name, other_name)
    for a, b in pairs:
        if a.kind == "stream":
            _rest(found, a, b, name, other_name)
    return Places(found, in_order)


def _names(columns: Columns, numbers: dict[str, int]) -> Rows:
    """One number for each row, equal where names are."""
    nodes = columns.trace.nodes
    mine = [numbers.setdefault(_COUNTER.sub("#", name), len(numbers)) for name in nodes.names]
    codes: Rows = np.array(mine, np.int64)[nodes.name_code]
    return codes


def _with_work(columns: Columns, name: Rows, known: dict[tuple[int, ...], int]) -> Rows:
    """One number for each row, equal where its name and those of the work it launches are."""
    launched: dict[int, list[int]] = {}
    for call, work in zip(*map(np.ndarray.tolist, _launches(columns)), strict=True):
        launched.setdefault(call, []).append(int(name[work]))
    codes: Rows = name.copy()
    for call, works in launched.items():
        codes[call] = -1 - known.setdefault((int(name[call]), *works), len(known))
    return codes


def _paths(columns: Columns, name: Rows, known: dict[tuple[int, ...], int]) -> Rows:
    """One number for each row, equal where its name and those of all its callers are."""
    calls = columns.kind == EdgeKind.CALL
    caller = np.full(len(columns), -1, np.int64)
    caller[columns.edges.target[calls]] = columns.edges.source[calls]
    path = [-1] * len(columns)
    callers, names = caller.tolist(), name.tolist()
    for row in np.lexsort((np.arange(len(columns)), columns.start)).tolist():
        waiting = [row]
        while path[waiting[-1]] < 0:
            above = callers[waiting[-1]]
            if above >= 0 and path[above] < 0 and above not in waiting[-2:]:
                waiting.append(above)
                continue
            key = (names[waiting[-1]], path[above] if above >= 0 else -1)
            path[waiting.pop()] = known.setdefault(key, len(known))
            if not waiting:
                break
    return np.array(path, np.int64)


def _follow_launches(
    found: Rows, left: Columns, right: Columns, name: Rows, other_name: Rows
) -> None:
    """Match the work of calls that are matched: of each name the n-th with the n-th."""
    launch, work = _launches(left)
    other_launch, other_work = _launches(right)
    placed = found[launch] >= 0
    launch, work = found[launch[placed]], work[placed]
    width = 1 + int(max((c.max() for c in (name, other_name) if len(c)), default=0))
    at, other = _in_turn(launch * width + name[work], other_launch * width + other_name[other_work])
    found[work[at]] = other_work[other]


def _launches(columns: Columns) -> tuple[Rows, Rows]:
    """The call and the device work of each launch, in the order of the work."""
    edges = np.flatnonzero(columns.kind == EdgeKind.LAUNCH)
    work = columns.edges.target[edges]
    order = np.lexsort((work, columns.start[work]))
    return columns.edges.source[edges][order], work[order]


def _rest(found: Rows, left: Lane, right: Lane, name: Rows, other_name: Rows) -> None:
    """Match in turn by name what two lanes have left."""
    rest = left.rows[found[left.rows] < 0]
    others = right.rows[~np.isin(right.rows, found)]
    at, other = _in_turn(name[rest], other_name[others])
    found[rest[at]] = others[other]


def _in_turn(left: Rows, right: Rows) -> tuple[Rows, Rows]:
    """Places of equal codes, the n-th on one side with the n-th on the other."""
    left_at, left_key = _counted(left)
    right_at, right_key = _counted(right)
    _, codes = np.unique(np.concatenate((left_key[0], right_key[0])), return_inverse=True)
    size = max(len(left), len(right)) + 1
    mine = codes[: len(left)] * size + left_key[1]
    theirs = codes[len(left) :] * size + right_key[1]
    _, a, b = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    return left_at[a], right_at[b]


def _counted(codes: Rows) -> tuple[Rows, tuple[Rows, Rows]]:
    """Places in the order of codes, and of each its code and how many equal ones precede it."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    turn = np.arange(len(ordered)) - np.repeat(first, np.diff(np.append(first, len(ordered))))
    return order, (ordered, turn)
