"""Tables of a page: cells with a text, and a number to sort by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from chakra_et.pages import text
from chakra_et.shown import shown

MOST_ROWS: Final = 300
"""Rows of a table on a page; the others are counted."""
_WIDTH: Final = 100
_TITLE_WIDTH: Final = 400


@dataclass(frozen=True)
class Part:
    """A part of a bar: what its colour is named after, its share in per cent, and in words."""

    name: str
    percent: float
    words: str


@dataclass(frozen=True)
class Cell:
    """A cell: `text`, and `value` where it is a number; or a bar, or a jump into the timeline."""

    text: str
    value: float | int | None = None
    bar: Sequence[Part] | None = None
    jump: tuple[int, int, int] | None = None
    badge: str = ""
    whole: str = ""
    """The text in full where it had to be cut."""


@dataclass(frozen=True)
class Column:
    """The head of a column."""

    label: str
    text: bool = False
    bar: bool = False
    meaning: str = ""


@dataclass
class Grid:
    """A table: an `id`, a caption, columns and rows."""

    id: str
    caption: str
    columns: Sequence[Column]
    rows: list[list[Cell]]
    note: str = ""
    left_out: int = 0

    def __post_init__(self) -> None:
        self.left_out += max(len(self.rows) - MOST_ROWS, 0)
        del self.rows[MOST_ROWS:]


@dataclass
class Section:
    """A section of the page; `empty` says why there is nothing in it."""

    id: str
    title: str
    words: list[str] = field(default_factory=list)
    tables: list[Grid] = field(default_factory=list)
    empty: str = ""


def name(value: object) -> Cell:
    """A text from a trace, on one line."""
    told = shown(str(value))
    if len(told) <= _WIDTH:
        return Cell(told)
    return Cell(cut(told, _WIDTH), whole=cut(told, _TITLE_WIDTH))


def sentence(value: object) -> Cell:
    """Words for people, which are never cut."""
    return Cell(shown(str(value)))


def cut(told: str, width: int) -> str:
    """A text of at most `width` characters."""
    return told if len(told) <= width else told[: width - 1] + "…"


def time(ns: float) -> Cell:
    """A time in ns."""
    return Cell(text.time(ns), ns)


def share(part: float) -> Cell:
    """A share of 1."""
    return Cell(text.share(part), part)


def number(value: float) -> Cell:
    """A number without a unit."""
    return Cell(text.number(value), value)


def size(count: float) -> Cell:
    """A number of bytes."""
    return Cell(text.size(count), count)


def bar(entries: Iterable[tuple[str, str, int]]) -> list[Part]:
    """A bar of parts, each a name of a colour, a label and a time in ns."""
    given = [entry for entry in entries if entry[2] > 0]
    whole = sum(ns for _, _, ns in given) or 1
    return [
        Part(
            kind, round(100 * ns / whole, 3), f"{label} {text.share(ns / whole)} ({text.time(ns)})"
        )
        for kind, label, ns in given
    ]


_UNITS: Final[tuple[tuple[str, Callable[[float], Cell]], ...]] = (
    ("_bytes_per_s", lambda value: Cell(f"{text.size(value)}/s", value)),
    ("_bytes", size),
    ("_ns", time),
    ("_share", share),
    ("_flops", number),
)


def from_table(table: Any, id: str, caption: str, only: Sequence[str] = ()) -> Grid:
    """A `chakra_et.tables.Table` as a table of the page: units from the ends of its names.

    `only` names the columns to show; all of them by default.
    """
    names = [one for one in table.columns if not only or one in only]
    chosen = [list(table.columns).index(one) for one in names]
    rows = list(table.rows())
    told = [[row[place] for place in chosen] for row in rows[:MOST_ROWS]]
    texts = [any(isinstance(row[i], (str, list, tuple)) for row in told) for i in range(len(names))]
    columns = [Column(_label(one), text=texts[i]) for i, one in enumerate(names)]
    cells = [[_cell(one, value) for one, value in zip(names, row, strict=True)] for row in told]
    note = table.note
    for one in names:
        note = note.replace(one, _label(one))
    return Grid(id, caption, columns, cells, note, len(rows) - len(told))


def _cell(column: str, value: Any) -> Cell:
    if value is None:
        return Cell("")
    if isinstance(value, (list, tuple)):
        return name(ranks(value))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return name(value)
    for unit, make in _UNITS:
        if column.endswith(unit):
            return make(value)
    return number(value)


def _label(column: str) -> str:
    column = column.replace("_bytes_per_s", "_bandwidth")
    for unit in ("_bytes", "_ns", "_flops"):
        column = column.removesuffix(unit)
    return column.replace("_", " ")


def ranks(members: Sequence[int]) -> str:
    """Numbers with runs cut short: `0-7, 9`."""
    parts: list[str] = []
    place = 0
    while place < len(members):
        last = place
        while last + 1 < len(members) and members[last + 1] == members[last] + 1:
            last += 1
        run = last - place
        parts.append(f"{members[place]}-{members[last]}" if run > 1 else str(members[place]))
        place = last + 1 if run > 1 else place + 1
    return ", ".join(parts)
