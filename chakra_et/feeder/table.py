"""The nodes of a whole trace, by ascending id, with the edges that make them wait."""

from __future__ import annotations

from itertools import repeat
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.definitions import NodeAttributes
from chakra_et.feeder import errors
from chakra_et.feeder.known_attributes import EDGE_KINDS, NOWHERE, ODD
from chakra_et.feeder.node import TYPES, FeederNode, MessageNode, ScannedNode
from chakra_et.feeder.options import Fault, Options
from chakra_et.feeder.scan import Columns
from chakra_et.model import UNKNOWN_NS, EdgeKind, Trace

_CPU: Final = (None, False, None, True)
"""is_cpu_op, by the flags CPU_KNOWN and CPU_TRUE."""


class Table:
    """Rows of nodes; `parent` and `child` hold the rows of each edge that gates.

    `stuck` holds the rows that wait for ever, once for each such edge.
    """

    id: npt.NDArray[np.uint64]
    type: npt.NDArray[np.int32]
    parent: npt.NDArray[np.uint32]
    child: npt.NDArray[np.uint32]
    stuck: npt.NDArray[np.int64]

    def node(self, row: int) -> Any:
        """The view of a node."""
        raise NotImplementedError

    def nodes(self, rows: npt.NDArray[np.int64]) -> list[Any]:
        """The views of many nodes."""
        return [self.node(row) for row in rows.tolist()]

    def starts(self) -> npt.NDArray[np.int64]:
        """The start of each node in ns, or NOWHERE."""
        raise NotImplementedError

    def row(self, node_id: int) -> int:
        """The row of an id, or -1."""
        if self._dense:
            at = node_id - self._first
            return at if 0 <= at < self._count else -1
        if not 0 <= node_id < 1 << 64:
            return -1
        place = int(np.searchsorted(self.id, np.uint64(node_id)))
        return place if place < len(self.id) and self.id[place] == node_id else -1

    def children(self) -> tuple[memoryview, memoryview]:
        """Who waits for whom: rows by the row waited for, and where those of each row begin."""
        keys = self.parent.astype(np.uint64) << np.uint64(32) | self.child
        keys.sort()
        offsets = np.zeros(len(self) + 1, np.uint32)
        np.cumsum(np.bincount(self.parent, minlength=len(self)), out=offsets[1:])
        return keys.astype(np.uint32).data, offsets.data

    def is_in_order(self, rank: npt.NDArray[np.int64] | None) -> bool:
        """Whether every node comes after all that it waits for, by rows or by their ranks."""
        parent, child = self.parent, self.child
        if len(self.stuck):
            return False
        if rank is None:
            return bool((parent < child).all())
        return bool((rank[parent] < rank[child]).all())

    def __len__(self) -> int:
        return len(self.id)

    def _index(self) -> None:
        """Look at the ids, which ascend by now; refuse ids that occur twice."""
        same = np.flatnonzero(self.id[1:] == self.id[:-1])
        if len(same):
            raise errors.duplicate_id(int(self.id[same[0]]))
        self._count = len(self.id)
        self._first = int(self.id[0]) if len(self.id) else 0
        self._dense = bool(len(self.id) and int(self.id[-1]) - self._first == len(self.id) - 1)

    def _set_edges(
        self,
        child: npt.NDArray[np.uint32],
        source: npt.NDArray[np.uint64],
        options: Options,
        order: npt.NDArray[np.int64],
    ) -> None:
        """Keep the edges between nodes; `order` says which of the others a file names first."""
        if self._dense:
            place = source - np.uint64(self._first)
            known = place < len(self.id)
        else:
            place = np.searchsorted(self.id, source).astype(np.uint64)
            known = place < len(self.id)
            known[known] = self.id[place[known].astype(np.int64)] == source[known]
        own = np.zeros(len(child), np.bool_)
        own[known] = place[known] == child[known]
        good = known & ~own
        stuck: list[npt.NDArray[Any]] = []
        if not good.all():
            _refuse(self.id, child, source, known, own, options, order)
            for bad, fault in ((~known, options.missing_parent), (own, options.self_edge)):
                if fault == "wait":
                    stuck.append(child[bad])
            place, child = place[good], child[good]
        self.parent = place.astype(np.uint32)
        self.child = child
        self.stuck = np.concatenate(stuck).astype(np.int64) if stuck else np.zeros(0, np.int64)


def _refuse(
    ids: npt.NDArray[np.uint64],
    child: npt.NDArray[np.uint32],
    source: npt.NDArray[np.uint64],
    known: npt.NDArray[np.bool_],
    own: npt.NDArray[np.bool_],
    options: Options,
    order: npt.NDArray[np.int64],
) -> None:
    """Raise for the first edge of the file that the options do not allow."""
    fail: Fault = "fail"
    bad = ~known if options.missing_parent == fail else np.zeros(len(child), np.bool_)
    if options.self_edge == fail:
        bad = bad | own
    places = np.flatnonzero(bad)
    if len(places) == 0:
        return
    first = places[np.argmin(order[places])] if len(order) else places[0]
    node, parent = int(ids[child[first]]), int(source[first])
    raise errors.self_edge(node) if node == parent else errors.missing_parent(node, parent)


