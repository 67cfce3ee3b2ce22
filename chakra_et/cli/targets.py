"""Consumers that output can be made ready for: options that verbs share."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Target(str, Enum):
    """Consumers that traces can be made ready for."""

    ASTRA_SIM = "astra-sim"


class HostTime(str, Enum):
    """What becomes of host nodes."""

    FOLD = "fold"
    KEEP = "keep"


TARGET_HELP: Final = (
    "Make the output ready for a consumer: {prefix}.{rank}.et and comm_groups.json."
)
HOST_HELP: Final = (
    "With --for: fold host time into idle time of the device (then the simulator's statistics "
    "work), or keep host nodes."
)
