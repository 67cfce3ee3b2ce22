"""Protobuf bytes as a trace."""

from __future__ import annotations

from array import array
from typing import Any, Final

import numpy as np

from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import decode_attribute
from chakra_et.converters.et.edge_kinds import parse_kinds
from chakra_et.converters.et.wire import BYTES, VARINT, WireError, read_varint, skip
from chakra_et.definitions import Kind
from chakra_et.model import (
    UNKNOWN_NS,
    AttributeColumn,
    AttributeKey,
    AttributeTable,
    AttributeValue,
    EdgeKind,
    Edges,
    Metadata,
    MetadataAttribute,
    NodeIO,
    Nodes,
    Trace,
)
from chakra_et.model.attributes import array_type
from chakra_et.pool import Pool

_LONGEST_MICROS: Final = ((1 << 63) - 1) // 1000


def decode_et(data: bytes) -> Trace:
    """The trace in the bytes of an `.et` file.

    Raises WireError, with the position, when the bytes are no such file or the file was cut.
    """
    at, end = _frame(data, 0, "the metadata")
    metadata = decode_metadata(data, at, end)
    reader = _NodeReader()
    while end < len(data):
        at, end = _frame(data, end, f"node {len(reader.id)}")
        reader.read(data, at, end)
    return reader.finish(metadata)


def _frame(data: bytes, at: int, what: str) -> tuple[int, int]:
    length, start = read_varint(data, at, len(data))
    if start + length > len(data):
        missing = start + length - len(data)
        raise WireError(f"{what} is cut off: {missing} of its {length} bytes are missing", at)
    return start, start + length


def decode_metadata(data: bytes, at: int, end: int) -> Metadata:
    """The message GlobalMetadata in `data[at:end]`."""
    metadata = Metadata()
    while at < end:
        start = at
        number, at = read_varint(data, at, end)
        field, wire_type = number >> 3, number & 7
        behind = skip(data, at, end, wire_type)
        if wire_type == BYTES and field in (fields.METADATA_VERSION, fields.METADATA_ATTR):
            _, at = read_varint(data, at, end)
            if field == fields.METADATA_VERSION:
                metadata.version = data[at:behind].decode("utf-8", "surrogateescape")
            else:
                key, value = decode_attribute(data[at:behind], at)
                metadata.attributes.append(MetadataAttribute(key, value))
        else:
            metadata.extra += data[start:behind]
        at = behind
    return metadata


class _Column:
    """An attribute column while nodes come in."""

    __slots__ = ("key", "rows", "values")

    def __init__(self, key: AttributeKey) -> None:
        self.key = key
        self.rows = array("q")
        self.values: list[AttributeValue] = []