class FileTable(Table):
    """The nodes of an `.et` file."""

    def __init__(self, columns: Columns, options: Options) -> None:
        self._data = columns.data
        self.metadata = columns.metadata
        count = len(columns.id)
        child = columns.edge_target
        names = ("id", "type", "start_ns", "duration_ns", "flags", "begin", "end")
        arrays = {name: getattr(columns, name) for name in names}
        order = np.zeros(0, np.int64)
        if count and not (arrays["id"][1:] > arrays["id"][:-1]).all():
            by_id = np.argsort(arrays["id"], kind="stable")
            arrays = {name: array[by_id] for name, array in arrays.items()}
            place = np.empty(count, np.uint32)
            place[by_id] = np.arange(count, dtype=np.uint32)
            order = child.astype(np.int64)
            child = place[child]
        self.id, self.type = arrays["id"], arrays["type"]
        self._index()
        self._start_ns, self._duration_ns = arrays["start_ns"], arrays["duration_ns"]
        self._begin, self._end, self._flags = arrays["begin"], arrays["end"], arrays["flags"]
        # Views of the columns, which give single numbers faster.
        self._cells = [array.data for array in (self.id, self.type, self._duration_ns, self._flags)]
        self._places = self._begin.data, self._end.data
        source = columns.edge_source
        if not options.every_edge_gates:
            kept = self._gating(child, columns, options)
            child, source = child[kept], source[kept]
            order = order[kept] if len(order) else order
        self._set_edges(child, source, options, order)

    def _gating(
        self, child: npt.NDArray[np.uint32], columns: Columns, options: Options
    ) -> npt.NDArray[np.bool_]:
        """Which edges gate; nodes that tell the kinds of their edges are looked at singly."""
        call, plain = EdgeKind.CALL in options.gate, EdgeKind.DATA in options.gate
        kept = np.where(columns.edge_control, call, plain)
        typed = (self._flags[child] & EDGE_KINDS) != 0
        edges: dict[int, list[tuple[int, EdgeKind, bool]]] = {}
        for place in np.flatnonzero(typed & ~columns.edge_control).tolist():
            row = int(child[place])
            if row not in edges:
                edges[row] = [edge for edge in self.node(row).edges if edge[1] is not EdgeKind.CALL]
                edges[row].reverse()
            _, kind, inferred = edges[row].pop()
            kept[place] = options.gates(kind, inferred)
        return kept

    def message(self, row: int) -> bytes:
        """The bytes of a node."""
        begin, end = self._places
        return self._data[begin[row] : end[row]]

    def start_ns(self, row: int) -> int | None:
        """The start of a node, as columns tell it."""
        start = int(self._start_ns[row])
        return None if start == NOWHERE else start

    def node(self, row: int) -> FeederNode:
        """The view of a node."""
        ids, types, durations, flags = self._cells
        told = flags[row]
        if told & ODD:
            return MessageNode(self.message(row))
        return ScannedNode(self, row, ids[row], TYPES[types[row]], durations[row], _CPU[told & 3])

    def nodes(self, rows: npt.NDArray[np.int64]) -> list[Any]:
        """The views of many nodes; no Python runs for each of them."""
        flags = self._flags[rows]
        nodes: list[Any] = list(
            map(
                ScannedNode,
                repeat(self),
                rows.tolist(),
                self.id[rows].tolist(),
                map(TYPES.__getitem__, self.type[rows].tolist()),
                self._duration_ns[rows].tolist(),
                map(_CPU.__getitem__, (flags & 3).tolist()),
            )
        )
        for place in np.flatnonzero(flags & ODD).tolist():
            nodes[place] = MessageNode(nodes[place].message)
        return nodes

    def starts(self) -> npt.NDArray[np.int64]:
        """The start of each node in ns, or NOWHERE."""
        starts: npt.NDArray[np.int64] = self._start_ns.copy()
        for row in np.flatnonzero(self._flags & ODD).tolist():
            start = self.node(row).start_ns
            starts[row] = NOWHERE if start is None else min(start, NOWHERE)
        return starts


class TraceTable(Table):
    """The nodes of a trace in memory."""

    def __init__(self, trace: Trace, options: Options) -> None:
        nodes, edges = trace.nodes, trace.edges
        self._nodes = nodes
        self.trace = trace
        self._rows = np.argsort(nodes.id, kind="stable")
        self.id, self.type = nodes.id[self._rows], nodes.type[self._rows]
        self._index()
        place = np.empty(len(nodes), np.uint32)
        place[self._rows] = np.arange(len(nodes), dtype=np.uint32)
        kept = np.isin(edges.kind, [int(kind) for kind in options.gate])
        if not options.inferred:
            kept &= ~edges.inferred
        target = edges.target[kept]
        self._set_edges(place[target], edges.source[kept], options, target)

    def node(self, row: int) -> NodeAttributes:
        """The view of a node."""
        found: NodeAttributes = self._nodes[int(self._rows[row])]
        return found

    def starts(self) -> npt.NDArray[np.int64]:
        """The start of each node in ns, or NOWHERE."""
        starts: npt.NDArray[np.int64] = self._nodes.start_ns[self._rows]
        starts[starts == UNKNOWN_NS] = NOWHERE
        return starts
