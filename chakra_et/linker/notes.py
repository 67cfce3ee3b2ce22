"""What linking has to tell beside the trace."""

from __future__ import annotations

from dataclasses import dataclass, field

from chakra_et.linker.tallies import ClockOffset, JoinTally


@dataclass
class Notes:
    """Warnings and counts, in the order in which they were found."""

    warnings: list[str] = field(default_factory=list)
    joins: list[JoinTally] = field(default_factory=list)
    clocks: list[ClockOffset] = field(default_factory=list)
