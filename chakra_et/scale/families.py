"""Groups of one purpose, as the ranks of a set tell them, and how they grow with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from chakra_et.build.grid import Grid
from chakra_et.errors import ChakraError
from chakra_et.model import ProcessGroup, number_in_name
from chakra_et.scale.calls import COMMUNICATION, Call, GroupKey
from chakra_et.scale.sources import Source

Ranks = npt.NDArray[np.int64]
_REMEDY = "Only groups that lie evenly on a grid of ranks can grow; generate such a set instead."


@dataclass(eq=False)
class Kin:
    """Groups that differ by where they lie alone: no two share a rank.

    `name` tells families apart; `purpose` is what the makers call such groups, empty where they do
    not. `offsets` are the ranks of a group, counted from its first. `calls` are those of all ranks,
    `ranks` all members. `named` says that nodes or tables name these groups.
    """

    name: str
    purpose: str
    offsets: tuple[int, ...]
    groups: list[GroupKey] = field(default_factory=list)
    told: ProcessGroup | None = None
    named: bool = False
    calls: list[tuple[Call, int]] = field(default_factory=list)
    ranks: set[int] = field(default_factory=set)

    @property
    def size(self) -> int:
        """How many ranks a group has."""
        return len(self.offsets)

    @property
    def first_number(self) -> tuple[int, int | str]:
        """What families are ordered by: the numbers of their groups, where they have such."""
        names = [name for name, _ in self.groups]
        numbers = [number for name in names if (number := number_in_name(name)) is not None]
        return (0, min(numbers)) if len(numbers) == len(names) else (1, min(names))

    @property
    def members(self) -> list[Ranks]:
        """The ranks of each group."""
        return [np.array(ranks, np.int64) for _, ranks in self.groups]

    def covers(self, world_size: int) -> bool:
        """Whether every rank is in one of the groups."""
        return len(self.groups) * self.size == world_size


def find_kin(sources: Sequence[Source]) -> list[Kin]:
    """The families of groups that ranks use or know, in the order of their numbers.

    Groups of one description and one shape are of one family. Raises ChakraError for a group
    whose members its ranks tell differently.
    """
    members = _members(sources)
    found: dict[tuple[str, tuple[int, ...], int], Kin] = {}
    of_group: dict[GroupKey, Kin] = {}
    for key in sorted(members, key=lambda key: (_number(key[0]), key)):
        told = members[key]
        purpose = "" if told is None or told.description.startswith("was ") else told.description
        offsets = tuple(rank - key[1][0] for rank in key[1])
        ordinal = 0
        while (kin := found.get((purpose, offsets, ordinal))) and kin.ranks & set(key[1]):
            ordinal += 1
        if kin is None:
            kin = Kin("", purpose, offsets, told=told)
            found[purpose, offsets, ordinal] = kin
        kin.groups.append(key)
        kin.ranks |= set(key[1])
        kin.named |= told is not None
        of_group[key] = kin
    for source in sources:
        counts = np.bincount(source.calls.call_of, minlength=len(source.calls.calls)).tolist()
        for call, count in zip(source.calls.calls, counts, strict=True):
            if call.group is not None:
                kin = of_group[call.group]
                kin.named |= call.named
                if call.type in COMMUNICATION and call.peer is None:
                    kin.calls.append((call, count))
    every = sorted(found.values(), key=lambda kin: kin.first_number)
    _name(every)
    return every


def _members(sources: Sequence[Source]) -> dict[GroupKey, ProcessGroup | None]:
    """Every group that tables tell or nodes use, and the account of it."""
    found: dict[GroupKey, ProcessGroup | None] = {}
    for source in sources:
        for group in source.groups:
            found.setdefault((group.name, group.ranks), group)
    for source in sources:
        for call in source.calls.calls:
            if call.group is not None:
                found.setdefault(call.group, None)
    for name, ranks in found:
        if list(ranks) != sorted(set(ranks)) or ranks[-1] >= len(sources):
            raise ChakraError(
                f"group {name!r} has the ranks {list(ranks)}, of {len(sources)} ranks",
                remedy="Ranks of a group must be there, each once, in ascending order.",
            )
        for rank in ranks:
            if not any(name == g.name and ranks == g.ranks for g in sources[rank].groups) and (
                found[name, ranks] is not None
            ):
                raise ChakraError(
                    f"group {name!r} of ranks {list(ranks)} is unknown to rank {rank}",
                    path=sources[rank].path,
                    remedy="See `chakra validate`, and mend the set first.",
                )
    return found


def _number(name: str) -> int:
    number = number_in_name(name)
    return 1 << 62 if number is None else number


def _name(every: list[Kin]) -> None:
    """Give each family a name of its own: what its groups are for, or the first group's name."""
    taken: set[str] = set()
    for kin in every:
        wanted = kin.purpose or (f"group {kin.groups[0][0]}" if kin.named else "all ranks")
        kin.name, number = wanted, 2
        while kin.name in taken:
            kin.name, number = f"{wanted} ({number})", number + 1
        taken.add(kin.name)


