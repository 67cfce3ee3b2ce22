"""What a rule has to say: findings, many at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice

from chakra_et.shown import shortened


class Severity(IntEnum):
    """How bad a finding is; a profile decides it for each of its rules."""

    INFO = 1
    """Worth knowing: nothing fails, but results may not mean what one thinks."""
    WARNING = 2
    """Against the advice of the format, or probably not what was meant."""
    ERROR = 3
    """The consumer fails, hangs, or gives plausible nonsense."""

    @property
    def label(self) -> str:
        """The word used on the command line and in output."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault at one place. What does not apply, or is not known, is None."""

    evidence: str
    rank: int | None = None
    node: int | None = None
    """The node's id."""
    name: str | None = None
    """The node's name."""
    path: str | None = None
    """The file."""

    def __post_init__(self) -> None:
        # Bytes of a file that are no text are kept in names and values; no output takes them.
        for part in ("evidence", "name", "path"):
            said = getattr(self, part)
            if said and not said.isascii():
                told = said.encode("utf-8", "backslashreplace").decode()
                object.__setattr__(self, part, told)

    @property
    def place(self) -> str:
        """Rank and node, for people."""
        parts = [] if self.rank is None else [f"rank {self.rank}"]
        if self.node is not None:
            parts.append(f"node {self.node}")
        if self.name:
            parts.append(repr(shortened(self.name)))
        return ", ".join(parts)

    def fingerprint(self, rule: str) -> str:
        """A text by which a later run knows this finding again; paths do not matter to it."""
        said = "\0".join(map(str, (rule, self.rank, self.node, self.name, self.evidence)))
        return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:16]


class Hits:
    """All findings of one run of a rule: how many, and each made when it is asked for.

    So a rule that has something to say of a million nodes costs no more than its columns.
    """

    __slots__ = ("_make", "count")

    def __init__(self, count: int, make: Callable[[int], Finding]) -> None:
        self.count = count
        self._make = make

    @classmethod
    def of(cls, findings: Sequence[Finding]) -> Hits:
        """Hits from findings that are there already."""
        return cls(len(findings), findings.__getitem__)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Finding]:
        return map(self._make, range(self.count))

    def first(self, limit: int) -> list[Finding]:
        """The first `limit` findings."""
        return list(islice(self, limit))


NOTHING = Hits(0, lambda _: Finding(""))
"""What a rule returns that has nothing to say."""
