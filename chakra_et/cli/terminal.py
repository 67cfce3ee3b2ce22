"""Text for people: as wide as the terminal, and in pipes and files as long as it is."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from rich.console import Console
from rich.table import Table

from chakra_et.io.json_text import to_json
from chakra_et.shown import line

_PIPE_WIDTH: Final = 1 << 16
"""Wider than any line, for output that nobody wraps."""
_PREFIXES: Final = ((1 << 40, "TB", 1e12), (1 << 30, "GB", 1e9), (1 << 20, "MB", 1e6))


Row: TypeAlias = tuple[str, object]
"""A label and a text."""
WARNING: Final = "warning"
"""The label of a warning."""


def console_for(*, stderr: bool = False) -> Console:
    """The console of a command; colours only on a terminal, and none with NO_COLOR."""
    console = Console(highlight=False, markup=False, stderr=stderr)
    return (
        console
        if console.is_terminal
        else Console(highlight=False, markup=False, stderr=stderr, width=_PIPE_WIDTH)
    )


def say(console: Console, text: object, style: str = "") -> None:
    """Print one line, wrapped where the terminal ends."""
    console.print(line(str(text), style), soft_wrap=not console.is_terminal)


def show_rows(console: Console, rows: Iterable[Row]) -> None:
    """Labels and texts side by side, in two columns; warnings stand out."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2), pad_edge=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in rows:
        table.add_row(line(label), line(str(text)), style="yellow" if label == WARNING else None)
    show_table(console, table)


def show_table(console: Console, table: Table) -> None:
    """Print a table without blanks at the ends of lines."""
    with console.capture() as captured:
        console.print(table)
    for row in captured.get().splitlines():
        console.file.write(row.rstrip() + "\n")


def print_json(content: Any) -> None:
    """Print what msgspec can encode, in a form for people."""
    sys.stdout.write(to_json(content).decode())


def size(count: int) -> str:
    """A number of bytes in a unit that suits it: `37.5 kB`."""
    for least, unit, factor in _PREFIXES:
        if count >= least:
            return f"{count / factor:.1f} {unit}"
    return f"{count / 1e3:.1f} kB" if count >= 1 << 10 else f"{count} bytes"
