"""Pictures of graphs in Graphviz's language, and drawn by Graphviz."""

from __future__ import annotations

import shutil
import subprocess
from typing import Final

from chakra_et.errors import ChakraError
from chakra_et.export.picture import COLLECTIVE, Arrow, Box, Picture
from chakra_et.extras import library
from chakra_et.shown import encodable, shown

FILLS: Final = {
    "host": "#dbe9f6", "compute": "#d9f0d3", "memory": "#fee8c8", "communication": "#f3d1e5",
}  # fmt: skip
COLOURS: Final = {
    "call": "#b0b0b0", "program": "#808080", "thread": "#8c564b", "launch": "#1f77b4",
    "stream": "#2ca02c", "event": "#9467bd", "sync": "#d62728", "data": "#ff7f0e",
    "group": "#e377c2", COLLECTIVE: "#e377c2",
}  # fmt: skip
_LONGEST: Final = 36
_SECONDS: Final = 60


def dot(picture: Picture) -> bytes:
    """The picture as text: a box for each node, an arrow from what is waited for.

    Fills tell the side of a node, colours the kind of an edge; guessed edges are dashed.
    """
    ranks = sorted({box.rank for box in picture.boxes})
    lines = [
        "digraph chakra {",
        '  graph [rankdir=TB, fontname="Helvetica", fontsize=10, labelloc=b, ranksep=0.35]',
        '  node [shape=box, style="filled,rounded", fontname="Helvetica", fontsize=10, height=0.3]',
        '  edge [arrowsize=0.6, fontname="Helvetica", fontsize=8]',
        f"  label=<{_legend(picture)}>",
    ]
    for rank in ranks:
        inner = [_box(box) for box in picture.boxes if box.rank == rank]
        if len(ranks) > 1:
            inner = [f'  subgraph "cluster_{rank}" {{', f'  label="rank {rank}"', *inner, "  }"]
        lines += inner
    lines += [_arrow(arrow) for arrow in picture.arrows]
    return "\n".join([*lines, "}", ""]).encode()


def _box(box: Box) -> str:
    name = shown(box.name)
    short = name
    if len(name) > _LONGEST:
        # Of a chain of annotations, the last one tells most.
        end = name[1 - _LONGEST :]
        short = f"…{end}" if " / " in name else f"{name[: _LONGEST - 1]}…"
    several = f"{box.nodes} nodes" if box.nodes > 1 else f"node {box.node}"
    label = f"{_quoted(short)}\\n{several}, {box.self_ns / 1e6:.3f} ms"
    told = f'label="{label}", tooltip="{_quoted(name)}", fillcolor="{FILLS[box.side]}"'
    return f'  "{box.key}" [{told}]'


def _arrow(arrow: Arrow) -> str:
    told = [f'color="{COLOURS[arrow.kind]}"', f'tooltip="{arrow.kind}"']
    if arrow.count > 1:
        told.append(f'label="{arrow.count}"')
    if arrow.inferred:
        told.append("style=dashed")
    if arrow.kind == COLLECTIVE:
        # Members run at the same time: none comes before another one.
        told.append("dir=none, style=bold, constraint=false")
    return f'  "{arrow.source}" -> "{arrow.target}" [{", ".join(told)}]'


def _legend(picture: Picture) -> str:
    """The colours of those kinds of edges that occur."""
    there = dict.fromkeys(arrow.kind for arrow in picture.arrows)
    kinds = [kind for kind in COLOURS if kind in there]
    words = [f'<font color="{COLOURS[kind]}">{kind}</font>' for kind in kinds]
    dashed = ["dashed: inferred"] if any(arrow.inferred for arrow in picture.arrows) else []
    return "waits for: " + ", ".join([*words, *dashed]) if words else "no edges"


def _quoted(text: str) -> str:
    return str(encodable(text)).replace("\\", "\\\\").replace('"', '\\"')


def svg(picture: Picture) -> bytes:
    """The picture drawn: by the program `dot` if it is there, else by pygraphviz, which brings one.

    Raises ChakraError where neither is installed, or where drawing takes too long.
    """
    program = shutil.which("dot")
    if program is None:
        return _by_library(dot(picture))
    try:
        done = subprocess.run(
            [program, "-Tsvg"], input=dot(picture), capture_output=True, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise ChakraError(
            f"Graphviz draws for more than {_SECONDS} s",
            remedy="Draw less, or take --to dot and draw it yourself.",
        ) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise ChakraError(f"Graphviz cannot draw this: {said}", remedy="Take --to dot.")
    return done.stdout


def _by_library(text: bytes) -> bytes:
    graphs = library("pygraphviz", "pictures", "an SVG")
    drawn: bytes = graphs.AGraph(string=text.decode()).draw(format="svg", prog="dot")
    return drawn
