"""More ways to break a sound trace: groups, times, recordings, and what consumers want."""

from __future__ import annotations

from copy import copy
from random import Random

import numpy as np
import numpy.typing as npt
from rule_mutations import NotHereError, breaks, of_type, pick, with_edge, with_value, without

from chakra_et.definitions import CollectiveType, Kind, NodeType
from chakra_et.model import UNKNOWN_NS, EdgeKind, ProcessGroup, Trace
from chakra_et.passes.edit import set_attribute, without_nodes
from chakra_et.validators.view import ABSENT, TraceView

COLL, SEND, RECV = NodeType.COMM_COLL, NodeType.COMM_SEND, NodeType.COMM_RECV


def node_id(trace: Trace, row: int) -> int:
    return int(trace.nodes.id[row])


breaks("ET214")(with_value("comm_src", Kind.INT32, lambda c: c.randrange(8, 99), SEND))
breaks("ET216")(with_value("edge_kinds", Kind.STRING, lambda c: "x", NodeType.COMP))
breaks("ET216")(with_value("edge_evidence", Kind.STRING, lambda c: "," * 999, NodeType.COMP))


@breaks("ET213")
def no_side(trace: Trace, chance: Random) -> int:
    rows = of_type(trace, NodeType.COMP)
    if np.count_nonzero(trace.nodes.attributes.present("is_cpu_op")[rows]) < 2:
        raise NotHereError
    return int(without("is_cpu_op", NodeType.COMP)(trace, chance))


@breaks("ET215")
def collective_as_computation(trace: Trace, chance: Random) -> int:
    names = np.array(["nccl" in name.lower() for name in trace.nodes.names])
    rows = of_type(trace, COLL)
    row = pick(rows[names[trace.nodes.name_code[rows]]], chance)
    trace.nodes.type[row] = NodeType.COMP
    return node_id(trace, row)


@breaks("ET217")
def memory_without_size(trace: Trace, chance: Random) -> int:
    row = pick(of_type(trace, NodeType.COMP), chance)
    trace.nodes.type[row] = chance.choice([NodeType.MEM_LOAD, NodeType.MEM_STORE])
    return node_id(trace, row)


