"""Texts of LLMServingSim: one batch on one instance, row by row.

The first line says what the instance does and how many pipeline stages it has, the second one
counts the rows. A row has a name, nanoseconds of computing, place and bytes of its input, weight
and output, a collective with its bytes, and a tag. Rows between `EXPERT n` and `EXPERT END` are for
one rank of the experts, those between `PIM n` and `PIM END` for a channel of processing in memory.
Format: casys-kaist/LLMServingSim, docs/docs/reference/trace-format.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from chakra_et.definitions import CollectiveType
from chakra_et.io.source import read_all
from chakra_et.workloads.text_lines import REMEDY, TextLines


class Mode(Enum):
    """What the instance does; the values are the words of the file."""

    COLOCATED = "COLOCATED"
    PREFILL = "PREFILL"
    DECODE = "DECODE"
    EVENT = "EVENT"


class Place(NamedTuple):
    """Where data lies; `tier` is `tensor_loc`: 1 the device, 2 a host, 3 CXL, 4 storage."""

    tier: int
    device: int = 0
    channel: int | None = None


LOCAL: Final = Place(1)


class Data(NamedTuple):
    """Bytes at a place."""

    place: Place
    size_bytes: int

    @property
    def is_moved(self) -> bool:
        """Whether it comes from, or goes to, another memory than the device's."""
        return self.place.tier != LOCAL.tier and self.size_bytes > 0


@dataclass(frozen=True)
class Row:
    """A line. `involved` has the dimensions of the network that the collective is for, () for all.

    `expert` and `channel` say which rank of the experts or which channel runs it, if not every
    rank. `batch` is the half of an interleaved batch, 0 for both.
    """

    name: str
    compute_ns: int
    input: Data
    weight: Data
    output: Data
    collective: CollectiveType | None
    size_bytes: int
    involved: tuple[bool, ...] = ()
    batch: int = 0
    expert: int | None = None
    channel: int | None = None


@dataclass(frozen=True)
class ServingText:
    """A file. `cache` are the leading rows that move keys and values from and to slower memory.

    `starts` has the row at which each stage begins.
    """

    path: Path
    mode: Mode
    stages: int
    rows: list[Row]
    cache: list[Row] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])

    @property
    def dimensions(self) -> int:
        """How many dimensions of the network the collectives name; 0 where none does."""
        return max((len(row.involved) for row in self.rows), default=0)

    def stage(self, number: int) -> range:
        """The rows of a stage."""
        return range(self.starts[number], [*self.starts[1:], len(self.rows)][number])


_TIERS: Final = {"LOCAL": 1, "REMOTE": 2, "CXL": 3, "STORAGE": 4}
_COLLECTIVES: Final = {
    "NONE": None,
    "ALLREDUCE": CollectiveType.ALL_REDUCE,
    "ALLTOALL": CollectiveType.ALL_TO_ALL,
    "ALLGATHER": CollectiveType.ALL_GATHER,
    "REDUCESCATTER": CollectiveType.REDUCE_SCATTER,
}
_BATCHES: Final = {"NONE": 0, "BATCH_1": 1, "BATCH_2": 2}
CACHE: Final = ("kv_load", "kv_evict")
_STAGES, _BOUNDARIES = "model_parallel_NPU_group", "pp_stage_boundaries"
_COLUMNS: Final = 11
_MOST_STAGES: Final = 4096
_HEAD: Final = re.compile(rb"\s*(?:COLOCATED|PREFILL|DECODE|EVENT)\s")


def is_serving_text(path: str | Path) -> bool:
    """Whether a file begins as LLMServingSim's texts do."""
    return _HEAD.match(read_all(Path(path))[:4096]) is not None


def read_serving_text(path: str | Path) -> ServingText:
    """The text in a file, which may be compressed.

    Raises FormatError, with the line, for what is no such text.
    """
    return _Reader(Path(path)).read()


