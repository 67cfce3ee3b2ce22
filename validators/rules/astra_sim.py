"""Rules about what ASTRA-sim does with nodes and edges that are sound otherwise."""

from __future__ import annotations

from itertools import islice
from typing import Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.definitions import NodeType
from chakra_et.validators import sequences
from chakra_et.validators.finding import NOTHING, Finding, Hits
from chakra_et.validators.ordering import issue_order
from chakra_et.validators.rule import run_rule, trace_rule
from chakra_et.validators.view import ABSENT, RunView, TraceView

_SHOWN: Final = 4
_ENOUGH: Final = 20
"""Nodes from which on a trace is judged by what most of them are."""


@trace_rule(
    "ET701",
    "A node holds only metadata.",
    why="ASTRA-sim aborts on METADATA nodes ('Invalid node_type'), in every mode.",
    cure="`chakra fix --for astra-sim` drops them, and connects what they connected.",
)
def metadata_node(view: TraceView) -> Hits:
    """METADATA nodes."""
    return view.hits(view.of_type(NodeType.METADATA), "METADATA_NODE")


@trace_rule(
    "ET702",
    "A node is of a type that ASTRA-sim does not have.",
    why="It aborts on types other than 0 to 7; a node without type ends in no time, or never.",
    cure="`chakra fix --for astra-sim` makes COMP nodes of those that are known, and drops others.",
    kin="ET204",
)
def other_type(view: TraceView) -> Hits:
    """STORAGE and DATA_OP nodes, those without a type, and unknown ones."""
    types = view.nodes.type
    rows = np.flatnonzero((types == NodeType.INVALID) | (types > NodeType.COMM_COLL) | (types < 0))
    return view.hits(rows, lambda i: f"type {types[rows[i]]}")


@trace_rule(
    "ET703",
    "A node moves memory.",
    why="Without a remote-memory model ASTRA-sim stops; with one, such nodes run one by one.",
    cure="Configure the remote memory; `chakra fix --for astra-sim` makes COMP nodes of them.",
)
def memory_node(view: TraceView) -> Hits:
    """MEM_LOAD and MEM_STORE nodes."""
    return view.hits(view.of_type(NodeType.MEM_LOAD, NodeType.MEM_STORE), "a memory node")


@trace_rule(
    "ET704",
    "Ids do not ascend in the order of issue.",
    why="Of ready nodes ASTRA-sim issues the one of least id: collectives may change places.",
    cure="Number the nodes in the order of their starts: `chakra fix` does.",
)
def ids_out_of_order(view: TraceView) -> Hits:
    """Communication nodes that start earlier than others of lower id, told once.

    Where edges contradict starts, edges decide: nothing can change places there.
    """
    rows = sequences.issue_order(view, view.communication)
    if len(rows) < 2 or not view.timed[rows].all() or _ascend(view, rows):
        return NOTHING
    order = issue_order(view.trace)
    rows = order[np.isin(order, rows)]
    ids = view.nodes.id[rows]
    late = np.flatnonzero(ids[1:] < ids[:-1])
    if len(late) == 0:
        return NOTHING
    text = f"starts after node {ids[late[0]]}, though its id is lower; {len(late)} such places"
    return Hits.of([view.at(int(rows[late[0] + 1]), text)])


@trace_rule(
    "ET705",
    "Host nodes disable the simulator's statistics.",
    why="At the end of a rank ASTRA-sim throws 'Only GPU and COMM types are supported', and logs a "
    "warning instead of times; the cycles are right, 'exposed communication' is not.",
    cure="`chakra fix --for astra-sim` folds host time into the device's.",
)
def host_nodes(view: TraceView) -> Hits:
    """Nodes on a host processor, told once."""
    rows = np.flatnonzero(view.on_host)
    return view.whole(f"{len(rows)} nodes run on the host") if len(rows) else NOTHING


@trace_rule(
    "ET706",
    "The trace has several streams, whose work may overlap.",
    why="ASTRA-sim has none: one computation and one collective run at a time.",
    cure="None; overlap of kernels, and of collectives, is lost.",
)
def streams(view: TraceView) -> Hits:
    """Computation on more than one stream of a device, or communication on more than one.

    Streams whose work edges put into one line have no overlap to lose.
    """
    streams = np.stack((view.integers("device"), view.integers("stream")))
    said = []
    for what, rows in (
        ("kernels", view.of_type(NodeType.COMP)),
        ("communication", view.communication),
    ):
        on_streams = rows[streams[1, rows] != ABSENT]
        used = np.unique(streams[:, on_streams], axis=1).shape[1]
        if used > 1 and not _in_line(view, rows[~view.on_host[rows]]):
            said.append(f"{what} on {used} streams")
    return view.whole(", ".join(said)) if said else NOTHING


