"""`chakra diff`: what two runs differ in."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from chakra_et.cli.progress import working
from chakra_et.cli.tables import show
from chakra_et.cli.terminal import console_for, print_json, say
from chakra_et.loading import load

if TYPE_CHECKING:
    from chakra_et.tables.diff import Difference

EXAMPLES: Final = {
    "diff": (
        ("chakra diff before/ after/", "two runs, or a run and what was made of it"),
        ("chakra diff a.et b.et --only structure", "the same graph, whatever the times?"),
        ("chakra diff a.et b.et --json", "for other programs"),
    ),
}


class Section(str, Enum):
    """What is compared."""

    STRUCTURE = "structure"
    OPERATORS = "operators"
    TIME = "time"
    GROUPS = "groups"
    ATTRIBUTES = "attributes"
    METADATA = "metadata"


def diff_command(
    left: Annotated[Path, typer.Argument(metavar="A", help="ETs or recordings of a run.")],
    right: Annotated[Path, typer.Argument(metavar="B", help="Those of another one.")],
    only: Annotated[
        list[Section] | None,
        typer.Option("--only", help="Compare this alone. May be repeated.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=0, help="Rows to show; 0 for all.")
    ] = 10,
) -> None:
    """Compare two runs, or two versions of one: A is left, B is right.

    Nodes stand for each other by id and name, or else by name and place on their thread or stream.
    Exit code 0: the same. 1: they differ.
    """
    from chakra_et.tables.diff import diff

    with working("reading"):
        sides = load(left), load(right)
    with working("comparing"):
        found = diff(*sides, [section.value for section in only or ()])
    if as_json:
        print_json(found.as_dict())
    else:
        _show(console_for(), found, top)
    if not found.same:
        raise typer.Exit(1)


def _show(console: Console, found: Difference, top: int) -> None:
    left, right = found.nodes
    told = f"{left} nodes left, {right} right, {found.matched} stand for each other"
    differing = [name for name, table in found.sections.items() if len(table)]
    same = [name for name in found.sections if name not in differing]
    say(console, told)
    for name in differing:
        say(console, "")
        show(console, found.sections[name], top, "--top 0 and --json have all")
    if same:
        say(console, "")
        say(console, f"the same: {', '.join(same)}", "green")
