"""`chakra whatif`: edit a run, and see what changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from rich.console import Console
from rich.table import Table

from chakra_et.cli.progress import working
from chakra_et.cli.targets import ForceOption
from chakra_et.cli.terminal import console_for, print_json, say, show_table
from chakra_et.errors import ChakraError
from chakra_et.loading import load
from chakra_et.model import TraceSet
from chakra_et.replay import Replay
from chakra_et.whatif import (
    FORMS,
    USUAL,
    Answer,
    Change,
    Edit,
    Found,
    ask,
    parse_choice,
    parse_edit,
    search,
)

_SHOWN: Final = 8
EXAMPLES: Final = {
    "whatif": (
        ("chakra whatif DIR --set time:name~gemm=0.5", "matrix products in half the time"),
        ("chakra whatif DIR --set time:gap=true=0", "no time of Python between operations"),
        ("chakra whatif DIR --set straggler=3:1.1", "rank 3 computes 10 % slower"),
        ("chakra whatif DIR --set network=5,100", "transfers over 5 us and 100 GB/s"),
        (
            "chakra whatif DIR --set lengths=32:64,table.json",
            "another batch, by a table",
        ),
        ("chakra whatif DIR --set device=h100.json", "device work by a table of another device"),
        ("chakra whatif DIR --set layers=48 --set dp=16 -o OUT", "a larger model, more replicas"),
        ("chakra whatif DIR --set bucket=50MB", "gradients summed in larger buckets"),
        ("chakra whatif DIR --set repeat:name=layer=8", "8 ranges `layer` instead of so many"),
        ("chakra whatif DIR --search 40", "which buckets, schedule, placement are best?"),
        ("chakra whatif DIR --set overlap=off", "transfers that overlap with nothing"),
        ("chakra whatif DIR --set processors=2:8", "ranks of one machine, with more processors"),
        ("chakra whatif DIR --set remove:type=COMM_COLL=yes", "no collectives at all"),
        ("chakra whatif DIR --set jitter=0.05,1 --set network=5,100 -o OUT", "both; ETs written"),
    ),
}


Source: TypeAlias = Annotated[
    Path, typer.Argument(metavar="IN", help="ETs or recordings of a run: a file, a directory.")
]
Edits: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="EDIT",
        help=f"{', '.join(FORMS.values())}. May be repeated; edits apply in their order.",
        show_default=False,
    ),
]
Budget: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--search",
        metavar="N",
        min=1,
        help="Try edits in N replays at most, and keep what is best.",
        show_default=False,
    ),
]
Choices: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--try",
        metavar="KEY=A|B",
        help="What --search chooses from; the usual choices if not given. May be repeated.",
        show_default=False,
    ),
]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="OUT", help="Write the edited timeline.", show_default=False
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")]


def whatif_command(
    source: Source,
    edits: Edits = None,
    budget: Budget = None,
    choices: Choices = None,
    output: Output = None,
    as_json: AsJson = False,
    force: ForceOption = False,
) -> None:
    """Edit a run and replay it: what the span, its parts and its critical path become.

    Selectors are those of `chakra replay`. docs/whatif.md explains the edits.
    """
    wanted = [parse_edit(text) for text in edits or ()]
    offered = [parse_choice(text) for text in choices or ()]
    if not wanted and budget is None:
        raise ChakraError("no edit", remedy="Give --set EDIT, or --search N.")
    if offered and budget is None:
        raise ChakraError("--try is for --search", remedy="Say --search N, too.")
    traces = _loaded(source, wanted)
    found = None
    if budget is None:
        with working("replaying"):
            answer = ask(traces, wanted)
    else:
        with working("trying") as step:
            found = search(traces, wanted, offered or USUAL, budget, step)
        answer = found.answer
    if output is not None:
        _write(answer, output, force)
    if as_json:
        print_json(answer.as_dict() if found is None else found.as_dict())
        return
    console = console_for()
    if found is not None:
        _show_trials(console, found)
    _show(console, answer)


def _loaded(source: Path, wanted: Sequence[Edit]) -> TraceSet:
    """The run to edit."""
    with working("reading"):
        traces = load([source])
    if any(edit.network for edit in wanted) and len(traces) == 1:
        raise ChakraError(
            "--set network does nothing for one rank: no other one takes part in its transfers",
            remedy="Give all ranks of the run.",
        )
    return traces


def _write(answer: Answer, output: Path, force: bool) -> None:
    from chakra_et.cli.outputs import write_ranks

    names = {rank: f"edited.{rank}.et" for rank in answer.after.traces}
    write_ranks(answer.after.traces, output, names, "edited", force)


def _show(console: Console, answer: Answer) -> None:
    for change in answer.changes:
        _show_change(console, change)
    if answer.network is not None:
        say(console, f"{answer.network}: transfers between ranks (model)")
    table = Table(box=None, padding=(0, 1, 0, 0))
    for title in ("", "before", "after", "change"):
        table.add_column(title, justify="left" if not title else "right")
    for what, before, after in _rows(answer.before, answer.after):
        share = f"{after / before - 1:+.1%}" if before else "-"
        table.add_row(what, f"{before / 1e6:.3f}", f"{after / 1e6:.3f}", share)
    show_table(console, table)
    for when, done in (("before", answer.before), ("after", answer.after)):
        say(console, f"{when}: {_bound(done)}")
    for reason, count in answer.before.unmatched.items():
        say(console, f"{count} communication nodes not matched: {reason}", "yellow")


def _show_trials(console: Console, found: Found) -> None:
    """The best of what was tried, what could not be, and what is kept."""
    tried = sorted((t.span_ns, t.edits) for t in found.trials if t.span_ns is not None)
    for span_ns, edits in tried[:_SHOWN]:
        say(console, f"  {span_ns / 1e6:>12.3f} ms  {' '.join(edits) or 'as it is'}")
    for problem in dict.fromkeys(t.refused for t in found.trials if t.span_ns is None):
        say(console, f"  not tried: {problem}", "yellow")
    ended = "nothing else is better" if found.complete else "the budget is used up"
    kept = " ".join(found.edits) or "nothing: it is best as it is"
    say(console, f"kept after {len(found.trials)} trials ({ended}): {kept}")
    for text, span_ns in found.without_ns.items():
        say(console, f"  without {text} it would take {span_ns / 1e6:.3f} ms")


def _show_change(console: Console, change: Change) -> None:
    """What an edit recognised, what it changed, and where the times come from."""
    took = f"{change.before_ns / 1e6:.3f} to {change.after_ns / 1e6:.3f} ms"
    if change.source == "structure":
        for told in change.told:
            say(console, f"recognised: {told}")
        if not change.nodes:
            say(console, f"{change.what}: so it is already", "yellow")
            return
        say(console, f"{change.what}: {change.nodes:,} nodes after it, {took} in all")
    elif not change.nodes:
        say(console, f"{change.what}: fits nothing", "yellow")
    elif change.source == "order":
        say(console, f"{change.what}: {change.nodes:,} waits added")
    else:
        say(console, f"{change.what}: {change.nodes:,} nodes, {took} ({change.source})")
    for what, counts in (("times", change.provenance), ("left out", change.left_out)):
        if counts:
            listed = ", ".join(f"{count:,} {name}" for name, count in counts.items())
            say(console, f"  {what}: {listed}")
    if change.provenance.get("unknown"):
        say(
            console,
            "  unknown times are 0: --set network=US,GB_PER_S gives transfers some",
            "yellow",
        )


def _rows(before: Replay, after: Replay) -> list[tuple[str, int, int]]:
    """Times in ns of the rank whose span is longest, on either side."""
    old, new = _longest(before), _longest(after)
    a, b = before.figures[old], after.figures[new]
    parts = (
        ("computing alone, ms", "exposed_compute_ns"),
        ("computing and transfers, ms", "overlap_ns"),
        ("exposed transfers, ms", "exposed_comm_ns"),
        ("neither, ms", "other_ns"),
    )
    return [
        ("span, ms", a.span_ns, b.span_ns),
        *((what, getattr(a.replayed, name), getattr(b.replayed, name)) for what, name in parts),
    ]


def _bound(done: Replay) -> str:
    """Which rank is longest, what takes its path, and the name that takes most of that."""
    rank = _longest(done)
    path = done.paths[rank]
    length = path.length_ns or 1
    shares = sorted(path.bound_ns.items(), key=lambda item: -item[1])
    bound = ", ".join(f"{what} {ns / length:.0%}" for what, ns in shares if ns * 100 >= length)
    most = f"; most of it {path.by_name_ns[0][0]!r}" if path.by_name_ns else ""
    return f"rank {rank} takes longest, its path {bound or 'nothing'}{most}"


def _longest(done: Replay) -> int:
    return max(done.figures, key=lambda rank: done.figures[rank].span_ns)
