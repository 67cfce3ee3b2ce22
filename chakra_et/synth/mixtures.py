"""Sizes that do not repeat: mixtures of log-normal distributions, as many as BIC asks for."""

from __future__ import annotations

import math
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows

_MOST: Final = 4
_ROUNDS: Final = 60
_LEAST: Final = 1e-3
"""The least standard deviation of a logarithm."""
_LARGEST: Final = 1 << 62

Reals = npt.NDArray[np.float64]


class Mixture(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Components of the logarithm of a size: shares, means and standard deviations.

    `low` and `high` bound what is drawn: the least and the greatest size that was seen.
    """

    shares: tuple[float, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    low: int
    high: int

    def __post_init__(self) -> None:
        if not 0 < len(self.shares) == len(self.means) == len(self.deviations) <= _MOST:
            raise ValueError(f"a mixture has 1 to {_MOST} components")
        numbers = (*self.shares, *self.means, *self.deviations)
        if not all(map(math.isfinite, numbers)) or min(*self.shares, *self.deviations) <= 0:
            raise ValueError("a mixture has a number that is none of a distribution")
        if not 0 <= self.low <= self.high <= _LARGEST:
            raise ValueError("a mixture has bounds that no size has")

    def draw(self, count: int, random: np.random.Generator) -> Rows:
        """Sizes."""
        share = np.array(self.shares) / sum(self.shares)
        part = random.choice(len(share), count, p=share)
        log = random.normal(np.array(self.means)[part], np.array(self.deviations)[part])
        drawn = np.exp(np.clip(log, 0, 43)).astype(np.int64)
        return np.asarray(np.clip(drawn, self.low, self.high), np.int64)


def mixture(sizes: Rows) -> Mixture:
    """The mixture with the least BIC of one to four components, by expectation maximisation."""
    log = np.log(np.maximum(sizes, 1).astype(np.float64))
    best: tuple[float, tuple[Reals, Reals, Reals]] | None = None
    for parts in range(1, min(_MOST, len(np.unique(log))) + 1):
        fitted, likelihood = _fitted(log, parts)
        bic = (3 * parts - 1) * math.log(len(log)) - 2 * likelihood
        if best is None or bic < best[0] - 1e-9:
            best = bic, fitted
    assert best is not None
    shares, means, deviations = (np.round(column, 6) for column in best[1])
    return Mixture(
        tuple(np.maximum(shares, 1e-6).tolist()), tuple(means.tolist()),
        tuple(np.maximum(deviations, _LEAST).tolist()), int(sizes.min()), int(sizes.max()),
    )  # fmt: skip


def _fitted(log: Reals, parts: int) -> tuple[tuple[Reals, Reals, Reals], float]:
    """Shares, means and deviations of so many components, and the likelihood of all."""
    means = np.quantile(log, (np.arange(parts) + 0.5) / parts)
    deviations = np.full(parts, max(float(log.std()) / parts, _LEAST))
    shares = np.full(parts, 1 / parts)
    likelihood = -math.inf
    for _ in range(_ROUNDS):
        scaled = (log[:, None] - means) / deviations
        joint = np.log(shares) - np.log(deviations) - 0.5 * scaled**2 - 0.5 * math.log(2 * math.pi)
        total = np.logaddexp.reduce(joint, axis=1)
        weight = np.exp(joint - total[:, None])
        before, likelihood = likelihood, float(total.sum())
        sums = np.maximum(weight.sum(axis=0), 1e-9)
        shares = sums / sums.sum()
        means = weight.T @ log / sums
        spread = (weight * (log[:, None] - means) ** 2).sum(axis=0) / sums
        deviations = np.maximum(np.sqrt(spread), _LEAST)
        if likelihood - before < 1e-6:
            break
    return (shares, means, deviations), likelihood
