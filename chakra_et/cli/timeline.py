"""`chakra show`: a timeline in the terminal."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from chakra_et.cli.progress import working
from chakra_et.cli.tables import FilesArgument
from chakra_et.cli.terminal import console_for, say
from chakra_et.errors import ChakraError
from chakra_et.loading import load
from chakra_et.model import TraceSet
from chakra_et.shown import number_of, shown

if TYPE_CHECKING:
    from chakra_et.export.sketch import Line, Sketch

EXAMPLES: Final = {
    "show": (
        ("chakra show trace.0.et", "its threads, streams and critical path"),
        ("chakra show DIR --step 3", "one step of all ranks"),
        ("chakra show trace.0.et --from 12.5 --to 13", "half a millisecond"),
    ),
}
_PIPE_WIDTH: Final = 120
_LEAST_WIDTH: Final = 20
_RANKS: Final = 8
_STYLES: Final = {
    "host": "blue", "compute": "green", "communication": "magenta", "memory": "yellow",
}  # fmt: skip


def show_command(
    files: FilesArgument,
    rank: Annotated[
        list[int] | None,
        typer.Option("--rank", metavar="R", help="This rank. May be repeated.", show_default=False),
    ] = None,
    step: Annotated[
        int | None,
        typer.Option("--step", metavar="N", help="This profiler step.", show_default=False),
    ] = None,
    begin_ms: Annotated[
        float | None,
        typer.Option("--from", metavar="MS", help="From here on.", show_default=False),
    ] = None,
    end_ms: Annotated[
        float | None, typer.Option("--to", metavar="MS", help="Up to here.", show_default=False)
    ] = None,
    replayed: Annotated[
        bool, typer.Option("--replayed", help="The replay below the recording.")
    ] = False,
    width: Annotated[
        int | None,
        typer.Option(
            "--width", metavar="N", min=40, help="Characters of a line.", show_default=False
        ),
    ] = None,
) -> None:
    """Draw the timeline of a run in the terminal: a line for each thread and stream.

    The height of a character is the share of its time in which something ran. The critical path
    is written in letters: h host, k kernels, c communication, m memory. Times count from the first
    start.
    """
    from chakra_et.export.sketch import sketch
    from chakra_et.export.timeline import timeline

    with working("reading"):
        traces = load(files)
    left = _left_out(traces, rank)
    traces = TraceSet({r: traces[r] for r in traces if r not in left})
    with working("replaying"):
        scene = timeline(traces, replayed=replayed)
    console = console_for()
    room = width or (console.width if console.is_terminal else _PIPE_WIDTH)
    labels = max([len(_label(track.name)) for track in scene.slices.tracks], default=0) + 3
    origin = int(scene.slices.start.min()) if len(scene.slices) else 0
    begin, end = _window(traces, origin, step, begin_ms, end_ms)
    drawn = sketch(scene, max(room - labels, _LEAST_WIDTH), begin, end)
    _show(console, drawn, labels, origin)
    for note in scene.notes:
        say(console_for(stderr=True), f"warning: {note}", "yellow")
    if left and rank is None:
        say(console, f"{number_of(len(left), 'more rank')}: --rank R shows one", "dim")


def _left_out(traces: TraceSet, asked: list[int] | None) -> set[int]:
    """The ranks that are not drawn. Raises ChakraError for one that is not there."""
    if asked is None:
        return set(list(traces)[_RANKS:])
    missing = [r for r in asked if r not in traces]
    if missing:
        raise ChakraError(f"no rank {missing[0]}", remedy=f"There are {list(traces)}.")
    return set(traces) - set(asked)


def _window(
    traces: TraceSet, origin: int, step: int | None, begin_ms: float | None, end_ms: float | None
) -> tuple[int | None, int | None]:
    """The window that is asked for, in ns. Raises ChakraError for one that holds nothing."""
    if step is not None:
        from chakra_et.tables import step_table

        if begin_ms is not None or end_ms is not None:
            raise ChakraError("both --step and --from or --to", remedy="Give one of them.")
        rows = [row for row in step_table(traces).as_dicts() if row["step"] == step]
        if not rows:
            raise ChakraError(f"no step {step}", remedy="chakra stats IN --by step lists them.")
        ends = [row["start_ns"] + row["duration_ns"] for row in rows]
        return min(row["start_ns"] for row in rows), max(ends)
    begin = None if begin_ms is None else origin + round(begin_ms * 1e6)
    end = None if end_ms is None else origin + round(end_ms * 1e6)
    if (end if end is not None else origin + 1) <= (begin if begin is not None else origin):
        raise ChakraError("--to is not after --from", remedy="Both are ms from the first start.")
    return begin, end


def _label(name: str) -> str:
    return shown(name) if len(name) <= 20 else f"{shown(name)[:19]}…"


def _show(console: Console, drawn: Sketch, labels: int, origin: int) -> None:
    if not drawn.lines:
        say(console, "nothing to draw")
        return
    process = None
    width = len(drawn.lines[0].text)
    times = f"{(drawn.begin - origin) / 1e6:.3f} ms", f"{(drawn.end - origin) / 1e6:.3f} ms"
    gap = max(width - len(times[0]) - len(times[1]), 1)
    _print(console, Text(" " * labels + times[0] + " " * gap + times[1], "dim"))
    for line in drawn.lines:
        if line.process != process:
            process = line.process
            _print(console, Text(shown(process), "bold").append(_legend(line), "dim"))
        _print(console, _line(line, labels))


def _legend(line: Line) -> str:
    """What the letters of the critical path mean, as far as it has them."""
    from chakra_et.export.sketch import LETTERS
    from chakra_et.export.timeline import PATH

    if line.process != PATH:
        return ""
    used = [f"{LETTERS[what]} {what}" for what in LETTERS if what in line.categories]
    return f"  {', '.join(used)}".rstrip()


def _line(line: Line, labels: int) -> Text:
    text = Text(f"  {_label(line.label):<{labels - 2}}")
    chars = zip(line.text, line.categories, strict=True)
    for category, run in groupby(chars, lambda pair: pair[1]):
        text.append("".join(char for char, _ in run), _STYLES.get(category, ""))
    return text


def _print(console: Console, text: Text) -> None:
    text.rstrip()
    console.print(text, soft_wrap=True)
