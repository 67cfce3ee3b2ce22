"""`chakra export`: timelines and pictures for other programs."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer

from chakra_et.cli.progress import working
from chakra_et.cli.terminal import console_for, say
from chakra_et.definitions import EdgeKind
from chakra_et.errors import ChakraError
from chakra_et.io.output import atomic_output, size_of
from chakra_et.loading import load
from chakra_et.model import TraceSet
from chakra_et.shown import number_of

EXAMPLES: Final = {
    "export": (
        ("chakra export DIR --to perfetto -o run.perfetto.gz", "for ui.perfetto.dev, all ranks"),
        ("chakra export DIR --to perfetto --replayed -o run.perfetto", "the replay beside it"),
        ("chakra export t.et --to svg --around 812 --hops 2 -o part.svg", "a node's surroundings"),
        ("chakra export t.et --to dot --steps 3 --collapse module -o step.dot", "a step, in parts"),
    ),
}


class To(str, Enum):
    """Forms that are exported to."""

    PERFETTO = "perfetto"
    CHROME = "chrome"
    DOT = "dot"
    GRAPHML = "graphml"
    SVG = "svg"


class Collapse(str, Enum):
    """What is drawn as one box."""

    OPERATOR = "operator"
    MODULE = "module"


_TIMELINES: Final = (To.PERFETTO, To.CHROME)


def export_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN",
            help="ETs or recordings of a run: files, directories, archives.",
            show_default=False,
        ),
    ],
    to: Annotated[To, typer.Option("--to", help="A timeline, or a picture of the graph.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write (.gz and .zst compress)."
        ),
    ],
    edges: Annotated[
        str | None,
        typer.Option(
            "--edges",
            metavar="KINDS",
            help="Only edges of these kinds, as in launch,sync. By default all in pictures, and in "
            "timelines those between tracks.",
            show_default=False,
        ),
    ] = None,
    replayed: Annotated[
        bool, typer.Option("--replayed", help="In timelines: the replay beside the recording.")
    ] = False,
    rank: Annotated[
        int | None, typer.Option("--rank", metavar="R", help="This rank alone.", show_default=False)
    ] = None,
    around: Annotated[
        int | None,
        typer.Option(
            "--around", metavar="NODE", help="In pictures: what is near a node.", show_default=False
        ),
    ] = None,
    hops: Annotated[
        int, typer.Option("--hops", metavar="N", min=0, help="How many edges away.")
    ] = 3,
    steps: Annotated[
        str | None,
        typer.Option(
            "--steps", metavar="A..B", help="In pictures: profiler steps.", show_default=False
        ),
    ] = None,
    collapse: Annotated[
        Collapse | None,
        typer.Option("--collapse", help="In pictures: what is one box.", show_default=False),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, help="Boxes of a picture; 0 for any.")
    ] = 200,
) -> None:
    """Export a run: as a timeline for Perfetto or Chrome, or a part of its graph as a picture.

    A timeline has ranks as processes, streams and threads as tracks, dependencies and collectives
    as flows, and the critical path as a track of its own.
    """
    _refuse_for_others(to, around, steps, collapse, replayed)
    kinds = None if edges is None else _kinds(edges)
    with working("reading"):
        traces = load(files)
    if rank is not None:
        if rank not in traces:
            raise ChakraError(f"no rank {rank}", remedy=f"There are {list(traces)}.")
        traces = TraceSet({rank: traces[rank]})
    if to in _TIMELINES:
        _timeline(traces, to, output, kinds, replayed)
    else:
        _picture(traces, to, output, kinds, around, hops, steps, collapse, limit)


def _refuse_for_others(
    to: To, around: int | None, steps: str | None, collapse: Collapse | None, replayed: bool
) -> None:
    """Raises ChakraError for options that do nothing for a form."""
    picture = {"around": around, "steps": steps, "collapse": collapse}
    given = [name for name, value in picture.items() if value is not None]
    if to in _TIMELINES and given:
        raise ChakraError(f"--{given[0]} is for pictures", remedy="Leave it out.")
    if to not in _TIMELINES and replayed:
        raise ChakraError("--replayed is for timelines", remedy="Leave it out.")
    if around is not None and steps is not None:
        raise ChakraError("both --around and --steps", remedy="Give one of them.")


def _kinds(text: str) -> list[EdgeKind]:
    known = {kind.label: kind for kind in EdgeKind}
    names = [name.strip() for name in text.split(",")]
    wrong = [name for name in names if name not in known]
    if wrong:
        raise ChakraError(
            f"no edges are of kind {wrong[0]!r}", remedy=f"Kinds: {', '.join(known)}."
        )
    return [known[name] for name in names]


def _timeline(
    traces: TraceSet, to: To, output: Path, kinds: list[EdgeKind] | None, replayed: bool
) -> None:
    from chakra_et.export.chrome import chrome
    from chakra_et.export.perfetto import perfetto
    from chakra_et.export.timeline import timeline

    with working("exporting"):
        scene = timeline(traces, kinds=kinds, replayed=replayed)
        _write((perfetto if to is To.PERFETTO else chrome)(scene), output)
    told = [
        number_of(len(scene.slices), "slice"),
        f"on {number_of(len(scene.slices.tracks), 'track')}",
        number_of(len(scene.flows), "flow"),
        f"{number_of(len(scene.ties), 'collective')} across ranks",
    ]
    _done(output, ", ".join(told), scene.notes)


def _picture(
    traces: TraceSet,
    to: To,
    output: Path,
    kinds: list[EdgeKind] | None,
    around: int | None,
    hops: int,
    steps: str | None,
    collapse: Collapse | None,
    limit: int,
) -> None:
    from chakra_et.export import choosing
    from chakra_et.export.dot import dot, svg
    from chakra_et.export.graphml import graphml
    from chakra_et.export.picture import picture

    if around is not None:
        if len(traces) > 1:
            raise ChakraError(
                f"--around is about one rank, and here are {len(traces)}", remedy="Add --rank R."
            )
        chosen = {r: choosing.around(trace, around, hops) for r, trace in traces.items()}
    elif steps is not None:
        chosen = choosing.within_steps(traces, steps)
    else:
        chosen = {r: np.ones(len(trace.nodes), np.bool_) for r, trace in traces.items()}
    drawn = picture(
        traces,
        chosen,
        collapse=None if collapse is None else collapse.value,
        kinds=kinds,
        limit=limit,
    )
    encode = {To.DOT: dot, To.SVG: svg, To.GRAPHML: graphml}[to]
    with working("drawing"):
        _write([encode(drawn)], output)
    told = f"{number_of(len(drawn.boxes), 'box', 'es')}, {number_of(len(drawn.arrows), 'arrow')}"
    _done(output, told, [])


def _write(pieces: Iterable[bytes], output: Path) -> None:
    with atomic_output(output) as stream:
        for piece in pieces:
            stream.write(piece)


def _done(output: Path, told: str, notes: list[str]) -> None:
    """Say what was written, beside the output itself."""
    console = console_for(stderr=True)
    bytes_ = size_of(output) if output.is_file() else None
    written = "" if bytes_ is None else f" ({bytes_:,} bytes)"
    say(console, f"{output}{written}: {told}")
    for note in notes:
        say(console, f"warning: {note}", "yellow")
