"""How the ranks of a set lie, what their groups are, and the same for another number of ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from string import ascii_lowercase
from typing import Final

import msgspec
import numpy as np

from chakra_et.build import Workload
from chakra_et.build.grid import Grid
from chakra_et.errors import ChakraError
from chakra_et.io.json_text import from_json
from chakra_et.model import TraceSet

PURPOSES: Final = ("tp", "cp", "ep", "edp", "dp", "pp", "embedding")
"""Descriptions of groups that a model keeps; it calls all others by number."""
WHOLE: Final = "all"
_COPIES: Final = "copy"
_PLAIN: Final = "rank"
_MOST_RANKS: Final = 1 << 20


class Kin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Groups of one purpose: they span the axes `across`, and each a set of places on fixed axes.

    `places` has one list for each kind of group: coordinates on the fixed axes, in their order.
    """

    name: str
    across: tuple[str, ...]
    places: tuple[tuple[tuple[int, ...], ...], ...] = (((),),)

    def along(self, axis: str) -> bool:
        """Whether it has the groups that an axis has anyway."""
        return self.across == (axis,) and all(len(places) == 1 for places in self.places)


class World(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Axes with their sizes, neighbours first; `fixed` ones tell programs apart and cannot grow."""

    axes: dict[str, int]
    fixed: tuple[str, ...]
    kin: tuple[Kin, ...]

    def __post_init__(self) -> None:
        if not self.axes or not all(0 < size <= _MOST_RANKS for size in self.axes.values()):
            raise ValueError("axes need sizes from 1 on")
        grows = set(self.axes) - set(self.fixed)
        if set(self.fixed) - set(self.axes) or any(set(k.across) - grows for k in self.kin):
            raise ValueError("an axis is named that the world does not have")
        names = [k.name for k in self.kin]
        taken = {k.name for k in self.kin if k.name in self.axes and not k.along(k.name)}
        if len(set(names)) < len(names) or taken:
            raise ValueError("two groups or axes have one name")
        for place in (place for k in self.kin for kind in k.places for place in kind):
            sizes = [self.axes[axis] for axis in self.fixed]
            if len(place) != len(sizes) or not all(
                0 <= p < size for p, size in zip(place, sizes, strict=True)
            ):
                raise ValueError("a group lies outside the axes")

    @property
    def roles(self) -> int:
        """How many programs there are: the places on the fixed axes."""
        return math.prod(self.axes[axis] for axis in self.fixed)

    def role(self, grid: Grid, rank: int) -> int:
        """The number of a rank's program."""
        role = 0
        for axis in self.fixed:
            role = role * self.axes[axis] + int(grid.coordinate(axis, rank))
        return role

    def grid(self, ranks: int) -> Grid:
        """The grid of so many ranks: fixed axes stay, the outermost of the others takes the rest.

        Raises ChakraError where the fixed axes do not divide it.
        """
        held = self.roles
        if ranks < 1 or ranks > _MOST_RANKS or ranks % held:
            raise ChakraError(
                f"{ranks:,} ranks cannot be sampled",
                remedy=f"Ask for a multiple of {held}, up to {_MOST_RANKS:,}."
                + (f" {' and '.join(self.fixed)} cannot grow." if held > 1 else ""),
            )
        left, axes = ranks // held, dict(self.axes)
        grows = [axis for axis in axes if axis not in self.fixed]
        for axis in grows[:-1]:
            axes[axis] = math.gcd(left, axes[axis])
            left //= axes[axis]
        axes[grows[-1] if grows else _COPIES] = left
        return Grid(axes)

    def workload(self, ranks: int, facts: dict[str, str]) -> Workload:
        """A workload of so many ranks with the families of groups."""
        grid = self.grid(ranks)
        workload = Workload(grid.axes, facts=facts)
        for kin in self.kin:
            if kin.name not in grid.axes:
                workload.groups(kin.name, ranks=self._members(kin, grid))
        return workload

    def _members(self, kin: Kin, grid: Grid) -> list[list[int]]:
        free = [axis for axis in grid.axes if axis not in (*self.fixed, *kin.across)]
        found = []
        for own in product(*(range(grid.axes[axis]) for axis in free)):
            for places in kin.places:
                group = []
                for along in product(*(range(grid.axes[axis]) for axis in kin.across)):
                    at = {**dict(zip(free, own, strict=True)),
                          **dict(zip(kin.across, along, strict=True))}  # fmt: skip
                    group += [
                        grid.rank(**at, **dict(zip(self.fixed, place, strict=True)))
                        for place in places
                    ]
                found.append(sorted(group))
        return found


GroupKey = tuple[int, ...]
"""The ranks of a group."""


def find_grid(traces: TraceSet, groups: Iterable[GroupKey]) -> Grid:
    """The grid that the metadata tell, or that the strides of groups show, or ranks in a row."""
    size = traces.world_size
    told = {t.metadata.get("grid") for t in traces.values()}
    text = next(iter(told)) if len(told) == 1 else None
    if isinstance(text, str):
        try:
            axes = from_json(text.encode(), type=dict[str, int])
            grid = Grid({name: n for name, n in axes.items() if n > 1 and name.isidentifier()})
            if grid.world_size == size and grid.axes:
                return _public(grid)
        except (ValueError, msgspec.DecodeError):
            pass
    return _of_strides(size, groups)


def _axis(place: int) -> str:
    """The name of an axis that nothing names; a number behind it stays apart."""
    return f"axis_{ascii_lowercase[place]}"


def _public(grid: Grid) -> Grid:
    """The grid with names that a model may hold."""
    return Grid(
        {
            name if name in PURPOSES else _axis(place): size
            for place, (name, size) in enumerate(grid.axes.items())
        }
    )


def _of_strides(size: int, groups: Iterable[GroupKey]) -> Grid:
    cuts = {1, size}
    for ranks in groups:
        steps = set(np.diff(ranks).tolist())
        if len(steps) == 1:
            stride = steps.pop()
            cuts |= {stride, stride * len(ranks)}
    chain = sorted(cut for cut in cuts if 0 < cut <= size)
    if len(chain) < 3 or any(high % low for low, high in pairwise(chain)):
        return Grid({_PLAIN: size})
    return Grid({_axis(i): high // low for i, (low, high) in enumerate(pairwise(chain))})


def kin_of(name: str, groups: Sequence[GroupKey], grid: Grid, fixed: Sequence[str]) -> Kin:
    """The family of some groups. One that spans part of an axis counts as spanning all of it."""
    grows = [axis for axis in grid.axes if axis not in fixed]
    across = [
        axis
        for axis in grows
        if any(len({grid.coordinate(axis, rank) for rank in ranks}) > 1 for ranks in groups)
    ]
    places = {
        tuple(sorted({tuple(grid.coordinate(axis, r) for axis in fixed) for r in ranks}))
        for ranks in groups
    }
    return Kin(name, tuple(across), tuple(sorted(places)))
