"""Draw a recorded step of training with its edges by kind: docs/edges.svg.

    python tools/edges_picture.py --data DIR

DIR holds real traces; drawn is rank 0 of `dlrm8`, one step on a V100. The picture shows what the
linker made of it: bars are nodes on threads and streams, lines are edges from end to start.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from traces_index import DATA

from chakra_et import EdgeKind, Trace, convert
from chakra_et.model import UNKNOWN_NS

ROOT: Final = Path(__file__).resolve().parents[1]
WIDTH, LEFT, RIGHT, TOP, LANE, BAR = 1240, 116, 14, 58, 78, 22
COLOURS: Final = {
    EdgeKind.LAUNCH: "#9aa5b1",
    EdgeKind.DATA: "#2b8a3e",
    EdgeKind.THREAD: "#7048e8",
    EdgeKind.EVENT: "#e8590c",
    EdgeKind.SYNC: "#c2255c",
    EdgeKind.GROUP: "#0b7285",
}
"""Kinds that lead from lane to lane, those drawn last on top."""
WITHIN: Final = {
    EdgeKind.PROGRAM: "each bar of a thread waits for the one before it",
    EdgeKind.STREAM: "each bar of a stream waits for the one before it",
    EdgeKind.CALL: "not drawn: who called whom",
}
PHASES: Final = ("forward", "backward", "optimizer")
COMPUTE, COMMUNICATION, HOST = "#4c6ef5", "#f59f00", "#adb5bd"
STYLE: Final = "text{font:13px sans-serif;fill:#212529}.s{font-size:11px;fill:#495057}"


@dataclass
class Step:
    """A trace as bars on lanes; times in ns from its first start."""

    trace: Trace
    lane: npt.NDArray[np.int64]
    """-1 where a node has no place in time."""
    names: list[str]
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]

    def x(self, ns: int) -> float:
        """Where a moment stands in the picture."""
        return round(LEFT + (WIDTH - LEFT - RIGHT) * ns / int(self.end.max()), 1)

    def y(self, lane: int) -> int:
        """The top of the bars of a lane."""
        return TOP + LANE * lane


def step_of(trace: Trace) -> Step:
    """Threads, then streams, each in the order of first use."""
    nodes = trace.nodes
    stream = nodes.attributes.dense("stream", -1, np.int64)
    thread = nodes.attributes.dense("thread", -1, np.int64)
    begin = nodes.attributes.dense("own_start_ns", UNKNOWN_NS, np.int64)
    begin = np.where(begin == UNKNOWN_NS, nodes.start_ns, begin)
    timed = begin != UNKNOWN_NS
    begin = np.where(timed, begin - begin[timed].min(), 0)
    lane = np.full(len(nodes), -1, np.int64)
    names: list[str] = []
    for what, column, chosen in (("thread", thread, stream < 0), ("stream", stream, stream >= 0)):
        rows = np.flatnonzero(chosen & timed & (column >= 0))
        _, first = np.unique(column[rows], return_index=True)
        for key in column[rows[np.sort(first)]].tolist():
            lane[rows[column[rows] == key]] = len(names)
            names.append(f"{what} {key}")
    return Step(trace, lane, names, begin, begin + np.where(lane >= 0, nodes.duration_ns, 0))


def bars(step: Step) -> Iterator[str]:
    """Lanes with their nodes: a path for each lane and colour."""
    communicates = np.isin(step.trace.nodes.type, (5, 6, 7))
    for lane, name in enumerate(step.names):
        y, height = step.y(lane), BAR
        yield f'<text x="8" y="{y + 16}">{name}</text>'
        yield f'<path d="M{LEFT},{y + BAR}H{WIDTH - RIGHT}" stroke="#dee2e6"/>'
        on_host = name.startswith("thread")
        for colour, chosen in (
            (HOST if on_host else COMPUTE, ~communicates),
            (COMMUNICATION, communicates),
        ):
            shape = ""
            for row in np.flatnonzero((step.lane == lane) & chosen).tolist():
                x, end = step.x(int(step.begin[row])), step.x(int(step.end[row]))
                width = max(0.4, round(end - x - 0.2, 1))
                shape += f"M{x},{y}h{width}v{height}h-{width}z"
            if shape:
                yield f'<path d="{shape}" fill="{colour}"/>'


def lines(step: Step, kind: EdgeKind) -> Iterator[str]:
    """The edges of a kind that lead from one lane to another."""
    edges, source = step.trace.edges, step.trace.source_rows()
    weak = kind in (EdgeKind.LAUNCH, EdgeKind.DATA)
    marker = "" if weak else f' marker-end="url(#{kind.label})"'
    for place in np.flatnonzero(edges.kind == kind).tolist():
        first, second = int(source[place]), int(edges.target[place])
        if step.lane[first] < 0 or step.lane[second] < 0 or step.lane[first] == step.lane[second]:
            continue
        down = step.lane[first] < step.lane[second]
        x1, x2 = step.x(int(step.end[first])), step.x(int(step.begin[second]))
        y1 = step.y(int(step.lane[first])) + (BAR if down else 0)
        y2 = step.y(int(step.lane[second])) + (0 if down else BAR)
        dash = ' stroke-dasharray="5 3"' if edges.inferred[place] else ""
        middle = (y1 + y2) // 2
        yield (
            f'<path d="M{x1},{y1}C{x1},{middle} {x2},{middle} {x2},{y2}" fill="none" '
            f'stroke="{COLOURS[kind]}" stroke-width="{0.6 if weak else 2}"{dash}{marker}/>'
        )


def phases(step: Step) -> Iterator[str]:
    """Forward, backward and optimizer, by the annotations of the recording."""
    for name in PHASES:
        for node in step.trace.nodes.where(name=f"## {name} ##"):
            lasts = node.attributes.get("inclusive_ns")
            if lasts is None:
                continue
            begin = int(step.begin[node.row])
            x, end = step.x(begin), step.x(begin + lasts)
            yield f'<path d="M{x},40v8M{x},44H{end}M{end},40v8" stroke="#868e96" fill="none"/>'
            at = f'x="{(x + end) / 2:.0f}" y="36" text-anchor="middle"'
            yield f'<text class="s" {at}>{name}</text>'


def legend(step: Step, y: int) -> Iterator[str]:
    """What the colours mean, with the number of edges of each kind."""
    counts = step.trace.edges.counts()
    entries = [(kind, "", True) for kind in COLOURS if kind in counts]
    entries += [(kind, text, False) for kind, text in WITHIN.items()]
    for at, (kind, text, drawn) in enumerate(entries):
        x, line = 8 + at % 5 * 160 if drawn else 8 + (at - 5) * 400, y if drawn else y + 24
        count, inferred = counts[kind]
        note = f"{kind.label}: {count:,}" + (f" ({inferred} inferred)" if inferred else "")
        if drawn:
            yield (
                f'<path d="M{x},{line - 4}h22" stroke="{COLOURS[kind]}" stroke-width="3"/>'
                f'<text class="s" x="{x + 28}" y="{line}">{note}</text>'
            )
        else:
            yield f'<text class="s" x="{x}" y="{line}">{note}, {text}</text>'
    for at, (name, colour) in enumerate(
        (("host", HOST), ("kernel or copy", COMPUTE), ("communication", COMMUNICATION))
    ):
        x = 880 + at * 118
        yield f'<rect x="{x}" y="{y - 10}" width="12" height="10" fill="{colour}"/>'
        yield f'<text class="s" x="{x + 17}" y="{y}">{name}</text>'


def picture(step: Step) -> str:
    """The whole file."""
    bottom = step.y(len(step.names)) - 18
    height = bottom + 46
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}">',
        f"<style>{STYLE}</style><defs>",
        *(
            f'<marker id="{kind.label}" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="4" '
            f'markerHeight="4" orient="auto"><path d="M0,0L6,3L0,6z" fill="{colour}"/></marker>'
            for kind, colour in COLOURS.items()
        ),
        f'</defs><rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="8" y="18">One training step of DLRM on a V100 (rank 0 of 8), '
        f"{step.end.max() / 1e6:.1f} ms; dashed edges are inferred</text>",
        *phases(step),
        *bars(step),
        *(line for kind in COLOURS for line in lines(step, kind)),
        *legend(step, bottom + 14),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> int:
    """Write the picture."""
    parser = argparse.ArgumentParser(description="Draw a recorded step with its edges by kind.")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "edges.svg")
    options = parser.parse_args()
    run = options.data / "dlrm8"
    trace = convert(run / "host.0.json.gz", run / "device.0.json.gz").trace
    options.output.write_text(picture(step_of(trace)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
