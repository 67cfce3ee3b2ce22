"""`chakra replay`: run a trace by its edges."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperCommand

from chakra_et.cli.outputs import write_ranks
from chakra_et.cli.progress import working
from chakra_et.cli.targets import ForceOption, VerboseOption
from chakra_et.cli.terminal import console_for, print_json, say, show_table
from chakra_et.errors import ChakraError
from chakra_et.files import read_set
from chakra_et.io.output import is_standard_output
from chakra_et.model import TraceSet, time_parts
from chakra_et.predict import recorded_span_ns, times_of
from chakra_et.replay import CriticalPath, Figures, Replay, network_of, replay
from chakra_et.replay.selectors import select_parts

EXAMPLES: Final = {
    "replay": (
        ("chakra replay trace.0.et", "run it by its edges, against the recording"),
        ("chakra replay DIR", "all ranks together"),
        ("chakra replay DIR --scale name~gemm 0.5", "what if matrix products took half the time?"),
        (
            "chakra replay DIR --network 5,100",
            "5 us and 100 GB/s instead of the recorded transfers",
        ),
        ("chakra replay DIR --network dgx-a100", "transfers on a described network"),
        ("chakra replay a.et --times-of b.et", "does the graph of one run predict another?"),
        ("chakra replay DIR -o OUT", "write the replayed timelines"),
    ),
}


_RANKS_SHOWN: Final = 6


class ReplayCommand(TyperCommand):
    """A command whose option `--scale` takes two values, a selector and a factor."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Join the two values, as typer knows no option that is repeated and takes two."""
        joined: list[str] = []
        rest = iter(args)
        for arg in rest:
            joined.append(arg)
            if arg == "--scale":
                joined.append("\0".join(value for _, value in zip(range(2), rest, strict=False)))
        return super().parse_args(ctx, joined)


