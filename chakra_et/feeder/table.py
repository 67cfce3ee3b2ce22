"""The nodes of a whole trace, by ascending id, with the edges that make them wait."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et import told_columns
from chakra_et.definitions import NodeAttributes, NodeType
from chakra_et.feeder import errors
from chakra_et.feeder.node import TYPES, FeederNode, Record
from chakra_et.feeder.options import Fault, Options
from chakra_et.feeder.scan import (
    CPU_ELSEWHERE,
    CPU_KNOWN,
    CPU_TRUE,
    EDGE_KINDS,
    EXACT_DURATION,
    EXACT_START,
    Columns,
)
from chakra_et.model import UNKNOWN_NS, EdgeKind, Trace

NOWHERE: Final = np.iinfo(np.int64).max
"""The start of a node without one, when starts order the nodes: last."""


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

    def maker(self) -> Callable[[int], Any]:
        """The fastest way to many views."""
        return self.node

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
        names = ("id", "type", "start_micros", "duration_micros", "flags", "begin", "end")
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
        self._start_micros = arrays["start_micros"]
        self._begin, self._end = arrays["begin"].data, arrays["end"].data
        self.ids = self.id.data
        self.durations = arrays["duration_micros"].data
        self.micros = self._start_micros.data
        self._flags = arrays["flags"]
        self.flags = self._flags.data
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

    @cached_property
    def types(self) -> list[NodeType | int]:
        """The type of each node; a plain int where the schema does not name it."""
        kinds, codes = np.unique(self.type, return_inverse=True)
        names = np.array([*(TYPES.get(kind, kind) for kind in kinds.tolist()), None], object)
        found: list[NodeType | int] = names[codes].tolist()
        return found

    def message(self, row: int) -> bytes:
        """The bytes of a node."""
        return self._data[self._begin[row] : self._end[row]]

    def node(self, row: int) -> ScannedNode:
        """The view of a node."""
        return ScannedNode(self, row)

    def maker(self) -> Callable[[int], ScannedNode]:
        """The fastest way to many views."""
        return partial(ScannedNode, self)

    def starts(self) -> npt.NDArray[np.int64]:
        """The start of each node in ns, or NOWHERE."""
        starts: npt.NDArray[np.int64] = self._start_micros.astype(np.int64) * 1000
        starts[self._start_micros == 0] = NOWHERE
        for row in np.flatnonzero(self._flags & EXACT_START).tolist():
            exact = self.node(row).start_ns
            starts[row] = NOWHERE if exact is None else exact
        return starts


class ScannedNode(FeederNode):
    """A node of a trace that was read whole: common fields come from columns."""

    __slots__ = ("_row", "_table")

    def __init__(self, table: FileTable, row: int) -> None:
        self._table = table
        self._row = row

    def _read(self) -> Record:
        try:  # a slot that stays empty until it is needed: most nodes are never read so closely
            record = self._record
        except AttributeError:
            self._record = record = Record(self.message)
        assert record is not None
        return record

    @property
    def message(self) -> bytes:
        """The node as the file has it."""
        return self._table.message(self._row)

    @property
    def id(self) -> int:
        """The node's id, unique within its trace."""
        node_id: int = self._table.ids[self._row]
        return node_id

    @property
    def type(self) -> NodeType | int:
        """What the node does; a plain int for a type that the schema does not name."""
        return self._table.types[self._row]

    @property
    def duration_ns(self) -> int:
        """How long the node occupies its thread, stream or network, in ns."""
        table, row = self._table, self._row
        if table.flags[row] & EXACT_DURATION:
            exact = self._near(told_columns.EXACT_DURATION.name, table.durations[row])
            if exact is not None:
                return exact
        micros: int = table.durations[row]
        return micros * 1000

    @property
    def start_ns(self) -> int | None:
        """When the node started, in ns of the trace's clock; None if the trace does not say."""
        table, row = self._table, self._row
        if table.flags[row] & EXACT_START:
            exact = self._near(told_columns.EXACT_START.name, table.micros[row])
            if exact is not None:
                return exact
        micros: int = table.micros[row]
        return micros * 1000 or None

    @property
    def is_cpu_op(self) -> bool | None:
        """True when the node occupies a host processor."""
        flags = self._table.flags[self._row]
        if flags & CPU_ELSEWHERE:
            return self._boolean("is_cpu_op")
        return bool(flags & CPU_TRUE) if flags & CPU_KNOWN else None


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
