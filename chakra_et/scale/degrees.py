"""How many ranks the axes of a set are to have."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from chakra_et.build import Grid
from chakra_et.errors import ChakraError
from chakra_et.scale.layout import Layout
from chakra_et.scale.roles import role_called
from chakra_et.scale.sizes import refuse_axis

LARGEST_WORLD: Final = 1 << 20
"""Most ranks of a set: each file lists the members of its groups."""
_DEGREE: Final = re.compile(r"(?:(\d+)->)?(\d+)")


@dataclass(frozen=True)
class Degree:
    """How many ranks an axis is to have; `old` is what the user believes that it has."""

    new: int
    old: int | None = None


def parse_degree(axis: str, text: str) -> Degree:
    """The degree that `4->512` or `512` says. Raises ChakraError for another text."""
    match = _DEGREE.fullmatch(text.replace(" ", ""))
    if match is None or int(match[2]) < 1:
        raise ChakraError(
            f"--{axis} {text!r} is no degree",
            remedy="Write 512, or '4->512' in quotes: the shell takes a bare > for itself.",
        )
    return Degree(int(match[2]), None if match[1] is None else int(match[1]))


def new_sizes(
    layout: Layout, degrees: Mapping[str, Degree], *, fewer: bool = False
) -> dict[str, int]:
    """The new sizes of the grid's axes; with `fewer` they may be smaller.

    Raises ChakraError for degrees that it cannot have.
    """
    sizes: dict[str, int] = {}
    grid = layout.grid
    if grid.world_size == 1:
        raise ChakraError(
            "this is a set of one rank: nothing tells what more ranks would communicate",
            remedy="Record or generate two at least.",
        )
    for name, degree in degrees.items():
        axis = axis_of(name, grid)
        if axis is None:
            raise _no_axis(name, layout)
        inner = inner_of(axis, grid)
        refuse_axis(axis)
        sizes[axis] = _size(name, degree, grid.axes[axis], inner, fewer)
    ranks = math.prod({**grid.axes, **sizes}.values())
    if ranks > LARGEST_WORLD:
        raise ChakraError(
            f"that would be {ranks:,} ranks", remedy=f"{LARGEST_WORLD:,} are the most there can be."
        )
    return sizes


def axis_of(role: str, grid: Grid) -> str | None:
    """The axis of a role: with experts, replicas lie on `edp`. None where there is no such axis."""
    called = {role_called(axis) or axis: axis for axis in grid.axes}
    return called.get(role, called.get("edp") if role == "dp" else None)


def inner_of(axis: str, grid: Grid) -> int:
    """How many ranks of dp each place of an axis stands for: with experts, dp is ep x edp."""
    return grid.axes.get("ep", 1) if axis == "edp" else 1


def _no_axis(name: str, layout: Layout) -> ChakraError:
    told = ", ".join(f"{axis}: {why}" for axis, why in layout.evidence.items())
    return ChakraError(
        f"no axis of this set is known to be {name}: its ranks lie as {layout.grid} ({told})",
        remedy="Say what the axes are with --grid, neighbours first, as in --grid tp2-dp4.",
    )


def _size(name: str, degree: Degree, size: int, inner: int, fewer: bool) -> int:
    """The new size of one axis, of which each place stands for `inner` ranks of the degree."""
    old = size * inner
    if degree.old not in (None, old):
        raise ChakraError(
            f"--{name} {degree.old}->{degree.new}, but {name} is {old} in this set",
            remedy=f"Write --{name} {old}->{degree.new}.",
        )
    if size == 1:
        among = f", all of it expert-parallel (ep {inner})" if inner > 1 else ""
        raise ChakraError(
            f"{name} is {old}{among}: nothing in the set tells what more ranks of it would "
            "communicate",
            remedy="Record or generate two of them at least.",
        )
    if degree.new <= old and not fewer:
        raise ChakraError(
            f"{name} is {old} already, and {degree.new} are wanted: a set can only grow",
            remedy=f"Give more than {old}.",
        )
    if degree.new % inner:
        raise ChakraError(
            f"{name} {degree.new} is no multiple of the {inner} expert-parallel ranks in it",
            remedy=f"Give a multiple of {inner}.",
        )
    return degree.new // inner
