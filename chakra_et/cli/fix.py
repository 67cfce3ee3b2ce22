"""`chakra fix`: traces in, traces without what can be cured out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from chakra_et.cli.outputs import expect_apart, expect_directory, write_ranks
from chakra_et.cli.progress import working
from chakra_et.cli.targets import (
    ForceOption,
    HostTime,
    HostTimeOption,
    PrefixOption,
    QuietOption,
    TargetOption,
)
from chakra_et.cli.terminal import console_for, say
from chakra_et.errors import ChakraError
from chakra_et.files import read_files
from chakra_et.io.output import is_standard_output, write_json
from chakra_et.model import TraceSet
from chakra_et.passes import Cured, cure, write_for_astra_sim
from chakra_et.validators import Severity

EXAMPLES: Final = {
    "fix": (
        ("chakra fix trace.0.et -o fixed.0.et", "one rank"),
        ("chakra fix DIR -o OUT", "all ranks of a run"),
        ("chakra fix DIR --for astra-sim -o OUT", "ready for the simulator"),
    ),
}


def fix_command(
    path: Annotated[
        Path, typer.Argument(metavar="IN", help="An ET, or a directory of the ETs of one run.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="A file (.et or .json, with .gz or .zst compressed), or a directory.",
        ),
    ],
    target: TargetOption = None,
    host: HostTimeOption = HostTime.FOLD,
    cut: Annotated[
        bool, typer.Option("--cut-cycles", help="Drop one edge of each cycle, which is a guess.")
    ] = False,
    split_us: Annotated[
        float | None,
        typer.Option(
            "--split-host-time",
            metavar="LEAST_US",
            min=0,
            help="Make nodes of other operators' time in host nodes, from so many us on.",
            show_default=False,
        ),
    ] = None,
    prefix: PrefixOption = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write every change as JSON.")
    ] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fix what can be fixed, and report every change.

    Exit code 1: errors remain that cannot be fixed.
    """
    if prefix is not None and target is None:
        raise ChakraError(
            "--prefix without --for", remedy="Files keep their names; give --for, or leave it out."
        )
    if target is not None:
        expect_directory(output)
    expect_apart("--report", report, output, [path])
    split_ns = None if split_us is None else round(split_us * 1000)
    with working("curing"):
        found = read_files(path)
        traces = TraceSet({rank: trace for rank, (_, trace) in found.items()})
        cured = cure(traces, target and target.value, host=host.value, cut=cut, split_ns=split_ns)
    names = {rank: file.name for rank, (file, _) in found.items()}
    name = prefix or next(iter(names.values())).split(".")[0]
    if target is not None:
        with working("writing"):
            write_for_astra_sim(cured.traces, output, name, force)
    else:
        write_ranks(cured.traces, output, names, name, force)
    if not quiet:
        console = console_for(stderr=is_standard_output(output))
        say(console, output, "bold")
        show_cures(console, cured)
    if report is not None:
        write_json(cured.as_dict(), report)
    if cured.left.count(Severity.ERROR):
        raise typer.Exit(1)


def show_cures(console: Console, cured: Cured) -> None:
    """What was changed, and what is left."""
    if not any(cured.changes.values()):
        say(console, "  there was nothing to fix")
    for name, changes in cured.changes.items():
        counts = Counter[str]()
        ranks: dict[str, set[int | None]] = {}
        for change in changes:
            counts[change.what] += change.count
            ranks.setdefault(change.what, set()).add(change.rank)
        for what, count in counts.items():
            on = f" on {len(ranks[what])} ranks" if len(ranks[what]) > 1 else ""
            say(console, f"  {name}: {count} {what}{on}")
    for outcome in cured.left.outcomes:
        style = {Severity.ERROR: "red", Severity.WARNING: "yellow"}.get(outcome.severity, "dim")
        text = f"  left: {outcome.rule.id} ({outcome.severity.label}, {outcome.count}) "
        say(console, text + outcome.rule.title, style)
