"""`chakra run`: a recording as a benchmark."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from chakra_et.benchmark.choices import BackEnd, ShrinkAs, StandIn
from chakra_et.cli.all_ranks import RanksName, RanksOption, expect_own_ranks, run_all
from chakra_et.cli.communication import (
    OneByOneOption,
    ShrinkAsOption,
    ShrinkOption,
    TimeoutOption,
    run_communication,
)
from chakra_et.cli.progress import working
from chakra_et.cli.tables import show
from chakra_et.cli.terminal import console_for, print_json, say, show_rows, size
from chakra_et.cli.window import AnnotationOption, StepsOption
from chakra_et.errors import ChakraError
from chakra_et.shown import number_of

if TYPE_CHECKING:
    from chakra_et.benchmark.account import Account
    from chakra_et.benchmark.certificate import Certificate
    from chakra_et.benchmark.running import Outcome
    from chakra_et.model import Trace

EXAMPLES: Final = {
    "run": (
        ("chakra run trace.0.et", "execute its operators, and say how long they took"),
        ("chakra run DIR --back-end dry", "what would run, and why the rest would not"),
        ("chakra run DIR --steps 2 --gaps recorded", "one step, with the recorded pauses"),
        ("chakra run DIR --emit benchmark.py", "as a program that needs PyTorch alone"),
        ("chakra run DIR --ranks auto", "all ranks, with their communication"),
        ("chakra run DIR --mode communication", "collectives and messages alone, on all ranks"),
        ("chakra run DIR --record again", "record the run, to compare it: chakra diff DIR again"),
    ),
}
_SHOWN: Final = 12


class Mode(str, Enum):
    """What of a recording runs."""

    FULL = "full"
    COMMUNICATION = "communication"


class Gaps(str, Enum):
    """The time between operations."""

    NONE = "none"
    RECORDED = "recorded"


def run_command(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="An ET with operator schemas, or a recording.")
    ],
    mode: Annotated[
        Mode,
        typer.Option(
            "--mode", help="All operators of one rank, or the communication of all ranks."
        ),
    ] = Mode.FULL,
    back_end: Annotated[
        BackEnd, typer.Option("--back-end", help="Where to run; dry only says what would run.")
    ] = BackEnd.CPU,
    rank: Annotated[
        int | None,
        typer.Option(
            "--rank",
            metavar="N",
            min=0,
            help="The rank to run. Default: that of the launcher, else the lowest.",
            show_default=False,
        ),
    ] = None,
    steps: StepsOption = None,
    annotation: AnnotationOption = None,
    gaps: Annotated[
        Gaps, typer.Option("--gaps", help="Wait between operations as recorded, or never.")
    ] = Gaps.NONE,
    stand_in: Annotated[
        StandIn,
        typer.Option("--stand-in", help="What takes the time of operators that cannot run."),
    ] = StandIn.SKIP,
    module: Annotated[
        list[str] | None,
        typer.Option(
            "--module",
            metavar="NAME",
            help="A Python module that registers operators. May be repeated.",
            show_default=False,
        ),
    ] = None,
    kernels: Annotated[
        Path | None,
        typer.Option(
            "--kernels",
            metavar="DIR",
            help="Sources of generated kernels, kept with the recording.",
            show_default=False,
        ),
    ] = None,
    warmup: Annotated[
        int, typer.Option("--warmup", metavar="N", min=0, help="Iterations that do not count.")
    ] = 3,
    iterations: Annotated[
        int, typer.Option("--iterations", metavar="N", min=1, help="Iterations to time.")
    ] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all random numbers.")] = 0,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            metavar="N",
            min=1,
            help="Threads of one operator. Default: as recorded, else PyTorch's.",
            show_default=False,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record", metavar="DIR", help="Record the run, too, to DIR.", show_default=False
        ),
    ] = None,
    emit: Annotated[
        Path | None,
        typer.Option(
            "--emit", metavar="FILE", help="Write the program, and run nothing.", show_default=False
        ),
    ] = None,
    ranks: RanksOption = RanksName.ONE,
    shrink: ShrinkOption = None,
    shrink_as: ShrinkAsOption = ShrinkAs.GROUP,
    one_by_one: OneByOneOption = False,
    timeout: TimeoutOption = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Execute the operators of a recording again, without the model, its code or its data.

    Each operator is called by the schema that was recorded, on tensors of the recorded shapes,
    strides and aliases, in the recorded order. What cannot run is named with its reason and its
    share of the time. PyTorch is needed (the extra `torch`), but for --back-end dry.

    With --ranks auto, all ranks run with their communication, each in a process of its own (or in
    those of torchrun). With --mode communication, only the collectives and messages of all ranks
    do, with buffers in place of the model's tensors: their results are checked, and their
    bandwidths stand beside the recorded times.
    """
    if mode is Mode.COMMUNICATION:
        _expect_none(
            "--mode communication",
            {
                "--rank": rank is not None,
                "--steps": steps is not None,
                "--annotation": annotation is not None,
                "--stand-in": stand_in is not StandIn.SKIP,
                "--module": module,
                "--kernels": kernels,
                "--seed": seed,
                "--threads": threads is not None,
                "--record": record,
                "--emit": emit,
                "--ranks": ranks is not RanksName.ONE,
            },
        )
        from chakra_et.benchmark.comms.call import BACKENDS
        from chakra_et.benchmark.comms.call import Settings as Communication

        told = Communication(
            backend=BACKENDS[back_end.value],
            warmup=warmup,
            iterations=iterations,
            timeout_s=timeout,
            one_by_one=one_by_one,
            gaps=gaps is Gaps.RECORDED,
        )
        run_communication(source, back_end, shrink, shrink_as, told, as_json)
        return
    from chakra_et.benchmark.program import Style
    from chakra_et.benchmark.running import Settings, prepare, run
    from chakra_et.benchmark.running import emit as write
    from chakra_et.linker.window.cut import window

    settings = Settings(
        back_end,
        window(steps, annotation),
        tuple(module or ()),
        kernels,
        Style(stand_in, gaps is Gaps.RECORDED),
        warmup,
        iterations,
        seed,
        threads,
        record,
    )
    _expect_none(
        "--ranks auto" if ranks is RanksName.AUTO else "the operators of one rank",
        {
            "--one-by-one": one_by_one,
            "--rank": ranks is RanksName.AUTO and rank is not None,
            "--shrink": ranks is RanksName.ONE and shrink is not None,
            "--shrink-as": ranks is RanksName.ONE and shrink_as is not ShrinkAs.GROUP,
        },
    )
    expect_own_ranks(ranks, emit, back_end)
    if ranks is RanksName.AUTO:
        run_all(source, settings, shrink, shrink_as, timeout, emit, as_json, _show)
        return
    with working("planning"):
        program = prepare(_rank(source, rank), settings)
    with working("running") as step:
        outcome = run(program, settings, step) if emit is None else write(program, settings, emit)
    if as_json:
        print_json(outcome.as_dict())
    else:
        _show(console_for(), outcome)