def _in_line(view: TraceView, rows: Rows) -> bool:
    """Whether each of some nodes waits for the one issued before it."""
    order = issue_order(view.trace)
    place = np.full(len(view.nodes), ABSENT)
    mine = order[np.isin(order, rows)]
    place[mine] = np.arange(len(mine))
    source, target = place[view.source[view.sound_edges]], place[view.target[view.sound_edges]]
    follows = target[(source != ABSENT) & (target == source + 1)]
    return len(np.unique(follows)) == len(rows) - 1


@trace_rule(
    "ET724",
    "The trace has work of several devices.",
    why="ASTRA-sim has one device for each rank: what ran at the same time on two devices runs one "
    "after the other.",
    cure="`chakra fix --for astra-sim` makes a rank of each device where the process communicates "
    "with no other; else record a process for each device, as torchrun starts them.",
)
def devices(view: TraceView) -> Hits:
    """Computation and communication on more than one device."""
    device = view.integers("device")
    rows = np.flatnonzero(~view.on_host & (device != ABSENT))
    numbers, counts = np.unique(device[rows], return_counts=True)
    if len(numbers) < 2:
        return NOTHING
    pairs = zip(numbers.tolist(), counts.tolist(), strict=True)
    shown = ", ".join(
        f"{count} nodes on device {number}" for number, count in islice(pairs, _SHOWN)
    )
    return view.whole(shown + ", …" * (len(numbers) > _SHOWN))


@trace_rule(
    "ET707",
    "Nothing waits for the work of the device.",
    why="ASTRA-sim starts whatever waits for nothing that runs: collectives begin too early, "
    "beside the kernels whose results they move.",
    cure="Convert again with a tool that writes the order of streams as edges: `chakra convert`.",
)
def loose_kernels(view: TraceView) -> Hits:
    """Computations of a device, most of which nothing waits for, in a trace that communicates."""
    rows = view.of_type(NodeType.COMP)
    rows = rows[~view.on_host[rows]]
    if len(rows) < _ENOUGH or len(view.communication) == 0:
        return NOTHING
    waited_for = np.zeros(len(view.nodes), np.bool_)
    waited_for[view.source[view.sound_edges]] = True
    loose = rows[~waited_for[rows]]
    if len(loose) * 2 <= len(rows):
        return NOTHING
    text = f"nothing waits for {len(loose)} of {len(rows)} computations of the device"
    return Hits.of([view.at(int(loose[0]), text)])


@trace_rule(
    "ET708",
    "The recording has time in which no node runs.",
    why="ASTRA-sim ignores starts: time in which nothing ran is not simulated.",
    cure="Record the host too: `--for astra-sim` then makes nodes of the time that it took.",
    kin="ET301 ET302 ET304 ET307 ET309 ET310",
)
def untold_idle(view: TraceView) -> Hits:
    """Starts and durations that leave more than a tenth of the recorded span uncovered."""
    rows = np.flatnonzero(view.timed)
    if len(rows) < _ENOUGH:
        return NOTHING
    start = view.own_start_ns[rows]
    order = np.argsort(start, kind="stable")
    start, end = start[order], (start + view.nodes.duration_ns[rows])[order]
    latest = np.maximum.accumulate(end)
    idle = int(np.maximum(start[1:] - latest[:-1], 0).sum())
    span = int(latest[-1] - start[0])
    if idle * 10 <= span:
        return NOTHING
    return view.whole(f"no node runs for {idle / 1e6:.3f} of {span / 1e6:.3f} ms")


@run_rule(
    "ET709",
    "There is only one rank.",
    why="The analytical network rejects it: 'npus_count (1) should be larger than 1'.",
    cure="Give it the traces of more ranks, or simulate with another network.",
    kin="ET501",
)
def one_rank(run: RunView) -> Hits:
    """A run of one trace that tells of no others."""
    if len(run.views) != 1 or (run.world_size or 1) > 1:
        return NOTHING
    (rank, view), *_ = run.views.items()
    return Hits.of([Finding("one rank", rank, path=view.path)])


def _ascend(view: TraceView, rows: Rows) -> bool:
    ids = view.nodes.id[rows]
    return bool((ids[1:] > ids[:-1]).all())
