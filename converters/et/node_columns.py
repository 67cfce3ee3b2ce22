"""The nodes of a file as columns of their fields, and the trace that they make."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.converters.et.attribute_codec import decode_text
from chakra_et.converters.et.columns_in_attributes import (
    EXACT_DURATION,
    EXACT_START,
    take_kinds,
    take_time,
)
from chakra_et.converters.et.wire import WireError
from chakra_et.model import (
    UNKNOWN_NS,
    AttributeTable,
    EdgeKind,
    Edges,
    Metadata,
    NodeIO,
    Nodes,
    Trace,
)
from chakra_et.pool import Pool


class NodeColumns(msgspec.Struct):
    """The fields of all nodes in columns. Names stay bytes; codes are places in the lists."""

    at: npt.NDArray[np.int64]  # of each node's payload in the file
    id: npt.NDArray[np.uint64]
    type: npt.NDArray[np.int32]
    start_micros: npt.NDArray[np.uint64]
    duration_micros: npt.NDArray[np.uint64]
    name: npt.NDArray[np.int32]
    names: list[bytes]
    inputs: npt.NDArray[np.int32]  # -1: the node has none
    outputs: npt.NDArray[np.int32]
    texts: list[NodeIO]
    attributes: AttributeTable
    extra: dict[int, bytes]
    ctrl_count: npt.NDArray[np.int64]
    data_count: npt.NDArray[np.int64]
    sources: npt.NDArray[np.uint64]  # of each node first ctrl_deps, then data_deps

    def joined(self, other: NodeColumns) -> NodeColumns:
        """The nodes of both, in the order in which they stand in the file."""
        order = np.argsort(np.concatenate([self.at, other.at]), kind="stable")
        names = Pool({name: code for code, name in enumerate(self.names)})
        name = np.array([names[name] for name in other.names], np.int32)

        def both(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Any:
            return np.concatenate([first, second])[order]

        def text(codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
            return np.where(codes < 0, codes, codes + np.int32(len(self.texts)))

        new_row = np.argsort(order)
        extra = {**self.extra, **{row + len(self.id): part for row, part in other.extra.items()}}
        return NodeColumns(
            at=both(self.at, other.at),
            id=both(self.id, other.id),
            type=both(self.type, other.type),
            start_micros=both(self.start_micros, other.start_micros),
            duration_micros=both(self.duration_micros, other.duration_micros),
            name=both(self.name, name[other.name]),
            names=list(names),
            inputs=both(self.inputs, text(other.inputs)),
            outputs=both(self.outputs, text(other.outputs)),
            texts=[*self.texts, *other.texts],
            attributes=self.attributes.joined(other.attributes).take(order),
            extra={int(new_row[row]): part for row, part in extra.items()},
            ctrl_count=both(self.ctrl_count, other.ctrl_count),
            data_count=both(self.data_count, other.data_count),
            sources=self._joined_sources(other, order),
        )

    def _joined_sources(
        self, other: NodeColumns, order: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.uint64]:
        sources = np.concatenate([self.sources, other.sources])
        ctrl = np.concatenate([self.ctrl_count, other.ctrl_count])
        count = ctrl + np.concatenate([self.data_count, other.data_count])
        start = (np.cumsum(count) - count)[order]
        count = count[order]
        begin = np.cumsum(count) - count
        return sources[np.repeat(start - begin, count) + np.arange(len(sources))]

    def trace(self, metadata: Metadata) -> Trace:
        """The trace. Raises WireError for a time that is too long."""
        table = self.attributes
        edges = self._edges()
        try:
            start_ns, exact_start = take_time(table, EXACT_START, self.start_micros, UNKNOWN_NS)
            duration_ns, exact_duration = take_time(table, EXACT_DURATION, self.duration_micros, 0)
        except WireError as error:
            raise WireError(f"node {error.at}: {error}", int(self.at[error.at])) from None
        nodes = Nodes(
            id=self.id,
            type=self.type,
            name_code=self.name,
            names=list(map(decode_text, self.names)),
            start_ns=start_ns,
            duration_ns=duration_ns,
            input_code=self.inputs,
            output_code=self.outputs,
            texts=self.texts,
            attributes=table,
            extra=self.extra,
            exact_start=exact_start,
            exact_duration=exact_duration,
        )
        return Trace(nodes, edges, metadata)

    def _edges(self) -> Edges:
        ctrl, data = self.ctrl_count, self.data_count
        offsets = np.zeros(len(self.id) + 1, np.int64)
        np.cumsum(ctrl + data, out=offsets[1:])
        call = np.repeat(np.tile([True, False], len(ctrl)), np.stack([ctrl, data], 1).ravel())
        kind = np.where(call, EdgeKind.CALL, EdgeKind.DATA).astype(np.uint8)
        inferred = np.zeros(len(kind), np.bool_)
        for rows, kinds, guessed in take_kinds(self.attributes, data):
            count = data[rows]
            before = np.cumsum(count) - count
            place = np.repeat(offsets[rows + 1] - count - before, count) + np.arange(len(kinds))
            kind[place], inferred[place] = kinds, guessed
        return Edges(offsets, self.sources, kind, inferred)
