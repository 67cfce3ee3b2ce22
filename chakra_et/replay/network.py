"""What a replay asks of a network, and the alpha-beta model without a topology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from chakra_et.definitions import CollectiveType
from chakra_et.network import work_of


class TransferModel(Protocol):
    """What tells how long transfers take, such as `AlphaBeta` and `chakra_et.network.Network`."""

    def transfer_ns(
        self, collective: CollectiveType | None, size_bytes: int, ranks: Sequence[int]
    ) -> int:
        """How long a collective of `ranks` takes; None stands for one message.

        `size_bytes` is the size of the local input, as in `comm_size`.
        """


@dataclass(frozen=True)
class AlphaBeta:
    """Latency of a message in ns, and bandwidth of a rank's link in bytes per second.

    Collectives take the steps of the ring algorithms.
    """

    alpha_ns: float
    bytes_per_second: float

    def transfer_ns(
        self, collective: CollectiveType | None, size_bytes: int, ranks: Sequence[int]
    ) -> int:
        """How long a collective of `ranks` takes: see `TransferModel`."""
        work = work_of("ring", collective, size_bytes, max(len(ranks), 1))
        return round(work.steps * self.alpha_ns + work.link_bytes / self.bytes_per_second * 1e9)
