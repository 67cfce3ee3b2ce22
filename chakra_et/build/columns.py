"""From a rank's program to the trace of one of its ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.build.operation import Operation
from chakra_et.columns import Rows
from chakra_et.definitions import Kind, NodeType
from chakra_et.model import UNKNOWN_NS, AttributeTable, Edges, Nodes, Trace

if TYPE_CHECKING:
    from chakra_et.build.rank import Rank


_FACTS: Final[tuple[tuple[str, str, Kind], ...]] = (
    ("op_type", "op_type", Kind.STRING),
    ("flops", "num_ops", Kind.INT64),
    ("moved_bytes", "tensor_size", Kind.UINT64),
    ("collective", "comm_type", Kind.INT64),
    ("size_bytes", "comm_size", Kind.INT64),
    ("tag", "comm_tag", Kind.INT32),
)
"""Fields of an operation, and the attributes that tell them."""
_TAGS: Final[tuple[tuple[str, Kind], ...]] = (
    ("stream", Kind.INT64),
    ("phase", Kind.STRING),
    ("layer", Kind.INT64),
    ("micro_batch", Kind.INT64),
)


class Programmed:
    """The columns of a program: all but what differs between the ranks that run it."""

    def __init__(self, program: Rank) -> None:
        self.workload = program.workload
        self.graph = graph = program.graph
        self.operations = list(graph.operations)
        self.tags = list(graph.tags)
        self.operation_of = np.array(graph.operation_of, np.int64)
        self.tags_of = np.array(graph.tags_of, np.int64)
        self.count = len(self.operation_of)
        self.communication = np.array(graph.communication, np.int64)
        self.places = graph.places
        self.edges = self._edges()

    def _edges(self) -> Edges:
        offsets = np.zeros(self.count + 1, np.int64)
        np.cumsum(np.array(self.graph.edge_count, np.int64), out=offsets[1:])
        source = np.array(self.graph.edge_source, np.uint64)
        kind = np.array(self.graph.edge_kind, np.uint8)
        return Edges(offsets, source, kind, np.zeros(len(source), np.bool_))

    def trace(self, rank: int) -> Trace:
        """The trace of a rank that runs this program."""
        nodes = self._nodes()
        table = nodes.attributes
        table.add("is_cpu_op", Kind.BOOL, self._of(lambda op: op.cpu, np.bool_))
        for field, name, kind in _FACTS:
            self._add(table, name, kind, [getattr(op, field) for op in self.operations])
        for name, kind in _TAGS:
            values = [getattr(tag, name) for tag in self.tags]
            if kind is Kind.INT64:
                # A stream that has a name is none of the device's.
                values = [value if isinstance(value, int) else None for value in values]
            _add(table, name, kind, values, self.tags_of)
        self._add_values(table)
        self._add_tensors(table)
        self._add_places(table, rank)
        return Trace(nodes, self.edges, self.workload.metadata(rank))

    def _of(self, field: Callable[[Operation], Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A fact of the operation of each node."""
        return np.array([field(op) for op in self.operations], dtype)[self.operation_of]

    def _nodes(self) -> Nodes:
        names: dict[str, int] = {}
        texts: dict[tuple[bytes, ...], int] = {}

        def text(io: tuple[bytes, ...] | None) -> int:
            return -1 if io is None else texts.setdefault(io, len(texts))

        return Nodes(
            id=np.arange(1, self.count + 1, dtype=np.uint64),
            type=self._of(lambda op: op.type, np.int32),
            name_code=self._of(lambda op: names.setdefault(op.name, len(names)), np.int32),
            names=list(names),
            start_ns=np.full(self.count, UNKNOWN_NS, np.int64),
            duration_ns=self._of(lambda op: op.duration_ns, np.int64),
            input_code=self._of(lambda op: text(op.inputs), np.int32),
            output_code=self._of(lambda op: text(op.outputs), np.int32),
            texts=list(texts),
        )

    def _add(self, table: AttributeTable, name: str, kind: Kind, values: list[Any]) -> None:
        _add(table, name, kind, values, self.operation_of)

    def _add_values(self, table: AttributeTable) -> None:
        """The attributes that the program named itself, in the order of their first use."""
        keys = {(v.name, v.kind): None for op in self.operations for v in op.values}
        for name, kind in keys:
            found = [
                next((v.value for v in op.values if (v.name, v.kind) == (name, kind)), None)
                for op in self.operations
            ]
            self._add(table, name, kind, found)

    def _add_tensors(self, table: AttributeTable) -> None:
        for place, name in ((1, "inputs"), (2, "outputs")):
            told = [row for row in self.graph.tensor_names if row[place]]
            rows = np.array([row[0] for row in told], np.int64)
            if len(rows):
                table.add(name, Kind.STRING_LIST, [row[place] for row in told], rows)

    def _add_places(self, table: AttributeTable, rank: int) -> None:
        """Groups and peers, which alone differ between copies: they stand last in every node."""
        workload = self.workload
        families = workload.families
        self._add(
            table,
            "pg_name",
            Kind.STRING,
            [op.family and str(families[op.family].number(rank)) for op in self.operations],
        )
        for name, outgoing in (("comm_src", False), ("comm_dst", True)):
            values = []
            for op in self.operations:
                sends = op.type == NodeType.COMM_SEND
                peer = None if op.peer is None else int(op.peer.of(workload.grid, rank))
                values.append(None if peer is None else peer if sends == outgoing else rank)
            self._add(table, name, Kind.INT32, values)


def _add(table: AttributeTable, name: str, kind: Kind, values: Sequence[Any], codes: Rows) -> None:
    """An attribute of the nodes whose code has a value."""
    there = np.array([value is not None for value in values], np.bool_)
    rows = np.flatnonzero(there[codes]) if len(values) else np.zeros(0, np.int64)
    if len(rows) == 0:
        return
    chosen = codes[rows]
    if all(isinstance(value, int) for value in values if value is not None):
        numbers = np.array([0 if value is None else value for value in values], object)
        dense: Any = numbers.astype(np.uint64 if kind is Kind.UINT64 else np.int64)[chosen]
    else:
        dense = [values[code] for code in chosen.tolist()]
    table.add(name, kind, dense, rows)
