"""Distributions of times: clusters of sorted values, fine at both ends, with exact means."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows

CLUSTERS: Final = 48
"""At most so many clusters hold the values of one state."""
_LARGEST: Final = 1 << 62


class Sketch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Clusters in ascending order: how many values, their mean, and how far they reach around it.

    The mean of all values is exact; single values, as the rare long ones are, stay what they are.
    """

    counts: tuple[int, ...]
    means: tuple[int, ...]
    reaches: tuple[int, ...]

    def __post_init__(self) -> None:
        if not len(self.counts) == len(self.means) == len(self.reaches) <= CLUSTERS:
            raise ValueError(f"a sketch has up to {CLUSTERS} clusters, each with three numbers")
        if any(c < 1 for c in self.counts) or any(
            not 0 <= r <= m <= _LARGEST for m, r in zip(self.means, self.reaches, strict=True)
        ):
            raise ValueError("a sketch has a number that no time is")

    @property
    def mean(self) -> float:
        """The mean of all values; 0 without any."""
        total = sum(self.counts)
        return float(np.dot(self.counts, self.means)) / total if total else 0.0


def sketch(values: Rows) -> Sketch:
    """The sketch of some values, as t-digests cut them (Dunning, 2019): thin clusters at the ends.

    A cluster reaches as far around its mean as its nearer end, so that its values may be drawn
    evenly without a change of the mean.
    """
    ordered = np.sort(values)
    count = len(ordered)
    if count == 0:
        return Sketch((), (), ())
    share = (np.arange(count) + 0.5) / count
    scale = np.arcsin(2 * share - 1) / np.pi + 0.5
    cluster = np.unique((scale * CLUSTERS).astype(np.int64).clip(0, CLUSTERS - 1),
                        return_inverse=True)[1].reshape(-1)  # fmt: skip
    first = np.flatnonzero(np.append(True, np.diff(cluster) > 0))
    counts = np.diff(np.append(first, count))
    means = np.add.reduceat(ordered.astype(np.float64), first) / counts
    low, high = ordered[first], ordered[first + counts - 1]
    centre = np.clip(np.rint(means).astype(np.int64), low, high)
    reach = np.minimum(centre - low, high - centre)
    return Sketch(tuple(counts.tolist()), tuple(centre.tolist()), tuple(reach.tolist()))


class SketchTable:
    """Many sketches side by side, to draw from all at once."""

    def __init__(self, sketches: list[Sketch], grain: int = 1) -> None:
        self._grain = grain
        self._size = np.array([len(s.counts) for s in sketches], np.int64)
        width = max([1, *self._size.tolist()])
        self._cumulative = np.ones((len(sketches), width))
        self._mean = np.zeros((len(sketches), width), np.int64)
        self._reach = np.zeros((len(sketches), width), np.int64)
        for row, s in enumerate(sketches):
            n = len(s.counts)
            if n:
                self._cumulative[row, :n] = np.cumsum(s.counts) / sum(s.counts)
                self._mean[row, :n], self._reach[row, :n] = s.means, s.reaches
        self._keys = (np.arange(len(sketches))[:, None] + self._cumulative).ravel()
        self._width = width

    def draw(self, codes: Rows, random: np.random.Generator) -> Rows:
        """A value from the sketch of each code; 0 from one without values.

        All are multiples of the grain, if what was learned is. Of one code, draws are spread evenly
        over its distribution: their sum varies less than that of independent ones, and no value is
        more or less likely.
        """
        share = spread(codes, len(self._size), random)
        at = np.searchsorted(self._keys, codes + share, side="right")
        at = np.minimum(at, (codes + 1) * self._width - 1)
        jitter = random.uniform(-1, 1, len(codes)) * self._reach.ravel()[at]
        drawn = self._mean.ravel()[at] + np.rint(jitter).astype(np.int64)
        # Down or up to the grain at random, so that the mean stays.
        drawn += random.integers(0, self._grain, len(codes))
        return np.asarray(drawn // self._grain * self._grain)


def spread(codes: Rows, kinds: int, random: np.random.Generator) -> npt.NDArray[np.float64]:
    """Numbers from 0 to below 1: those of one code are one in each of as many equal parts."""
    count = np.bincount(codes, minlength=kinds)
    order = np.lexsort((random.random(len(codes)), codes))
    first = np.cumsum(count) - count
    place = np.empty(len(codes), np.int64)
    place[order] = np.arange(len(codes)) - np.repeat(first, count)
    share = (place + random.random(len(codes))) / np.maximum(count[codes], 1)
    return np.minimum(share, np.nextafter(1.0, 0.0))
