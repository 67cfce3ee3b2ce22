"""What linking has to tell beside the trace."""

from __future__ import annotations

import msgspec

from chakra_et.linker.tallies import ClockOffset, JoinTally


class Notes(msgspec.Struct):
    """Warnings and counts, in the order in which they were found."""

    warnings: list[str] = msgspec.field(default_factory=list)
    joins: list[JoinTally] = msgspec.field(default_factory=list)
    clocks: list[ClockOffset] = msgspec.field(default_factory=list)
