"""`chakra compare-sim`: a simulated run beside the recorded one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from chakra_et.cli.progress import working
from chakra_et.cli.terminal import console_for, print_json, say, show_table
from chakra_et.files import read_set
from chakra_et.io.output import is_standard_output
from chakra_et.pages.simulated import notes, sentence, write_comparison
from chakra_et.pages.text import time
from chakra_et.simulation import Comparison, compare, read_astra_log

EXAMPLES: Final = {
    "compare-sim": (
        ("chakra compare-sim fed/ out.txt", "what ASTRA-sim printed, beside the traces it ran"),
        ("chakra compare-sim fed/ log/ -o sim.html", "both timelines on one page"),
        ("chakra compare-sim fed/ log/log.log --json", "for other programs"),
    ),
}
_RANKS_SHOWN: Final = 16


def compare_sim_command(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help="The ETs that the simulator ran, with recorded times."),
    ],
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG", help="What ASTRA-sim printed, its log.log, or the directory of that."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write a page with both timelines (needs the extra report).",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Put a simulated run beside the recorded one.

    Per rank the time until it finished and the exposed communication; per communication its
    transfer, and both timelines, where the log has times of nodes ("trace-enabled": 1 in the
    system configuration). Exit code 1: a rank never finished.
    """
    with working("reading"):
        traces = read_set(source)
        found = compare(traces, read_astra_log(log))
    if output is not None:
        with working("making the page"):
            write_comparison(traces, found, str(source), output)
    if as_json:
        print_json(found.as_dict())
    else:
        _show(console_for(stderr=output is not None and is_standard_output(output)), found)
    if found.unfinished:
        raise typer.Exit(1)


def _show(console: Console, found: Comparison) -> None:
    say(console, sentence(found))
    table = Table(box=None, padding=(0, 2, 0, 0))
    heads = ("rank", "recorded", "simulated", "ratio", "exposed rec.", "exposed sim.")
    for head in heads:
        table.add_column(head, justify="right", overflow="fold")
    for rank, r in list(found.ranks.items())[:_RANKS_SHOWN]:
        ratio = "" if r.ratio is None else f"{r.ratio:.2f}"
        both = r.recorded_exposed_comm_ns, r.simulated_exposed_comm_ns
        table.add_row(
            str(rank), _time(r.recorded_ns), _time(r.simulated_ns), ratio, *map(_time, both)
        )
    show_table(console, table)
    if len(found.ranks) > _RANKS_SHOWN:
        say(console, f"{len(found.ranks) - _RANKS_SHOWN} more ranks (--json has all)", "dim")
    for call in found.calls:
        recorded = "" if call.recorded_ns is None else f"recorded {time(call.recorded_ns)}, "
        told = f"{recorded}simulated {time(call.simulated_ns)}"
        say(console, f"{call.count} {call.type} of {call.size_bytes:,} bytes: {told}")
    for note in notes(found):
        say(console, note, "yellow")


def _time(ns: int | None) -> str:
    return "" if ns is None else time(ns)
