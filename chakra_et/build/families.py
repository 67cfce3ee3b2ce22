"""Families of process groups: every rank knows one group of each by the family's name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from chakra_et.model import ProcessGroup

NO_GROUP = -1


class Family:
    """Groups of one purpose, such as all tensor-parallel groups of a run.

    `members` has the ranks of each group, in the group's order; the groups are of one size and have
    no rank in common. A rank outside all of them cannot use the family.
    """

    def __init__(self, name: str, members: npt.NDArray[np.int64], world_size: int) -> None:
        self.name = name
        self.members = members
        self.group_of = np.full(world_size, NO_GROUP, np.int64)
        self.group_of[members.ravel()] = np.repeat(np.arange(len(members)), members.shape[1])
        self.first_number = 0

    @property
    def size(self) -> int:
        """How many ranks a group has."""
        return int(self.members.shape[1])

    def number(self, rank: int) -> int:
        """The number of the group of a rank."""
        return self.first_number + int(self.group_of[rank])

    def group(self, index: int) -> ProcessGroup:
        """A group as traces describe it."""
        return ProcessGroup(
            name=str(self.first_number + index),
            ranks=tuple(self.members[index].tolist()),
            size=self.size,
            description=self.name,
            source="generated",
        )


def number_families(families: Sequence[Family]) -> None:
    """Number the groups of all families from one on, with as many digits each.

    Simulators want groups called by numbers above 0. Names of equal length let ranks that are
    copies of one another differ in the bytes of the name alone.
    """
    count = sum(len(family.members) for family in families)
    number = 1
    while number * 9 < count:
        number *= 10
    for family in families:
        family.first_number = number
        number += len(family.members)
