"""What becomes of a set when its axes grow: found out before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chakra_et.build import Grid
from chakra_et.build.checks import Checks
from chakra_et.build.places import BuildError
from chakra_et.errors import ChakraError
from chakra_et.scale.collectives import Growth
from chakra_et.scale.degrees import Degree, new_sizes
from chakra_et.scale.families import Kin, find_kin, spans
from chakra_et.scale.grown import GrownWorkload
from chakra_et.scale.layout import Layout, find_layout
from chakra_et.scale.programs import Alike, check_messages, family_names, find_alike, told
from chakra_et.scale.roles import role_called
from chakra_et.scale.sizes import Gathered, Rule, rules_of
from chakra_et.scale.sources import Source, read_sources

Step = Callable[[int, int], None]


@dataclass
class ScalePlan:
    """What is to be written, and how it was found: nothing is written yet."""

    layout: Layout
    kin: list[Kin]
    sizes: dict[str, int]
    growth: dict[str, Growth]
    workload: GrownWorkload
    alike: list[Alike]
    sources: list[Source]

    @property
    def widens(self) -> bool:
        """Whether tensor-parallel ranks are added, each with its own part: a wider model."""
        return any(role_called(axis) == "tp" for axis in self.sizes)


def plan_scale(
    path: str | Path,
    degrees: Mapping[str, Degree],
    *,
    grid: Grid | None = None,
    gathered: Gathered | None = None,
    step: Step = lambda _done, _of: None,
) -> ScalePlan:
    """Find out how the ranks of a set lie, and what becomes of them when axes grow.

    `degrees` has the ranks of `dp` and `tp` that are wanted, `grid` says how the ranks lie where
    that is known, `gathered` what all-gathers of unknown purpose keep. Raises ChakraError where the
    set cannot be read, or its pattern is not recognised.
    """
    sources = read_sources(Path(path), step)
    try:
        return plan_of(sources, degrees, grid=grid, gathered=gathered)
    except ChakraError as error:
        if error.path is None:
            error = ChakraError(error.problem, path=path, place=error.place, remedy=error.remedy)
        raise error from None


def plan_of(
    sources: list[Source],
    degrees: Mapping[str, Degree],
    *,
    grid: Grid | None = None,
    gathered: Gathered | None = None,
    fewer: bool = False,
) -> ScalePlan:
    """The plan of ranks that are read already; with `fewer`, axes may also shrink."""
    kin = find_kin(sources)
    layout = find_layout(sources, kin, grid)
    sizes = new_sizes(layout, degrees, fewer=fewer)
    growth = _growth(kin, layout.grid, sizes, gathered)
    alike = find_alike(sources, family_names(kin), layout.grid)
    for axis in sizes:
        check_messages(alike, layout.grid, axis)
    _check_old(sources, kin, layout.grid, alike)
    workload = GrownWorkload(sources, kin, layout.grid, sizes)
    return ScalePlan(layout, kin, sizes, growth, workload, alike, sources)


def _growth(
    kin: Sequence[Kin], grid: Grid, sizes: Mapping[str, int], gathered: Gathered | None
) -> dict[str, Growth]:
    """How each family grows that spans an axis which does."""
    found: dict[str, Growth] = {}
    for family in kin:
        old, rules = family.size, dict[int, Rule]()
        new = old
        for axis, size in sizes.items():
            if axis in spans(family, grid):
                rules |= rules_of(family, axis, gathered)
                new = new // grid.axes[axis] * size
        if new != old:
            found[family.name] = Growth(old, new, rules)
    return found


def _check_old(
    sources: Sequence[Source], kin: Sequence[Kin], grid: Grid, alike: list[Alike]
) -> None:
    """Raise ChakraError where the ranks of the set do not fit together as they are."""
    checks = Checks(GrownWorkload(sources, kin, grid, {}))
    for program in alike:
        calls = told(program.source.calls, program.operations, str(program.source.path))
        checks.add(calls, np.array(program.ranks, np.int64))
    try:
        checks.finish()
    except BuildError as error:
        raise ChakraError(
            f"the set does not fit together as it is: {error.problem}",
            remedy="See `chakra validate`, and mend it first.",
        ) from error
