"""How the ranks of a set lie: the axes of their grid, found from their groups and messages.

A family of groups that covers all ranks cuts the numbers of ranks at some strides: groups
{0, 1}, {2, 3}, ... at 1 and 2, groups {0, 4}, {1, 5}, ... at 4 and 8. Strides of all families make
one chain, each dividing the next, and two neighbours in the chain bound an axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from chakra_et.build.grid import Grid
from chakra_et.errors import ChakraError
from chakra_et.io.json_text import from_json
from chakra_et.scale.families import Kin, placed_alike, spans
from chakra_et.scale.roles import role_of_family, role_of_messages
from chakra_et.scale.sources import Source

_REMEDY = "Say how ranks lie with --grid, neighbours first: --grid tp2-dp4."

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
"""Axes that nothing names are called by these; 2^26 ranks have no more axes."""


@dataclass(frozen=True)
class Layout:
    """The grid of a set, and for each axis how it is known what it is for."""

    grid: Grid
    evidence: dict[str, str]


def find_layout(
    sources: Sequence[Source], kin: Sequence[Kin], told: Grid | None, *, metadata: bool = True
) -> Layout:
    """The layout that the user told, that the metadata tell, or that groups and messages show.

    Without `metadata`, what they tell of a grid is not looked at.

    Raises ChakraError where groups do not lie on a grid, or on the one that was told.
    """
    count = len(sources)
    if told is not None:
        if told.world_size != count:
            raise ChakraError(
                f"--grid {told} has {told.world_size} ranks, and the set has {count}",
                remedy=_REMEDY,
            )
        _check(kin, told, "--grid")
        return Layout(told, dict.fromkeys(told.axes, "told"))
    grid = _from_metadata(sources) if metadata else None
    if grid is not None and grid.world_size == count:
        _check(kin, grid, "the metadata's grid")
        return Layout(grid, dict.fromkeys(grid.axes, "metadata"))
    return _from_groups(sources, kin)


def _from_metadata(sources: Sequence[Source]) -> Grid | None:
    """The grid that all ranks tell alike."""
    texts = {source.metadata.get("grid") for source in sources}
    text = texts.pop()
    if texts or not isinstance(text, str):
        return None
    try:
        return Grid(from_json(text.encode(), type=dict[str, int]))
    except ValueError:
        return None


def _from_groups(sources: Sequence[Source], kin: Sequence[Kin]) -> Layout:
    count = len(sources)
    whole = [family for family in kin if family.covers(count) and family.size > 1]
    cuts = {1, count}
    for family in whole:
        for stride, length in _strides(family):
            cuts |= {stride, stride * length}
    steps = _message_steps(sources)
    cuts |= {min(steps)} if steps else set()
    chain = sorted(cuts)
    for low, high in pairwise(chain):
        if high % low:
            names = ", ".join(f"{f.name} {list(f.groups[0][1])}" for f in whole)
            raise ChakraError(
                f"the groups do not lie on one grid of {count} ranks: {names}",
                remedy="Only rectangular meshes can grow.",
            )
    plain = Grid(
        {
            letter: high // low
            for letter, (low, high) in zip(_LETTERS, pairwise(chain), strict=False)
        }
    )
    _check(whole, plain, "one grid")
    named = {axis: _role(axis, plain, whole, sources, steps) for axis in plain.axes}
    return _named(plain, named)


def _named(plain: Grid, roles: dict[str, tuple[str, str]]) -> Layout:
    """The grid with axes called by their roles; two of one role stay as they are."""
    names = [name for name, _ in roles.values()]
    axes: dict[str, int] = {}
    evidence: dict[str, str] = {}
    for axis, size in plain.axes.items():
        name, why = roles[axis]
        if not name or names.count(name) > 1:
            why = f"{name}, as another axis: {why}" if name else why
            name = axis
        axes[name] = size
        evidence[name] = why
    return Layout(Grid(axes), evidence)


def _role(
    axis: str, grid: Grid, kin: Sequence[Kin], sources: Sequence[Source], steps: set[int]
) -> tuple[str, str]:
    """What an axis is for, empty where nothing tells, and how that is known."""
    alone = [family for family in kin if spans(family, grid) == [axis]]
    for family in alone:
        found = role_of_family(family, sources, only=len(alone) == 1)
        if found is not None:
            return found
    if role_of_messages(grid, axis, steps):
        return "pp", "messages go along it"
    return "", "nothing tells what it is for" if not alone else "its collectives do not tell"


def _strides(kin: Kin) -> list[tuple[int, int]]:
    """A group as steps along axes: strides and lengths, the smallest first.

    Equal groups that cover a row of ranks without gaps are always of this form.
    """
    found: list[tuple[int, int]] = []
    left = kin.offsets
    while len(left) > 1:
        stride, length = left[1], 1
        while length < len(left) and left[length] == length * stride:
            length += 1
        found.append((stride, length))
        left = left[::length]
    return found


def _message_steps(sources: Sequence[Source]) -> set[int]:
    """How far messages go, in ranks."""
    return {
        abs(call.peer - source.rank)
        for source in sources
        for call in source.calls.calls
        if call.peer is not None
    }


def _check(kin: Sequence[Kin], grid: Grid, what: str) -> None:
    """Raise ChakraError where groups lie otherwise than a grid says."""
    for family in kin:
        if not placed_alike(family, grid):
            raise ChakraError(
                f"the groups of {family.name!r}, such as {list(family.groups[0][1])}, do not lie "
                f"evenly on {what}, {grid}",
                remedy=_REMEDY,
            )


def parse_grid(text: str) -> Grid:
    """The grid that a text such as `tp2-dp4` says. Raises ChakraError for another text."""
    axes: dict[str, Any] = {}
    for part in text.split("-"):
        name = part.rstrip("0123456789")
        size = part[len(name) :]
        if not name.isidentifier() or not size or int(size) < 1 or name in axes:
            raise ChakraError(f"--grid {text!r} is no grid", remedy="Write it like tp2-dp4-pp2.")
        axes[name] = int(size)
    return Grid(axes)
