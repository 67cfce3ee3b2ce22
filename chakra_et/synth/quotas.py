"""How ranks of a set share what they choose from: as many take each way as its share asks for.

Drawn for each rank alone, half of a set could get by chance what one rank in four has. So the ranks
of a class take their numbers for one choice from equal parts of what is there, each part once, in
an order that differs from choice to choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from chakra_et.columns import Rows

_MIX: Final = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)
_BITS: Final = (1 << 64) - 1


@dataclass(frozen=True)
class Quota:
    """A rank's part in the choices of its class: it has a place among so many `ranks`.

    `number` is that of the class, 0 for none. What is left open is drawn from `random`.
    """

    number: int
    place: int
    ranks: int
    seed: int
    random: np.random.Generator

    def draw(self, *choice: int) -> float:
        """A number from 0 to below 1 for a choice; those of all ranks are spread evenly."""
        mixed = _mixed(self.seed, self.number, *choice)
        step, shift = mixed % self.ranks, (mixed >> 32) % self.ranks
        while math.gcd(step, self.ranks) != 1:
            step += 1
        part = (step * self.place + shift) % self.ranks
        return min((part + self.random.random()) / self.ranks, math.nextafter(1.0, 0.0))


def _mixed(*numbers: int) -> int:
    """A number that looks like any other one (the finaliser of splitmix64, Steele et al., 2014)."""
    mixed = 0
    for number in numbers:
        mixed = ((mixed ^ number) + _MIX[0]) & _BITS
        mixed = ((mixed ^ mixed >> 30) * _MIX[1]) & _BITS
        mixed ^= mixed >> 27
    return mixed


def places_in_classes(
    sizes: Sequence[int], ranks: int, random: np.random.Generator
) -> tuple[Rows, Rows, Rows]:
    """For each of some ranks the place of its class in `sizes`, its place there, and how many are.

    Each class has its share of them, and nearly so of any ranks that follow each other.
    """
    shares = np.cumsum(sizes) / sum(sizes)
    at = (_apart(ranks, random) + random.random()) / ranks
    of = np.minimum(np.searchsorted(shares, at, side="right"), len(sizes) - 1)
    # Places, too, are far apart for ranks that follow each other: so are then their choices.
    order = np.argsort(at)
    counts = np.bincount(of, minlength=len(sizes))
    place = np.empty(ranks, np.int64)
    place[order] = np.arange(ranks) - np.repeat(np.cumsum(counts) - counts, counts)
    return of, place, counts[of]


def _apart(count: int, random: np.random.Generator) -> Rows:
    """The numbers from 0 on, those that follow each other far apart, from any one on.

    They are in the order of van der Corput's sequence (1935).
    """
    value, bit = np.zeros(count), 0.5
    number = np.arange(count)
    while number.any():
        value += (number & 1) * bit
        number, bit = number >> 1, bit / 2
    place = np.empty(count, np.int64)
    place[np.argsort(value)] = np.arange(count)
    return (place + int(random.integers(count))) % count
