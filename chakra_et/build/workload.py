"""A workload: ranks on a grid, their groups, and what each of them does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.build.checks import Checks
from chakra_et.build.columns import Programmed
from chakra_et.build.families import Family, number_families
from chakra_et.build.grid import Grid, Ranks
from chakra_et.build.places import BuildError
from chakra_et.build.rank import Rank
from chakra_et.definitions import FORMAT_VERSION, Kind
from chakra_et.model import Metadata, ProcessGroup, Trace, TraceSet
from chakra_et.model.groups import encode_groups
from chakra_et.version import PRODUCER

Program: TypeAlias = Callable[[Rank], None]
Watch: TypeAlias = Callable[[Programmed, Ranks], None]


class Workload:
    """What many ranks do together.

    The ranks lie on a grid: `Workload(tp=2, dp=4)` has 8, neighbours on the first axis;
    `Workload(rank=8)` has them in a row, and `Workload({"tp": 2})` takes axes from a dictionary.
    Every axis is a family of process groups called by its name; `groups` adds more. `facts` are
    texts for the metadata of every trace. With `tensors`, nodes name the tensors that they read and
    write.
    """

    def __init__(
        self,
        grid: Mapping[str, int] | None = None,
        /,
        *,
        facts: Mapping[str, str] | None = None,
        tensors: bool = False,
        **axes: int,
    ) -> None:
        try:
            self.grid = Grid({**(grid or {}), **axes})
        except ValueError as error:
            raise BuildError.here(str(error), "An axis that is not used has size 1.") from None
        self.facts = dict(facts or {})
        self.tensors = tensors
        self.families: dict[str, Family] = {}
        self._sealed = False
        for axis in self.grid.axes:
            self.groups(axis, axes=(axis,))

    def groups(
        self,
        name: str,
        *,
        axes: Sequence[str] | None = None,
        ranks: Sequence[Sequence[int]] | None = None,
    ) -> None:
        """Add a family of groups: those along some axes, or lists of ranks of equal length.

        Families must be there before the first program runs.
        """
        if self._sealed or name in self.families:
            why = "the programs have begun" if self._sealed else "there are groups of that name"
            raise BuildError.here(
                f"groups {name!r} are added too late: {why}", "Add each once, first."
            )
        if axes is not None:
            unknown = [axis for axis in axes if axis not in self.grid.axes]
            if unknown:
                raise BuildError.here(
                    f"no axis {unknown[0]!r}", f"There are {', '.join(self.grid.axes)}."
                )
            members = self.grid.groups(axes)
        else:
            members = _listed(ranks or (), self.grid.world_size)
        self.families[name] = Family(name, members, self.grid.world_size)

    # -----------------------------------------------------------------------------------------
    # What comes out

    def programs(
        self, program: Program, watch: Watch | None = None
    ) -> Iterator[tuple[Programmed, Ranks]]:
        """Run the program once for all ranks that are copies of one another.

        It is run for the first rank that is left. Ranks that agree with it in all coordinates that
        the program looked at would do the same. The columns come with the ranks that share them;
        `watch` sees them as well.

        Raises BuildError where sends and receives, or the collectives of a group, do not match:
        after the last program.
        """
        self.seal()
        checks = Checks(self)
        left = np.ones(self.grid.world_size, np.bool_)
        number = 1
        while left.any():
            first = int(np.argmax(left))
            rank = Rank(self, number, first)
            program(rank)
            copies = self.grid.alike(first, rank.looked_at)
            copies = copies[left[copies] & self._members_alike(rank, first, copies)]
            left[copies] = False
            columns = Programmed(rank)
            checks.add(columns, copies)
            if watch is not None:
                watch(columns, copies)
            yield columns, copies
            number += 1
        checks.finish()

    def _members_alike(self, rank: Rank, first: int, copies: Ranks) -> npt.NDArray[np.bool_]:
        """Which ranks are in the families that were asked about just as the first one is."""
        alike = np.ones(len(copies), np.bool_)
        for name in rank.families_asked:
            member = self.families[name].group_of >= 0
            alike &= member[copies] == member[first]
        return alike

    def traces(self, program: Program) -> TraceSet:
        """The traces of all ranks, in memory."""
        found: dict[int, Trace] = {}
        for columns, ranks in self.programs(program):
            found |= {rank: columns.trace(rank) for rank in ranks.tolist()}
        return TraceSet(found)

    def seal(self) -> None:
        """Number the groups; from now on there can be no more."""
        if not self._sealed:
            number_families([f for f in self.families.values() if f.size > 1])
        self._sealed = True

    # -----------------------------------------------------------------------------------------
    # What traces tell

    def metadata(self, rank: int) -> Metadata:
        """What the trace of a rank says of the whole: its groups, its place, and `facts`."""
        metadata = Metadata(FORMAT_VERSION)
        metadata.set("rank", Kind.INT64, rank)
        metadata.set("world_size", Kind.INT64, self.grid.world_size)
        metadata.set("producer", Kind.STRING, PRODUCER)
        metadata.set("process_groups", Kind.STRING, encode_groups(self.groups_of(rank)))
        metadata.set("grid", Kind.STRING, _json(self.grid.axes))
        metadata.set("coordinates", Kind.STRING, _json(self.grid.coordinates(rank)))
        for name, text in self.facts.items():
            metadata.set(name, Kind.STRING, text)
        return metadata

    def groups_of(self, rank: int) -> list[ProcessGroup]:
        """The groups of more than one rank that a rank belongs to."""
        self.seal()
        return [
            family.group(int(family.group_of[rank]))
            for family in self.families.values()
            if family.size > 1 and family.group_of[rank] >= 0
        ]

    def comm_groups(self) -> dict[str, list[int]]:
        """The content of comm_groups.json: the ranks of every group by its number."""
        self.seal()
        return {
            str(family.first_number + index): members
            for family in self.families.values()
            if family.size > 1
            for index, members in enumerate(family.members.tolist())
        }


def _json(value: Mapping[str, int]) -> str:
    return msgspec.json.encode(value).decode()


def _listed(ranks: Sequence[Sequence[int]], world_size: int) -> Ranks:
    """Lists of ranks as one array."""
    sizes = sorted({len(group) for group in ranks})
    if len(sizes) != 1 or sizes[0] == 0:
        raise BuildError.here(
            f"groups of {sizes or 'no'} ranks in one family", "Give lists of one length."
        )
    members = np.array(ranks, np.int64)
    if len(np.unique(members)) != members.size:
        raise BuildError.here("a rank is in two groups of one family", "Make two families.")
    if members.min() < 0 or members.max() >= world_size:
        raise BuildError.here(
            f"a group with rank {members.max() if members.min() >= 0 else members.min()}",
            f"Ranks go from 0 to {world_size - 1}.",
        )
    return members
