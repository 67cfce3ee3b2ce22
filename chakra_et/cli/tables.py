"""How tables are shown and written: options that verbs share."""

from __future__ import annotations

import io
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable

from chakra_et.cli.terminal import console_for, say, show_table
from chakra_et.io.output import atomic_output
from chakra_et.shown import line, number_of, shown
from chakra_et.tables.text import cell, heading, is_number

if TYPE_CHECKING:
    from chakra_et.tables.table import Table


_ROWS: Final = 10
"""Rows of a table that are shown, unless others are asked for."""


class Form(str, Enum):
    """Forms of a table."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


FilesArgument: TypeAlias = Annotated[
    list[Path],
    typer.Argument(
        metavar="IN",
        help="ETs or recordings of a run: files, directories, archives.",
        show_default=False,
    ),
]
FormOption: TypeAlias = Annotated[
    Form,
    typer.Option(
        "--format", help="For people, or exact for programs; by default by the name of FILE."
    ),
]
OutOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to a file instead.", show_default=False
    ),
]
TopOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--top",
        metavar="N",
        min=0,
        help="Rows to show or write, 0 for all; by default 10 for people, all for programs.",
        show_default=False,
    ),
]
_LEAST_TEXT: Final = 14
"""A text is cut to no less than this on a narrow terminal; first go the last columns."""
_LONG: Final = 60
_REST: Final = "--top 0 and --format csv have all"
_SPACE: Final = 2


def put_table(table: Table, form: Form, output: Path | None, top: int | None) -> None:
    """Show a table, or write it in a form for programs; `top` rows of it."""
    form = form_of(form, output)
    if form is Form.TABLE:
        show_or_write([table], output, top)
        return
    from chakra_et.tables.encode import ENCODERS

    write(ENCODERS[form.value](table.take(slice(top or None))), output)


def form_of(form: Form, output: Path | None) -> Form:
    """The form that is asked for, by option or by the name of the file."""
    if form is not Form.TABLE or output is None:
        return form
    names = {f".{one.value}": one for one in Form if one is not Form.TABLE}
    suffixes = [suffix for suffix in output.suffixes if suffix not in (".gz", ".zst")]
    return names.get(suffixes[-1], form) if suffixes else form


def show_or_write(tables: Sequence[Table], output: Path | None, top: int | None) -> None:
    """Tables for people, on the terminal or in a file, the first rows of each."""
    if output is None:
        _show_all(console_for(), tables, top)
        return
    text = io.StringIO()
    _show_all(Console(file=text, width=1 << 16, highlight=False, markup=False), tables, top)
    write(text.getvalue().encode("utf-8", "backslashreplace"), output)


def write(data: bytes, output: Path | None) -> None:
    """Write bytes to a file, or to standard output."""
    with atomic_output(Path("-") if output is None else output) as stream:
        stream.write(data)


def _show_all(console: Console, tables: Sequence[Table], top: int | None) -> None:
    for place, table in enumerate(tables):
        if place:
            say(console, "")
        show(console, table, _ROWS if top is None else top)


def show(console: Console, table: Table, top: int = _ROWS, rest: str = _REST) -> None:
    """The first rows of a table (all for 0); on a terminal as many columns as it is wide."""
    title = f"{table.name} ({table.note})" if table.note else table.name
    say(console, title if len(table) else f"{table.name}: none", "bold")
    rows = list(table.take(slice(top or None)).rows())
    told = [i for i in range(len(table.columns)) if any(row[i] not in (None, "") for row in rows)]
    if not told:
        return
    names = list(table.columns)
    shown_rows = [[shown(cell(names[i], row[i])) for i in told] for row in rows]
    right = [all(row[i] is None or is_number(row[i]) for row in rows) for i in told]
    widths = [
        max(map(cell_len, (heading(names[i]), *(row[place] for row in shown_rows))))
        for place, i in enumerate(told)
    ]
    if console.is_terminal:
        widths = _fitted(widths, right, console.width)
    else:
        # Nothing is cut: what is long goes to the end of the line.
        order = sorted(range(len(told)), key=lambda place: widths[place] > _LONG)
        told = [told[place] for place in order]
        right = [right[place] for place in order]
        widths = [widths[place] for place in order]
        shown_rows = [[row[place] for place in order] for row in shown_rows]
    drawn = RichTable(box=None, padding=(0, _SPACE, 0, 0), header_style="bold")
    for i, at_right, width in zip(told, right, widths, strict=False):
        side: Any = "right" if at_right else "left"
        drawn.add_column(
            heading(names[i]), justify=side, width=width, no_wrap=True, overflow="ellipsis"
        )
    for texts in shown_rows:
        drawn.add_row(*(line(text) for text in texts[: len(widths)]))
    show_table(console, drawn)
    left = [number_of(len(table) - len(rows), "more row")] * (len(rows) < len(table))
    left += [number_of(len(told) - len(widths), "more column")] * (len(widths) < len(told))
    if left:
        say(console, f"{' and '.join(left)}: {rest}", "dim")


def _fitted(widths: list[int], right: list[bool], width: int) -> list[int]:
    """Widths of the columns that fit a terminal: texts are cut first, then columns left out."""
    least = [w if number else min(w, _LEAST_TEXT) for w, number in zip(widths, right, strict=True)]
    while len(least) > 1 and sum(least) + _SPACE * len(least) > width:
        least.pop()
    room = width - sum(least) - _SPACE * len(least)
    for place, (least_width, wanted) in enumerate(zip(least, widths, strict=False)):
        more = min(max(room, 0), wanted - least_width)
        least[place] += more
        room -= more
    return least