def _expect_none(what: str, given: dict[str, object]) -> None:
    """Raise ChakraError where options are given that do nothing for what is to run."""
    unused = [name for name, value in given.items() if value]
    if unused:
        raise ChakraError(
            f"{', '.join(unused)}: of no use with {what}",
            remedy="Leave out what does nothing there.",
        )


def _rank(source: Path, rank: int | None) -> Trace:
    from chakra_et.benchmark.torch_release import rank_at_hand
    from chakra_et.loading import load

    traces = load(source)
    wanted = rank if rank is not None else rank_at_hand()
    if wanted is None:
        wanted = min(traces)
    if wanted not in traces:
        raise ChakraError(
            f"no trace of rank {wanted}: there are {', '.join(map(str, traces))}",
            path=source,
            remedy="Give the directory of all ranks, or --rank N.",
        )
    return traces[wanted]


def _show(console: Console, outcome: Outcome) -> None:
    """How long it took, how much of the recording that is, and what is missing."""
    account = outcome.account
    say(console, _headline(outcome), "bold")
    show_rows(console, _rows(outcome))
    if account.left_out:
        say(console, "not run:")
    shown = account.left_out[:_SHOWN]
    show_rows(
        console,
        [
            (f"{account.share(item):6.2%}", f"{item.name} ({item.count}): {item.reason}")
            for item in shown
        ],
    )
    if len(account.left_out) > _SHOWN:
        say(console, f"  and {len(account.left_out) - _SHOWN} more; --json has all")
    if outcome.certificate is not None:
        _compare(console, outcome.certificate)


def _compare(console: Console, found: Certificate) -> None:
    """The recording of the run beside that which it was made from."""
    recorded, run = found.recorded.span_ns / 1e6, found.run_span_ns / 1e6
    say(console, "")
    say(
        console,
        f"with the profiler: {run:,.3f} ms an iteration, {recorded:,.3f} ms recorded "
        f"({found.span_error:+.1%})",
        "bold",
    )
    show(console, found.table(), 0, "")


def _headline(outcome: Outcome) -> str:
    account = outcome.account
    of = "of the operators' time" if account.timed else "of the operators"
    told = f"{account.runs} of {number_of(account.operations, 'operation')}"
    text = f"{told} run, {account.coverage:.2%} {of}"
    return text if not outcome.spans_ns else f"{outcome.span_ns / 1e6:,.3f} ms; {text}"


def _rows(outcome: Outcome) -> list[tuple[str, object]]:
    account, spans = outcome.account, outcome.spans_ns
    rows: list[tuple[str, object]] = []
    if spans:
        low, high = min(spans) / 1e6, max(spans) / 1e6
        rows.append(("iterations", f"{len(spans)}, of {low:,.3f} to {high:,.3f} ms"))
    if account.recorded_span_ns:
        rows.append(("recorded", f"{account.recorded_span_ns / 1e6:,.3f} ms, with the profiler"))
        rows.append(("between operations", f"{account.gaps_ns / 1e6:,.3f} ms of it"))
    if outcome.threads is not None:
        rows.append(("threads", _threads(outcome.threads, outcome.recorded_threads)))
    rows.append(("tensors", f"{size(account.peak_bytes)} at once"))
    if account.opened:
        rows.append(("opened", _opened(account)))
    return rows + [("changed", text) for text in outcome.changed]


def _threads(used: int, recorded: int | None) -> str:
    if recorded is None:
        return f"{used} for an operator; the recording does not say how many it used"
    return f"{used} for an operator" + ("" if used == recorded else f", {recorded} recorded")


def _opened(account: Account) -> str:
    what = number_of(account.opened, "operator")
    text = f"{what} gave way to those that they called"
    return f"{text}; {account.opened_ns / 1e6:,.3f} ms were their own" if account.timed else text
