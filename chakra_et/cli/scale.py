"""`chakra scale`: few ranks to many."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from chakra_et.cli.outputs import expect_directory
from chakra_et.cli.progress import working
from chakra_et.cli.targets import ForceOption, QuietOption, VerboseOption
from chakra_et.cli.terminal import console_for, print_json, say, show_table, size
from chakra_et.errors import ChakraError
from chakra_et.scale import (
    Gathered,
    Scaled,
    parse_degree,
    parse_grid,
    plan_scale,
    write_scaled,
)
from chakra_et.shown import line, number_of

EXAMPLES: Final = {
    "scale": (
        ("chakra scale DIR -o OUT --dp '4->512'", "128 times as many data-parallel ranks"),
        ("chakra scale DIR -o set --dp 512 --pack", "in one file"),
        ("chakra scale DIR -o OUT --dp 64 --grid dp8", "where nothing tells what ranks are for"),
    ),
}

DegreeOption = Annotated[
    str | None,
    typer.Option(metavar="[OLD->]NEW", help="Data-parallel ranks.", show_default=False),
]


def scale_command(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="A directory, or a packed set, of all ranks' ETs.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="OUT", help="A directory; with --pack, a file."),
    ],
    dp: DegreeOption = None,
    tp: Annotated[
        str | None,
        typer.Option(
            metavar="[OLD->]NEW",
            help="Tensor-parallel ranks. Each keeps its part: the model becomes wider.",
            show_default=False,
        ),
    ] = None,
    pp: Annotated[
        str | None,
        typer.Option(
            metavar="[OLD->]NEW",
            help="Refused: stages are no copies of each other.",
            show_default=False,
        ),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(
            metavar="AXES",
            help="How the ranks lie, neighbours first, as in tp2-dp4. By default: as the metadata "
            "tell, or groups and messages show.",
            show_default=False,
        ),
    ] = None,
    gathered: Annotated[
        Gathered | None,
        typer.Option(
            help="What stays in all-gathers of data-parallel ranks that nothing tells about: the "
            "whole, or each rank's part.",
            show_default=False,
        ),
    ] = None,
    pack: Annotated[bool, typer.Option("--pack", help="Write all ranks into one file.")] = False,
    compress: Annotated[bool, typer.Option("--compress", help="Write .et.zst files.")] = False,
    force: ForceOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the account as JSON.")] = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Copy the ranks of a set to more ranks, with the groups, peers and sizes that these have.

    Work per rank stays as it is (weak scaling). A pattern that is not recognised is refused.
    """
    asked = {"dp": dp, "tp": tp, "pp": pp}
    degrees = {axis: parse_degree(axis, text) for axis, text in asked.items() if text is not None}
    if not degrees:
        raise ChakraError("nothing is to grow", remedy="Say what: --dp '4->512'.")
    if pack and compress:
        raise ChakraError("--pack and --compress", remedy="A packed set is compressed already.")
    if not pack:
        expect_directory(output)
    told = None if grid is None else parse_grid(grid)
    with working("reading") as step:
        plan = plan_scale(source, degrees, grid=told, gathered=gathered, step=step)
    with working("writing") as step:
        scaled = write_scaled(plan, output, pack=pack, compressed=compress, force=force, step=step)
    if as_json:
        print_json(scaled.as_dict())
    elif not quiet:
        _show(console_for(), output, scaled, verbose)


def _show(console: Console, output: Path, scaled: Scaled, verbose: bool) -> None:
    """How the ranks lie, what was changed, what was proved."""
    told = scaled.as_dict()
    before, after = told["ranks"]["from"], told["ranks"]["to"]
    say(
        console,
        f"{output}: {before} ranks to {after}, {told['nodes']:,} nodes, {size(told['file_bytes'])};"
        f" {number_of(told['programs'], 'distinct program')}",
        "bold",
    )
    for axis in told["axes"]:
        if axis["from"] > 1:
            grows = f" to {axis['to']}" if axis["to"] != axis["from"] else ""
            say(console, f"  {axis['axis']:<12} {axis['from']}{grows} ({axis['evidence']})")
    for text in _notes(told):
        say(console, f"  {text}")
    if scaled.plan.widens:
        say(
            console,
            "  tp: each rank keeps its part of every layer, so the model is wider than it was; "
            "to divide the same model further, generate it",
            "yellow",
        )
    for what, count in told["left_out"].items():
        say(console, f"  left out: {what} ({count:,} times)", "yellow")
    proofs = told["proofs"]
    say(
        console,
        f"  proved: members of {number_of(proofs['members'], 'group')}, "
        f"{number_of(proofs['sequences'], 'collective')} in one order on all members, "
        f"{number_of(proofs['peers'], 'message end')} with the other end, "
        f"bytes of {number_of(proofs['bytes'], 'communication')} read back",
    )
    if verbose:
        _show_families(console, told)
        _show_bytes(console, told)


def _notes(told: dict[str, Any]) -> list[str]:
    return [f"changed: {count:,} {what}" for what, count in told["changed"].items()]


def _show_families(console: Console, told: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=True)
    for title in ("groups", "along", "number", "ranks of each"):
        table.add_column(title)
    for family in told["families"]:
        table.add_row(
            line(family["family"]),
            line(", ".join(family["axes"]) or "one rank"),
            f"{family['groups']['from']} to {family['groups']['to']}",
            f"{family['size']['from']} to {family['size']['to']}",
        )
    show_table(console, table)


def _show_bytes(console: Console, told: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=True)
    for title, justify in (("groups", "left"), ("type", "left"), ("bytes of all ranks", "right"),
                           ("before, times copies", "right")):  # fmt: skip
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    for row in told["communication"]:
        table.add_row(
            line(row["family"]), row["type"], f"{row['bytes']:,}", f"{row['bytes_of_copies']:,}"
        )
    show_table(console, table)
