"""`chakra formats`: what is read and written."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from rich.table import Table

from chakra_et.cli.terminal import console_for, print_json, show_rows, show_table
from chakra_et.converters import formats
from chakra_et.converters.format import Format, View
from chakra_et.shown import line

_HOLDS: Final = {
    View.HOST: "operators, tensors, callers",
    View.DEVICE: "times, threads, streams, kernels",
    View.BOTH: "both, linked by another tool",
    View.TRACE: "an execution trace",
}


EXAMPLES: Final = {
    "formats": (
        ("chakra formats", "what is read and written"),
        ("chakra formats --json", "for other programs"),
    ),
}


def formats_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the formats that are read and written, and those that are only recognised.

    All are recognised by content, never by name. Each may be compressed with gzip or zstd, and
    packed with tar or zip. For formats that are refused it says what to do instead.
    """
    if as_json:
        print_json([_as_dict(form) for form in formats.FORMATS])
        return
    console = console_for()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("format", "read", "written as", "holds"):
        table.add_column(title, overflow="fold")
    for form in formats.FORMATS:
        if form.read is not None:
            written = ", ".join(form.suffixes)
            table.add_row(line(form.name), "yes", written, _HOLDS[form.view])
    show_table(console, table)
    others = [form for form in formats.FORMATS if form.read is None]
    rows = (
        ("skipped", [form.name for form in others if form.own]),
        ("refused", [form.called for form in others if not form.own]),
    )
    show_rows(console, [(label, "; ".join(names)) for label, names in rows])


def _as_dict(form: Format) -> dict[str, Any]:
    return {
        "name": form.name,
        "holds": form.view.value,
        "read": form.read is not None,
        "written": form.write is not None,
        "suffixes": list(form.suffixes),
        "own": form.own,
        "remedy": form.remedy,
    }
