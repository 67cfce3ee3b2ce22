"""Protobuf bytes as a trace."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import decode_attribute, decode_text
from chakra_et.converters.et.column_reader import ColumnReader, UnusualError
from chakra_et.converters.et.old_schema import refuse_old_schema
from chakra_et.converters.et.told_columns import (
    EXACT_DURATION,
    EXACT_START,
    take_kinds,
    take_time,
)
from chakra_et.converters.et.wire import (
    BYTES,
    VARINT,
    WireError,
    count_varints,
    read_tag,
    read_varint,
    skip,
    tag,
    unpack,
    varint,
)
from chakra_et.io.memory import collection_paused
from chakra_et.model import (
    UNKNOWN_NS,
    AttributeTable,
    EdgeKind,
    Edges,
    Metadata,
    MetadataAttribute,
    NodeIO,
    Nodes,
    Trace,
)
from chakra_et.pool import Pool

_ID: Final = tag(fields.ID, VARINT)[0]
_TYPE: Final = tag(fields.TYPE, VARINT)[0]
_START: Final = tag(fields.START_MICROS, VARINT)[0]
_DURATION: Final = tag(fields.DURATION_MICROS, VARINT)[0]
_ONE_CTRL_DEP: Final = tag(fields.CTRL_DEPS, VARINT)[0]
_ONE_DATA_DEP: Final = tag(fields.DATA_DEPS, VARINT)[0]
_NAME: Final = tag(fields.NAME, BYTES)[0]
_CTRL_DEPS: Final = tag(fields.CTRL_DEPS, BYTES)[0]
_DATA_DEPS: Final = tag(fields.DATA_DEPS, BYTES)[0]
_INPUTS: Final = tag(fields.INPUTS, BYTES)[0]
_OUTPUTS: Final = tag(fields.OUTPUTS, BYTES)[0]
_ATTR: Final = tag(fields.ATTR, BYTES)[0]
_ROWS_AT_ONCE: Final = 1 << 16
_IN_BYTES: Final = frozenset({_NAME, _CTRL_DEPS, _DATA_DEPS, _INPUTS, _OUTPUTS, _ATTR})
_IN_VARINTS: Final = frozenset({_ID, _TYPE, _START, _DURATION, _ONE_CTRL_DEP, _ONE_DATA_DEP})


def decode_et(data: bytes) -> Trace:
    """The trace in the bytes of an `.et` file.

    Raises WireError, with the position, when the bytes are no such file or the file was cut, and
    OldSchemaError when they are one of an old schema.
    """
    at, end = _frame(data, 0, "the metadata")
    refuse_old_schema(data, at, end)
    metadata = decode_metadata(data, at, end)
    with collection_paused():
        try:
            return _decode_nodes(data, end, NodeReader()).finish(metadata)
        except UnusualError:
            return _decode_nodes(data, end, NodeReader(careful=True)).finish(metadata)


def _decode_nodes(data: bytes, end: int, reader: NodeReader) -> NodeReader:
    try:
        while end < len(data):
            at, end = _frame(data, end, "the next node")
            reader.read(data, at, end)
    except IndexError:
        raise WireError("a field is cut off", len(data)) from None
    return reader


def _frame(data: bytes, at: int, what: str) -> tuple[int, int]:
    """Where the message of the record at `at` begins and ends."""
    try:
        length, start = read_varint(data, at, len(data))
    except WireError as error:
        raise WireError(f"the length of {what}: {error}", at) from None
    if start + length > len(data):
        missing = start + length - len(data)
        raise WireError(f"{what} is cut off: {missing} of its {length} bytes are missing", at)
    return start, start + length


def decode_metadata(data: bytes, at: int, end: int) -> Metadata:
    """The message GlobalMetadata in `data[at:end]`."""
    metadata = Metadata()
    while at < end:
        start = at
        field, wire_type, at = read_tag(data, at, end)
        behind = skip(data, at, end, wire_type)
        if wire_type == BYTES and field in (fields.METADATA_VERSION, fields.METADATA_ATTR):
            _, at = read_varint(data, at, end)
            if field == fields.METADATA_VERSION:
                metadata.version = decode_text(data[at:behind])
            else:
                key, value = decode_attribute(data[at:behind], at)
                metadata.attributes.append(MetadataAttribute(key, value))
        else:
            metadata.extra += data[start:behind]
        at = behind
    return metadata


class NodeReader:
    """Collects nodes into columns.

    Raises UnusualError for what only a `careful` reader can read.
    """

    def __init__(self, *, careful: bool = False) -> None:
        self._at: list[int] = []
        self._id: list[int] = []
        self._type: list[int] = []
        self._start: list[int] = []
        self._duration: list[int] = []
        self._names: Pool[bytes] = Pool()
        self._name: list[int] = []
        self._texts: Pool[bytes] = Pool()
        self._inputs: list[int] = []
        self._outputs: list[int] = []
        self._columns = ColumnReader(careful=careful)
        self._layouts: Pool[tuple[int, ...]] = Pool({(): 0})
        self._layout: list[int] = []
        self._extra: dict[int, bytes] = {}
        self._deps = bytearray()  # of each node first ctrl_deps, then data_deps
        self._ctrl_count: list[int] = []
        self._data_count: list[int] = []

    @property
    def count(self) -> int:
        """How many nodes have been taken in."""
        return len(self._id)

    def read(self, data: bytes, at: int, end: int) -> None:
        """Take in the node in `data[at:end]`.

        In one piece, as a call for each field would take longer than the field.
        """
        row = len(self._id)
        self._at.append(at)
        node_id = node_type = start_micros = duration_micros = 0
        name, inputs, outputs, extra = b"", -1, -1, b""
        ctrl_deps = data_deps = b""
        layout: list[int] = []
        by_head = self._columns.by_head
        while at < end:
            start = at
            mark = data[at]
            if mark in _IN_BYTES:
                length = data[at + 1]
                at += 2
                if length >= 0x80:
                    length, at = read_varint(data, at - 1, end)
                behind = at + length
                if behind > end:
                    raise WireError("a field is cut off", start)
                if mark == _ATTR:
                    # Name and tag of the value: see ColumnReader. Each length is one byte.
                    value_at = at + 3 + data[at + 1] if length > 1 else behind
                    if value_at < behind and data[value_at - 1] >= 0x80:
                        value_at += 1
                    known = by_head.get(data[at:value_at])
                    if known is None or value_at > behind:
                        layout.append(self._columns.read(data, at, behind, layout))
                    else:
                        number, take = known
                        take(data[value_at:behind])
                        layout.append(number)
                elif mark == _NAME:
                    name = data[at:behind]
                elif mark == _DATA_DEPS:
                    data_deps += _ids(data, at, behind)
                elif mark == _CTRL_DEPS:
                    ctrl_deps += _ids(data, at, behind)
                elif mark == _INPUTS:
                    inputs = self._texts[data[at:behind]]
                else:
                    outputs = self._texts[data[at:behind]]
                at = behind
            elif mark in _IN_VARINTS:
                value = data[at + 1]
                at += 2
                if value >= 0x80:
                    value, at = read_varint(data, at - 1, end)
                if mark == _ID:
                    node_id = value
                elif mark == _TYPE:
                    node_type = value
                elif mark == _START:
                    start_micros = value
                elif mark == _DURATION:
                    duration_micros = value
                elif mark == _ONE_DATA_DEP:
                    data_deps += varint(value)
                else:
                    ctrl_deps += varint(value)
            else:
                _, wire_type, at = read_tag(data, at, end)
                at = skip(data, at, end, wire_type)
                extra += data[start:at]
        if at > end:
            raise WireError("a number is cut off", start)
        self._id.append(node_id)
        self._type.append(node_type)
        self._start.append(start_micros)
        self._duration.append(duration_micros)
        self._name.append(self._names[name])
        self._inputs.append(inputs)
        self._outputs.append(outputs)
        self._layout.append(self._layouts[tuple(layout)])
        self._deps += ctrl_deps + data_deps
        self._ctrl_count.append(count_varints(ctrl_deps))
        self._data_count.append(count_varints(data_deps))
        if extra:
            self._extra[row] = extra
        if row % _ROWS_AT_ONCE == 0:
            self._columns.settle()

    def finish(self, metadata: Metadata) -> Trace:
        """The trace of all nodes taken in."""
        layouts = list(self._layouts)
        if any(len(set(numbers)) < len(numbers) for numbers in layouts):
            raise UnusualError
        layout = np.array(self._layout, np.int32)
        columns = self._columns.finish(layouts, layout)
        attributes = AttributeTable(self.count, columns, layouts, layout)
        try:
            edges = self._edges(attributes)
            start_ns, exact_start = take_time(
                attributes, EXACT_START, np.array(self._start, np.uint64), UNKNOWN_NS
            )
            duration_ns, exact_duration = take_time(
                attributes, EXACT_DURATION, np.array(self._duration, np.uint64), 0
            )
        except WireError as error:
            row = error.at
            raise WireError(f"node {row}: {error}", self._at[row]) from None
        nodes = Nodes(
            id=np.array(self._id, np.uint64),
            type=np.array(self._type, np.uint64).astype(np.uint32).view(np.int32),
            name_code=np.array(self._name, np.int32),
            names=[decode_text(name) for name in self._names],
            start_ns=start_ns,
            duration_ns=duration_ns,
            input_code=np.array(self._inputs, np.int32),
            output_code=np.array(self._outputs, np.int32),
            texts=[decode_io(text) for text in self._texts],
            attributes=attributes,
            extra=self._extra,
            exact_start=exact_start,
            exact_duration=exact_duration,
        )
        return Trace(nodes, edges, metadata)

    def _edges(self, attributes: AttributeTable) -> Edges:
        ctrl, data = _counts(self._ctrl_count), _counts(self._data_count)
        offsets = np.zeros(self.count + 1, np.int64)
        np.cumsum(ctrl + data, out=offsets[1:])
        try:
            source = unpack(self._deps)
        except WireError as error:
            place = count_varints(bytes(self._deps[: error.at]))
            row = int(np.searchsorted(offsets, place, "right")) - 1
            raise WireError(str(error), row) from None
        call = np.repeat(np.tile([True, False], self.count), np.stack([ctrl, data], 1).ravel())
        kind = np.where(call, EdgeKind.CALL, EdgeKind.DATA).astype(np.uint8)
        inferred = np.zeros(len(kind), np.bool_)
        for row, (kinds, guessed) in take_kinds(attributes, data).items():
            end = offsets[row + 1]
            kind[end - len(kinds) : end] = kinds
            inferred[end - len(kinds) : end] = guessed
        return Edges(offsets, source, kind, inferred)


def _ids(data: bytes, at: int, end: int) -> bytes:
    """Packed ids, as they stand."""
    if at < end and data[end - 1] >= 0x80:
        raise WireError("a number is cut off", at)
    return data[at:end]


def _counts(values: list[int]) -> npt.NDArray[np.int64]:
    return np.array(values, np.int64)


def decode_io(data: bytes) -> NodeIO:
    """The message IOInfo in `data`."""
    found = dict.fromkeys((fields.IO_VALUES, fields.IO_SHAPES, fields.IO_TYPES), b"")
    extra = b""
    at, end = 0, len(data)
    while at < end:
        start = at
        field, wire_type, at = read_tag(data, at, end)
        behind = skip(data, at, end, wire_type)
        if wire_type == BYTES and field in found:
            _, at = read_varint(data, at, end)
            found[field] = data[at:behind]
        else:
            extra += data[start:behind]
        at = behind
    values, shapes, types = found.values()
    return NodeIO(values, shapes, types, extra)
