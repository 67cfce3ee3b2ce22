"""The alpha-beta model of a network: a message costs a latency and its bytes over a bandwidth.

The step counts are those of the ring algorithms (Thakur et al., 2005; Patarasuk and Yuan, 2009).
"""

from __future__ import annotations

from dataclasses import dataclass

from chakra_et.definitions import CollectiveType


@dataclass(frozen=True)
class AlphaBeta:
    """Latency of a message in ns, and bandwidth of a rank's link in bytes per second."""

    alpha_ns: float
    bytes_per_second: float

    def transfer_ns(self, collective: CollectiveType | None, size_bytes: int, ranks: int) -> int:
        """How long a collective of `ranks` ranks takes; None stands for one message.

        `size_bytes` is the size of the local input, as in `comm_size`.
        """
        steps, share = _ring(collective, max(ranks, 1))
        seconds = share * size_bytes / self.bytes_per_second
        return round(steps * self.alpha_ns + seconds * 1e9)


def _ring(collective: CollectiveType | None, ranks: int) -> tuple[int, float]:
    """Steps of a collective, and how many times the local input passes each link."""
    others, share = ranks - 1, (ranks - 1) / ranks
    if collective is CollectiveType.ALL_REDUCE:
        return 2 * others, 2 * share
    if collective is CollectiveType.ALL_GATHER or collective is CollectiveType.GATHER:
        return others, float(others)
    if collective is CollectiveType.BARRIER:
        return 2 * others, 0.0
    if collective is None or collective in (CollectiveType.REDUCE, CollectiveType.BROADCAST):
        return max(others, 1), 1.0
    return others, share
