"""Durations by occurrence: which ones of a kind of node in its step take another time than others.

An operation that is met sixty times in a step mostly takes one time at its first place and another
at its tenth, the same on all ranks: so large is the tensor there, or so long does the thread wait.
Occurrences that take about as long are put into one class, and each class has a sketch of its own.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows, turns_of
from chakra_et.synth.corpus import Corpus
from chakra_et.synth.model import MOST_TURNS, Occurrences
from chakra_et.synth.sketches import Sketch, sketch
from chakra_et.synth.view import ABSENT

_FLOOR: Final = 0.05
"""Deviations of logarithms below this are not worth telling apart."""

Reals = npt.NDArray[np.float64]


def occurrences_of(
    corpus: Corpus, values: list[Rows]
) -> tuple[tuple[Sketch, ...], tuple[Occurrences, ...], tuple[Sketch, ...]]:
    """Sketches of the values of all tokens, and those of occurrences that differ from others.

    The sketch of a token holds what no class holds; where classes hold all, it holds all as well,
    for occurrences that were not seen. An occurrence that was seen once is not told apart.
    """
    code, value = np.concatenate(corpus.vocabulary.codes), np.concatenate(values)
    unit = np.concatenate(corpus.unit)
    turn = np.concatenate(
        [turns_of(c, u) for c, u in zip(corpus.vocabulary.codes, corpus.unit, strict=True)]
    )
    role = np.concatenate([np.full(len(rank.view), rank.role) for rank in corpus.ranks])
    told = np.where((unit >= 0) & (turn < MOST_TURNS), role * MOST_TURNS + turn, ABSENT)
    plain: list[Sketch] = [sketch(value[:0])] * len(corpus.vocabulary.tokens)
    found: list[Occurrences] = []
    apart: list[Sketch] = []
    order = np.argsort(code, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(code[order])) + 1):
        place, kind = _classes(told[rows], value[rows])
        mine, token = value[rows], int(code[rows[0]])
        rest = mine[kind == ABSENT]
        plain[token] = sketch(rest if len(rest) else mine)
        found += _told(token, place, kind, len(apart))
        apart += [sketch(mine[kind == n]) for n in range(int(kind.max(initial=ABSENT)) + 1)]
    return tuple(plain), tuple(found), tuple(apart)


def _classes(told: Rows, values: Rows) -> tuple[Rows, Rows]:
    """The occurrence of each row and its class; ABSENT for both where it is not told apart."""
    distinct, place, times = np.unique(told, return_inverse=True, return_counts=True)
    place = place.reshape(-1)
    mine = np.flatnonzero(((distinct != ABSENT) & (times > 1))[place])
    kind = np.full(len(told), ABSENT)
    if len(mine):
        _, group = np.unique(place[mine], return_inverse=True)
        parts = partition(np.log1p(values[mine].astype(np.float64)), group.reshape(-1))
        if parts.max() > 0:
            kind[mine] = parts[group.reshape(-1)]
    return np.where(kind == ABSENT, ABSENT, told), kind


def _told(token: int, place: Rows, kind: Rows, base: int) -> list[Occurrences]:
    """The classes of the occurrences of a token, for each role."""
    there = kind != ABSENT
    distinct, first = np.unique(place[there], return_index=True)
    roles, turns = np.divmod(distinct, MOST_TURNS)
    found = []
    for role in np.unique(roles).tolist():
        mine = roles == role
        sketches = np.full(int(turns[mine].max()) + 1, ABSENT)
        sketches[turns[mine]] = kind[there][first[mine]] + base
        found.append(Occurrences(token, role, tuple(sketches.tolist())))
    return found


def partition(values: Reals, group: Rows) -> Rows:
    """The class of each group: groups with means alike are one, as few classes as BIC asks for.

    Each class is a normal distribution. Groups, in the order of their means, are cut in two
    wherever that pays for two more parameters, and for a bit more for each group to tell its class.
    """
    count = np.bincount(group).astype(np.float64)
    sums, squares = np.bincount(group, values), np.bincount(group, values**2)
    order = np.argsort(sums / count, kind="stable")
    n, s, q = (np.append(0, np.cumsum(column[order])) for column in (count, sums, squares))
    each = math.log(len(values))

    def cost(low: Rows, high: Rows) -> Reals:
        held = np.maximum(n[high] - n[low], 1)
        spread = (q[high] - q[low]) / held - ((s[high] - s[low]) / held) ** 2
        return np.asarray(held / 2 * np.log(np.maximum(spread, 0) + _FLOOR**2), np.float64)

    cuts, open_ = [], [(0, len(order))]
    while open_:
        low, high = open_.pop()
        at = np.arange(low + 1, high)
        if len(at) == 0:
            continue
        both = cost(np.full_like(at, low), at) + cost(at, np.full_like(at, high))
        best = int(np.argmin(both))
        whole = float(cost(np.array([low]), np.array([high]))[0])
        if whole - float(both[best]) > each + (high - low) * math.log(2):
            cuts.append(int(at[best]))
            open_ += [(low, int(at[best])), (int(at[best]), high)]
    found = np.empty(len(order), np.int64)
    found[order] = np.searchsorted(np.sort(cuts), np.arange(len(order)), side="right")
    return found
