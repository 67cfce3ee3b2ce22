"""What lies between the marks of a rank, drawn from chains or from a network."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from chakra_et.columns import Rows, no_rows
from chakra_et.errors import ChakraError
from chakra_et.synth.corpus import BEGIN
from chakra_et.synth.graph import Walker
from chakra_et.synth.model import Part
from chakra_et.synth.network import Drawer

MOST_ROWS: Final = 1 << 26
"""A rank with more rows than this is taken for a mistake."""


class Fills(Protocol):
    """A learner that fills gaps."""

    def draw(self, marks: Rows, steps: Rows, random: np.random.Generator) -> list[Rows]:
        """The tokens behind each mark, up to the next one or the end of its step."""


class NeuralFiller:
    """Fills gaps from the network of a model, all of a rank at once."""

    def __init__(self, part: Part) -> None:
        self._alphabet = part.alphabet
        self._drawer = network_drawer(part)

    def draw(self, marks: Rows, steps: Rows, random: np.random.Generator) -> list[Rows]:
        """The tokens behind each mark."""
        pairs = zip(marks.tolist(), _next_marks(marks, steps).tolist(), strict=True)
        starts = [self._alphabet.start(2, 0, pair) for pair in pairs]
        return self._drawer.draw(2, starts, random)


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


class Filler:
    """Fills gaps from the chains of a model."""

    def __init__(self, part: Part) -> None:
        self._key = {pair: key for key, pair in enumerate(part.gaps)}
        self._walker = Walker(part.fills)

    def draw(self, marks: Rows, steps: Rows, random: np.random.Generator) -> list[Rows]:
        """The tokens behind each mark. Raises ChakraError where they become too many."""
        found, total = [], 0
        for pair in zip(marks.tolist(), _next_marks(marks, steps).tolist(), strict=True):
            key = self._key.get(pair, -1)
            known = self._walker.knows(key)
            found.append(self._walker.walk(key, random) if known else no_rows())
            total += len(found[-1])
            if total > MOST_ROWS:
                raise ChakraError(
                    f"a rank would have more than {MOST_ROWS:,} nodes",
                    remedy="Ask for fewer steps.",
                )
        return found
