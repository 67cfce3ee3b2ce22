"""What was mended in a file and what had to be left out of it: nothing is lost without a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from chakra_et.errors import FormatError

QUOTED: Final = "number in quotes"


class UnsoundError(FormatError):
    """Damage that stops a strict reader and that a tolerant one can work around."""


class Repair(msgspec.Struct):
    """All damage of one kind: the first place, as a byte of the decompressed file, and a count."""

    kind: str
    offset: int | None
    count: int = 0
    left_out: int = 0
    """How many records were left out for it."""
    size: int = 0
    """How many bytes of text were left out for it."""


class Repairs(msgspec.Struct):
    """The account of one file; with `strict`, the first damage is an error instead."""

    path: Path
    strict: bool = False
    kinds: dict[str, Repair] = msgspec.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.kinds)

    @property
    def left_out(self) -> int:
        """How many records were left out in all."""
        return sum(repair.left_out for repair in self.kinds.values())

    def mend(self, kind: str, offset: int | None, count: int = 1, *, size: int = 0) -> None:
        """Count damage that was mended, and the bytes that were passed over for it.

        Raises UnsoundError if the reading is strict.
        """
        self._note(kind, offset, count, size)

    def leave_out(self, kind: str, offset: int | None, count: int = 1, *, size: int = 0) -> None:
        """Count records that could not be kept, and their bytes as far as these are known.

        Raises UnsoundError if the reading is strict.
        """
        self._note(kind, offset, count, size).left_out += count

    def _note(self, kind: str, offset: int | None, count: int, size: int) -> Repair:
        if self.strict:
            raise UnsoundError(
                f"not sound: {kind}",
                path=self.path,
                place=None if offset is None else f"byte {offset}",
                remedy="Read it without --strict to repair what can be repaired.",
            )
        repair = self.kinds.setdefault(kind, Repair(kind, offset))
        repair.count += count
        repair.size += size
        return repair

    def as_list(self) -> list[dict[str, Any]]:
        """The account as it stands in a report."""
        return [
            {
                "file": str(self.path),
                "kind": repair.kind,
                "offset": repair.offset,
                "count": repair.count,
                "left_out": repair.left_out,
                "bytes_left_out": repair.size,
            }
            for repair in self.kinds.values()
        ]