class _NodeReader:
    """Collects nodes into columns."""

    def __init__(self) -> None:
        self.id = array("Q")
        self.type = array("q")
        self.start_ns = array("q")
        self.duration_ns = array("q")
        self.exact = bytearray()
        self.names: Pool[bytes] = Pool()
        self.name = array("q")
        self.texts: Pool[bytes] = Pool()
        self.inputs = array("q")
        self.outputs = array("q")
        self.columns: list[_Column] = []
        self.column_of: dict[AttributeKey, int] = {}
        self.layouts: Pool[tuple[int, ...]] = Pool({(): 0})
        self.layout = array("q")
        self.extra: dict[int, bytes] = {}
        self.edge_count = array("q")
        self.source = array("Q")
        self.kind = bytearray()
        self.inferred = bytearray()
        # An attribute's bytes repeat from node to node, so most are decoded once.
        self.known: dict[bytes, tuple[AttributeKey, AttributeValue]] = {}

    def read(self, data: bytes, at: int, end: int) -> None:
        """Take in the node in `data[at:end]`."""
        row = len(self.id)
        node_id = node_type = start_micros = duration_micros = 0
        name, inputs, outputs, extra = b"", -1, -1, b""
        ctrl_deps: list[int] = []
        data_deps: list[int] = []
        attributes: list[tuple[AttributeKey, AttributeValue]] = []
        while at < end:
            start = at
            number, at = read_varint(data, at, end)
            field, wire_type = number >> 3, number & 7
            if wire_type == BYTES and fields.NAME <= field <= fields.ATTR:
                length, at = read_varint(data, at, end)
                behind = at + length
                if behind > end:
                    raise WireError("a field is cut off", start)
                if field == fields.ATTR:
                    attributes.append(self._attribute(data[at:behind], at))
                elif field == fields.NAME:
                    name = data[at:behind]
                elif field == fields.DATA_DEPS or field == fields.CTRL_DEPS:
                    deps = data_deps if field == fields.DATA_DEPS else ctrl_deps
                    while at < behind:
                        dep, at = read_varint(data, at, behind)
                        deps.append(dep)
                elif field == fields.INPUTS:
                    inputs = self.texts[data[at:behind]]
                elif field == fields.OUTPUTS:
                    outputs = self.texts[data[at:behind]]
                else:
                    extra += data[start:behind]
                at = behind
            elif wire_type == VARINT and field <= fields.DURATION_MICROS:
                value, at = read_varint(data, at, end)
                if field == fields.ID:
                    node_id = value
                elif field == fields.TYPE:
                    node_type = (value & 0xFFFFFFFF) - ((value & 0x80000000) << 1)
                elif field == fields.START_MICROS:
                    start_micros = value
                elif field == fields.DURATION_MICROS:
                    duration_micros = value
                elif field == fields.DATA_DEPS:
                    data_deps.append(value)
                elif field == fields.CTRL_DEPS:
                    ctrl_deps.append(value)
                else:
                    extra += data[start:at]
            else:
                at = skip(data, at, end, wire_type)
                extra += data[start:at]
        if start_micros > _LONGEST_MICROS or duration_micros > _LONGEST_MICROS:
            raise WireError(f"node {node_id}: a time of more than 292 years", start)
        self.id.append(node_id)
        self.type.append(node_type)
        self.name.append(self.names[name])
        self.inputs.append(inputs)
        self.outputs.append(outputs)
        if extra:
            self.extra[row] = extra
        attributes = self._edges(attributes, ctrl_deps, data_deps)
        attributes = self._times(attributes, start_micros, duration_micros)
        self._attributes(row, attributes)

    def _attribute(self, data: bytes, at: int) -> tuple[AttributeKey, AttributeValue]:
        found = self.known.get(data)
        if found is None:
            found = decode_attribute(data, at)
            if len(self.known) < 1 << 20:
                self.known[data] = found
        return found

    def _edges(
        self,
        attributes: list[tuple[AttributeKey, AttributeValue]],
        ctrl_deps: list[int],
        data_deps: list[int],
    ) -> list[tuple[AttributeKey, AttributeValue]]:
        kinds, guessed = [int(EdgeKind.DATA)] * len(data_deps), [False] * len(data_deps)
        for place in range(len(attributes) - 1, -1, -1):
            key, value = attributes[place]
            if key.name == fields.EDGE_KINDS and key.kind is Kind.STRING:
                told = parse_kinds(value, len(data_deps))
                if told is not None:
                    kinds, guessed = told
                    attributes = attributes[:place] + attributes[place + 1 :]
                break
        self.source.extend(ctrl_deps)
        self.source.extend(data_deps)
        self.kind += bytes([EdgeKind.CALL]) * len(ctrl_deps) + bytes(kinds)
        self.inferred += bytes(len(ctrl_deps)) + bytes(guessed)
        self.edge_count.append(len(ctrl_deps) + len(data_deps))
        return attributes

    def _times(
        self,
        attributes: list[tuple[AttributeKey, AttributeValue]],
        start_micros: int,
        duration_micros: int,
    ) -> list[tuple[AttributeKey, AttributeValue]]:
        """Columns of times, exact where the attributes of exact times agree with the fields."""
        exact = 0
        start = start_micros * 1000 if start_micros else UNKNOWN_NS
        duration = duration_micros * 1000
        kept = []
        for key, value in attributes:
            if (
                key.name == fields.EXACT_DURATION
                and key.kind is Kind.INT64
                and not exact & 2
                and abs(value - duration_micros * 1000) <= 500
            ):
                duration, exact = value, exact | 2
            elif (
                key.name == fields.EXACT_START
                and key.kind is Kind.INT64
                and not exact & 1
                and abs(value - start_micros * 1000) <= 500
            ):
                start, exact = value, exact | 1
            else:
                kept.append((key, value))
        self.start_ns.append(start)
        self.duration_ns.append(duration)
        self.exact.append(exact)
        return kept if exact else attributes

    def _attributes(self, row: int, attributes: list[tuple[AttributeKey, AttributeValue]]) -> None:
        layout: list[int] = []
        for key, value in attributes:
            number = self._column(key)
            while number in layout:
                key = AttributeKey(key.name, key.kind, key.occurrence + 1, key.doc, key.extra)
                number = self._column(key)
            column = self.columns[number]
            column.rows.append(row)
            column.values.append(value)
            layout.append(number)
        self.layout.append(self.layouts[tuple(layout)])

    def _column(self, key: AttributeKey) -> int:
        number = self.column_of.get(key)
        if number is None:
            number = self.column_of[key] = len(self.columns)
            self.columns.append(_Column(key))
        return number

    def finish(self, metadata: Metadata) -> Trace:
        """The trace of all nodes taken in."""
        count = len(self.id)
        exact = np.frombuffer(bytes(self.exact), np.uint8)
        nodes = Nodes(
            id=_array(self.id, np.uint64),
            type=_array(self.type, np.int32),
            name_code=_array(self.name, np.int32),
            names=[name.decode("utf-8", "surrogateescape") for name in self.names],
            start_ns=_array(self.start_ns, np.int64),
            duration_ns=_array(self.duration_ns, np.int64),
            input_code=_array(self.inputs, np.int32),
            output_code=_array(self.outputs, np.int32),
            texts=[decode_io(text) for text in self.texts],
            attributes=AttributeTable(
                count,
                [_finish_column(column) for column in self.columns],
                list(self.layouts),
                _array(self.layout, np.int32),
            ),
            extra=self.extra,
            exact_start=(exact & 1).astype(np.bool_),
            exact_duration=(exact & 2).astype(np.bool_),
        )
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(_array(self.edge_count, np.int64), out=offsets[1:])
        edges = Edges(
            offsets,
            _array(self.source, np.uint64),
            np.frombuffer(bytes(self.kind), np.uint8),
            np.frombuffer(bytes(self.inferred), np.uint8).astype(np.bool_),
        )
        return Trace(nodes, edges, metadata)


def _finish_column(column: _Column) -> AttributeColumn:
    dtype = array_type(column.key.kind)
    values: Any = column.values if dtype is None else np.array(column.values, dtype)
    return AttributeColumn(column.key, _array(column.rows, np.int64), values)


def _array(values: array[int], dtype: Any) -> Any:
    return np.array(values, dtype)


def decode_io(data: bytes) -> NodeIO:
    """The message IOInfo in `data`."""
    found = {fields.IO_VALUES: b"", fields.IO_SHAPES: b"", fields.IO_TYPES: b""}
    extra = b""
    at, end = 0, len(data)
    while at < end:
        start = at
        number, at = read_varint(data, at, end)
        behind = skip(data, at, end, number & 7)
        if number & 7 == BYTES and number >> 3 in found:
            _, at = read_varint(data, at, end)
            found[number >> 3] = data[at:behind]
        else:
            extra += data[start:behind]
        at = behind
    return NodeIO(*found.values(), extra)
