"""A trace as protobuf bytes.

Every column encodes itself to one piece of bytes for each node, and a node is its pieces joined:
so the work on a node is a join, and bytes that repeat are made once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import encode_attribute, encode_column
from chakra_et.converters.et.edge_kinds import kinds_texts
from chakra_et.converters.et.wire import (
    BYTES,
    VARINT,
    field_bytes,
    packed,
    tag,
    varint,
    varint_fields,
)
from chakra_et.definitions import Kind
from chakra_et.model import (
    UNKNOWN_NS,
    AttributeColumn,
    AttributeKey,
    EdgeKind,
    Edges,
    Metadata,
    NodeIO,
    Nodes,
    Trace,
)

ROWS_AT_ONCE: Final = 1 << 16
"""Nodes that are encoded together: enough for columns to pay, few enough to bound memory."""

Rows = npt.NDArray[np.int64]


def encode_metadata(metadata: Metadata) -> bytes:
    """The payload of the message GlobalMetadata."""
    version = metadata.version.encode()
    attributes = [
        field_bytes(fields.METADATA_ATTR, encode_attribute(attribute.key, attribute.value))
        for attribute in metadata.attributes
    ]
    head = field_bytes(fields.METADATA_VERSION, version) if version else b""
    return head + b"".join(attributes) + metadata.extra


def encode_et(trace: Trace) -> Iterator[bytes]:
    """The file, in blocks: the metadata and then each node, each with its length before it."""
    metadata = encode_metadata(trace.metadata)
    yield varint(len(metadata)) + metadata
    for start in range(0, len(trace.nodes), ROWS_AT_ONCE):
        yield b"".join(_frames(trace, start, min(start + ROWS_AT_ONCE, len(trace.nodes))))


def _frames(trace: Trace, start: int, stop: int) -> list[bytes]:
    rows = np.arange(start, stop)
    bodies = _bodies(trace, rows)
    lengths: dict[int, bytes] = {}
    frames = []
    for body in bodies:
        length = len(body)
        head = lengths.get(length)
        if head is None:
            head = lengths[length] = varint(length)
        frames.append(head)
        frames.append(body)
    return frames


def _bodies(trace: Trace, rows: Rows) -> list[bytes]:
    nodes = trace.nodes
    fixed = [
        _numbers(fields.ID, nodes.id[rows]),
        _by_code(nodes.name_code[rows], lambda code: _name(nodes.names[code])),
        _by_code(nodes.type[rows], lambda value: _number(fields.TYPE, value)),
        *_dependencies(trace.edges, rows),
        _numbers(fields.START_MICROS, _microseconds(nodes.start_ns[rows])),
        _numbers(fields.DURATION_MICROS, _microseconds(nodes.duration_ns[rows])),
        _by_code(nodes.input_code[rows], lambda code: _io(fields.INPUTS, nodes.texts, code)),
        _by_code(nodes.output_code[rows], lambda code: _io(fields.OUTPUTS, nodes.texts, code)),
    ]
    attributes = _attributes(nodes, rows)
    last = _columns_as_attributes(trace, rows)
    extra = [[nodes.extra.get(row, b"") for row in rows.tolist()]] if nodes.extra else []
    return list(map(b"".join, zip(*fixed, attributes, *last, *extra, strict=True)))


def _number(field: int, value: int) -> bytes:
    return tag(field, VARINT) + varint(value) if value else b""


def _numbers(field: int, values: npt.NDArray[Any]) -> list[bytes]:
    """A field of unsigned numbers; zero is left out, as proto3 wants."""
    pieces = varint_fields(tag(field, VARINT), values.astype(np.uint64))
    for row in np.flatnonzero(values == 0).tolist():
        pieces[row] = b""
    return pieces


def _by_code(codes: npt.NDArray[np.int32], encode: Callable[[int], bytes]) -> list[bytes]:
    distinct, places = np.unique(codes, return_inverse=True)
    pieces = [encode(code) for code in distinct.tolist()]
    return [pieces[place] for place in places.tolist()]


def _name(name: str) -> bytes:
    return field_bytes(fields.NAME, name.encode("utf-8", "surrogateescape")) if name else b""


def _io(field: int, texts: Sequence[tuple[bytes, ...]], code: int) -> bytes:
    if code < 0:
        return b""
    io = NodeIO(*texts[code])
    parts = [
        field_bytes(number, text)
        for number, text in (
            (fields.IO_VALUES, io.values),
            (fields.IO_SHAPES, io.shapes),
            (fields.IO_TYPES, io.types),
        )
        if text
    ]
    return field_bytes(field, b"".join(parts) + io.extra)


def _microseconds(time_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rounded once, half to even; 0 where the time is not known."""
    whole, rest = np.divmod(np.where(time_ns == UNKNOWN_NS, 0, time_ns), 1000)
    up = (rest > 500) | ((rest == 500) & (whole % 2 == 1))
    return whole + up


