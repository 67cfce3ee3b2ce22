"""What lies between the marks of a rank, drawn from chains."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from chakra_et.columns import Rows, no_rows
from chakra_et.errors import ChakraError
from chakra_et.synth.corpus import BEGIN
from chakra_et.synth.graph import Walker
from chakra_et.synth.model import Part

MOST_ROWS: Final = 1 << 26
"""A rank with more rows than this is taken for a mistake."""


class Fills(Protocol):
    """A learner that fills gaps."""

    def draw(self, marks: Rows, steps: Rows, random: np.random.Generator) -> list[Rows]:
        """The tokens behind each mark, up to the next one or the end of its step."""


class Filler:
    """Fills gaps from the chains of a model."""

    def __init__(self, part: Part) -> None:
        self._key = {pair: key for key, pair in enumerate(part.gaps)}
        self._walker = Walker(part.fills)

    def draw(self, marks: Rows, steps: Rows, random: np.random.Generator) -> list[Rows]:
        """The tokens behind each mark. Raises ChakraError where they become too many."""
        after = np.append(marks[1:], BEGIN)
        after[np.append(steps[1:] != steps[:-1], True)] = BEGIN
        found, total = [], 0
        for pair in zip(marks.tolist(), after.tolist(), strict=True):
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
