"""The parts of a packed file, a zip archive whose members are compressed by themselves.

`pack.json` lists the ranks. `class.<n>` has the columns of a class, whole; `rank.<r>` what rank r
differs in, compressed with these beside it. A rank without a class is kept as its bytes.
"""

from __future__ import annotations

from typing import Final

import msgspec

FORMAT: Final = "chakra-et pack 1"
TABLE: Final = "pack.json"


class RankEntry(msgspec.Struct):
    """A rank: its number, the size and hash of its ET, and the class that it is of."""

    rank: int
    bytes: int
    sha256: str
    group: int | None = None


class Table(msgspec.Struct):
    """The content of `pack.json`: the ranks, and the prefix of their files' names."""

    ranks: list[RankEntry]
    prefix: str = "trace"
    format: str = FORMAT

    def name(self, entry: RankEntry) -> str:
        """The name of a rank's ET."""
        return f"{self.prefix}.{entry.rank}.et"


def class_name(number: int) -> str:
    """The member that has the columns of a class."""
    return f"class.{number}"


def rank_name(rank: int) -> str:
    """The member that has what a rank differs in."""
    return f"rank.{rank}"
