"""Rules about collectives and messages that ASTRA-sim does not take, or takes for others."""

from __future__ import annotations

import numpy as np

from chakra_et.definitions import CollectiveType, Kind, NodeType
from chakra_et.validators.astra_sim_limits import DIMENSIONS, LEAST_BYTES, SIMULATED, TAGS
from chakra_et.validators.finding import Hits
from chakra_et.validators.rule import run_rule, trace_rule
from chakra_et.validators.sequences import RECORDED_TIME, group_label, sequences
from chakra_et.validators.view import ABSENT, RunView, TraceView


@trace_rule(
    "ET710",
    "The collective is one that ASTRA-sim does not simulate.",
    why="'Unsupported collective comm type': an abort, or swallowed, and the rank never finishes.",
    cure="`chakra fix --for astra-sim` replaces it with a similar one, and notes it on the node.",
    kin="ET711",
)
def not_simulated(view: TraceView) -> Hits:
    """REDUCE, GATHER, SCATTER, REDUCE_SCATTER_BLOCK and BARRIER."""
    rows = view.collectives
    types = view.integers("comm_type")[rows]
    wrong = np.isin(types, [c for c in CollectiveType if c not in SIMULATED])
    return view.hits(rows[wrong], lambda i: CollectiveType(int(types[wrong][i])).name)


@trace_rule(
    "ET711",
    "A broadcast takes its recorded time.",
    why="ASTRA-sim does not simulate it: a change of the network does not change it.",
    cure="`chakra fix --for astra-sim` puts an all-gather in its place, if all ranks are there.",
    kin="ET710",
)
def broadcast(view: TraceView) -> Hits:
    """BROADCAST collectives; those that stand for what no file tells are ET725's affair."""
    rows = view.collectives[~view.present(RECORDED_TIME)[view.collectives]]
    return view.hits(
        rows[view.integers("comm_type")[rows] == CollectiveType.BROADCAST],
        "BROADCAST is replayed",
    )


@trace_rule(
    "ET725",
    "A collective takes its recorded time, as no file states its type or size.",
    why="The network does not change it; the rest of the run is simulated around it.",
    cure="Record with shapes (record_shapes=True), or with a PyTorch that describes collectives.",
    kin="ET711",
)
def recorded_time(view: TraceView) -> Hits:
    """Collectives that `chakra fix --for astra-sim` made so."""
    rows = view.collectives
    told = view.texts(RECORDED_TIME)[rows]
    return view.hits(rows[told != ""], lambda i: str(told[told != ""][i]))


@trace_rule(
    "ET712",
    "The collective is too small to be simulated.",
    why="An all-gather of fewer bytes than chunks loops forever; an empty one never finishes.",
    cure="`chakra fix --for astra-sim` pads it, and notes it on the node.",
    kin="ET713",
)
def too_small(view: TraceView) -> Hits:
    """All-gathers of less than four bytes, collectives of a negative size."""
    rows = view.collectives
    types, size = view.integers("comm_type")[rows], view.integers("comm_size")[rows]
    gather = (types == CollectiveType.ALL_GATHER) & (size < LEAST_BYTES)
    wrong = (size != ABSENT) & (gather | (size < 0))
    return view.hits(rows[wrong], lambda i: f"{size[wrong][i]} bytes")


@trace_rule(
    "ET713",
    "A collective of no bytes takes time.",
    why="ASTRA-sim raises it to the least number of bytes that its chunks need.",
    cure="None; be aware of it. Barriers are such.",
)
def empty_collective(view: TraceView) -> Hits:
    """Simulated collectives of size 0, but for all-gathers."""
    rows = view.collectives
    types, size = view.integers("comm_type")[rows], view.integers("comm_size")[rows]
    raised = (CollectiveType.ALL_REDUCE, CollectiveType.ALL_TO_ALL, CollectiveType.REDUCE_SCATTER)
    return view.hits(rows[np.isin(types, raised) & (size == 0)], "0 bytes")


