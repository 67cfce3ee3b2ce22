"""What ASTRA-sim takes, and what it takes for something else."""

from __future__ import annotations

from typing import Final

from chakra_et.definitions import CollectiveType

SIMULATED: Final = (
    CollectiveType.ALL_REDUCE,
    CollectiveType.ALL_GATHER,
    CollectiveType.ALL_TO_ALL,
    CollectiveType.REDUCE_SCATTER,
    CollectiveType.BROADCAST,
)
LEAST_BYTES: Final = 4
"""An all-gather of fewer bytes than it has chunks (four by default) never ends."""
DIMENSIONS: Final = 4
"""Without involved_dim, so many dimensions take part."""
TAGS: Final = 500_000_000
"""Tags from here on are taken for the simulator's own messages."""
