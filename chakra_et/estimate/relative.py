"""Least relative errors of sums that are linear in factors."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

RIDGE: Final = 0.001
"""Weight of staying: a constant that doubles counts as much as an error of 0.03 in each case."""
_SOFT: Final = 0.02


def least_relative(
    base: Vector, slopes: Vector, scale: Vector, least: Vector, importance: Vector | float = 1.0
) -> Vector:
    """The factors for which base + slopes (factors - 1) comes closest to 1 everywhere.

    `base` float64[cases] and `slopes` float64[cases, factors] are shares of what was measured.
    Large errors weigh less: squares are weighted anew, towards least absolute errors. What the
    cases do not tell stays near 1 (ridge); no factor falls below its `least`. `importance` says how
    much each case counts.
    """
    count = len(base)
    for _ in range(6):
        error = base + slopes @ (scale - 1) - 1
        weight = importance / (np.abs(error) + _SOFT)
        stay = RIDGE * count * weight.mean()
        left = (slopes * weight[:, None]).T @ slopes + stay * np.eye(len(scale))
        right = (slopes * weight[:, None]).T @ (1 - base)
        scale = np.maximum(1 + np.linalg.solve(left, right), least)
    return scale
