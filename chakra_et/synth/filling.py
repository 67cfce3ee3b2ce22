"""What lies between the marks of a rank, drawn from chains or from a network."""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

import numpy as np

from chakra_et.columns import Rows, no_rows
from chakra_et.errors import ChakraError
from chakra_et.synth.corpus import BEGIN
from chakra_et.synth.graph import Walker, fall
from chakra_et.synth.model import Part
from chakra_et.synth.network import Drawer
from chakra_et.synth.quotas import Quota

_MARK: Final = -2
"""In the place of a state: a choice among the tokens of a mark."""
MOST_ROWS: Final = 1 << 26
"""A rank with more rows than this is taken for a mistake."""


class Fills(Protocol):
    """A learner that fills gaps."""

    def draw(self, marks: Rows, tokens: Rows, steps: Rows, quota: Quota) -> list[Rows]:
        """The tokens behind each mark of a rank, up to the next one or the end of its step.

        `tokens` are those of the marks themselves.
        """


class NeuralFiller:
    """Fills gaps from the network of a model, all of a rank at once."""

    def __init__(self, part: Part) -> None:
        self._alphabet = part.alphabet
        self._drawer = network_drawer(part)

    def draw(self, marks: Rows, tokens: Rows, steps: Rows, quota: Quota) -> list[Rows]:
        """The tokens behind each mark."""
        pairs = zip(marks.tolist(), _next_marks(marks, steps).tolist(), strict=True)
        starts = [self._alphabet.start(2, 0, pair) for pair in pairs]
        return self._drawer.draw(2, starts, quota.random)


class NeuralMasters:
    """Draws turns and marks from the network of a model."""

    def __init__(self, part: Part) -> None:
        self._roles, self._spans = part.world.roles, part.spans
        self._alphabet = part.alphabet
        self._drawer = network_drawer(part)

    def knows(self, key: int) -> bool:
        """Whether there is such a key."""
        return 0 <= key < self._roles + len(self._spans)

    def walk(self, key: int, random: np.random.Generator) -> Rows:
        """A sequence of a key."""
        turns = key < self._roles
        pair = (BEGIN, BEGIN) if turns else self._spans[key - self._roles]
        start = self._alphabet.start(0 if turns else 1, key, pair)
        return self._drawer.draw(0 if turns else 1, [start], random)[0]


def network_drawer(part: Part) -> Drawer:
    """What draws from the network of a part; the lengths that were learned bound it."""
    assert part.network is not None
    roles = part.world.roles
    lengths = part.masters.lengths
    longest = [
        max((n for own in found for n in own), default=0)
        for found in (lengths[:roles], lengths[roles:], part.fills.lengths)
    ]
    return Drawer(part.network, part.alphabet, longest)


def _next_marks(marks: Rows, steps: Rows) -> Rows:
    """The mark behind each, BEGIN at the end of a step."""
    after = np.append(marks[1:], BEGIN)
    after[np.append(steps[1:] != steps[:-1], True)] = BEGIN
    return after


class MarkTokens:
    """Draws the tokens of a rank's marks: where one has several, those of its class."""

    def __init__(self, part: Part) -> None:
        self._token = np.array([token for _, token in part.marks], np.int64)
        self._exact = {told.mark: told for told in part.exact}

    def draw(self, marks: Rows, quota: Quota) -> Rows:
        """The token of each mark."""
        tokens = self._token[marks]
        for place in np.flatnonzero(np.isin(marks, list(self._exact))).tolist():
            told = self._exact[int(marks[place])]
            counts = np.array(told.counts[quota.number])
            if quota.number == 0 or not counts.any():
                counts = np.array(told.counts).sum(axis=0)
            tokens[place] = told.tokens[fall(counts, quota.draw(place, _MARK))]
        return tokens


class Filler:
    """Fills gaps from the chains of a model: those of a rank's class, else those of all."""

    def __init__(self, part: Part) -> None:
        self._key = {gap: key for key, gap in enumerate(part.gaps)}
        self._all = Walker(part.fills)
        of_classes = range(1, len(part.fills.counts))
        self._walkers = [self._all, *(Walker(part.fills, number) for number in of_classes)]

    def draw(self, marks: Rows, tokens: Rows, steps: Rows, quota: Quota) -> list[Rows]:
        """The tokens behind each mark. Raises ChakraError where they become too many."""
        found, total = [], 0
        after = _next_marks(marks, steps).tolist()
        gaps = zip(marks.tolist(), after, tokens.tolist(), strict=True)
        for place, gap in enumerate(gaps):
            key, walker = self._key.get(gap, -1), self._walkers[quota.number]
            if not walker.knows(key):
                walker = self._all
            known = walker.knows(key)
            found.append(walker.walk(key, partial(quota.draw, place)) if known else no_rows())
            total += len(found[-1])
            if total > MOST_ROWS:
                raise ChakraError(
                    f"a rank would have more than {MOST_ROWS:,} nodes",
                    remedy="Ask for fewer steps.",
                )
        return found
