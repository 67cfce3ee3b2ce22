"""Classes of ranks: those that choose alike wherever ranks of a role choose differently.

What varies between ranks mostly comes together: a rank that waits here copies there. Chains see
some nodes back and no further, so that the choices of a rank far apart would be drawn as if they
had nothing to do with each other. Classes keep them together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.synth.chain import Events, Order, Sequences, codes, folds
from chakra_et.synth.graph import states_of

_LEAST_RANKS: Final = 5
"""Of fewer ranks none can be held out and still leave two classes of two."""
_MOST_RANKS: Final = 64
"""Classes are found among so many ranks of a role; others join the class that is nearest."""

Reals = npt.NDArray[np.float64]


def classes_of(
    sequences: Sequences, orders: dict[int, Order], rank: Rows, role: Rows
) -> tuple[tuple[tuple[int, ...], ...], Rows]:
    """By role, how many ranks each class has, and the number of the class of each rank.

    `rank` is that of each sequence, `role` that of each rank. Numbers of classes count from 1 over
    all roles; ranks of a role whose ranks have no classes have number 0.
    """
    choices = Choices.of(sequences, orders, rank, len(role))
    number = np.zeros(len(role), np.int64)
    sizes: list[tuple[int, ...]] = []
    for one in range(int(role.max(initial=-1)) + 1):
        found = choices.classes(np.flatnonzero(role == one))
        first = 1 + sum(len(own) for own in sizes)
        for place, members in enumerate(found):
            number[members] = first + place
        sizes.append(tuple(len(members) for members in found))
    return tuple(sizes), number


@dataclass
class Choices:
    """How often each rank went which way where there are several: int64[ranks, ways].

    The ways out of one state of a chain stand together, from `first` on.
    """

    counts: Rows
    first: Rows

    @classmethod
    def of(cls, sequences: Sequences, orders: dict[int, Order], rank: Rows, ranks: int) -> Choices:
        """The choices in all sequences."""
        events = Events.of(sequences)
        state = states_of(sequences, events, orders)
        way = codes(state, events.symbol)
        _, row = np.unique(way, return_index=True)
        several = np.bincount(state[row])[state] > 1
        _, way = np.unique(way[several], return_inverse=True)
        way = way.reshape(-1)
        of_state = np.zeros(int(way.max(initial=-1)) + 1, np.int64)
        of_state[way] = state[several]
        counts = np.zeros((ranks, len(of_state)), np.int64)
        np.add.at(counts, (rank[events.sequence[several]], way), 1)
        return cls(counts, np.flatnonzero(np.append(True, np.diff(of_state) != 0)[: len(of_state)]))

    def classes(self, ranks: Rows) -> list[list[int]]:
        """Classes of some ranks; none where they foresee held-out ranks no better than all do.

        What a single rank did says nothing of those held out, so that this is tried with classes of
        several. If there are such, a rank that is like no other is a class of its own.
        """
        if len(ranks) < _LEAST_RANKS or len(self.first) == 0:
            return []
        chosen = np.unique(np.linspace(0, len(ranks) - 1, _MOST_RANKS).astype(np.int64))
        known, fold = ranks[chosen], folds(np.arange(len(chosen)))
        gain = 0.0
        for part in range(int(fold.max()) + 1):
            rest = known[fold != part]
            apart, together = self._joined(rest.tolist(), lone=False), [rest.tolist()]
            for held in known[fold == part].tolist():
                gain += _total(self._foreseen(apart, held)) - _total(self._foreseen(together, held))
        found = self._joined(known.tolist(), lone=True) if gain > 0 else []
        if not 1 < len(found) < len(known):
            return []
        nearest = {r: int(np.argmax(self._foreseen(found, r))) for r in set(ranks.tolist())}
        nearest |= {r: place for place, members in enumerate(found) for r in members}
        return [[r for r in ranks.tolist() if nearest[r] == n] for n in range(len(found))]

    def _foreseen(self, classes: list[list[int]], held: int) -> Reals:
        """The logarithm of how likely each class is, and chooses as a rank did that is in none."""
        sums = np.stack([self.counts[members].sum(axis=0) for members in classes])
        sizes = np.array([len(members) for members in classes])
        both = self._likelihood(sums + self.counts[held])
        return np.asarray(both - self._likelihood(sums) + np.log(sizes / sizes.sum()), np.float64)

    def _likelihood(self, sums: Rows) -> Reals:
        """Of each row of sums the logarithm of how likely one class chooses so.

        It does not know how likely which way is: all chances count alike, as far as Jeffreys'
        prior lets them (Krichevsky and Trofimov, 1981).
        """
        ways = np.diff(np.append(self.first, sums.shape[1]))
        times = np.add.reduceat(sums, self.first, axis=1)
        table = _log_gammas(int((ways + 2 * times).max()) + 2)
        each = (table[1 + 2 * sums] - table[1]).sum(axis=1)
        return np.asarray(each - (table[ways + 2 * times] - table[ways]).sum(axis=1), np.float64)

    def _joined(self, ranks: list[int], lone: bool) -> list[list[int]]:
        """Classes: of single ranks, those two become one that gain most, as long as one gains.

        Where no rank may stay alone (`lone`), it joins the class to which that costs least. How
        likely a division into classes is at all follows from their sizes, as in a Chinese
        restaurant process (Aldous, 1985).
        """
        classes = [[rank] for rank in ranks]
        sums = self.counts[ranks]
        own = self._likelihood(sums)
        gains = np.full((len(ranks), len(ranks)), -np.inf)

        def measure(place: int) -> None:
            size = len(classes[place])
            likely = self._likelihood(sums + sums[place]) - own - own[place]
            sizes = [math.lgamma(size + len(c)) - math.lgamma(size) - math.lgamma(max(len(c), 1))
                     for c in classes]  # fmt: skip
            gains[place] = gains[:, place] = likely + sizes
            gone = [other for other, c in enumerate(classes) if not c or other == place]
            gains[place, gone] = gains[gone, place] = -np.inf

        for place in range(len(ranks)):
            measure(place)
        while True:
            may = np.array([len(c) == 1 and not lone for c in classes])
            open_ = np.where(may[:, None] | (gains > 0), gains, -np.inf)
            if open_.max() == -np.inf:
                return [sorted(members) for members in classes if members]
            a, b = sorted(divmod(int(np.argmax(open_)), len(ranks)))
            classes[a], classes[b] = classes[a] + classes[b], []
            sums[a] += sums[b]
            own[a] = self._likelihood(sums[a : a + 1])[0]
            gains[b] = gains[:, b] = -np.inf
            measure(a)


def _total(logarithms: Reals) -> float:
    """The logarithm of a sum."""
    most = float(logarithms.max())
    return most + math.log(float(np.exp(logarithms - most).sum()))


def _log_gammas(count: int) -> Reals:
    """The logarithm of the gamma function of nothing (as 0), a half, one, one and a half, …"""
    return np.array([0.0, *(math.lgamma(half / 2) for half in range(1, count))])
