"""One rank as learners see it: rows in an order in which edges lead forward, and what they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import NodeType
from chakra_et.errors import ChakraError
from chakra_et.graph import edge_rows, topological_order
from chakra_et.model import EdgeKind, Trace
from chakra_et.recording.libraries import STEP
from chakra_et.synth.families import operator_family
from chakra_et.synth.phases import phases_of

MESSAGES: Final = (NodeType.COMM_SEND, NodeType.COMM_RECV)
COMMUNICATION: Final = (NodeType.COMM_COLL, *MESSAGES)
SIZES: Final = ("num_ops", "tensor_size", "comm_size")
"""Attributes that are sizes or amounts of work."""
ABSENT: Final = -1
"""In a column of sizes, numbers or ranks: the node does not tell."""
DELAYS: Final = ("lag_ns", "late_ns", "contention_ns")
DEEPEST: Final = 31
HOST, STREAM, OTHER = 0, 1, 2
"""Kinds of lanes."""
_LARGEST: Final = 1 << 62


@dataclass
class RankView:
    """Columns of one rank, of the rows that are work; `order` has their rows in the trace.

    `lane` is a place in `lanes`, pairs of a kind and a number; `depth` counts open callers on the
    lane. `step` counts steps from 0, -1 before the first; `step_mark` are the rows with which
    annotations say that one begins. `sizes` is int64[rows, 3], of `SIZES`. `source` and `target`
    are edges as pairs of these rows. Times in ns.
    """

    rank: int
    trace: Trace
    order: Rows
    type: Rows
    family: Rows
    families: list[str]
    lane: Rows
    lanes: list[tuple[int, int]]
    depth: Rows
    called: Mask
    phase: Rows
    step: Rows
    step_mark: Mask
    sizes: Rows
    collective: Rows
    peer: Rows
    group: npt.NDArray[np.object_]
    duration_ns: Rows
    delay_ns: Rows
    source: Rows
    target: Rows
    kind: Rows
    left_out: Counter[str]

    def __len__(self) -> int:
        return len(self.order)

    @property
    def communicates(self) -> Mask:
        """Which rows are transfers between ranks."""
        return np.isin(self.type, COMMUNICATION)

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return int(self.step.max(initial=-1)) + 1


def view_of(trace: Trace, rank: int) -> RankView:
    """The view of a trace. Raises ChakraError where its edges form a cycle."""
    left_out = Counter[str]()
    order = _order(trace, rank, left_out)
    place = np.full(len(trace.nodes), -1, np.int64)
    place[order] = np.arange(len(order))
    edges = edge_rows(trace)
    source, target = place[edges.source], place[edges.target]
    there = (source >= 0) & (target >= 0)
    left_out["edges from or to them"] += int(np.count_nonzero(~there)) + edges.dangling
    kind = trace.edges.kind[edges.place].astype(np.int64)
    phase = phases_of(trace, edges.source, edges.target, kind)[order]
    source, target, kind = source[there], target[there], kind[there]
    nodes, attributes = trace.nodes, trace.nodes.attributes
    families, family = _families(trace, order)
    lanes, lane = _lanes(trace, order)
    called, depth = _depth(len(order), lane, source, target, kind)
    kept = ~(called[target] & (kind == EdgeKind.CALL) & (lane[source] == lane[target]))
    step_mark = _step_marks(trace)[order]
    delay = sum(
        np.clip(attributes.dense(name, 0, np.int64)[order], 0, _LARGEST >> 2) for name in DELAYS
    )
    return RankView(
        rank=rank,
        trace=trace,
        order=order,
        type=nodes.type[order].astype(np.int64),
        family=family,
        families=families,
        lane=lane,
        lanes=lanes,
        depth=depth,
        called=called,
        phase=phase,
        step=_steps(step_mark),
        step_mark=step_mark,
        sizes=np.stack([_number(trace, name)[order] for name in SIZES], axis=1),
        collective=_number(trace, "comm_type")[order],
        peer=_peers(trace)[order],
        group=attributes.dense("pg_name", "", object)[order],
        duration_ns=np.clip(nodes.duration_ns[order], 0, _LARGEST),
        delay_ns=np.asarray(delay, np.int64),
        source=source[kept],
        target=target[kept],
        kind=kind[kept],
        left_out=left_out,
    )


def _order(trace: Trace, rank: int, left_out: Counter[str]) -> Rows:
    edges = edge_rows(trace)
    order = topological_order(len(trace.nodes), edges.source, edges.target)
    if len(order) < len(trace.nodes):
        raise ChakraError(
            f"the edges of rank {rank} form a cycle",
            remedy="Run `chakra validate` to find it, and `chakra fix` to mend the trace.",
        )
    order = _behind_launches(trace, order, edges.source, edges.target)
    types = trace.nodes.type
    polls = trace.nodes.attributes.dense("polling", False, np.bool_)
    work = np.isin(types, [t for t in NodeType if t not in (NodeType.INVALID, NodeType.METADATA)])
    left_out["nodes of metadata or of no known type"] += int(np.count_nonzero(~work))
    left_out["nodes of threads that only poll"] += int(np.count_nonzero(work & polls))
    kept: Rows = order[(work & ~polls)[order]]
    return kept


def _behind_launches(trace: Trace, order: Rows, source: Rows, target: Rows) -> Rows:
    """The order with work of devices right behind the host's work that started it.

    When a device came to it depends on times, and would be no part of the program. Edges still lead
    forward: what waits for later work of the host, over whatever nodes, stays behind that.
    """
    attributes, count = trace.nodes.attributes, len(order)
    host = attributes.dense("is_cpu_op", False, np.bool_) | attributes.present("thread")
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    launched = host[source] & ~host[target]
    key = np.where(host, place, -1)
    np.maximum.at(key, target[launched], place[source[launched]])
    key = np.where(key < 0, place, key)
    while True:
        late = key[source] > key[target]
        if not late.any():
            break
        np.maximum.at(key, target[late], key[source[late]])
    return np.lexsort((place, key))


def _families(trace: Trace, order: Rows) -> tuple[list[str], Rows]:
    nodes = trace.nodes
    pairs = np.stack([nodes.name_code[order].astype(np.int64), nodes.type[order]], axis=1)
    distinct, code = np.unique(pairs, axis=0, return_inverse=True)
    told = [operator_family(nodes.names[name], kind) for name, kind in distinct.tolist()]
    names = sorted(set(told))
    table = np.array([names.index(name) for name in told], np.int64)
    return names, table[code.reshape(-1)] if len(told) else np.zeros(0, np.int64)


def _lanes(trace: Trace, order: Rows) -> tuple[list[tuple[int, int]], Rows]:
    """Host threads in the order of their first rows, streams by number, all else by group."""
    attributes = trace.nodes.attributes
    host = attributes.dense("is_cpu_op", False, np.bool_)[order]
    thread = attributes.dense("thread", ABSENT, np.int64)[order]
    device = attributes.dense("device", 0, np.int64)[order]
    stream = attributes.dense("stream", ABSENT, np.int64)[order]
    group = attributes.dense("pg_name", "", object)[order]
    on_thread = host | (thread != ABSENT)
    on_stream = ~on_thread & (stream != ABSENT)
    number = np.zeros(len(order), np.int64)
    number[on_thread] = _by_appearance(thread[on_thread])
    pairs = np.stack([device[on_stream], stream[on_stream]], axis=1)
    number[on_stream] = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    rest = ~on_thread & ~on_stream
    number[rest] = _by_appearance(np.unique(group[rest].astype(str), return_inverse=True)[1])
    kind = np.where(on_thread, HOST, np.where(on_stream, STREAM, OTHER))
    key = kind * (len(order) + 1) + number
    distinct, lane = np.unique(key, return_inverse=True)
    lanes = [divmod(k, len(order) + 1) for k in distinct.tolist()]
    return lanes, lane.reshape(-1)


def _by_appearance(values: Rows) -> Rows:
    distinct, first, code = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(distinct), np.int64)
    rank[np.argsort(first)] = np.arange(len(distinct))
    return rank[code.reshape(-1)] if len(distinct) else np.zeros(0, np.int64)


def _depth(count: int, lane: Rows, source: Rows, target: Rows, kind: Rows) -> tuple[Mask, Rows]:
    """Whether a row was called from its own lane, and how many callers are open there.

    Callers that are not the last row of their depth cannot be told by depth, and do not count.
    """
    parent = np.full(count, -1, np.int64)
    calls = (kind == EdgeKind.CALL) & (lane[source] == lane[target])
    parent[target[calls]] = source[calls]
    depth = np.zeros(count, np.int64)
    above = parent.copy()
    for _ in range(DEEPEST):
        depth += above >= 0
        above = np.where(above >= 0, parent[above], -1)
    called = parent >= 0
    called &= last_of_depth(lane, depth - 1, lane, depth) == parent
    return called, depth


def last_of_depth(lane: Rows, wanted: Rows, of_lane: Rows, depth: Rows) -> Rows:
    """For each row the last one before it on its lane with depth `wanted`; -1 for none."""
    width = DEEPEST + 2
    key = of_lane * width + depth
    order = np.argsort(key, kind="stable")
    count = len(lane)
    placed = key[order] * count + order
    asked = (lane * width + np.maximum(wanted, 0)) * count + np.arange(count)
    at = np.searchsorted(placed, asked) - 1
    found = order[np.maximum(at, 0)] if count else order
    sound = (at >= 0) & (wanted >= 0) & (key[found] == lane * width + wanted)
    return np.where(sound, found, -1)


def _step_marks(trace: Trace) -> Mask:
    """The rows with which steps begin, where annotations tell."""
    nodes = trace.nodes
    marks = np.isin(nodes.name_code, [c for c, n in enumerate(nodes.names) if STEP.fullmatch(n)])
    return np.asarray(marks & ~nodes.attributes.present("rest_of"))


def _steps(marks: Mask) -> Rows:
    """Steps counted in the order of rows; one for all without any mark."""
    return np.cumsum(marks) - 1 if marks.any() else np.zeros(len(marks), np.int64)


def _number(trace: Trace, name: str) -> Rows:
    values = trace.nodes.attributes.dense(name, ABSENT, np.int64)
    return np.where((values < 0) | (values > _LARGEST), ABSENT, values)


def _peers(trace: Trace) -> Rows:
    sends = trace.nodes.type == NodeType.COMM_SEND
    receives = trace.nodes.type == NodeType.COMM_RECV
    to, by = _number(trace, "comm_dst"), _number(trace, "comm_src")
    return np.where(sends, to, np.where(receives, by, ABSENT))
