"""Ranks on a grid: coordinates, and the groups and peers that follow from them.

Every group of a parallel program is "all ranks that agree in all coordinates but some": those of
one axis or of several. Growing an axis, renumbering its peers and enlarging its groups are the same
algebra with another size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Ranks = npt.NDArray[np.int64]


class Grid:
    """`axes` gives the size of each axis; along the first one ranks are neighbours.

    `Grid({"tp": 2, "dp": 4})` has 8 ranks: rank = tp + 2 * dp. Raises ValueError for a size
    below 1.
    """

    def __init__(self, axes: Mapping[str, int]) -> None:
        self.axes = dict(axes)
        for name, size in self.axes.items():
            if size < 1:
                raise ValueError(f"axis {name!r} has {size} ranks; give 1 or more")
        self.world_size = math.prod(self.axes.values())
        self._strides = dict(zip(self.axes, self._stride_of_each(), strict=True))

    def __repr__(self) -> str:
        return f"<Grid {self}>"

    def __str__(self) -> str:
        """Sizes in order, the fastest axis first: `tp2-dp4`."""
        return "-".join(f"{name}{size}" for name, size in self.axes.items())

    def _stride_of_each(self) -> list[int]:
        strides, stride = [], 1
        for size in self.axes.values():
            strides.append(stride)
            stride *= size
        return strides

    def coordinate(self, axis: str, ranks: Any) -> Any:
        """Where ranks lie on an axis: an int for an int, int64[n] for an array of n."""
        return ranks // self._strides[axis] % self.axes[axis]

    def coordinates(self, rank: int) -> dict[str, int]:
        """Where a rank lies on every axis."""
        return {axis: self.coordinate(axis, rank) for axis in self.axes}

    def rank(self, **coordinates: int) -> int:
        """The rank at some coordinates; those not given are 0."""
        return sum(self._strides[axis] * place for axis, place in coordinates.items())

    def moved(self, ranks: Any, offsets: Mapping[str, int]) -> Any:
        """Where `offsets` on axes lead from ranks; behind the last place comes the first."""
        for axis, offset in offsets.items():
            here = self.coordinate(axis, ranks)
            there = (here + offset) % self.axes[axis]
            ranks = ranks + (there - here) * self._strides[axis]
        return ranks

    def placed(self, ranks: Any, places: Mapping[str, int]) -> Any:
        """The ranks at the same coordinates, but for those of `places`."""
        for axis, place in places.items():
            ranks = ranks + (place - self.coordinate(axis, ranks)) * self._strides[axis]
        return ranks

    def groups(self, axes: Iterable[str]) -> Ranks:
        """All groups of ranks that differ on `axes` alone: int64[groups, ranks of a group].

        The first axis of the grid varies fastest, within a group and from group to group.
        """
        inside = [axis for axis in self.axes if axis in set(axes)]
        outside = [axis for axis in self.axes if axis not in inside]
        return self._offsets(outside)[:, None] + self._offsets(inside)[None, :]

    def _offsets(self, axes: list[str]) -> Ranks:
        offsets = np.zeros(1, np.int64)
        for axis in axes:
            along = np.arange(self.axes[axis], dtype=np.int64) * self._strides[axis]
            offsets = (along[:, None] + offsets[None, :]).ravel()
        return offsets

    def alike(self, rank: int, axes: Iterable[str]) -> Ranks:
        """The ranks with the coordinates of `rank` on `axes`, in ascending order."""
        ranks = np.arange(self.world_size, dtype=np.int64)
        for axis in axes:
            ranks = ranks[self.coordinate(axis, ranks) == self.coordinate(axis, rank)]
        return ranks
