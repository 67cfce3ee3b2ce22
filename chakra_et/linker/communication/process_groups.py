"""The process groups of a run, from all that either file says of them."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from chakra_et.model import ProcessGroup
from chakra_et.recording import DeviceTrace, GroupEntry, HostTrace
from chakra_et.recording.numbers import MOST_RANKS

DEFAULT: Final = "0"
"""The name that PyTorch gives to the group of all ranks."""


class GroupTable(msgspec.Struct):
    """Groups by name, and names by the numbers that older traces have in place of names."""

    rank: int | None
    world_size: int | None
    groups: dict[str, ProcessGroup] = msgspec.field(default_factory=dict)
    names_by_number: dict[int, str] = msgspec.field(default_factory=dict)
    sizes_by_number: dict[int, int] = msgspec.field(default_factory=dict)
    warnings: list[str] = msgspec.field(default_factory=list)

    def add(self, group: ProcessGroup) -> None:
        """Take in a group; of two accounts the one that lists the members wins."""
        known = self.groups.get(group.name)
        if known is None or (group.ranks and not known.ranks):
            self.groups[group.name] = group
        elif group.ranks and known.ranks != group.ranks:
            self.warnings.append(
                f"process group {group.name!r} has members {list(known.ranks)} by {known.source} "
                f"and {list(group.ranks)} by {group.source}; the former were kept"
            )

    def name_of_number(self, number: int) -> str:
        """The name of a group that an older trace calls by a number.

        A number that no record explains and whose group has the size of the world stands for
        the default group.
        """
        name = self.names_by_number.get(number)
        if name is not None:
            return name
        size = self.sizes_by_number.get(number)
        ranks, why = self._told_by_size(size)
        whole = size == self.world_size and bool(ranks)
        name = self.names_by_number[number] = DEFAULT if whole else str(number)
        source = why or "number in the host trace"
        self.groups.setdefault(
            name, ProcessGroup(name=name, ranks=ranks, size=size or 0, source=source, inferred=True)
        )
        return name

    def add_named(self, name: str, ranks: list[int] | None, size: int | None) -> None:
        """Take in a group that only records of its collectives name, by address or otherwise."""
        if name in self.groups:
            return
        told, why = (tuple(ranks), "") if ranks else self._told_by_size(size)
        self.add(
            ProcessGroup(
                name=name,
                ranks=told,
                size=size or 0,
                source=why or "arguments of its collectives",
                inferred=bool(why),
            )
        )

    def settle(self) -> None:
        """Give groups without members those that their size tells, now that the rank is known."""
        for name, group in self.groups.items():
            ranks, why = ((), "") if group.ranks else self._told_by_size(group.size)
            if ranks:
                source = f"{group.source}; {why}"
                self.groups[name] = replace(group, ranks=ranks, source=source, inferred=True)

    def _told_by_size(self, size: int | None) -> tuple[tuple[int, ...], str]:
        """The members of a group that its size alone tells, and how: all ranks, or this one."""
        world = self.world_size
        if world is not None and size == world and 0 < world <= MOST_RANKS:
            return tuple(range(world)), "size of the group"
        if size == 1 and self.rank is not None:
            return (self.rank,), "a group of one rank: its own"
        return (), ""

    def only_of_size(self, size: int | None) -> str | None:
        """The name of the only group there is, or of the only one of this rank, or of that size."""
        found = list(self.groups.values())
        if len(found) > 1:
            found = list(filter(self.has_rank, found))
        if len(found) > 1 and size is not None:
            found = [group for group in found if group.size == size]
        return found[0].name if len(found) == 1 else None

    def has_rank(self, group: ProcessGroup) -> bool:
        """Whether this rank is in a group, or may be."""
        return not group.ranks or self.rank is None or self.rank in group.ranks

    def global_rank(self, name: str | None, position: int) -> int | None:
        """The global rank of a group's member; None if the members are not known.

        If the group is not known either, it is one of those that this rank is a member of, and all
        of them have to agree.
        """
        if name is None:
            mine = [g for g in self.groups.values() if not g.ranks or self.rank in g.ranks]
        else:
            mine = [self.groups[name]] if name in self.groups else []
        if position < 0 or not all(group.ranks for group in mine):
            return None
        if name == DEFAULT and not mine and self.world_size is not None:
            return position if position < self.world_size else None
        told = {group.ranks[position] for group in mine if position < len(group.ranks)}
        return told.pop() if len(told) == 1 else None

    def other_of_two(self, name: str | None) -> int | None:
        """The other rank of a group of two, the one that all messages of this rank are with."""
        ranks = {self.global_rank(name, 0), self.global_rank(name, 1)} - {self.rank}
        group = self.groups.get(name or "")
        size = len(group.ranks) if group else self.world_size if name == DEFAULT else None
        return ranks.pop() if size == 2 and len(ranks) == 1 else None


def find_groups(host: HostTrace | None, device: DeviceTrace | None, rank: int | None) -> GroupTable:
    """The groups that both files list, those of the profile first; `rank` counts if it is given."""
    table = GroupTable(rank, None) if device is None else GroupTable(rank, device.world_size)
    if rank is None and device is not None:
        table.rank = device.rank
    listed = [] if device is None else list(device.groups)
    if host is not None:
        listed += [entry for _, entries in host.groups.items() for entry in entries]
    for entry in listed:
        _add_entry(table, entry)
    default = table.groups.get(DEFAULT)
    if table.world_size is None and default is not None and default.size:
        table.world_size = default.size
    return table


def _add_entry(table: GroupTable, entry: GroupEntry) -> None:
    ranks, size = entry.ranks, entry.size
    if entry.cut:
        table.warnings.append(
            f"the host trace cuts the members of process group {entry.name!r}; they are not known "
            "from it"
        )
    elif not ranks and 0 < size <= MOST_RANKS:
        ranks = _all_ranks(table, entry.name, size)
    elif not ranks and size:
        table.warnings.append(
            f"process group {entry.name!r} has {size} ranks by {entry.source}, which is impossible"
        )
        size = 0
    table.add(
        ProcessGroup(
            name=entry.name,
            ranks=tuple(ranks),
            size=size or len(ranks),
            description=entry.description,
            source=entry.source,
        )
    )
    if entry.number is not None:
        table.names_by_number[entry.number] = entry.name


def _all_ranks(table: GroupTable, name: str, size: int) -> list[int]:
    """The members of a group for which PyTorch wrote an empty list: all ranks, if it is as large.

    The members of others are not known, but for a group of one rank: see `GroupTable.settle`.
    """
    if name == DEFAULT and table.world_size is None:
        table.world_size = size
    whole = table.world_size is None and size > 1
    return list(range(size)) if whole or size == table.world_size else []
