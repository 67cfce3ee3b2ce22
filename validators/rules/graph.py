"""Rules about ids and edges."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import Mask
from chakra_et.model import EdgeKind
from chakra_et.shown import shortened
from chakra_et.validators.cycles import cycles, held_up
from chakra_et.validators.finding import NOTHING, Finding, Hits
from chakra_et.validators.rule import run_rule, trace_rule
from chakra_et.validators.view import RunView, TraceView

_SHOWN: Final = 6
_V2_WINDOW: Final = 4096 * 256
_CACHED: Final = 16384
_READY: Final = 5000


@trace_rule(
    "ET101",
    "Two nodes have the same id.",
    why="ASTRA-sim merges what they wait for and keeps only the last of them.",
    cure="Renumber the nodes: `chakra fix` does; edges to the id then mean the first one.",
    kin="ET103 ET105 ET106",
)
def duplicate_id(view: TraceView) -> Hits:
    """Every node whose id an earlier one has."""
    ids = view.nodes.id
    order = np.argsort(ids, kind="stable")
    same = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    again = np.sort(order[same + 1])
    return view.hits(again, lambda i: f"id {ids[again[i]]} is taken by an earlier node")


@trace_rule(
    "ET102",
    "An edge comes from a node that the file does not have.",
    why="ASTRA-sim stops at loading; other readers never start the node, or read on forever.",
    cure="Convert again with a tool that keeps such nodes, or drop the edges with `chakra fix`.",
    kin="ET106",
)
def dangling(view: TraceView) -> Hits:
    """Every edge whose source no node has."""
    edges = np.flatnonzero(view.source < 0)
    return view.hits(
        view.target[edges],
        lambda i: (
            f"waits ({_kind(view, edges[i])}) for node {view.edges.source[edges[i]]}, "
            "which is not there"
        ),
    )


@trace_rule(
    "ET103",
    "A node waits for itself.",
    why="It never starts, nor does anything after it; ASTRA-sim reports success all the same.",
    cure="Drop the edge: `chakra fix` does.",
    kin="ET106",
)
def self_edge(view: TraceView) -> Hits:
    """Every edge from a node to itself."""
    edges = np.flatnonzero(view.edges.source == view.nodes.id[view.target])
    return view.hits(view.target[edges], lambda i: f"an edge ({_kind(view, edges[i])}) to itself")


@trace_rule(
    "ET104",
    "A node lists the same dependency twice.",
    why="Readers that count what a node waits for never start it.",
    cure="Drop the second edge: `chakra fix` does.",
)
def duplicate_edge(view: TraceView) -> Hits:
    """Every edge that repeats an earlier one of the same node and list."""
    call = view.edges.kind == EdgeKind.CALL
    if not _repeated(view, call):
        return NOTHING
    order = np.lexsort((view.edges.source, call, view.target))
    target, source, kind = view.target[order], view.edges.source[order], call[order]
    same = (target[1:] == target[:-1]) & (source[1:] == source[:-1]) & (kind[1:] == kind[:-1])
    edges = np.sort(order[1:][same])
    return view.hits(
        view.target[edges],
        lambda i: (
            f"node {view.edges.source[edges[i]]} is listed twice in "
            + ("ctrl_deps" if call[edges[i]] else "data_deps")
        ),
    )


@trace_rule(
    "ET105",
    "Nodes wait for each other in a cycle.",
    why="None of them ever starts, nor what follows; ASTRA-sim reports success all the same.",
    cure="Find the edge that is wrong by its kind; `chakra fix --cut-cycles` drops one of each.",
    kin="ET106",
)
def cycle(view: TraceView) -> Hits:
    """The shortest cycle of each knot of cycles, with kinds and times."""
    sound = view.sound_edges
    found = cycles(len(view.nodes), view.source[sound], view.target[sound], view.held_up)
    return view.hits(
        np.array([rows[0] for rows in found], np.int64), lambda i: _circle(view, found[i])
    )


@trace_rule(
    "ET106",
    "Nodes can never start.",
    why="They wait for something that never ends; the simulation is shorter than the trace.",
    cure="Fix what they wait for: the findings of ET102, ET103 and ET105 name it.",
    kin="ET102 ET103 ET105",
)
def never_starts(view: TraceView) -> Hits:
    """Nodes behind a cycle, a self edge or a missing node, those themselves not counted."""
    first = np.unique(view.target[(view.source < 0) | (view.source == view.target)])
    if len(first):
        sound = view.sound_edges
        stuck = held_up(len(view.nodes), view.source[sound], view.target[sound], first)
    else:
        stuck = view.held_up
    rows = np.setdiff1d(stuck, first, assume_unique=True)
    if len(rows) == 0:
        return NOTHING
    return view.whole(f"{len(rows)} of {len(view.nodes)} nodes; the first: {_label(view, rows[0])}")


@trace_rule(
    "ET107",
    "The trace has no nodes.",
    why="ASTRA-sim stops: 'no dependency-free nodes'. A rank that idles needs a node that says so.",
    cure="Give the rank one COMP node of no duration: `chakra fix --for astra-sim` does.",
    kin="ET501",
)
def empty_trace(view: TraceView) -> Hits:
    """A trace without nodes."""
    return view.whole("0 nodes") if len(view.nodes) == 0 else NOTHING


@trace_rule(
    "ET108",
    "A node comes before one that it waits for.",
    why="Readers that hold a window of the file take far longer, or read to its end.",
    cure="Write nodes in order: `chakra fix` does.",
    kin="ET105 ET106",
)
def forward_reference(view: TraceView) -> Hits:
    """Edges that lead back in the file, told once for the trace."""
    edges = np.flatnonzero(view.source > view.target)
    if len(edges) == 0:
        return NOTHING
    row = int(view.target[edges[0]])
    return Hits.of(
        [view.at(row, f"{len(edges)} edges lead back in the file; this one is the first")]
    )


@trace_rule(
    "ET109",
    "A node waits for one that lies more than a window behind.",
    why="The older C++ feeder forgets finished nodes beyond 1048576, and sticks.",
    cure="Cut the trace into parts of less than a million nodes.",
)
def beyond_window(view: TraceView) -> Hits:
    """Edges from another window of the older feeder."""
    edges = np.flatnonzero(
        view.sound_edges & (view.source // _V2_WINDOW != view.target // _V2_WINDOW)
    )
    if len(edges) == 0:
        return NOTHING
    return Hits.of([view.at(int(view.target[edges[0]]), f"{len(edges)} such edges")])


@trace_rule(
    "ET110",
    "Thousands of nodes are ready at once.",
    why="ASTRA-sim looks at every ready node whenever one ends: its time grows with the square.",
    cure="Add edges that hold back what cannot run anyway, such as those of streams and threads.",
)
def wide(view: TraceView) -> Hits:
    """Nodes that wait for nothing, or for one node alone, more than a simulator likes."""
    free, (width, row) = _free(view), _followers(view)
    if free > _READY:
        return view.whole(f"{free} nodes wait for nothing")
    if width > _READY:
        return Hits.of([view.at(row, f"{width} nodes wait for this one alone")])
    return NOTHING


@run_rule(
    "ET111",
    "More nodes are ready at once than all ranks together may have.",
    why="ASTRA-sim keeps 16384 nodes of all ranks in memory, and reads others again and again.",
    cure="Add edges that hold back what cannot run anyway, such as those of streams and threads.",
    kin="ET110",
)
def wide_run(run: RunView) -> Hits:
    """Nodes that wait for nothing or for one node alone: the most of each rank, all together."""
    ready = sum(max(_free(view), _followers(view)[0]) for view in run.views.values())
    if ready < _CACHED:
        return NOTHING
    return Hits.of([Finding(f"{ready} nodes of {len(run.views)} ranks wait for one or for none")])


@trace_rule(
    "ET112",
    "A node names another in both lists.",
    why="The same wait counts twice where a reader counts; most take it once.",
    cure="Keep the one in data_deps.",
)
def both_lists(view: TraceView) -> Hits:
    """Waits that stand in ctrl_deps and in data_deps, told once."""
    call = view.edges.kind == EdgeKind.CALL
    order = np.lexsort((call, view.edges.source, view.target))
    target, source, kind = view.target[order], view.edges.source[order], call[order]
    both = (target[1:] == target[:-1]) & (source[1:] == source[:-1]) & (kind[1:] != kind[:-1])
    if not both.any():
        return NOTHING
    first = int(np.argmax(both))
    text = f"node {source[first]}; {np.count_nonzero(both)} such waits"
    return Hits.of([view.at(int(target[first]), text)])


def _repeated(view: TraceView, call: Mask) -> bool:
    """Whether edges may be repeated at all, which one sort of whole numbers tells."""
    rows = len(view.nodes) + 1
    keys = np.sort((view.target * 2 + call) * rows + view.source + 1)
    return bool((keys[1:] == keys[:-1]).any())


def _free(view: TraceView) -> int:
    """How many nodes wait for nothing."""
    return int(np.count_nonzero(np.diff(view.edges.offsets) == 0))


def _followers(view: TraceView) -> tuple[int, int]:
    """The most nodes that wait for one node and nothing else, and that node's row."""
    edges = np.flatnonzero(np.diff(view.edges.offsets) == 1)
    source = view.source[view.edges.offsets[edges]]
    source = source[source >= 0]
    if len(source) == 0:
        return 0, 0
    counted = np.bincount(source)
    return int(counted.max()), int(counted.argmax())


def _kind(view: TraceView, edge: int) -> str:
    return EdgeKind(int(view.edges.kind[edge])).label


def _label(view: TraceView, row: int) -> str:
    return f"{view.nodes.id[row]} {shortened(view.name(row))!r}"


def _circle(view: TraceView, rows: list[int]) -> str:
    """A cycle in words: each node waits for the next, and why."""
    steps = []
    for row, other in zip(rows, [*rows[1:], rows[0]], strict=True):
        span = slice(int(view.edges.offsets[row]), int(view.edges.offsets[row + 1]))
        edge = span.start + int(np.flatnonzero(view.source[span] == other)[0])
        when = f" at {view.nodes.start_ns[row]} ns" if view.timed[row] else ""
        steps.append(f"{_label(view, row)}{when} waits ({_kind(view, edge)}) for")
    if len(steps) > _SHOWN:
        steps[_SHOWN - 1 :] = [f"… {len(steps) - _SHOWN + 1} more …"]
    return f"{len(rows)} nodes: " + " ".join(steps) + f" {_label(view, rows[0])}"
