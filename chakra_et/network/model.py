"""The time of a transfer on a topology: by a measured table where there is one, else alpha-beta."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from chakra_et.definitions import CollectiveType
from chakra_et.network.algorithms import work_of
from chakra_et.network.sharing import fair_rates
from chakra_et.network.topology import HIERARCHICAL, Topology

Groups = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Network:
    """Times on a topology; `efficiency` is the share of a link's bandwidth that is reached.

    A step costs the latency of the outermost level that a transfer passes, and its bytes the
    slowest link. Measured times count as they are.
    """

    topology: Topology
    efficiency: float = 1.0

    def transfer_ns(
        self,
        collective: CollectiveType | None,
        size_bytes: int,
        ranks: Sequence[int],
        beside: Groups = (),
    ) -> int:
        """How long a collective of `ranks` takes; None stands for a message between two.

        `size_bytes` is a rank's input, as in `comm_size`. `beside` are groups that communicate at
        the same time, with or without this one: they share links with it.
        """
        if len(ranks) < 2:
            return 0
        level = self.topology.level_of(ranks)
        groups = [one for one in beside if list(one) != list(ranks)]
        return round(self._on_level(level, collective, size_bytes, ranks, groups))

    def _on_level(
        self,
        level: int,
        collective: CollectiveType | None,
        size: float,
        ranks: Sequence[int],
        beside: Groups,
    ) -> float:
        told = self.topology.levels[level]
        measured = told.measured(len(ranks)) if level == 0 else None
        if measured is not None and collective in _LIKE_ALL_REDUCE:
            whole = size * len(ranks) if collective is CollectiveType.ALL_GATHER else size
            # Half of an all-reduce is a reduce-scatter, the other half an all-gather.
            return measured.time_ns(whole) * _LIKE_ALL_REDUCE[collective]
        if told.algorithm == HIERARCHICAL and level > 0 and collective in _LIKE_ALL_REDUCE:
            return self._hierarchical(level, collective, size, ranks, beside)
        algorithm = "ring" if told.algorithm == HIERARCHICAL else told.algorithm
        work = work_of(algorithm, collective, ceil(size), len(ranks))
        return work.steps * told.latency_us * 1e3 + work.link_bytes / self._rate(
            level, ranks, beside
        )

    def _hierarchical(
        self,
        level: int,
        collective: CollectiveType | None,
        size: float,
        ranks: Sequence[int],
        beside: Groups,
    ) -> float:
        """Scatter within units, exchange between the ranks at one place of all, gather within."""
        units = self._units(level - 1, ranks)
        inside = units[0]
        across = [list(one) for one in zip(*units, strict=False)]
        whole = size * len(ranks) if collective is CollectiveType.ALL_GATHER else size
        took = 0.0
        if collective is not CollectiveType.ALL_GATHER and len(inside) > 1:
            took += self._on_level(
                level - 1, CollectiveType.REDUCE_SCATTER, whole, inside, self._inner(level, beside)
            )
        part = size if collective is CollectiveType.ALL_GATHER else whole / len(inside)
        told = self.topology.levels[level]
        work = work_of("ring", collective, ceil(part), len(units))
        others = [
            list(one)
            for group in beside
            for one in zip(*self._units(level - 1, group), strict=False)
        ]
        rate = self._rate(level, across[0], [*across[1:], *others])
        took += work.steps * told.latency_us * 1e3 + work.link_bytes / rate
        if collective is not CollectiveType.REDUCE_SCATTER and len(inside) > 1:
            took += self._on_level(
                level - 1, CollectiveType.ALL_GATHER, whole / len(inside), inside,
                self._inner(level, beside),
            )  # fmt: skip
        return took

    def _units(self, level: int, ranks: Sequence[int]) -> list[list[int]]:
        """The ranks of a group by the unit of a level in which they lie."""
        found: dict[int, list[int]] = {}
        for rank in ranks:
            found.setdefault(self.topology.unit_of(level, rank), []).append(rank)
        return list(found.values())

    def _inner(self, level: int, groups: Groups) -> list[list[int]]:
        return [unit for group in groups for unit in self._units(level - 1, group)]

    def _rate(self, level: int, ranks: Sequence[int], beside: Groups) -> float:
        """Bytes per ns that a group gets on its slowest link."""
        transfers = [self._links(level, group) for group in (ranks, *beside)]
        speed = [one.gigabytes_per_second * self.efficiency for one in self.topology.levels]
        capacity = {link: speed[link[0]] for links in transfers for link in links}
        return fair_rates(transfers, capacity)[0]

    def _links(self, level: int, ranks: Sequence[int]) -> dict[tuple[int, int], int]:
        """The links that a chain or ring through the ranks passes: (level, what it joins).

        It leaves each unit once, however many of its ranks it visits.
        """
        return {
            (at, self.topology.unit_of(at - 1, rank)): 1
            for at in range(level + 1)
            for rank in ranks
            if at == 0 or len({self.topology.unit_of(at - 1, other) for other in ranks}) > 1
        }


_LIKE_ALL_REDUCE = {
    CollectiveType.ALL_REDUCE: 1.0,
    CollectiveType.REDUCE_SCATTER: 0.5,
    CollectiveType.ALL_GATHER: 0.5,
}
"""What share of an all-reduce's time each of these takes."""
