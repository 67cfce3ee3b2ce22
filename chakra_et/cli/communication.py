"""`chakra run --mode communication`: its options, and what it says."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer
from rich.console import Console

from chakra_et.benchmark.choices import BackEnd, ShrinkAs
from chakra_et.cli.progress import working
from chakra_et.cli.tables import show
from chakra_et.cli.terminal import WARNING, Row, console_for, print_json, say, show_rows, size
from chakra_et.errors import ChakraError
from chakra_et.shown import number_of

if TYPE_CHECKING:
    from chakra_et.benchmark.comms.call import Settings
    from chakra_et.benchmark.comms.figures import Figures
    from chakra_et.benchmark.comms.job import Job


ShrinkOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--shrink",
        metavar="N",
        min=1,
        help="Run the first N ranks of the recording alone.",
        show_default=False,
    ),
]
ShrinkAsOption: TypeAlias = Annotated[
    ShrinkAs,
    typer.Option(
        "--shrink-as",
        help="What a collective of more ranks becomes: one of those that run, or a delay.",
    ),
]
OneByOneOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--one-by-one",
        help="Communication: wait for each collective before the next, for its bandwidth alone.",
    ),
]
TimeoutOption: TypeAlias = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Longest wait for other ranks."),
]
_ROWS: Final = 20
_WRONG: Final = 5


def run_communication(
    source: Path,
    back_end: BackEnd,
    shrink: int | None,
    shrink_as: ShrinkAs,
    settings: Settings,
    as_json: bool,
) -> None:
    """Run the collectives and messages of a recording; exit code 1 where results are wrong."""
    from chakra_et.benchmark.comms.job import prepare, run_job
    from chakra_et.benchmark.launcher import launched
    from chakra_et.loading import load

    def job() -> Job:
        with working("reading the traces"):
            return prepare(load(source), shrink, shrink_as)

    if back_end is BackEnd.DRY:
        figures: Figures | None = job().figures()
    elif launched():
        from chakra_et.benchmark.comms.torchrun import run_as_rank

        _expect_torch()
        figures = run_as_rank(job, settings)
    else:
        _expect_torch()
        ready = job()
        with working(f"running {number_of(len(ready.plans), 'rank')}"):
            figures = run_job(ready, settings)
    if figures is None:
        return
    if as_json:
        print_json(figures.as_dict())
    else:
        show_communication(console_for(), figures)
    if figures.wrong_count:
        raise typer.Exit(1)


def _expect_torch() -> None:
    """Raise ChakraError without PyTorch; only the ranks import it."""
    if find_spec("torch") is None:
        raise ChakraError("PyTorch is not installed", remedy="pip install 'chakra-et[torch]'")


def show_communication(console: Console, figures: Figures) -> None:
    """How long it took, whether it was right, and the table by type and size."""
    say(console, _headline(figures), "bold")
    show_rows(console, _rows(figures))
    show(console, figures.table, _ROWS, "--json has all")


def _headline(figures: Figures) -> str:
    calls = number_of(figures.calls, "call")
    told = f"{calls} of {number_of(figures.ranks, 'rank')}"
    if not figures.spans_ns:
        return f"{told} would run"
    low, high = min(figures.spans_ns) / 1e6, max(figures.spans_ns) / 1e6
    spread = f"median of {len(figures.spans_ns)}; {low:,.3f} to {high:,.3f}"
    return f"{figures.span_ns / 1e6:,.3f} ms ({spread}); {told} over {figures.backend}"


def _rows(figures: Figures) -> list[Row]:
    """What a reader should know of them."""
    rows: list[Row] = []
    if figures.checked:
        right = figures.checked - figures.wrong_count
        rows.append(("results", f"{right} of {figures.checked} right"))
    rows += [(WARNING, text) for text in figures.wrong[:_WRONG]]
    if figures.ranks < figures.recorded_ranks:
        parts = f"{figures.shrunk} shrunken, {figures.delays} as delays"
        rows.append(("recorded ranks", f"{figures.recorded_ranks}; of their calls {parts}"))
    if figures.as_bytes:
        rows.append(("as bytes", f"{figures.as_bytes}, of types that {figures.backend} lacks"))
    rows += [("left out", f"{one.count}: {one.reason}") for one in figures.skipped]
    if figures.buffer_bytes:
        rows.append(("buffers", f"{size(figures.buffer_bytes)} on each rank"))
    return rows
