"""Text for people: as wide as the terminal, and in pipes and files as long as it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias

from chakra_et.shown import line, shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PIPE_WIDTH: Final = 1 << 16
"""Wider than any line, for output that nobody wraps."""
_PREFIXES: Final = ((1 << 40, "TB", 1e12), (1 << 30, "GB", 1e9), (1 << 20, "MB", 1e6))


_FORCED: Final = {"FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}
"""Variables by which Rich may take for a terminal what is none."""


Row: TypeAlias = tuple[str, object]
"""A label and a text."""
WARNING: Final = "warning"
"""The label of a warning."""


class Plain:
    """A file or a pipe: text goes there as it is, and Rich, which takes 30 ms to load, is not
    needed."""

    is_terminal: Final = False

    def __init__(self, file: TextIO) -> None:
        self.file = file


def console_for(*, stderr: bool = False) -> Console:
    """The console of a command; colours only on a terminal, and none with NO_COLOR."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, stderr=stderr)
    return (
        console
        if console.is_terminal
        else Console(highlight=False, markup=False, stderr=stderr, width=_PIPE_WIDTH)
    )


def plain_or_console(*, stderr: bool = False) -> Console | Plain:
    """Where lines and rows go; of a terminal, its console."""
    file = sys.stderr if stderr else sys.stdout
    return console_for(stderr=stderr) if may_be_terminal(file) else Plain(file)


def may_be_terminal(file: TextIO) -> bool:
    """Whether Rich knows what to do with a stream: others are files and pipes for sure."""
    return file.isatty() or not _FORCED.isdisjoint(os.environ)


def say(console: Console | Plain, text: object, style: str = "") -> None:
    """Print one line, wrapped where the terminal ends."""
    if isinstance(console, Plain):
        console.file.write(shown(str(text)) + "\n")
    else:
        console.print(line(str(text), style), soft_wrap=not console.is_terminal)


def show_rows(console: Console | Plain, rows: Iterable[Row]) -> None:
    """Labels and texts side by side, in two columns; warnings stand out."""
    if isinstance(console, Plain):
        _write_rows(console.file, [(shown(label), shown(str(text))) for label, text in rows])
        return
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2), pad_edge=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in rows:
        table.add_row(line(label), line(str(text)), style="yellow" if label == WARNING else None)
    show_table(console, table)


def _write_rows(file: TextIO, rows: list[tuple[str, str]]) -> None:
    widths = [_cells(label) for label, _ in rows]
    widest = max(widths, default=0)
    for (label, text), width in zip(rows, widths, strict=True):
        file.write(f"  {label}{' ' * (widest - width)}    {text}".rstrip() + "\n")


def _cells(text: str) -> int:
    """How wide a text is on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def show_table(console: Console | Plain, table: Table) -> None:
    """Print a table without blanks at the ends of lines."""
    if isinstance(console, Plain):
        from rich.console import Console

        console = Console(file=console.file, highlight=False, markup=False, width=_PIPE_WIDTH)
    with console.capture() as captured:
        console.print(table)
    for row in captured.get().splitlines():
        console.file.write(row.rstrip() + "\n")


def print_json(content: Any) -> None:
    """Print what msgspec can encode, in a form for people."""
    from chakra_et.io.json_text import to_json

    sys.stdout.write(to_json(content).decode())


def size(count: int) -> str:
    """A number of bytes in a unit that suits it: `37.5 kB`."""
    for least, unit, factor in _PREFIXES:
        if count >= least:
            return f"{count / factor:.1f} {unit}"
    return f"{count / 1e3:.1f} kB" if count >= 1 << 10 else f"{count} bytes"
