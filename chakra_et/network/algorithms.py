"""What collective algorithms cost: how many steps, and how many bytes pass the busiest link.

Thakur, Rabenseifner and Gropp (2005); Patarasuk and Yuan (2009) for rings; Sanders, Speck and Träff
(2009) for trees that keep every link busy.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2
from typing import Final, NamedTuple

from chakra_et.definitions import CollectiveType


class Work(NamedTuple):
    """Messages one after the other, and bytes over each rank's link."""

    steps: int
    link_bytes: float


_GATHERS: Final = (CollectiveType.ALL_GATHER, CollectiveType.GATHER)
_ONE_WAY: Final = (None, CollectiveType.BROADCAST, CollectiveType.REDUCE)


def _link_bytes(collective: CollectiveType | None, size_bytes: int, ranks: int) -> float:
    """What at least passes the link of a rank; `size_bytes` is a rank's input."""
    if collective is CollectiveType.ALL_REDUCE:
        return 2 * (ranks - 1) / ranks * size_bytes
    if collective in _GATHERS:
        return (ranks - 1) * size_bytes
    if collective in _ONE_WAY:
        return size_bytes
    if collective is CollectiveType.BARRIER:
        return 0
    return (ranks - 1) / ranks * size_bytes


def _twice(collective: CollectiveType | None) -> int:
    """An all-reduce and a barrier gather and spread, all else is one of the two."""
    return 2 if collective in (CollectiveType.ALL_REDUCE, CollectiveType.BARRIER) else 1


def ring(collective: CollectiveType | None, size_bytes: int, ranks: int) -> Work:
    """Each rank passes parts on to the next."""
    steps = _twice(collective) * (ranks - 1)
    return Work(max(steps, 1), _link_bytes(collective, size_bytes, ranks))


def halving_doubling(collective: CollectiveType | None, size_bytes: int, ranks: int) -> Work:
    """Pairs at distances that double exchange parts: as many bytes as a ring, fewer steps."""
    steps = _twice(collective) * ceil(log2(ranks)) if ranks > 1 else 1
    return Work(steps, _link_bytes(collective, size_bytes, ranks))


def tree(collective: CollectiveType | None, size_bytes: int, ranks: int) -> Work:
    """Two trees, of which each rank is a leaf in one; what no tree can do, a ring does."""
    known = (CollectiveType.ALL_REDUCE, CollectiveType.BARRIER, *_ONE_WAY)
    if collective not in known or ranks == 1:
        return ring(collective, size_bytes, ranks)
    bytes_ = 0 if collective is CollectiveType.BARRIER else _twice(collective) * size_bytes
    return Work(_twice(collective) * ceil(log2(ranks)), bytes_)


def direct(collective: CollectiveType | None, size_bytes: int, ranks: int) -> Work:
    """Every rank sends to every other at once."""
    return Work(_twice(collective), _link_bytes(collective, size_bytes, ranks))


ALGORITHMS: Final[dict[str, Callable[[CollectiveType | None, int, int], Work]]] = {
    "ring": ring,
    "tree": tree,
    "halving-doubling": halving_doubling,
    "direct": direct,
}


def work_of(algorithm: str, collective: CollectiveType | None, size_bytes: int, ranks: int) -> Work:
    """The work of a collective of `ranks` ranks; None stands for one message.

    `size_bytes` is a rank's input, as in `comm_size`.
    """
    return ALGORITHMS[algorithm](collective, size_bytes, ranks)