def spans(kin: Kin, grid: Grid) -> list[str]:
    """The axes on which the ranks of a group differ."""
    ranks = np.array(kin.groups[0][1], np.int64)
    return [axis for axis in grid.axes if len(np.unique(grid.coordinate(axis, ranks))) > 1]


def placed_alike(kin: Kin, grid: Grid) -> bool:
    """Whether all groups of a family are one group, moved along the other axes of a grid."""
    axes = spans(kin, grid)
    wanted = {axis: grid.coordinate(axis, np.array(kin.groups[0][1])).tolist() for axis in axes}
    for _, ranks in kin.groups:
        found = np.array(ranks, np.int64)
        for axis in grid.axes:
            here = grid.coordinate(axis, found)
            if here.tolist() != wanted[axis] if axis in axes else len(np.unique(here)) > 1:
                return False
    return True


def grow(members: list[Ranks], name: str, old: Grid, new: Grid, axis: str) -> list[Ranks]:
    """The groups of the family `name` when an axis of the grid grows.

    Groups that span the axis take in its new ranks; others are there once for each new place, like
    those at the place that it copies. Raises ChakraError for groups that have some of an axis.
    """
    size = old.axes[axis]
    across = len(np.unique(old.coordinate(axis, members[0]))) > 1
    if across:
        found = [_across(ranks, name, old, new, axis) for ranks in members]
    else:
        at = [int(old.coordinate(axis, ranks[0])) for ranks in members]
        found = [
            moved(ranks, old, new, {axis: place})
            for place in range(new.axes[axis])
            for ranks, here in zip(members, at, strict=True)
            if here == place % size
        ]
    return sorted(found, key=lambda ranks: int(ranks[0]))


def _across(given: Ranks, name: str, old: Grid, new: Grid, axis: str) -> Ranks:
    """A group that takes in all ranks of a longer axis."""
    first = given[old.coordinate(axis, given) == 0]
    every = [old.placed(first, {axis: place}) for place in range(old.axes[axis])]
    if not np.array_equal(np.sort(np.concatenate(every)), given):
        raise ChakraError(
            f"group {name!r} of ranks {given.tolist()} has some of axis {axis}, not all of it",
            remedy=_REMEDY,
        )
    longer = [moved(first, old, new, {axis: place}) for place in range(new.axes[axis])]
    return np.sort(np.concatenate(longer))


def moved(ranks: Ranks, old: Grid, new: Grid, places: dict[str, int]) -> Ranks:
    """Ranks of one grid in another: at the same coordinates, but for those of `places`."""
    result = np.zeros(len(ranks), np.int64)
    for axis in new.axes:
        here = places[axis] if axis in places else old.coordinate(axis, ranks)
        result = result + here * new.rank(**{axis: 1})
    return result
