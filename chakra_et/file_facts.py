"""What the bytes of an ET file tell before anybody asks what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NAME: Final = re.compile(r"(?P<prefix>.+)\.(?P<rank>\d+)\.et")
"""The name of a file that simulators open: prefix and rank."""


@dataclass
class FileFacts:
    """The records of an ET file, counted without being read, and what is odd about them."""

    path: Path
    size: int
    compression: str | None = None
    writable: bool = True
    records: int = 0
    """Whole records, the metadata included."""
    whole: int = 0
    """Where the last whole record ends."""
    empty: int = 0
    """How many records have no content, behind the first one."""
    first_empty: int = 0
    """Where the first of these is."""
    empty_metadata: bool = False
    version: str | None = None
    """The version that the metadata tells; None if there is no metadata."""
    no_metadata: str | None = None
    """Why the first record is no metadata of today."""
    broken: tuple[int, str] | None = None
    """Where and why the bytes are no sequence of records."""
    cut: tuple[int, int] | None = None
    """Where the last record begins and how many bytes of it are missing."""

    @property
    def rank(self) -> int | None:
        """The rank that the file's name tells."""
        match = NAME.fullmatch(self.path.name)
        return int(match["rank"]) if match else None