def replay_command(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="An ET, or a directory with the ETs of all ranks.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Write the replayed timeline: a file (.et or .json), or a directory.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
    scale: Annotated[
        list[str] | None,
        typer.Option(
            "--scale",
            metavar="SELECTOR FACTOR",
            help="Multiply durations, as in --scale 'name~gemm' 0.5. May be repeated.",
            show_default=False,
        ),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--network",
            metavar="LATENCY_US,GB_PER_S|TOPOLOGY",
            help="Model transfers between ranks: by latency and bandwidth, or a described network.",
            show_default=False,
        ),
    ] = None,
    given: Annotated[
        Path | None,
        typer.Option(
            "--times-of",
            metavar="OTHER",
            help="Take the durations from another run of the same work: a step or a rank.",
            show_default=False,
        ),
    ] = None,
    force: ForceOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Run a trace by its edges, and compare the outcome with the recording.

    Several ranks run together: their collectives and messages begin when the last member arrives.
    """
    with working("reading"):
        traces = read_set(source)
    if network is not None and len(traces) == 1:
        _warn("--network has no effect on a single rank")
    there = None
    if given is not None:
        traces, there = _given(source, traces, given)
    scaled = [_scale(text) for text in scale or []]
    for selector, _ in scaled:
        parts = [(trace, time_parts(trace.nodes)) for trace in traces.values()]
        if not any(select_parts(trace, part, selector).any() for trace, part in parts):
            _warn(f"--scale {selector!r} matches no node")
    model = None if network is None else network_of(network, "--network")
    with working("replaying"):
        done = replay(traces, scale=scaled, network=model)
    if output is not None:
        names = {rank: f"replayed.{rank}.et" for rank in done.traces}
        write_ranks(done.traces, output, names, "replayed", force)
    if as_json:
        recorded = {} if there is None else {"times_of": _prediction(done, there)}
        print_json({**done.as_dict(), **recorded})
        return
    console = console_for(stderr=output is not None and is_standard_output(output))
    _show(console, done, verbose)
    if there is not None:
        error = _prediction(done, there)["span_error"]
        say(
            console, f"{given} recorded {there / 1e6:.3f} ms: the prediction is off by {error:+.2%}"
        )


def _given(source: Path, traces: TraceSet, other: Path) -> tuple[TraceSet, int]:
    """A trace with the durations of the one in `other`, and the span that was recorded there."""
    with working("reading"):
        others = read_set(other)
    for path, found in ((source, traces), (other, others)):
        if len(found) != 1:
            raise ChakraError(
                f"{path}: --times-of compares single ranks, and here are {len(found)}",
                remedy="Name one ET on either side.",
            )
    (rank, trace), (theirs,) = next(iter(traces.items())), others.values()
    moved = times_of(trace, theirs)
    if moved.missing or moved.extra:
        _warn(
            f"nodes without a counterpart: {moved.missing} of {source}, {moved.extra} of {other} "
            f"({moved.extra_ns / 1e6:.3f} ms)"
        )
    if not moved.same_work:
        _warn(
            f"{source} and {other} do different work: {moved.alike:.0%} of the host operations "
            "stand in the same order in both. Do not trust this prediction"
        )
    return TraceSet({rank: moved.trace}), recorded_span_ns(theirs)


def _prediction(done: Replay, recorded_ns: int) -> dict[str, Any]:
    """For JSON: the span that the other run recorded, and how far off the replayed one is."""
    span_ns = next(iter(done.figures.values())).span_ns
    error = span_ns / recorded_ns - 1 if recorded_ns else 0.0
    return {"recorded_span_ns": recorded_ns, "span_error": error}


def _warn(text: str) -> None:
    say(console_for(stderr=True), f"warning: {text}", "yellow")


def _scale(text: str) -> tuple[str, float]:
    selector, _, factor = text.partition("\0")
    try:
        return selector, float(factor)
    except ValueError:
        raise ChakraError(
            f"--scale takes a selector and a factor, not {selector!r} and {factor!r}",
            remedy="Write --scale 'name~gemm' 0.5.",
        ) from None


def _show(console: Console, done: Replay, verbose: bool) -> None:
    """A table of figures, and what bounds each rank; of many ranks those most in error."""
    ranks = list(done.figures)
    if not verbose:
        worst = sorted(ranks, key=lambda rank: -abs(done.figures[rank].span_error or 0.0))
        ranks = sorted(worst[:_RANKS_SHOWN])
    table = Table(box=None, padding=(0, 1, 0, 0))
    for title in ("rank", "span ms", "recorded", "error", "kernels", "p95", "comm ms", "recorded"):
        table.add_column(title, justify="left" if title == "rank" else "right", overflow="fold")
    for rank in ranks:
        table.add_row(*_row(rank, done.figures[rank]))
    show_table(console, table)
    for rank in ranks:
        path = done.paths[rank]
        if path.by_name_ns:
            say(console, f"rank {rank}: {_bound_by(path)}")
            say(console, f"  {_explained(path, done.figures[rank])}")
    if len(ranks) < len(done.figures):
        left = len(done.figures) - len(ranks)
        say(console, f"{left} more ranks, none with a larger error (-v shows all)", "dim")
    if len(done.traces) > 1:
        say(console, f"{done.matched} communication nodes matched across ranks")
    for reason, count in done.unmatched.items():
        say(console, f"  {count} not matched: {reason}", "yellow")


def _row(rank: int, found: Figures) -> list[str]:
    if found.span_error is None:
        # Nothing was recorded: a trace that was generated.
        replayed = f"{found.replayed.exposed_comm_ns / 1e6:.3f}"
        return [str(rank), f"{found.span_ns / 1e6:.3f}", *"----", replayed, "-"]
    return [
        str(rank),
        f"{found.span_ns / 1e6:.3f}",
        f"{found.recorded_span_ns / 1e6:.3f}",
        f"{found.span_error:+.2%}",
        f"{found.kernel_start_error['median']:.2%}",
        f"{found.kernel_start_error['p95']:.2%}",
        f"{found.replayed.exposed_comm_ns / 1e6:.3f}",
        f"{found.recorded.exposed_comm_ns / 1e6:.3f}",
    ]


def _explained(path: CriticalPath, found: Figures) -> str:
    """How much of a path work and edges explain, and what else delayed starts, of all nodes."""
    delays = [
        f"{what} {sums['ns'] / 1e6:.3f} ms ({sums['count']})"
        for what, sums in found.delays.items()
        if sums["count"] and what != "lag"
    ]
    told = f"explained by edges: {path.explained_share:.1%}"
    return f"{told}; starts delayed otherwise: {', '.join(delays)}" if delays else told


def _bound_by(path: CriticalPath) -> str:
    """What takes the time of a critical path, and the name that takes most of it."""
    length = path.length_ns or 1
    shares = sorted(path.bound_ns.items(), key=lambda item: -item[1])
    bound = ", ".join(f"{what} {ns / length:.0%}" for what, ns in shares if ns * 200 >= length)
    name, took = path.by_name_ns[0]
    return f"bound by {bound or 'nothing'}; {took / length:.1%} of its path is {name!r}"