class _Reader(TextLines):
    def read(self) -> ServingText:
        if len(self.lines) < 2:
            self.fail(1, "a mode, a number of rows and the rows are wanted")
        (first, head), (second, counted), *rest = self.lines
        mode = next((mode for mode in Mode if mode.value == head[0]), None)
        if mode is None:
            known = ", ".join(one.value for one in Mode)
            self.fail(first, f"no mode {head[0]!r}", f"It is one of {known}.")
        stages, boundaries = self._head(first, head[1:])
        if rest and rest[0][1][0].lower() == "layername":
            rest = rest[1:]
        rows, lines = self._rows(rest)
        count = self.number(second, counted[0], "the number of rows")
        if count not in (len(rows), len(rest)) or not rows:
            self.fail(
                second, f"{count} rows are announced, {len(rows)} follow",
                f"If the file is whole, write {len(rows)} there.",
            )  # fmt: skip
        cached = [at for at, row in enumerate(rows) if row.name.startswith(CACHE)]
        if cached != list(range(len(cached))):
            self.fail(second, f"{' and '.join(CACHE)} come before all other rows", REMEDY)
        kept, first_line = rows[len(cached) :], lines[len(cached) :]
        starts = self._starts(first, stages, boundaries, kept, first_line)
        return ServingText(self.path, mode, stages, kept, rows[: len(cached)], starts)

    def _head(self, line: int, words: list[str]) -> tuple[int, list[int] | None]:
        """Stages, and the rows at which all but the first begin, if they are told."""
        told = dict(zip(words[::2], words[1::2], strict=False))
        unknown = set(told) - {f"{_STAGES}:", f"{_BOUNDARIES}:"}
        if unknown or len(words) % 2:
            self.fail(line, f"{' '.join(words)!r} is no list of names and values")
        stages = self.number(line, told.get(f"{_STAGES}:", "1"), _STAGES)
        if not 1 <= stages <= _MOST_STAGES:
            self.fail(line, f"{stages} stages", f"Give 1 to {_MOST_STAGES}.")
        boundaries = told.get(f"{_BOUNDARIES}:")
        if boundaries is None:
            return stages, None
        return stages, [self.number(line, b, _BOUNDARIES) for b in boundaries.split(",")]

    def _rows(self, rest: list[tuple[int, list[str]]]) -> tuple[list[Row], list[int]]:
        """The rows, and which line of the text's body each one is: markers are lines, too."""
        rows, lines = [], []
        block: tuple[str, int] | None = None
        for at, (line, words) in enumerate(rest):
            if words[0] not in ("EXPERT", "PIM"):
                rows.append(self._row(line, words, block))
                lines.append(at)
            elif len(words) == 2 and (block is None) != (words[1] == "END"):
                number = None if block else self.number(line, words[1], words[0])
                block = None if number is None else (words[0], number)
            else:
                self.fail(line, f"{' '.join(words)!r} does not open or close a block")
        if block is not None:
            self.fail(rest[-1][0], f"{block[0]} {block[1]} has no end")
        return rows, lines

    def _row(self, line: int, words: list[str], block: tuple[str, int] | None) -> Row:
        if len(words) != _COLUMNS:
            self.fail(line, f"{len(words)} columns, not {_COLUMNS}")
        kind, _, scope = words[8].partition(":")
        flags = scope.split(",") if scope else []
        if kind not in _COLLECTIVES or not set(flags) <= {"0", "1"} or (flags and "1" not in flags):
            self.fail(
                line, f"no collective {words[8]!r}",
                f"It is one of {', '.join(_COLLECTIVES)}, with :1,0 for dimensions.",
            )  # fmt: skip
        if words[10] not in _BATCHES:
            self.fail(line, f"no tag {words[10]!r}", f"It is one of {', '.join(_BATCHES)}.")
        return Row(
            words[0],
            self.number(line, words[1], "the time"),
            self._data(line, words[2:4]),
            self._data(line, words[4:6]),
            self._data(line, words[6:8]),
            _COLLECTIVES[kind],
            self.number(line, words[9], "the size"),
            tuple(flag == "1" for flag in flags),
            _BATCHES[words[10]],
            block[1] if block and block[0] == "EXPERT" else None,
            block[1] if block and block[0] == "PIM" else None,
        )

    def _data(self, line: int, words: list[str]) -> Data:
        tier, _, where = words[0].partition(":")
        if tier not in _TIERS:
            self.fail(line, f"no place {words[0]!r}", f"It is one of {', '.join(_TIERS)}.")
        device, _, channel = where.partition(".")
        place = Place(
            _TIERS[tier],
            self.number(line, device, "the device") if device else 0,
            self.number(line, channel, "the channel") if channel else None,
        )
        return Data(place, self.number(line, words[1], "the size"))

    def _starts(
        self, line: int, stages: int, told: list[int] | None, rows: list[Row], lines: list[int]
    ) -> list[int]:
        """The first row of each stage; without boundaries, stages have equally many rows."""
        if told is None:
            each, more = divmod(len(rows), stages)
            starts = [stage * each + min(stage, more) for stage in range(stages)]
        else:
            offset = lines[0] if lines else 0
            place = {at - offset: row for row, at in enumerate(lines)}
            starts = [0, *(place.get(boundary, -1) for boundary in told)]
        ascending = all(a < b for a, b in pairwise(starts))
        inside = any(_in_block(rows, start) for start in starts[1:] if 0 < start < len(rows))
        if len(starts) != stages or not ascending or starts[-1] >= len(rows) or inside:
            self.fail(line, f"{len(rows)} rows cannot be cut into {stages} stages there")
        return starts


def _in_block(rows: list[Row], start: int) -> bool:
    """Whether a stage would begin inside the blocks of experts or channels."""
    before, behind = rows[start - 1], rows[start]
    return (before.expert is not None and behind.expert is not None) or (
        before.channel is not None and behind.channel is not None
    )
