"""Fitting constants to measured steps.

For a given critical path, a step takes a sum of times that are linear in the constants (in the
inverse, for an efficiency). So a fit repeats: run every graph, take its critical path, and find the
constants for which these paths take what was measured, by least squares of relative errors. Large
errors weigh less (iteratively reweighted, towards least absolute errors), and constants that the
measurements do not tell stay where they were (ridge).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.errors import ChakraError
from chakra_et.estimate.constants import FITTED, Constants
from chakra_et.estimate.costs import Costs
from chakra_et.estimate.estimate import Case
from chakra_et.estimate.relative import least_relative

Vector = npt.NDArray[np.float64]

ROUNDS: Final = 8
_STEP: Final = 0.6
_LEAST: Final = 0.02
"""No constant falls below this share of where it was."""


@dataclass(frozen=True)
class Measured:
    """A set, and how long its step took."""

    case: Case
    step_ns: float


def fit(measured: Sequence[Measured], start: Constants, names: Sequence[str] = FITTED) -> Constants:
    """The constants that fit best, from `start` on. Raises ChakraError without measurements."""
    if not measured:
        raise ChakraError("nothing was measured", remedy="Give steps with their times.")
    linear = [_Linear(one.case, start, names) for one in measured]
    truth = np.array([one.step_ns for one in measured])
    scale = np.ones(len(names))
    best, least = scale, np.inf
    least_scale = np.array([_least(start, name) for name in names])
    for round_ in range(ROUNDS):
        rows = [one.run(scale) for one in linear]
        base, slopes = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
        error = float(np.abs((base + slopes @ (scale - 1)) / truth - 1).mean())
        if error < least:
            best, least = scale, error
        solved = least_relative(base / truth, slopes / truth[:, None], scale, least_scale)
        scale = scale + (solved - scale) * (1 if round_ < ROUNDS // 3 else _STEP)
    return scaled(start, names, best)


def scaled(start: Constants, names: Sequence[str], scale: Vector) -> Constants:
    """Constants times factors; efficiencies are divided by them."""
    values = [
        getattr(start, name) / factor
        if name.endswith("efficiency")
        else getattr(start, name) * factor
        for name, factor in zip(names, scale.tolist(), strict=True)
    ]
    return start.changed(tuple(names), values)


class _Linear:
    """The costs of a case as a linear function of the factors of its constants."""

    def __init__(self, case: Case, start: Constants, names: Sequence[str]) -> None:
        self._case = case
        self._base = case.costs(start)
        self._slopes = []
        for place in range(len(names)):
            factors = np.ones(len(names))
            factors[place] = 2.0
            other = case.costs(scaled(start, names, factors))
            self._slopes.append(
                Costs(other.device - self._base.device, other.host - self._base.host)
            )

    def run(self, scale: Vector) -> tuple[float, Vector]:
        """What the critical path takes with factors of 1, and how much more for each factor."""
        costs = Costs(self._base.device.copy(), self._base.host.copy())
        for slope, factor in zip(self._slopes, scale.tolist(), strict=True):
            costs.device += slope.device * (factor - 1)
            costs.host += slope.host * (factor - 1)
        done = self._case.run(costs)
        base, *slopes = (
            float(done.device @ one.device.sum(1) + done.host @ one.host)
            for one in (self._base, *self._slopes)
        )
        return base, np.array(slopes)


def _least(start: Constants, name: str) -> float:
    """The least factor of a constant; an efficiency, which it divides, stays below 1."""
    return float(getattr(start, name)) if name.endswith("efficiency") else _LEAST
