"""`chakra analyze`: what a job of many ranks suffers from."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from chakra_et.cli.progress import working
from chakra_et.cli.tables import Form, FormOption, OutOption, TopOption, put_table
from chakra_et.cli.terminal import console_for, say
from chakra_et.errors import ChakraError
from chakra_et.loading import load

EXAMPLES: Final = {
    "analyze": (
        ("chakra analyze DIR skew", "who came late to which collective, and why"),
        ("chakra analyze DIR stragglers", "ranks that are slower than others, step by step"),
        ("chakra analyze DIR grid", "times along the axes of parallelism: replicas, stages"),
        ("chakra analyze RECORDS stragglers", "the same of what ndtimeline recorded"),
        ("chakra analyze DIR hang", "from traces cut short: who never reached a collective"),
        ("chakra analyze DIR path", "the critical path, from rank to rank"),
        ("chakra analyze DIR mfu --peak 312e12", "FLOPs and utilisation of each rank"),
        ("chakra analyze DIR clocks --format json", "offsets and drift of the ranks' clocks"),
    ),
}


class What(str, Enum):
    """Analyses."""

    CLOCKS = "clocks"
    SKEW = "skew"
    STRAGGLERS = "stragglers"
    GRID = "grid"
    PATH = "path"
    MFU = "mfu"
    HANG = "hang"


def analyze_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN", help="The ETs or recordings of all ranks of a run, or ndtimeline's."
        ),
    ],
    what: Annotated[What, typer.Argument(help="What to look for.", show_default=False)],
    peak: Annotated[
        float | None,
        typer.Option(
            metavar="FLOP/S",
            help="Peak rate of the device, for mfu (312e12 is an A100's in bf16).",
            show_default=False,
        ),
    ] = None,
    form: FormOption = Form.TABLE,
    output: OutOption = None,
    top: TopOption = None,
) -> None:
    """Find what holds a job of many ranks up: skew, stragglers, hangs, the path, utilisation.

    Ranks are compared on one clock, which the ends of their communications tell. docs/analyze.md
    explains every column.
    """
    from chakra_et.analyze.job import Job
    from chakra_et.analyze.ndtimeline import is_ndtimeline, read_segments
    from chakra_et.analyze.tables import TABLES, mfu_table, records_table

    if peak is not None and not peak > 0:
        raise ChakraError(f"--peak {peak}: expected a positive rate", remedy="Write --peak 312e12.")
    if is_ndtimeline(source):
        with working("reading"):
            segments = read_segments(source)
        if segments.skipped:
            left = ", ".join(segments.skipped)
            say(
                console_for(stderr=True), f"left out, as no records of ndtimeline: {left}", "yellow"
            )
        put_table(records_table(segments, what.value), form, output, top)
        return
    with working("reading"):
        job = Job.of(load([source]))
    with working("analyzing"):
        table = mfu_table(job, peak) if what is What.MFU else TABLES[what.value](job)
    put_table(table, form, output, top)
