"""A trace as protobuf bytes.

Every column encodes itself to one piece of bytes for each node, and a node is its pieces joined:
so the work on a node is a join, and bytes that repeat are made once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import (
    encode_attribute,
    encode_block,
    encode_column,
    encode_text,
)
from chakra_et.converters.et.columns_in_attributes import attributes_of_columns, microseconds
from chakra_et.converters.et.compiled_writing import node_writer
from chakra_et.converters.et.wire import (
    BYTES,
    VARINT,
    Block,
    Heads,
    field_bytes,
    joined,
    packed,
    tag,
    varint,
    varint_block,
)
from chakra_et.model import (
    UNKNOWN_NS,
    AttributeColumn,
    AttributeTable,
    EdgeKind,
    Edges,
    Metadata,
    Trace,
)

ROWS_AT_ONCE: Final = 1 << 14
"""Nodes that are encoded together: enough for columns to pay, few enough to bound memory."""
ROWS_IN_CACHE: Final = 1 << 11
"""The same for the kernel, to which columns do not matter: what it writes stays in the cache."""


def encode_metadata(metadata: Metadata) -> bytes:
    """The payload of the message GlobalMetadata."""
    version = encode_text(metadata.version)
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
    _check_times(trace)
    writer = node_writer(trace)
    if writer is not None:
        for start in range(0, len(trace.nodes), ROWS_IN_CACHE):
            yield writer.write(start, min(start + ROWS_IN_CACHE, len(trace.nodes)))
        return
    heads = Heads(b"")
    for bodies in encode_nodes(trace):
        before = map(heads.__getitem__, map(len, bodies))
        yield b"".join(chain.from_iterable(zip(before, bodies, strict=True)))


def encode_nodes(trace: Trace) -> Iterator[list[bytes]]:
    """The payload of each message Node, many at a time.

    Raises ValueError for a time that the format cannot tell.
    """
    _check_times(trace)
    told = attributes_of_columns(trace)
    for start in range(0, len(trace.nodes), ROWS_AT_ONCE):
        yield _bodies(trace, np.arange(start, min(start + ROWS_AT_ONCE, len(trace.nodes))), told)


def _check_times(trace: Trace) -> None:
    """Raise ValueError for a time that the format cannot tell."""
    for name, times in (("start", trace.nodes.start_ns), ("duration", trace.nodes.duration_ns)):
        early = np.flatnonzero((times < -500) & (times != UNKNOWN_NS))
        if len(early):
            row = int(early[0])
            raise ValueError(f"node {trace.nodes[row].id}: a negative {name} ({times[row]} ns)")


def _bodies(trace: Trace, rows: Rows, told: Sequence[AttributeColumn]) -> list[bytes]:
    nodes = trace.nodes
    fixed = [
        _numbers((fields.ID, nodes.id[rows])),
        _by_code(nodes.name_code[rows], lambda code: _name(nodes.names[code])),
        _types(nodes.type[rows]),
        *_dependencies(trace.edges, rows),
        _numbers(
            (fields.START_TIME_MICROS, microseconds(nodes.start_ns[rows])),
            (fields.DURATION_MICROS, microseconds(nodes.duration_ns[rows])),
        ),
        _by_code(nodes.input_code[rows], _TextEncoder(fields.INPUTS, nodes.texts)),
        _by_code(nodes.output_code[rows], _TextEncoder(fields.OUTPUTS, nodes.texts)),
        _attributes(nodes.attributes, told, rows),
    ]
    if nodes.extra:
        fixed.append([nodes.extra.get(row, b"") for row in rows.tolist()])
    return list(map(b"".join, zip(*fixed, strict=True)))


def _types(types: npt.NDArray[np.int32]) -> list[bytes]:
    distinct, places = np.unique(types, return_inverse=True)
    head = tag(fields.TYPE, VARINT)
    pieces = [head + varint(value) if value else b"" for value in distinct.tolist()]
    return [pieces[place] for place in places.tolist()]


def _numbers(*columns: tuple[int, npt.NDArray[Any]]) -> list[bytes]:
    """Fields of unsigned numbers; zero is left out, as proto3 wants."""
    blocks = [
        varint_block(tag(field, VARINT), values.astype(np.uint64), omit_zero=True)
        for field, values in columns
    ]
    return joined([block for block in blocks if block is not None])


def _by_code(codes: npt.NDArray[np.int32], encode: Callable[[int], bytes]) -> list[bytes]:
    """The piece of each code, made once for each code that occurs."""
    low = int(codes.min())
    used = np.flatnonzero(np.bincount(codes - low)) + low
    pieces = dict(zip(used.tolist(), map(encode, used.tolist()), strict=True))
    return list(map(pieces.__getitem__, codes.tolist()))


def _name(name: str) -> bytes:
    return field_bytes(fields.NAME, encode_text(name)) if name else b""


class _TextEncoder:
    """Inputs or outputs as field `field` of a node."""

    def __init__(self, field: int, texts: Sequence[tuple[bytes, ...]]) -> None:
        self._texts = texts
        self._heads = Heads(tag(field, BYTES))
        numbers = (fields.IO_VALUES, fields.IO_SHAPES, fields.IO_TYPES)
        self._inner = [Heads(tag(number, BYTES), empty=b"") for number in numbers]

    def __call__(self, code: int) -> bytes:
        if code < 0:
            return b""
        a, b, c = self._inner
        values, shapes, types, *extra = self._texts[code]
        payload = b"".join(
            (a[len(values)], values, b[len(shapes)], shapes, c[len(types)], types, *extra)
        )
        return self._heads[len(payload)] + payload


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
    heads = Heads(tag(field, BYTES), empty=b"")
    return [heads[end - start] + data[start:end] for start, end in pairwise(at)]


def _attributes(table: AttributeTable, told: Sequence[AttributeColumn], rows: Rows) -> list[bytes]:
    """All attributes of each node, in the order of its layout, and then those of `told`.

    Nodes with the same ones are encoded together.
    """
    told = [_between(column, rows) for column in told]
    layout = table.layout[rows].astype(np.int64) << len(told)
    for bit, column in enumerate(told):
        layout[column.rows - rows[0]] |= 1 << bit
    by_layout = np.argsort(layout, kind="stable")
    begins = np.flatnonzero(np.diff(layout[by_layout], prepend=-1)).tolist()
    parts: dict[int, _Part] = {}
    added = [_Part(column, rows) for column in told]
    pieces: list[Iterator[bytes]] = []
    for start, end in pairwise([*begins, len(rows)]):
        code = int(layout[by_layout[start]])
        columns = []
        for number in table.layouts[code >> len(told)]:
            if number not in parts:
                parts[number] = _Part(_between(table.columns[number], rows), rows)
            columns.append(parts[number])
        columns += [part for bit, part in enumerate(added) if code >> bit & 1]
        pieces.append(map(b"".join, _encode_together(columns, by_layout[start:end])))
    result = [b""] * len(rows)
    for place, piece in zip(by_layout.tolist(), chain.from_iterable(pieces), strict=True):
        result[place] = piece
    return result


class _Part:
    """The part of a column that lies in rows without a gap, of which places are chosen."""

    def __init__(self, column: AttributeColumn, rows: Rows) -> None:
        self._column = column
        # Looked up, not searched: each of many groups of places chooses from most columns.
        self._number = np.zeros(len(rows), np.int64)
        self._number[column.rows - rows[0]] = np.arange(len(column.rows))

    def at(self, places: Rows) -> AttributeColumn:
        """The column of some places among the rows, all of which have a value."""
        if len(self._column.rows) == len(places):
            return self._column
        return self._column.part(self._number[places])


def _encode_together(parts: Sequence[_Part], places: Rows) -> Iterator[tuple[bytes, ...]]:
    """For each of the places, which all columns have, their attributes as pieces.

    Neighbouring columns of numbers become one piece.
    """
    outer = tag(fields.ATTR, BYTES)
    pieces: list[list[bytes]] = []
    blocks: list[Block] = []
    for part in (of_column.at(places) for of_column in parts):
        block = encode_block(part.key, part.values, outer)
        if block is not None:
            blocks.append(block)
            continue
        if blocks:
            pieces.append(joined(blocks))
            blocks = []
        pieces.append(encode_column(part, outer))
    if blocks:
        pieces.append(joined(blocks))
    return zip(*pieces, strict=True) if pieces else iter([()] * len(places))


def _between(column: AttributeColumn, rows: Rows) -> AttributeColumn:
    """The part of a column that lies in `rows`, which have no gap."""
    low, high = np.searchsorted(column.rows, (rows[0], rows[-1] + 1))
    return column.between(int(low), int(high))