def _dependencies(edges: Edges, rows: Rows) -> tuple[list[bytes], list[bytes]]:
    first, last = edges.offsets[rows[0]], edges.offsets[rows[-1] + 1]
    offsets = edges.offsets[rows[0] : rows[-1] + 2] - first
    source, kind = edges.source[first:last], edges.kind[first:last]
    call = kind == EdgeKind.CALL
    return (
        _packed_ids(fields.CTRL_DEPS, offsets, source, call),
        _packed_ids(fields.DATA_DEPS, offsets, source, ~call),
    )


def _packed_ids(
    field: int,
    offsets: npt.NDArray[np.int64],
    source: npt.NDArray[np.uint64],
    chosen: npt.NDArray[np.bool_],
) -> list[bytes]:
    before = np.zeros(len(source) + 1, np.int64)
    np.cumsum(chosen, out=before[1:])
    data, places = packed(source[chosen])
    at = places[before[offsets]].tolist()
    head = tag(field, BYTES)
    heads: dict[int, bytes] = {0: b""}
    pieces = []
    for start, end in zip(at, at[1:]):  # noqa: B905 - neighbours
        length = end - start
        if length not in heads:
            heads[length] = head + varint(length)
        pieces.append(heads[length] + data[start:end])
    return pieces


def _attributes(nodes: Nodes, rows: Rows) -> list[bytes]:
    """All attributes of each node, joined in the order of its layout."""
    table = nodes.attributes
    outer = tag(fields.ATTR, BYTES)
    layout = table.layout[rows]
    result = [b""] * len(rows)
    spans = {}
    used = {number for chosen in np.unique(layout).tolist() for number in table.layouts[chosen]}
    for number in used:
        column = table.columns[number]
        low, high = np.searchsorted(column.rows, (rows[0], rows[-1] + 1))
        part = AttributeColumn(column.key, column.rows[low:high], column.values[low:high])
        spans[number] = (part.rows - rows[0], encode_column(part, outer))
    for chosen in np.unique(layout).tolist():
        places = np.flatnonzero(layout == chosen)
        columns = []
        for number in table.layouts[chosen]:
            at, pieces = spans[number]
            if len(at) != len(places):
                pieces = [pieces[i] for i in np.searchsorted(at, places).tolist()]
            columns.append(pieces)
        if columns:
            joined = map(b"".join, zip(*columns, strict=True))
            for place, piece in zip(places.tolist(), joined, strict=True):
                result[place] = piece
    return result


def _columns_as_attributes(trace: Trace, rows: Rows) -> list[list[bytes]]:
    """The attributes that stand for columns of the model: edge kinds and exact times."""
    nodes = trace.nodes
    outer = tag(fields.ATTR, BYTES)
    kinds = _kinds(trace.edges, rows, outer)
    start, duration = nodes.start_ns[rows], nodes.duration_ns[rows]
    exact_start = nodes.exact_start[rows] | (start == 0) | (start % 1000 != 0)
    exact_duration = nodes.exact_duration[rows] | (duration % 1000 != 0)
    return [
        kinds,
        _exact(fields.EXACT_START, start, exact_start & (start != UNKNOWN_NS), outer),
        _exact(fields.EXACT_DURATION, duration, exact_duration, outer),
    ]


def _kinds(edges: Edges, rows: Rows, outer: bytes) -> list[bytes]:
    first, last = edges.offsets[rows[0]], edges.offsets[rows[-1] + 1]
    part = Edges(
        edges.offsets[rows[0] : rows[-1] + 2] - first,
        edges.source[first:last],
        edges.kind[first:last],
        edges.inferred[first:last],
    )
    texts = kinds_texts(part.select(part.kind != EdgeKind.CALL))
    key = AttributeKey(fields.EDGE_KINDS, Kind.STRING)
    known = {text: _with_head(encode_attribute(key, text), outer) for text in set(texts) if text}
    return [known.get(text, b"") for text in texts]


def _exact(
    name: str, values: npt.NDArray[np.int64], wanted: npt.NDArray[np.bool_], outer: bytes
) -> list[bytes]:
    column = AttributeColumn(AttributeKey(name, Kind.INT64), np.flatnonzero(wanted), values[wanted])
    pieces = encode_column(column, outer)
    if len(pieces) == len(values):
        return pieces
    result = [b""] * len(values)
    for row, piece in zip(column.rows.tolist(), pieces, strict=True):
        result[row] = piece
    return result


def _with_head(payload: bytes, outer: bytes) -> bytes:
    return outer + varint(len(payload)) + payload
