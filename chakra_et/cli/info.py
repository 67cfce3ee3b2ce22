"""`chakra info`: what a file is and what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from chakra_et.cli.progress import working
from chakra_et.cli.show import node_facts, show_node, show_trace, trace_facts
from chakra_et.cli.terminal import (
    Plain,
    console_for,
    plain_or_console,
    print_json,
    say,
    show_rows,
    show_table,
)
from chakra_et.converters.format import View
from chakra_et.errors import ChakraError, FormatError
from chakra_et.inputs import Input, open_input
from chakra_et.model import Node, Trace
from chakra_et.search import PassedOver, names_in, told_passed_over
from chakra_et.shown import line, number_of

if TYPE_CHECKING:
    from rich.console import Console

_COUNTS = ("nodes", "records", "host nodes", "edges")


EXAMPLES: Final = {
    "info": (
        ("chakra info trace.0.et", "what is in an ET"),
        ("chakra info DIR", "a table of the files below a directory"),
        ("chakra info trace.0.et --node 812", "what this node waits for, and how that is known"),
        ("chakra info *.et --json", "for other programs"),
    ),
}


def info_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Files of any kind, and directories and archives of them.",
            show_default=False,
        ),
    ],
    node: Annotated[
        int | None,
        typer.Option(
            "--node", metavar="ID", min=0, help="Explain one node of an ET.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show what kind of file this is, by its content, and what is in it.

    Several files are listed in a table; one file is shown in full.
    """
    found: list[Input] = []
    others: list[PassedOver] = []
    for file in files:
        _look(file, found, others)
    if not found:
        raise ChakraError(told_passed_over(others) or "no file here", path=files[0])
    console = plain_or_console()
    if node is not None:
        _show_one_node(console, found, node, as_json)
        return
    tell = _facts if len(found) == 1 else _facts_or_problem
    with working("reading"):
        told = [{"path": given.name, "format": given.format.name, **tell(given)} for given in found]
    if as_json:
        print_json(told)
    elif len(told) == 1:
        _show_file(console, found[0], told[0])
    else:
        _show_files(told)
    passed_over = told_passed_over(others)
    if passed_over is not None:
        say(plain_or_console(stderr=as_json), passed_over)
    if any("problem" in facts for facts in told):
        raise typer.Exit(2)


def _look(source: Path, found: list[Input], others: list[PassedOver]) -> None:
    """Add the file, or the files in it; those that no format recognises are passed over there."""
    names = names_in(source)
    if names is None:
        given = open_input(source)
        if given.view is View.NONE and not given.format.own:
            raise given.refused("a trace")
        found.append(given)
        return
    for name in names:
        path = source / name
        try:
            found.append(open_input(path, str(path)))
        except FormatError as error:
            others.append(PassedOver(str(path), error.problem))


def _facts(given: Input) -> dict[str, Any]:
    """What is in a file, as plain data."""
    if given.format.read is None:
        return {}
    content = given.read()
    if given.view is View.TRACE:
        facts = trace_facts(content)
        # As elsewhere, the name tells the rank where the content does not.
        return {**facts, "rank": given.rank if facts["rank"] is None else facts["rank"]}
    facts = {} if given.format.describe is None else given.format.describe(content)
    return {"rank": given.rank, **facts}


def _facts_or_problem(given: Input) -> dict[str, Any]:
    """What is in a file, or what is wrong with it: one of many does not hide the others."""
    try:
        return _facts(given)
    except ChakraError as error:
        return {"rank": given.rank, "problem": error.problem}


def _show_file(console: Console | Plain, given: Input, facts: dict[str, Any]) -> None:
    say(console, f"{facts['path']}: {facts['format']}", "bold")
    if given.view is View.TRACE:
        show_trace(console, facts)
    elif given.format.read is not None:
        rest = [(k, v) for k, v in facts.items() if k not in ("path", "format") and v is not None]
        show_rows(console, rest)
        say(console, "  make an ET of it with: chakra convert FILE -o OUT.et")


def _show_files(told: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("file", "format", "rank", "holds"):
        table.add_column(title, overflow="fold")
    for facts in told:
        counts = [number_of(facts[key], key[:-1]) for key in _COUNTS if key in facts]
        if "problem" in facts:
            counts = [f"cannot be read: {facts['problem']}"]
        rank = facts.get("rank")
        table.add_row(
            line(facts["path"]),
            facts["format"],
            "" if rank is None else str(rank),
            line(", ".join(counts)),
        )
    show_table(console_for(), table)


def _show_one_node(
    console: Console | Plain, found: list[Input], node_id: int, as_json: bool
) -> None:
    if len(found) != 1:
        raise ChakraError(f"--node is about one file, and here are {len(found)}")
    given = found[0]
    if given.view is not View.TRACE:
        raise ChakraError(
            f"{given.name}: {given.format.name}, which has no nodes to show",
            remedy="--node is for ETs. Make one with: chakra convert",
        )
    trace = given.read()
    facts = node_facts(trace, _node(trace, node_id, given.path))
    if as_json:
        print_json(facts)
    else:
        show_node(console, facts)


def _node(trace: Trace, node_id: int, file: Path) -> Node:
    try:
        return trace.node(node_id)
    except (KeyError, OverflowError):
        ids = trace.nodes.id
        there = (
            f"Ids go from {ids.min()} to {ids.max()}." if len(ids) else "The trace has no nodes."
        )
        raise ChakraError(f"{file}: no node has the id {node_id}", remedy=there) from None
