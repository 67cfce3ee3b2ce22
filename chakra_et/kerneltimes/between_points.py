"""What lies between scattered points: the smallest simplex of near ones that holds a place."""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

_NEAR: Final = 9
"""So many of the nearest points are looked at: at most 126 simplices in up to five dimensions."""
_SMALL: Final = 1e-9
"""Distances below this share of the extent of all points are none."""


class Points:
    """Values at scattered points, linear between them.

    `places` is float64[points, dimensions], no two the same; `values` float64[points]. Points may
    lie on a line or a plane: then only what lies on it is between them.
    """

    def __init__(self, places: Reals, values: Reals) -> None:
        self._values = values
        self._middle = places.mean(0)
        moved = places - self._middle
        self._extent = float(np.abs(moved).max(initial=0)) or 1.0
        _, sizes, axes = np.linalg.svd(moved / self._extent, full_matrices=False)
        # What all points have in common is no direction between them.
        self._axes = axes[sizes > _SMALL * max(len(places), 1)]
        self._places = moved / self._extent @ self._axes.T

    def at(self, place: Reals) -> float | None:
        """The value at a place between near points; None for one that is not."""
        moved = (place - self._middle) / self._extent
        here = moved @ self._axes.T
        if np.abs(moved - here @ self._axes).max(initial=0) > _SMALL:
            return None
        if not len(self._axes):
            return float(self._values[0])
        near = self._nearest(here)
        return self._in_simplex(here, near)

    def nearest(self, place: Reals) -> int:
        """The number of the point that lies nearest; the first of several."""
        moved = (place - self._middle) / self._extent
        return int(self._nearest(moved @ self._axes.T)[0]) if len(self._axes) else 0

    def _nearest(self, here: Reals) -> npt.NDArray[np.int64]:
        return np.argsort(((self._places - here) ** 2).sum(1), kind="stable")[:_NEAR]

    def _in_simplex(self, here: Reals, near: npt.NDArray[np.int64]) -> float | None:
        """Of all simplices of near points that hold a place, the one whose corners lie nearest."""
        corners = len(self._axes) + 1
        if len(near) < corners:
            return None
        chosen = np.array(list(combinations(near.tolist(), corners)))
        # Shares of the corners: they add up to 1, and their mean is the place.
        left = np.concatenate(
            (np.ones((len(chosen), 1, corners)), self._places[chosen].transpose(0, 2, 1)), axis=1
        )
        flat = np.abs(np.linalg.det(left)) < _SMALL**2
        left[flat] = np.eye(corners)
        shares = np.linalg.solve(left, np.append(1.0, here)[:, None])[..., 0]
        holds = ~flat & (shares >= -_SMALL).all(1)
        if not holds.any():
            return None
        distance = ((self._places[chosen] - here) ** 2).sum(2)
        cost = np.where(holds, (np.maximum(shares, 0) * distance).sum(1), np.inf)
        best = int(np.argmin(cost))
        return float(shares[best] @ self._values[chosen[best]])
