"""Rules about what ASTRA-sim does with nodes and edges that are sound otherwise."""

from __future__ import annotations

import numpy as np

from chakra_et.definitions import NodeType
from chakra_et.validators.finding import NOTHING, Hits
from chakra_et.validators.rule import trace_rule
from chakra_et.validators.sequences import issue_order
from chakra_et.validators.view import ABSENT, TraceView


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
