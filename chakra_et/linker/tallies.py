"""Counts of what became of records: how a report adds up."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from msgspec.structs import asdict


class Tally(msgspec.Struct):
    """What became of the records of one category; kept, merged and left out add up to total."""

    total: int = 0
    kept: int = 0
    merged: int = 0
    left_out: Counter[str] = msgspec.field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        """The tally as it stands in a report."""
        reasons = [{"reason": r, "count": c} for r, c in sorted(self.left_out.items())]
        return {
            "total": self.total,
            "kept": self.kept,
            "merged": self.merged,
            "left_out": reasons,
        }

    def __iadd__(self, other: Tally) -> Tally:
        self.total += other.total
        self.kept += other.kept
        self.merged += other.merged
        self.left_out += other.left_out
        return self


class JoinTally(msgspec.Struct):
    """How records of one kind found their counterparts."""

    what: str
    by: str
    matched: int
    of: int

    def as_dict(self) -> dict[str, Any]:
        """The join as it stands in a report."""
        return {"what": self.what, "by": self.by, "matched": self.matched, "of": self.of}


class ClockOffset(msgspec.Struct):
    """By how much the clock of a device is behind that of the host, at least."""

    device: int
    early: int
    """How many activities seem to start before their launch does."""
    of: int
    offset_ns: int
    applied: bool

    def as_dict(self) -> dict[str, Any]:
        """The offset as it stands in a report."""
        return asdict(self)
