"""Rules about what ASTRA-sim does with a trace that is sound otherwise."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.definitions import CollectiveType, Kind, NodeType
from chakra_et.validators.finding import NOTHING, Finding, Hits
from chakra_et.validators.rule import run_rule, trace_rule
from chakra_et.validators.sequences import WORLD, group_label, issue_order, sequences
from chakra_et.validators.view import ABSENT, RunView, TraceView

SIMULATED: Final = (
    CollectiveType.ALL_REDUCE,
    CollectiveType.ALL_GATHER,
    CollectiveType.ALL_TO_ALL,
    CollectiveType.REDUCE_SCATTER,
    CollectiveType.BROADCAST,
)
LEAST_BYTES: Final = 4
"""An all-gather of fewer bytes than it has chunks (four by default) never ends."""
TAGS: Final = 500_000_000
"""Tags from here on are taken for the simulator's own messages."""


@trace_rule(
    "ET701",
    "A node only tells something about the trace.",
    why="ASTRA-sim aborts on METADATA nodes ('Invalid node_type'), in every mode.",
    cure="`chakra fix --for astra-sim` drops them, and ties what they tied together.",
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
    """Communication nodes that start earlier than others of lower id, told once."""
    rows = issue_order(view, view.communication)
    if len(rows) < 2 or not view.timed[rows].all():
        return NOTHING
    ids = view.nodes.id[rows]
    late = np.flatnonzero(ids[1:] < ids[:-1])
    if len(late) == 0:
        return NOTHING
    text = f"starts after node {ids[late[0]]}, though its id is lower; {len(late)} such places"
    return Hits.of([view.at(int(rows[late[0] + 1]), text)])


@trace_rule(
    "ET705",
    "Host nodes cost the simulation its statistics.",
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
    "The trace has several streams.",
    why="ASTRA-sim knows none: one computation and one collective run at a time.",
    cure="None: know that overlap of kernels is lost.",
)
def streams(view: TraceView) -> Hits:
    """Computation on more than one stream of the device."""
    rows = view.of_type(NodeType.COMP)
    used = np.unique(view.integers("stream")[rows])
    used = used[used != ABSENT]
    return view.whole(f"kernels on {len(used)} streams") if len(used) > 1 else NOTHING


@trace_rule(
    "ET710",
    "The collective is one that ASTRA-sim does not simulate.",
    why="'Unsupported collective comm type': an abort, or swallowed, and the rank never finishes.",
    cure="`chakra fix --for astra-sim` puts a like one in its place, and notes it on the node.",
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
    cure="None: know it.",
    kin="ET710",
)
def broadcast(view: TraceView) -> Hits:
    """BROADCAST collectives."""
    rows = view.collectives
    return view.hits(
        rows[view.integers("comm_type")[rows] == CollectiveType.BROADCAST],
        "BROADCAST is replayed",
    )


@trace_rule(
    "ET712",
    "The collective is too small to be simulated.",
    why="An all-gather of less bytes than chunks loops for ever; one of none never finishes.",
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
    cure="None: know it. Barriers are such.",
)
def empty_collective(view: TraceView) -> Hits:
    """Simulated collectives of size 0, but for all-gathers."""
    rows = view.collectives
    types, size = view.integers("comm_type")[rows], view.integers("comm_size")[rows]
    raised = (CollectiveType.ALL_REDUCE, CollectiveType.ALL_TO_ALL, CollectiveType.REDUCE_SCATTER)
    return view.hits(rows[np.isin(types, raised) & (size == 0)], "0 bytes")


@trace_rule(
    "ET714",
    "The name of a group is no number.",
    why="ASTRA-sim turns it into one: '3a' becomes 3, 'tp' an exception, swallowed or not.",
    cure="`chakra fix --for astra-sim` numbers the groups and writes comm_groups.json.",
)
def group_name(view: TraceView) -> Hits:
    """Names on communication nodes that are not plain decimal numbers."""
    rows = view.communication
    names = view.texts("pg_name")[rows]
    wrong = np.array([bool(name) and not _is_number(name) for name in names.tolist()], np.bool_)
    return view.hits(rows[wrong], lambda i: f"group {names[wrong][i]!r}")


@run_rule(
    "ET715",
    "Collectives of all ranks and of some are mixed.",
    why="With the world as '0' or without a name, ranks count collectives apart, and deadlock.",
    cure="Give the world a number and an entry of its own in comm_groups.json: `chakra fix` does.",
)
def implicit_world(run: RunView) -> Hits:
    """A rank with collectives both of the unnamed world and of another group."""
    found = []
    mixed = any(
        name not in WORLD
        for view in run.views.values()
        for name in np.unique(view.texts("pg_name")[view.collectives].astype(str)).tolist()
    )
    for view in run.views.values() if mixed else ():
        names = view.texts("pg_name")[view.collectives].astype(str)
        world = view.collectives[np.isin(names, WORLD)]
        if len(world):
            found.append(
                view.at(int(world[0]), f"{len(world)} of {len(names)} are of the unnamed world")
            )
    return Hits.of(found)


@run_rule(
    "ET716",
    "A collective is of a group of one rank.",
    why="ASTRA-sim makes nothing of it, and it never finishes.",
    cure="Drop it: `chakra fix --for astra-sim` does.",
)
def group_of_one(run: RunView) -> Hits:
    """Collectives of groups that are known to have one member."""
    found = []
    for view in run.views.values():
        names = view.texts("pg_name")[view.collectives].astype(str)
        ones = [n for n in np.unique(names).tolist() if n not in WORLD and len(run.members(n)) == 1]
        rows = view.collectives[np.isin(names, ones)]
        found += [view.at(row, "its group has one rank") for row in rows.tolist()]
    return Hits.of(found)


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
    "Ranks bring different sizes to an all-gather or all-to-all.",
    why="PyTorch allows it; ASTRA-sim never finishes it, and says nothing.",
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
    cure="`chakra fix --for astra-sim` numbers the messages anew.",
    kin="ET505",
)
def tag_range(view: TraceView) -> Hits:
    """Tags below 0 or beyond the last."""
    rows = view.of_type(NodeType.COMM_SEND, NodeType.COMM_RECV)
    tags = view.integers("comm_tag")[rows]
    wrong = (tags != ABSENT) & ((tags < 0) | (tags >= TAGS))
    return view.hits(rows[wrong], lambda i: f"comm_tag {tags[wrong][i]}")


