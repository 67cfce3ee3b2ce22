"""Markov chains of any order over keyed sequences: counts, likelihood, and the choice of orders.

A sequence has a key, which is part of every context, so that chains of different keys do not mix.
Probabilities of unseen contexts fall back to shorter ones (Witten and Bell, 1991), at last to the
frequency of the token anywhere, and to one part of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows, count_up, turns_of

MOST_ORDER: Final = 24
EXACT_KIND, TURN_KIND, MASTER_KIND = -3, -2, -1
"""The kinds of sequences of tokens that stand for one mark, of turns, and of other marks."""
_MOST_VISITS: Final = 1 << 10
LEAST_ORDER: Final = 1
"""Of master sequences: without an order, phases would follow each other at random."""
_FOLDS: Final = 5


@dataclass
class Sequences:
    """Sequences one after the other: `first[s]` to `first[s + 1]` are the tokens of s.

    `kind` tells which order a sequence is modelled with, `unit` which step of which rank it is of.
    """

    tokens: Rows
    first: Rows
    key: Rows
    kind: Rows
    unit: Rows

    def __len__(self) -> int:
        return len(self.key)

    @property
    def lengths(self) -> Rows:
        """How many tokens each has."""
        return np.diff(self.first)


@dataclass
class Events:
    """Every token of every sequence, and its end: what is predicted."""

    symbol: Rows
    sequence: Rows
    place: Rows
    end: int

    @classmethod
    def of(cls, sequences: Sequences) -> Events:
        """The events of sequences."""
        end = int(sequences.tokens.max(initial=-1)) + 1
        length = sequences.lengths + 1
        sequence = np.repeat(np.arange(len(sequences)), length)
        place = count_up(length)
        symbol = np.full(len(sequence), end, np.int64)
        symbol[place < sequences.lengths[sequence]] = sequences.tokens
        return cls(symbol, sequence, place, end)


def codes(*columns: Rows) -> Rows:
    """One code for each distinct row of some columns of numbers from 0 on."""
    code = columns[0]
    for column in columns[1:]:
        code = code * (int(column.max(initial=0)) + 1) + column
        code = np.unique(code, return_inverse=True)[1].reshape(-1)
    return code


class Contexts:
    """Codes of the contexts of all events, of one order after the other."""

    def __init__(self, sequences: Sequences, events: Events) -> None:
        self._events = events
        self._key = sequences.key[events.sequence]
        self._begins = events.place == 0
        self.code = self._key

    def longer(self) -> Rows:
        """The codes for one token more; at the begin of a sequence, that it begins."""
        before = np.append(0, self.code[:-1]) + 1
        symbol = np.append(0, self._events.symbol[:-1]) + 1
        before = np.where(self._begins, self._key + int(before.max(initial=0)) + 1, before)
        self.code = codes(before, np.where(self._begins, 0, symbol))
        return self.code


def likelihoods(
    sequences: Sequences, trained: Sequence[Mask], orders: int = MOST_ORDER
) -> list[tuple[Mask, npt.NDArray[np.float64]]]:
    """For each of `trained`, bits that events of other sequences cost under chains of these.

    Returns which events are outside, and bits[2, orders + 2, events outside]: of the first, row 0
    is the frequency of tokens alone, row k + 1 order k; of the second, contexts count visits.
    """
    events = Events.of(sequences)
    learned = [inside[events.sequence] for inside in trained]
    shorter = [np.full(len(own), 1 / (len(np.unique(events.symbol[own])) + 1)) for own in learned]
    found: list[list[npt.NDArray[np.float64]]] = [[] for _ in learned]
    for alone, counting in _followed(sequences, events, orders):
        for place, own in enumerate(learned):
            plain = shorter[place] = alone.blended(own, shorter[place])
            counted = plain if counting is None else counting.blended(own, plain)
            found[place].append(np.stack([plain[~own], counted[~own]]))
    return [
        (~own, -np.log2(np.stack(rows, axis=1))) for own, rows in zip(learned, found, strict=True)
    ]


def _followed(
    sequences: Sequences, events: Events, orders: int
) -> Iterator[tuple[_Followed, _Followed | None]]:
    """What follows no context, then those of each order, alone and with the count of visits."""
    yield _Followed(np.zeros_like(events.symbol), events.symbol), None
    contexts = Contexts(sequences, events)
    for order in range(orders + 1):
        context = contexts.longer() if order else contexts.code
        counted = codes(context, visits(events, context))
        yield _Followed(context, events.symbol), _Followed(counted, events.symbol)


class _Followed:
    """The context of each event, and codes of the pairs of these and what follows them."""

    def __init__(self, context: Rows, symbol: Rows) -> None:
        self._context = context
        self._pair = codes(context, symbol)
        self._of_pair = np.zeros(int(self._pair.max(initial=0)) + 1, np.int64)
        self._of_pair[self._pair] = context

    def blended(self, learned: Mask, shorter: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Probabilities of all events by counts of the learned ones, and by shorter contexts."""
        context = self._context
        seen = np.bincount(context[learned], minlength=int(context.max(initial=0)) + 1)
        times = np.bincount(self._pair[learned], minlength=len(self._of_pair))
        followers = np.bincount(self._of_pair[times > 0], minlength=len(seen))
        total = seen[context] + followers[context]
        blended = (times[self._pair] + followers[context] * shorter) / np.maximum(total, 1)
        return np.where(total > 0, blended, shorter)


