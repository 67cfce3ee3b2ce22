"""`chakra doctor`: what a recording lacks, and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from chakra_et.cli.progress import working
from chakra_et.cli.terminal import console_for, print_json, say, show_table
from chakra_et.doctor import Examination, Lack, examine
from chakra_et.shown import line, number_of
from chakra_et.validators.finding import Severity

EXAMPLES: Final = {
    "doctor": (
        ("chakra doctor run", "before you take the recording away, or convert it"),
        ("chakra doctor run.zip --json", "for other programs"),
    ),
}
_COLOURS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: ""}
_NAMED: Final = 8


def doctor_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A directory or an archive with the recordings of a run: host traces and "
            "profiles, whoever recorded them.",
            show_default=False,
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Say what a recording lacks, and which setting of the recorder fixes it.

    Looks for missing ranks and files, files that end too early, windows that differ, and what the
    profiler was not asked for: shapes, threads, waits, device work, process groups, steps. The
    exit code is 1 where something is lacking; advice (info) alone does not count.
    """
    with working("examining"):
        found = examine(source)
    if as_json:
        print_json(found.as_dict())
    else:
        _show(console_for(), found)
    raise typer.Exit(found.exit_code)


def _show(console: Console, found: Examination) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("rank", "host nodes", "profile records", "steps", "files"):
        table.add_column(title, overflow="fold")
    for rank in found.ranks:
        table.add_row(*map(line, _row(rank)))
    show_table(console, table)
    for lack in found.findings:
        say(console, f"{lack.severity.label}  {lack.check}{_who(lack)}: {lack.evidence}.",
            _COLOURS[lack.severity])  # fmt: skip
        say(console, f"  {lack.remedy}")
    if not found.findings:
        say(console, f"nothing is missing in {number_of(len(found.ranks), 'rank')}")


def _row(rank: dict[str, Any]) -> tuple[str, ...]:
    steps = rank["steps"]
    numbers = (rank["host_nodes"], rank["profile_records"])
    counts = ["-" if number is None else f"{number:,}" for number in numbers]
    shown = f"{steps[0]} to {steps[-1]}" if len(steps) > 1 else "".join(map(str, steps)) or "-"
    return str(rank["rank"]), *counts, shown, ", ".join(rank["files"])


def _who(lack: Lack) -> str:
    if not lack.ranks:
        return ""
    named = ", ".join(map(str, lack.ranks[:_NAMED])) + ", …" * (len(lack.ranks) > _NAMED)
    return f" (rank {named})"