@breaks("ET220", every=True)
def size_of_the_output(trace: Trace, chance: Random) -> int:
    """Elements as a profiler tells them, and a size that counts the input of every rank."""
    rows = of_type(trace, COLL)
    types = TraceView(trace).integers("comm_type")[rows]
    row = pick(rows[np.isin(types, (CollectiveType.ALL_GATHER, CollectiveType.ALL_TO_ALL))], chance)
    size = TraceView(trace).integers("comm_size")[[row]]
    table, at = trace.nodes.attributes, np.array([row])
    set_attribute(table, "in_msg_nelems", Kind.UINT64, at, (size // 4).astype(np.uint64))
    set_attribute(table, "dtype", Kind.STRING, at, ["Float"])
    set_attribute(table, "comm_size", Kind.INT64, at, size * 8)
    return node_id(trace, row)


@breaks("ET219")
def call_as_communication(trace: Trace, chance: Random) -> int:
    """The host operator that a kernel of communication waits for becomes communication too."""
    view = TraceView(trace)
    edges = np.flatnonzero(np.isin(view.target, view.collectives) & view.on_host[view.source])
    row = int(view.source[pick(edges, chance)])
    trace.nodes.type[row] = COLL
    return node_id(trace, row)


@breaks("ET301")
def negative_start(trace: Trace, chance: Random) -> int:
    row = pick(np.flatnonzero(trace.nodes.start_ns != UNKNOWN_NS), chance)
    trace.nodes.start_ns[row] = -chance.randrange(1, 10**9)
    return node_id(trace, row)


@breaks("ET303")
def no_durations(trace: Trace, chance: Random) -> None:
    rows = of_type(trace, NodeType.COMP)
    if len(rows) < 20 or not trace.nodes.duration_ns[rows].any():
        raise NotHereError
    trace.nodes.duration_ns[:] = 0


def _neighbours(trace: Trace, lane: str, host: bool) -> list[tuple[int, int]]:
    """Pairs of nodes that follow each other on a thread or a stream."""
    view = TraceView(trace)
    lanes = view.integers(lane)
    rows = np.flatnonzero((lanes != ABSENT) & view.timed & (view.on_host == host))
    order = rows[np.lexsort((rows, view.own_start_ns[rows], lanes[rows]))]
    same = lanes[order][1:] == lanes[order][:-1]
    return list(zip(order[:-1][same].tolist(), order[1:][same].tolist(), strict=True))


def _stretched(trace: Trace, pairs: list[tuple[int, int]], chance: Random) -> int:
    """Let a node last beyond the start of the next one; the id of that."""
    if not pairs:
        raise NotHereError
    begin = TraceView(trace).own_start_ns
    one, other = chance.choice(pairs)
    trace.nodes.duration_ns[one] = begin[other] - begin[one] + chance.randrange(1, 1000)
    return node_id(trace, other)


@breaks("ET306")
def host_nodes_overlap(trace: Trace, chance: Random) -> int:
    return _stretched(trace, _neighbours(trace, "thread", host=True), chance)


@breaks("ET305", "replay")
def kernels_overlap(trace: Trace, chance: Random) -> int:
    return _stretched(trace, _neighbours(trace, "stream", host=False), chance)


@breaks("ET401")
def groups_that_are_no_json(trace: Trace, chance: Random) -> None:
    if not trace.groups:
        raise NotHereError
    trace.metadata.set("process_groups", Kind.STRING, '[{"pg_name": 1')


def _with_group(trace: Trace, **changes: object) -> None:
    """Change the group that collectives use."""
    used = set(TraceView(trace).texts("pg_name")[of_type(trace, COLL)].tolist())
    groups = list(trace.groups)
    found = [i for i, group in enumerate(groups) if group.name in used and len(group.ranks) > 1]
    if not found:
        raise NotHereError
    old = groups[found[0]]
    whole = {"name": old.name, "ranks": old.ranks, "size": len(old.ranks)}
    groups[found[0]] = ProcessGroup(**{**whole, **changes})  # type: ignore[arg-type]
    trace.groups = groups


@breaks("ET404")
def members_cut(trace: Trace, chance: Random) -> None:
    _with_group(trace, ranks=(trace.rank or 0,))


@breaks("ET406")
def member_twice(trace: Trace, chance: Random) -> None:
    everyone = tuple(range(trace.world_size or 2))
    _with_group(trace, ranks=(*everyone, chance.choice(everyone)), size=len(everyone) + 1)


@breaks("ET405")
def group_twice(trace: Trace, chance: Random) -> None:
    if not trace.groups:
        raise NotHereError
    trace.groups = [*trace.groups, chance.choice(trace.groups)]


@breaks("ET408")
def other_world(trace: Trace, chance: Random) -> None:
    if trace.world_size is None:
        raise NotHereError
    trace.metadata.set("world_size", Kind.INT64, trace.world_size + chance.randrange(1, 9))


@breaks("ET505")
def send_dropped(trace: Trace, chance: Random) -> None:
    dropped = np.zeros(len(trace.nodes), np.bool_)
    dropped[pick(of_type(trace, SEND), chance)] = True
    left = without_nodes(trace, dropped)
    trace.nodes, trace.edges = left.nodes, left.edges


def _of_type(node_type: int):  # type: ignore[no-untyped-def]
    def change(trace: Trace, chance: Random) -> int:
        row = pick(of_type(trace, NodeType.COMP), chance)
        trace.nodes.type[row] = node_type
        size = np.array([chance.randrange(1, 99)], np.uint64)
        set_attribute(trace.nodes.attributes, "tensor_size", Kind.UINT64, np.array([row]), size)
        return node_id(trace, row)

    return change


breaks("ET701", "astra-sim")(_of_type(NodeType.METADATA))
breaks("ET702", "astra-sim")(_of_type(NodeType.INVALID))
breaks("ET703", "astra-sim")(_of_type(NodeType.MEM_STORE))


@breaks("ET705", "astra-sim")
def one_host_node(trace: Trace, chance: Random) -> None:
    rows = of_type(trace, NodeType.COMP)
    hosted = rows == pick(rows, chance)
    set_attribute(trace.nodes.attributes, "is_cpu_op", Kind.BOOL, rows, hosted)


breaks("ET710", "astra-sim", every=True)(
    with_value("comm_type", Kind.INT64, lambda c: c.choice([1, 3, 4, 8, 9]), COLL)
)
breaks("ET711", "astra-sim", every=True)(with_value("comm_type", Kind.INT64, lambda c: 5, COLL))


@breaks("ET712", "astra-sim", every=True)
def tiny_all_gather(trace: Trace, chance: Random) -> int:
    rows = of_type(trace, COLL)
    types = TraceView(trace).integers("comm_type")[rows]
    row = pick(rows[types == CollectiveType.ALL_GATHER], chance)
    size = np.array([chance.randrange(4)])
    set_attribute(trace.nodes.attributes, "comm_size", Kind.INT64, np.array([row]), size)
    return node_id(trace, row)


@breaks("ET714", "astra-sim", every=True)
def group_by_word(trace: Trace, chance: Random) -> int:
    if trace.groups:
        raise NotHereError
    return int(
        with_value("pg_name", Kind.STRING, lambda c: c.choice(["tp", "3a", "-1"]), COLL)(
            trace, chance
        )
    )


breaks("ET717", "astra-sim", every=True)(
    with_value("involved_dim", Kind.BOOL_LIST, lambda c: (False,) * c.randrange(3), COLL)
)
breaks("ET723", "astra-sim", every=True)(
    with_value("involved_dim", Kind.BOOL_LIST, lambda c: (True,) * c.randrange(1, 4), COLL)
)
breaks("ET720", "astra-sim")(
    with_value("comm_tag", Kind.INT32, lambda c: c.randrange(5 * 10**8, 2**31), SEND)
)


@breaks("ET202", "mlc-chakra")
def size_without_sign(trace: Trace, chance: Random) -> int:
    row = pick(of_type(trace, COLL, SEND, RECV), chance)
    size = TraceView(trace).integers("comm_size")[[row]].astype(np.uint64)
    set_attribute(trace.nodes.attributes, "comm_size", Kind.UINT64, np.array([row]), size)
    return node_id(trace, row)


@breaks("ET112", "mlc-chakra")
def wait_in_both_lists(trace: Trace, chance: Random) -> int:
    edge = pick(np.flatnonzero(trace.edges.kind != EdgeKind.CALL), chance)
    row = int(trace.edges.target[edge])
    with_edge(trace, row, int(trace.edges.source[edge]), EdgeKind.CALL)
    return node_id(trace, row)


@breaks("ET108", "mlc-chakra")
def turned_around(trace: Trace, chance: Random) -> None:
    if len(trace.edges) == 0:
        raise NotHereError
    order = np.arange(len(trace.nodes))[::-1]
    edges = trace.edges
    target = len(order) - 1 - edges.target
    trace.nodes = trace.nodes.take(order)
    trace.edges = type(edges).collect(len(order), target, edges.source, edges.kind, edges.inferred)


@breaks("ET307", "replay")
def starts_before_what_it_waits_for(trace: Trace, chance: Random) -> int:
    view = TraceView(trace)
    chosen = (trace.edges.kind != EdgeKind.LAUNCH) & ~trace.edges.inferred & view.sound_edges
    chosen &= view.timed[view.source] & view.timed[view.target]
    chosen &= ~view.present("own_start_ns")[view.target]
    edge = pick(np.flatnonzero(chosen), chance)
    row, source = int(view.target[edge]), int(view.source[edge])
    trace.nodes.start_ns[row] = trace.nodes.start_ns[source] - chance.randrange(1, 10**6)
    return node_id(trace, row)


@breaks("ET602", "replay")
def no_waits_between_streams(trace: Trace, chance: Random) -> None:
    waits = np.isin(trace.edges.kind, (EdgeKind.EVENT, EdgeKind.SYNC))
    if not waits.any() or not TraceView(trace).present("stream").any():
        raise NotHereError
    trace.edges = copy(trace.edges)
    trace.edges.kind = np.where(waits, EdgeKind.STREAM, trace.edges.kind).astype(np.uint8)


@breaks("ET603", "replay")
def no_times(trace: Trace, chance: Random) -> None:
    if not trace.nodes.attributes.present("host_id").any():
        raise NotHereError
    trace.nodes.start_ns[:] = UNKNOWN_NS


@breaks("ET604", "replay")
def no_record_ids(trace: Trace, chance: Random) -> None:
    table = trace.nodes.attributes
    if not table.present("host_id").any():
        raise NotHereError
    for column in table.named("rf_id"):
        table.remove(column, column.rows.copy())


@breaks("ET605", "replay")
def kernel_dropped(trace: Trace, chance: Random) -> None:
    view = TraceView(trace)
    launched = view.target[trace.edges.kind == EdgeKind.LAUNCH]
    launched = launched[trace.nodes.type[launched] == NodeType.COMP]
    dropped = np.zeros(len(trace.nodes), np.bool_)
    dropped[pick(launched, chance)] = True
    left = without_nodes(trace, dropped)
    trace.nodes, trace.edges = left.nodes, left.edges


def _operators(trace: Trace) -> npt.NDArray[np.int64]:
    """Rows of operators, ordered by their thread in the host trace."""
    table = trace.nodes.attributes
    rows = np.flatnonzero(table.present("op_schema") & table.present("host_id"))
    if len(rows) == 0:
        raise NotHereError
    return rows[np.argsort(TraceView(trace).integers("tid")[rows], kind="stable")]


@breaks("ET606", "replay")
def a_part_without_times(trace: Trace, chance: Random) -> None:
    rows = _operators(trace)
    trace.nodes.start_ns[rows[np.arange(len(rows)) % 5 == 0]] = UNKNOWN_NS


@breaks("ET607", "replay")
def a_thread_without_times(trace: Trace, chance: Random) -> None:
    rows = _operators(trace)
    thread = TraceView(trace).integers("tid")[rows]
    chosen = thread == chance.choice(np.unique(thread).tolist())
    if chosen.all() or chosen.mean() <= 0.1:
        raise NotHereError
    trace.nodes.start_ns[rows[chosen]] = UNKNOWN_NS


@breaks("ET601", "replay")
def no_shapes(trace: Trace, chance: Random) -> None:
    if not trace.nodes.attributes.present("op_schema").any():
        raise NotHereError
    trace.nodes.texts = [(values, b"[]", types) for values, _, types in trace.nodes.texts]


@breaks("ET901", "torch-replay")
def no_schema(trace: Trace, chance: Random) -> int:
    names = np.array([name.startswith("aten::") for name in trace.nodes.names])
    told = trace.nodes.attributes.present("op_schema") & names[trace.nodes.name_code]
    row = pick(np.flatnonzero(told), chance)
    for column in trace.nodes.attributes.named("op_schema"):
        trace.nodes.attributes.remove(column, np.array([row]))
    return node_id(trace, row)
