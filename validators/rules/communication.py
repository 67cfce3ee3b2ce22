"""Rules about what a collective or a message has to say of itself."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.recording.libraries import element_bytes
from chakra_et.validators.finding import NOTHING, Hits
from chakra_et.validators.host_calls import calls_of_communication
from chakra_et.validators.rule import trace_rule
from chakra_et.validators.view import ABSENT, TraceView

_SIZED_BY_INPUT: Final = (
    CollectiveType.ALL_REDUCE,
    CollectiveType.ALL_GATHER,
    CollectiveType.ALL_TO_ALL,
    CollectiveType.REDUCE_SCATTER,
)
_KERNELS: Final = ("nccldevkernel", "ncclkernel", "rcclgenerickernel", "ncclsymkdevkernel")


@trace_rule(
    "ET205",
    "A collective has no type.",
    why="A reader that fills in 0 makes an all-reduce of it; another stops.",
    cure="Set comm_type; where no record tells, the host node's name often does. `chakra fix --for "
    "astra-sim` gives it its recorded time.",
)
def no_collective_type(view: TraceView) -> Hits:
    """COMM_COLL nodes without `comm_type`."""
    return view.lacking(view.collectives, "comm_type")


@trace_rule(
    "ET206",
    "A collective has no size.",
    why="ASTRA-sim stops, or swallows the error and never finishes.",
    cure="Set comm_size to the bytes of this rank's input; record with shapes to get it. "
    "`chakra fix --for astra-sim` gives it its recorded time.",
)
def no_collective_size(view: TraceView) -> Hits:
    """COMM_COLL nodes without `comm_size`; a barrier needs none."""
    rows = view.collectives
    barrier = view.integers("comm_type")[rows] == CollectiveType.BARRIER
    return view.lacking(rows[~barrier], "comm_size")


@trace_rule(
    "ET207",
    "comm_type is not a known collective.",
    why="Readers stop at a number that they do not know.",
    cure="Use a number of CollectiveCommType, 0 to 9.",
    kin="ET503",
)
def unknown_collective(view: TraceView) -> Hits:
    """Numbers beyond those of the schema, on collectives."""
    rows = view.collectives
    types = view.integers("comm_type")[rows]
    wrong = (types != ABSENT) & ~np.isin(types, list(CollectiveType))
    return view.hits(rows[wrong], lambda i: f"comm_type {types[wrong][i]}")


@trace_rule(
    "ET209",
    "A send has no destination, or a receive no source.",
    why="ASTRA-sim stops, or swallows the error and never finishes.",
    cure="Set comm_dst on sends and comm_src on receives, as global ranks.",
    kin="ET505",
)
def no_peer(view: TraceView) -> Hits:
    """Point-to-point nodes without their peer."""
    sends, receives = view.of_type(NodeType.COMM_SEND), view.of_type(NodeType.COMM_RECV)
    no_dst = sends[~view.present("comm_dst")[sends]]
    no_src = receives[~view.present("comm_src")[receives]]
    rows = np.concatenate([no_dst, no_src])
    return view.hits(rows, lambda i: "no comm_dst" if i < len(no_dst) else "no comm_src")


@trace_rule(
    "ET210",
    "A send or receive has no tag.",
    why="ASTRA-sim needs one on both sides to match them.",
    cure="Set comm_tag; `chakra fix` counts the messages between two ranks.",
)
def no_tag(view: TraceView) -> Hits:
    """Point-to-point nodes without `comm_tag`."""
    return view.lacking(view.of_type(NodeType.COMM_SEND, NodeType.COMM_RECV), "comm_tag")


@trace_rule(
    "ET211",
    "A send or receive moves no bytes.",
    why="ASTRA-sim stops at a message of 0 bytes.",
    cure="Set comm_size to the bytes of the message.",
)
def no_message(view: TraceView) -> Hits:
    """Point-to-point nodes without `comm_size`, or with one of 0."""
    rows = view.of_type(NodeType.COMM_SEND, NodeType.COMM_RECV)
    size = view.integers("comm_size")[rows]
    wrong = (size == ABSENT) | (size == 0)
    return view.hits(
        rows[wrong], lambda i: "no comm_size" if size[wrong][i] == ABSENT else "comm_size 0"
    )


@trace_rule(
    "ET212",
    "A communication is marked as host work.",
    why="ASTRA-sim refuses it ('Comm node should not be on CPU'), or swallows that and hangs.",
    cure="Set is_cpu_op to false: `chakra fix` does, unless ET219 speaks of the node too.",
    kin="ET219",
)
def communication_on_host(view: TraceView) -> Hits:
    """Communication nodes with `is_cpu_op` true."""
    rows = view.communication
    return view.hits(rows[view.on_host[rows]], "is_cpu_op is true")


@trace_rule(
    "ET214",
    "A message names its own rank as the other side.",
    why="ASTRA-sim expects a send from its own rank and a receive by it.",
    cure="Use global ranks: those within a group are often taken for them.",
    kin="ET505 ET508",
)
def foreign_side(view: TraceView) -> Hits:
    """Sends with another `comm_src` than their rank, receives with another `comm_dst`."""
    if view.rank is None:
        return NOTHING
    rows, said = [], []
    for node_type, name in ((NodeType.COMM_SEND, "comm_src"), (NodeType.COMM_RECV, "comm_dst")):
        own = view.of_type(node_type)
        value = view.integers(name)[own]
        wrong = (value != ABSENT) & (value != view.rank)
        rows.append(own[wrong])
        said += [f"{name} is {v}, but this is rank {view.rank}" for v in value[wrong].tolist()]
    return view.hits(np.concatenate(rows), said.__getitem__)


@trace_rule(
    "ET215",
    "A communication kernel is recorded as computation.",
    why="The simulator replays its time instead of the network: every topology gives one result.",
    cure="Convert again with the profile that names the collective.",
    kin="ET502",
)
def hidden_communication(view: TraceView) -> Hits:
    """COMP nodes on a device that are called like NCCL's or RCCL's kernels."""
    named = np.array(
        [any(k in name.lower() for k in _KERNELS) for name in view.nodes.names] or [False]
    )
    code = view.nodes.name_code
    rows = np.flatnonzero((view.nodes.type == NodeType.COMP) & named[code] & ~view.on_host)
    return view.hits(rows, "the name is that of a communication kernel; the type is COMP_NODE")


@trace_rule(
    "ET219",
    "A call that asks for communication is recorded as the communication.",
    why="The device's kernel is in the trace too: a simulator does the transfer twice, or stops.",
    cure="Make the call host work (COMP_NODE): `chakra fix` does.",
    kin="ET205 ET206 ET212 ET502",
)
def doubled_communication(view: TraceView) -> Hits:
    """Communication on the host whose device counterpart waits for it, or that says too little."""
    return view.hits(calls_of_communication(view), "the device's communication is there too")


@trace_rule(
    "ET220",
    "comm_size is not the size of this rank's input.",
    why="Simulators take the local input; an all-gather with the size of its output moves that "
    "many times too much.",
    cure="Set comm_size to in_msg_nelems times the bytes of an element.",
    kin="ET201 ET208 ET504 ET712 ET713",
)
def not_the_input(view: TraceView) -> Hits:
    """Sizes that contradict `in_msg_nelems` and `dtype`, where a node has both."""
    rows = view.collectives
    rows = rows[np.isin(view.integers("comm_type")[rows], _SIZED_BY_INPUT)]
    elements, size = view.integers("in_msg_nelems")[rows], view.integers("comm_size")[rows]
    names = view.texts("dtype")[rows]
    width = np.fromiter((element_bytes(n) or 0 for n in names), np.int64, len(rows))
    known = (elements >= 0) & (size >= 0) & (width > 0)
    wrong = known & (np.where(known, elements, 0) * width != size)
    return view.hits(
        rows[wrong],
        lambda i: (
            f"comm_size is {size[wrong][i]}, the input {elements[wrong][i]} elements of "
            f"{names[wrong][i]!r}"
        ),
    )
