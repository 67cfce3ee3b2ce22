"""A network described in a file: levels from the inside out, such as NVLink in nodes, then fabric.

Ranks that are neighbours are close: a unit of the first level holds `ranks` of them, a unit of the
next one so many units of the first. The last level holds all that is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from math import inf, prod
from pathlib import Path
from typing import Final

import msgspec

from chakra_et.errors import ChakraError
from chakra_et.network.algorithms import ALGORITHMS
from chakra_et.network.measured import Measured

HIERARCHICAL: Final = "hierarchical"
_OWN: Final = files("chakra_et.network") / "topologies"


class Level(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One level: what joins ranks to a node, or nodes to a cluster.

    `ranks` counts what a unit of this level joins: ranks, on the first level, else units of the
    level before; 0 on the last level: any number. `gigabytes_per_second` is the bandwidth of what
    is joined, one way: of a rank, or of a whole node, whose ranks share it. `all_reduce_us` has
    measured times by number of ranks within the level: pairs of bytes and us.
    """

    name: str
    latency_us: float
    gigabytes_per_second: float
    ranks: int = 0
    algorithm: str = "ring"
    all_reduce_us: dict[str, list[tuple[float, float]]] = {}

    def measured(self, ranks: int) -> Measured | None:
        """The measured all-reduces of so many ranks, if there are any."""
        rows = self.all_reduce_us.get(str(ranks))
        return None if rows is None else Measured.of([(size, us * 1e3) for size, us in rows])


class Topology(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All levels, innermost first, and where the figures come from."""

    name: str
    levels: list[Level]
    source: str = ""

    def unit_ranks(self, level: int) -> float:
        """How many ranks lie in a unit of a level; without an end on the last."""
        sizes = [one.ranks or inf for one in self.levels[: level + 1]]
        return inf if inf in sizes else prod(sizes)

    def unit_of(self, level: int, rank: int) -> int:
        """The unit of a level in which a rank lies; -1 stands for the rank itself."""
        if level < 0:
            return rank
        size = self.unit_ranks(level)
        return 0 if size == inf else rank // int(size)

    def level_of(self, ranks: Sequence[int]) -> int:
        """The innermost level that joins all these ranks."""
        for level in range(len(self.levels)):
            if len({self.unit_of(level, rank) for rank in ranks}) == 1:
                return level
        raise ChakraError(
            f"{self.name} does not join ranks {min(ranks)} and {max(ranks)}",
            remedy="Let its last level hold any number: leave out its `ranks`.",
        )


def topology_names() -> list[str]:
    """The topologies that come with the package."""
    return sorted(one.name.removesuffix(".toml") for one in _OWN.iterdir())


def load_topology(name: str) -> Topology:
    """A topology by its name, or from a TOML file. Raises ChakraError for what is none."""
    own = name in topology_names()
    try:
        text = (_OWN / f"{name}.toml").read_text() if own else Path(name).read_text()
        found = msgspec.toml.decode(text, type=Topology)
    except (OSError, UnicodeDecodeError) as error:
        raise ChakraError(
            f"no topology: {error}",
            path=name,
            remedy=f"Name a TOML file, or one of {', '.join(topology_names())}.",
        ) from error
    except msgspec.DecodeError as error:
        raise ChakraError(
            f"no topology: {error}", path=name, remedy="docs/estimate.md says what it holds."
        ) from error
    _check(found, name)
    return found


def _check(topology: Topology, path: str) -> None:
    """Raises ChakraError for levels that cannot be."""
    known = [*ALGORITHMS, HIERARCHICAL]
    problem = "" if topology.levels else "no levels"
    for number, level in enumerate(topology.levels):
        last = number == len(topology.levels) - 1
        if level.gigabytes_per_second <= 0 or level.latency_us < 0 or level.ranks < 0:
            problem = f"level {level.name!r} has a bandwidth, latency or number that cannot be"
        elif not level.ranks and not last:
            problem = f"level {level.name!r} holds any number of ranks, but is not the last"
        elif level.algorithm not in known:
            problem = f"no algorithm {level.algorithm!r}: it is one of {', '.join(known)}"
        for ranks in level.all_reduce_us:
            level.measured(int(ranks) if ranks.isdecimal() else 0)
    if problem:
        raise ChakraError(problem, path=path, remedy="docs/estimate.md says what it holds.")