@run_rule(
    "ET721",
    "The file of groups does not fit the traces.",
    why="ASTRA-sim stops on an assertion, an exception, or with 'unknown group'.",
    cure="`chakra fix --for astra-sim` writes comm_groups.json together with the traces.",
    kin="ET714",
)
def group_file(run: RunView) -> Hits:
    """comm_groups.json beside the files: its keys, its ranks, and the names that nodes use."""
    if run.group_file is None:
        return NOTHING
    path, groups = run.group_file
    found = []
    if not isinstance(groups, dict):
        return Hits.of([Finding("no JSON object of lists of ranks", path=path)])
    if "empty" in path:
        text = "the path holds 'empty': ASTRA-sim takes that for no file"
        found.append(Finding(text, path=path))
    for key, ranks in groups.items():
        if not _is_number(key) or int(key) == 0:
            found.append(Finding(f"key {key!r} is no number above 0", path=path))
        if not isinstance(ranks, list) or not ranks:
            found.append(Finding(f"group {key!r} is no list of ranks", path=path))
        elif strange := [rank for rank in ranks if rank not in run.views]:
            found.append(Finding(f"group {key!r} has ranks without a trace: {strange}", path=path))
    for view in run.views.values():
        names = np.unique(view.texts("pg_name")[view.collectives].astype(str)).tolist()
        for name in names:
            if name not in WORLD and name not in groups:
                found.append(Finding(f"no group {name!r}", view.rank, path=path))
            elif isinstance(members := groups.get(name), list) and view.rank not in members:
                found.append(
                    Finding(f"group {name!r} has no rank {view.rank}", view.rank, path=path)
                )
    return Hits.of(found)


@run_rule(
    "ET722",
    "Groups are used, but there is no file of groups beside the traces.",
    why="ASTRA-sim knows only the group of all ranks by itself.",
    cure="`chakra fix --for astra-sim` writes comm_groups.json; or write one yourself.",
)
def no_group_file(run: RunView) -> Hits:
    """Names of groups on nodes, and traces from files without comm_groups.json beside them."""
    if run.group_file is not None or not run.from_files:
        return NOTHING
    names = {
        name
        for view in run.views.values()
        for name in np.unique(view.texts("pg_name")[view.collectives].astype(str)).tolist()
        if name not in WORLD
    }
    return Hits.of([Finding(f"groups in use: {', '.join(sorted(names))}")]) if names else NOTHING


@trace_rule(
    "ET730",
    "A computation has no number of operations.",
    why="With roofline-enabled, ASTRA-sim throws; 0 operations take 9223372036854775808 cycles.",
    cure="Set num_ops, or switch the roofline off to replay durations.",
)
def no_operations(view: TraceView) -> Hits:
    """Device computations without `num_ops`, or with none."""
    return _for_roofline(view, "num_ops")


@trace_rule(
    "ET731",
    "A computation has no size.",
    why="With roofline-enabled, ASTRA-sim throws; a size of 0 skips the node without an event.",
    cure="Set tensor_size to the bytes touched, or switch the roofline off to replay durations.",
)
def no_bytes(view: TraceView) -> Hits:
    """Device computations without `tensor_size`, or with 0."""
    return _for_roofline(view, "tensor_size")


@trace_rule(
    "ET732",
    "A node does not name the tensors it reads and writes.",
    why="With track-local-mem, ASTRA-sim throws at the first such node.",
    cure="Set inputs and outputs on every node, or switch the tracking off.",
)
def no_tensors(view: TraceView) -> Hits:
    """Nodes without `inputs` or `outputs`."""
    rows = np.flatnonzero(~(view.present("inputs") & view.present("outputs")))
    return view.hits(rows, "no inputs or no outputs")


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _for_roofline(view: TraceView, name: str) -> Hits:
    rows = view.of_type(NodeType.COMP)
    rows = rows[~view.on_host[rows]]
    value = view.integers(name)[rows]
    wrong = (value == ABSENT) | (value == 0)
    return view.hits(
        rows[wrong], lambda i: f"no {name}" if value[wrong][i] == ABSENT else f"{name} is 0"
    )
