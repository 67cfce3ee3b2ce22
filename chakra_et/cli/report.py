"""`chakra report`: a page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from chakra_et.cli.progress import working
from chakra_et.cli.terminal import console_for, say
from chakra_et.errors import ChakraError
from chakra_et.io.output import is_standard_output, size_of
from chakra_et.pages import write_report
from chakra_et.replay import network_of

EXAMPLES: Final = {
    "report": (
        ("chakra report DIR -o report.html", "a page about all ranks, which opens offline"),
        ("chakra report recordings/ -o report.html", "of recordings, converted at once"),
        ("chakra report DIR -o report.html --window 20,25", "draw 5 ms of a long run in full"),
        ("chakra report set/ -o set.html --network 5,100", "of generated traces"),
    ),
}


def report_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN",
            help="An ET, a directory of the ETs of all ranks, or recordings to convert.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The page, such as report.html."),
    ],
    window: Annotated[
        str | None,
        typer.Option(
            "--window",
            metavar="FROM_MS,TO_MS",
            help="The time that the timeline draws, from the begin of the run; all by default.",
            show_default=False,
        ),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--network",
            metavar="LATENCY_US,GB_PER_S",
            help="Give transfers a time, where the traces have none (generated ones).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a page about a run: what limits it, and everything that shows why.

    The page is one HTML file that needs no network: what limits the run, steps by rank, a
    timeline, the critical path, operators, collectives, groups, skew between ranks, memory, what
    was read and left out, and the findings of the validators.
    """
    model = None if network is None else network_of(network, "--network")
    with working("making the page"):
        limit = write_report(source, output, window_ns=_window(window), network=model)
    console = console_for(stderr=is_standard_output(output))
    say(console, limit.sentence)
    written = size_of(output)
    if written is not None:
        say(console, f"{output}: {written / 1e6:.1f} MB", "dim")


def _window(told: str | None) -> tuple[int, int] | None:
    if told is None:
        return None
    try:
        begin, end = (round(float(part) * 1e6) for part in told.split(","))
    except (ValueError, OverflowError):
        begin = end = 0
    if not 0 <= begin < end:
        raise ChakraError(
            f"--window takes two times in ms, the first one smaller, not {told!r}",
            remedy="Write --window 20,25.",
        )
    return begin, end
