"""`chakra run --ranks auto`: all operators of all ranks, and what it says of them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from rich.console import Console

from chakra_et.benchmark.choices import BackEnd, ShrinkAs
from chakra_et.cli.communication import show_communication
from chakra_et.cli.progress import working
from chakra_et.cli.terminal import console_for, print_json, say
from chakra_et.errors import ChakraError
from chakra_et.shown import number_of

if TYPE_CHECKING:
    from chakra_et.benchmark.comms.all_ranks import AllRanks
    from chakra_et.benchmark.comms.job import Job
    from chakra_et.benchmark.running import Outcome, Settings
    from chakra_et.model import TraceSet


class RanksName(str, Enum):
    """How many ranks run."""

    ONE = "one"
    AUTO = "auto"


RanksOption: TypeAlias = Annotated[
    RanksName,
    typer.Option(
        "--ranks",
        help="One rank without its communication, or all of them, each in a process of its own.",
    ),
]


def run_all(
    source: Path,
    settings: Settings,
    shrink: int | None,
    shrink_as: ShrinkAs,
    timeout_s: float,
    emit: Path | None,
    as_json: bool,
    show: Callable[[Console, Outcome], None],
) -> None:
    """Run all operators of all ranks; `show` says what came of one."""
    from chakra_et.benchmark.comms.job import prepare
    from chakra_et.loading import load

    with working("reading the traces"):
        traces = load(source)
        job = prepare(traces, shrink, shrink_as)
    done = _run(traces, job, settings, timeout_s, emit)
    if done is None:
        return
    if as_json:
        print_json(done.as_dict())
        return
    console = console_for()
    for rank, outcome in done.outcomes.items():
        say(console, f"rank {rank}:")
        show(console, outcome)
    say(console, "")
    show_communication(console, done.communication)


def _run(
    traces: TraceSet, job: Job, settings: Settings, timeout_s: float, emit: Path | None
) -> AllRanks | None:
    from chakra_et.benchmark.comms.all_ranks import dry_run, run_all_ranks
    from chakra_et.benchmark.launcher import launched

    if settings.back_end is BackEnd.DRY:
        return dry_run(traces, job, settings)
    if launched():
        from chakra_et.benchmark.comms.torchrun import run_all_as_rank

        return run_all_as_rank(traces, job, settings, timeout_s)
    with working(f"running {number_of(len(job.plans), 'rank')}"):
        return run_all_ranks(traces, job, settings, timeout_s, emit)


def expect_own_ranks(ranks: RanksName, emit: Path | None, back_end: BackEnd) -> None:
    """Raises ChakraError where programs of all ranks are asked for, and nobody can write them."""
    from chakra_et.benchmark.launcher import launched

    if ranks is RanksName.AUTO and emit is not None and (launched() or back_end is BackEnd.DRY):
        raise ChakraError(
            "--emit of all ranks starts them itself, to rehearse their programs",
            remedy="Leave out torchrun and --back-end dry, or --ranks auto.",
        )
