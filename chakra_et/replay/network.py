"""What a replay asks of a network, and the alpha-beta model without a topology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from chakra_et.definitions import CollectiveType
from chakra_et.errors import ChakraError
from chakra_et.network import Network, load_topology, topology_names, work_of


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


_GREATEST: Final = 1e9
"""Latencies up to so many us, bandwidths down to so small a part of 1 GB/s: times of what is sent
still fit 63 bits of nanoseconds."""


def network_of(text: str, said: str) -> TransferModel:
    """The network that a text tells: a topology, by name or file, or `LATENCY_US,GB_PER_S`.

    Raises ChakraError where it tells none; `said` is what the error calls the text.
    """
    if text in topology_names() or text.endswith(".toml"):
        return Network(load_topology(text))
    try:
        latency_us, gigabytes = (float(part) for part in text.split(","))
        if 0 <= latency_us <= _GREATEST and 1 / _GREATEST <= gigabytes <= _GREATEST:
            return AlphaBeta(latency_us * 1e3, gigabytes * 1e9)
    except ValueError:
        pass
    raise ChakraError(
        f"{said}: expected a latency in us and a bandwidth in GB/s, or a topology, got {text!r}",
        remedy=f"Write 5,100, or name a TOML file or one of {', '.join(topology_names())}.",
    )
