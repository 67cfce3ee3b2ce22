"""Which groups communicate at the same time, and so share links."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chakra_et.definitions import CollectiveType
from chakra_et.estimate.copies import Copies
from chakra_et.estimate.table import Task
from chakra_et.network import Network

Ranks = npt.NDArray[np.int64]


class Traffic:
    """The transfers of a set on a network; each is worked out once.

    Copies communicate at the same time: all groups of a collective's purpose, and all senders of a
    message's program, each to the rank as far away. Other traffic does not count.
    """

    def __init__(self, copies: Copies, network: Network) -> None:
        self._copies = copies
        self._network = network
        self._families = {
            name: np.array(groups, np.int64) for name, groups in copies.families.items()
        }
        self._known: dict[tuple[CollectiveType | None, int, tuple[int, ...], str], int] = {}

    def transfer_ns(self, task: Task) -> int:
        """What a collective or a message takes once all that take part are there."""
        key = (task.collective, task.size_bytes, task.group, task.family)
        if key not in self._known:
            self._known[key] = self._network.transfer_ns(
                task.collective, task.size_bytes, task.group, self._beside(task)
            )
        return self._known[key]

    def neighbours(self, task: Task) -> int:
        """How many other members of a collective lie in the node of the first one."""
        unit = self._network.topology.unit_of
        here = unit(0, task.group[0])
        return sum(unit(0, rank) == here for rank in task.group) - 1

    def _beside(self, task: Task) -> list[list[int]]:
        """The groups that share a unit of the first level with this one."""
        groups = self._families.get(task.family) if task.collective is not None else None
        if groups is None:
            groups = self._senders(task) if task.collective is None else np.array([task.group])
        size = self._network.topology.unit_ranks(0)
        if size == float("inf"):
            return []
        here = np.unique(np.array(task.group) // int(size))
        near: list[list[int]] = groups[np.isin(groups // int(size), here).any(1)].tolist()
        return near

    def _senders(self, task: Task) -> Ranks:
        """All copies of the sender with their receivers."""
        source, target = task.group
        programs = self._copies.programs
        senders = np.array(programs[self._copies.program_of[source]], np.int64)
        receivers = np.array(programs[self._copies.program_of[target]], np.int64)
        pairs = np.stack((senders, senders + target - source), 1)
        return pairs[np.isin(pairs[:, 1], receivers)]