def visits(events: Events, context: Rows) -> Rows:
    """How often each context was met before in its sequence."""
    return np.minimum(turns_of(context, events.sequence), _MOST_VISITS)


@dataclass(frozen=True)
class Order:
    """How many tokens a context has, and whether it counts how often it was met in its sequence.

    Who counts knows how often a loop, such as one over layers, has run.
    """

    tokens: int
    counts: bool = False


@dataclass
class Choice:
    """The order for each kind of sequence, and what held-out sequences cost in bits.

    `bits` is by order, from 0 on, of all kinds together, without counting; `chosen` with the orders
    chosen.
    """

    orders: dict[int, Order]
    bits: list[float]
    chosen: float


def folds(units: Rows) -> Rows:
    """The part, of up to five, in which each unit is held out."""
    known = np.unique(units)
    return np.searchsorted(known, units) % min(_FOLDS, max(len(known), 1))


def _held_out(sequences: Sequences) -> list[Mask]:
    """For each part, the sequences that are left when it is held out."""
    fold = folds(sequences.unit)
    return [fold != part for part in np.unique(fold).tolist()]


def choose_orders(sequences: Sequences) -> Choice:
    """The order of each kind under which held-out units cost least."""
    longest = int(min(MOST_ORDER, sequences.lengths.max(initial=0)))
    found = likelihoods(sequences, _held_out(sequences), longest)
    kinds = sequences.kind[Events.of(sequences).sequence]
    bits = np.concatenate([of_fold for _, of_fold in found], axis=2)[:, 1:]
    kind = np.concatenate([kinds[test] for test, _ in found])
    orders, chosen = {}, 0.0
    for one in np.unique(sequences.kind).tolist():
        sums = np.round(bits[:, :, kind == one].sum(axis=2), 6)
        least = min(LEAST_ORDER if one in (TURN_KIND, MASTER_KIND) else 0, longest)
        best = np.unravel_index(np.argmin(sums[:, least:]), sums[:, least:].shape)
        orders[one] = Order(least + int(best[1]), bool(best[0]))
        chosen += float(sums[best[0], orders[one].tokens])
    return Choice(orders, bits[0].sum(axis=1).tolist(), chosen)


def by_frequency(sequences: Sequences) -> float:
    """Bits of held-out sequences under the frequencies of tokens alone."""
    found = likelihoods(sequences, _held_out(sequences), -1)
    return sum(float(bits[0].sum()) for _, bits in found)