@trace_rule(
    "ET717",
    "involved_dim names no dimension.",
    why="All false is a collective that never finishes; an empty list is a crash.",
    cure="Drop the attribute, or set what the network has; `chakra fix --for astra-sim` drops it.",
)
def no_dimension(view: TraceView) -> Hits:
    """Lists without a true value."""
    rows = [
        row
        for column in view.nodes.attributes.named("involved_dim")
        if column.key.kind is Kind.BOOL_LIST
        for row, value in zip(column.rows.tolist(), column.values, strict=True)
        if not any(value)
    ]
    return view.hits(np.array(rows, np.int64), "no dimension is involved")


@run_rule(
    "ET718",
    "Ranks pass different sizes to an all-gather or all-to-all.",
    why="PyTorch allows it; ASTRA-sim never finishes it and reports nothing.",
    cure="`chakra fix --for astra-sim` raises all to the largest, and notes it on the nodes.",
    kin="ET502 ET503",
)
def uneven(run: RunView) -> Hits:
    """Collectives of one type whose sizes may differ on the machine, and do."""
    found = []
    for key, group in sequences(run).items():
        if len({len(s.rows) for s in group}) != 1 or len(group) < 2:
            continue
        types = np.stack([s.types for s in group])
        sizes = np.stack([s.sizes - s.strict_sizes() for s in group])
        wrong = (types == types[0]).all(0) & (sizes != sizes[0]).any(0)
        wrong &= ~np.isin(types[0], (CollectiveType.GATHER, CollectiveType.SCATTER))
        for at in np.flatnonzero(wrong).tolist():
            least, most = int(np.argmin(sizes[:, at])), int(np.argmax(sizes[:, at]))
            other = group[most]
            text = (
                f"{group_label(key)}, ordinal {at}: {sizes[least, at]} bytes, but "
                f"{sizes[most, at]} on rank {other.rank} "
                f"(node {other.view.nodes.id[other.rows[at]]})"
            )
            found.append(group[least].view.at(int(group[least].rows[at]), text))
    return Hits.of(found)


@trace_rule(
    "ET720",
    "A tag is outside the numbers that ASTRA-sim has for traces.",
    why="From 500000000 on it is taken for a message of the simulator itself.",
    cure="`chakra fix --for astra-sim` renumbers the messages.",
    kin="ET505",
)
def tag_range(view: TraceView) -> Hits:
    """Tags below 0 or beyond the last."""
    rows = view.of_type(NodeType.COMM_SEND, NodeType.COMM_RECV)
    tags = view.integers("comm_tag")[rows]
    wrong = (tags != ABSENT) & ((tags < 0) | (tags >= TAGS))
    return view.hits(rows[wrong], lambda i: f"comm_tag {tags[wrong][i]}")


@trace_rule(
    "ET723",
    "A collective chooses dimensions of the network.",
    why="With a network of more dimensions than the list has, or with none of those chosen, "
    "ASTRA-sim crashes, hangs, or silently uses one dimension.",
    cure="Use a network that the list was written for, or drop involved_dim: then all count.",
    kin="ET717",
)
def chosen_dimensions(view: TraceView) -> Hits:
    """Lists of `involved_dim` other than those that stand for all dimensions, told once."""
    lists: dict[tuple[bool, ...], tuple[int, int]] = {}
    for column in view.nodes.attributes.named("involved_dim"):
        if column.key.kind is not Kind.BOOL_LIST:
            continue
        for row, value in zip(column.rows.tolist(), column.values, strict=True):
            told = tuple(map(bool, value))
            if any(told) and not (all(told) and len(told) >= DIMENSIONS):
                first, count = lists.get(told, (row, 0))
                lists[told] = first, count + 1
    found = [
        view.at(first, f"involved_dim is {list(told)} on {count} nodes: {len(told)} dimensions")
        for told, (first, count) in lists.items()
    ]
    return Hits.of(found)
