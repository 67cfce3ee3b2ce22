"""A trace as protobuf bytes.

Every column encodes itself to one piece of bytes for each node, and a file is the pieces of all
nodes joined: no step of Python is made for each node, and bytes that repeat are made once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import encode_attribute, encode_text
from chakra_et.converters.et.attribute_pieces import AttributePieces
from chakra_et.converters.et.columns_in_attributes import attributes_of_columns, microseconds
from chakra_et.converters.et.compiled_writing import node_writer
from chakra_et.converters.et.io_codec import encode_ios
from chakra_et.converters.et.pieces import Grid, Pieces
from chakra_et.converters.et.wire import (
    BYTES,
    VARINT,
    field_bytes,
    heads_of,
    packed,
    slices,
    tag,
    varint,
    varint_block,
)
from chakra_et.io.fork import in_turns
from chakra_et.model import UNKNOWN_NS, EdgeKind, Edges, Metadata, Trace
from chakra_et.recording.packed_texts import PackedTexts

T = TypeVar("T")
ROWS_AT_ONCE: Final = 1 << 11
"""Nodes that are encoded together: enough for columns to pay, few enough to bound memory, and for
what the kernel writes to stay in the cache."""
_TAKEN_AT_ONCE: Final = 1 << 16
"""Nodes whose attributes are laid out together: that takes half a millisecond, and memory."""


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
    written = 0
    writer = node_writer(trace)
    if writer is not None:
        for first, end in _spans(trace, 0, _TAKEN_AT_ONCE):
            if not writer.take(first, end):
                break
            for rows in _spans(trace, first, ROWS_AT_ONCE, end):
                yield writer.write(*rows)
            written = end
    if written < len(trace.nodes):
        yield from in_turns(_Nodes(trace).records, _spans(trace, written))


def encode_nodes(trace: Trace) -> Iterator[list[bytes]]:
    """The payload of each message Node, many at a time.

    Raises ValueError for a time that the format cannot tell.
    """
    _check_times(trace)
    nodes = _Nodes(trace)
    for rows in _spans(trace):
        yield nodes.grid(*rows).rows()


def formed_nodes(trace: Trace, form: Callable[[list[bytes]], T]) -> Iterator[T]:
    """What `form` makes of the payloads that `encode_nodes` gives, in the same order.

    Where a core is idle, a copy of this process makes every other one.
    """
    _check_times(trace)
    nodes = _Nodes(trace)
    yield from in_turns(lambda rows: form(nodes.grid(*rows).rows()), _spans(trace))


def _spans(
    trace: Trace, begin: int = 0, count: int | None = None, end: int | None = None
) -> list[tuple[int, int]]:
    """First and last rows of what is encoded together: so many of the nodes from `begin` on."""
    count = ROWS_AT_ONCE if count is None else count
    end = len(trace.nodes) if end is None else end
    return [(first, min(first + count, end)) for first in range(begin, end, count)]


def _check_times(trace: Trace) -> None:
    """Raise ValueError for a time that the format cannot tell."""
    for name, times in (("start", trace.nodes.start_ns), ("duration", trace.nodes.duration_ns)):
        early = np.flatnonzero((times < -500) & (times != UNKNOWN_NS))
        if len(early):
            row = int(early[0])
            raise ValueError(f"node {trace.nodes[row].id}: a negative {name} ({times[row]} ns)")


class _Nodes:
    """The nodes of a trace as pieces of bytes."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._nodes, self._edges = trace, trace.nodes, trace.edges
        self._attributes = AttributePieces(trace.nodes.attributes)

    def records(self, rows: tuple[int, int]) -> bytes:
        """Some nodes as they stand in a file, each with its length before it."""
        grid = self.grid(*rows)
        grid.frame(heads_of(b""))
        return grid.joined()

    def grid(self, first: int, end: int) -> Grid:
        """The messages of the nodes from `first` to `end`, of which the latter is left out."""
        nodes, rows, grid = self._nodes, slice(first, end), Grid(end - first)
        grid.put(_numbers((fields.ID, nodes.id[rows])))
        grid.put(Pieces.by_code(nodes.name_code[rows], self._names))
        grid.put(Pieces.by_code(nodes.type[rows], _types))
        _put_dependencies(grid, self._edges, first, end)
        start, duration = nodes.start_ns[rows], nodes.duration_ns[rows]
        grid.put(
            _numbers(
                (fields.START_TIME_MICROS, microseconds(start)),
                (fields.DURATION_MICROS, microseconds(duration)),
            )
        )
        grid.put(Pieces.by_code(nodes.input_code[rows], partial(self._texts, fields.INPUTS)))
        grid.put(Pieces.by_code(nodes.output_code[rows], partial(self._texts, fields.OUTPUTS)))
        told = attributes_of_columns(self._trace, first, end)
        self._attributes.put(grid, first, end, told)
        if nodes.extra:
            grid.put(Pieces.of([nodes.extra.get(row, b"") for row in range(first, end)]))
        return grid

    def _names(self, codes: list[int]) -> Iterator[bytes]:
        names = map(self._nodes.names.__getitem__, codes)
        return (field_bytes(fields.NAME, encode_text(name)) if name else b"" for name in names)

    def _texts(self, field: int, codes: list[int]) -> list[bytes]:
        """Inputs or outputs as field `field` of a node; a negative code stands for none."""
        none = [b""] * bisect_left(codes, 0)
        texts, codes = self._nodes.texts, codes[len(none) :]
        if isinstance(texts, PackedTexts):
            texts = texts.at(np.array(codes, np.int32))
        else:
            texts = list(map(texts.__getitem__, codes))
        return none + encode_ios(tag(field, BYTES), texts)


def _numbers(*columns: tuple[int, npt.NDArray[Any]]) -> Pieces:
    """Fields of unsigned numbers; zero is left out, as proto3 wants."""
    blocks = [
        varint_block(tag(field, VARINT), values.astype(np.uint64), omit_zero=True)
        for field, values in columns
    ]
    count = len(columns[0][1])
    return Pieces.of_blocks(count, [(np.arange(count), block) for block in blocks if block])


def _types(numbers: list[int]) -> Iterator[bytes]:
    head = tag(fields.TYPE, VARINT)
    return (head + varint(number) if number else b"" for number in numbers)


def _put_dependencies(grid: Grid, edges: Edges, start: int, end: int) -> None:
    offsets = edges.offsets[start : end + 1]
    source, kind = (column[offsets[0] : offsets[-1]] for column in (edges.source, edges.kind))
    call = kind == EdgeKind.CALL
    for field, chosen in ((fields.CTRL_DEPS, call), (fields.DATA_DEPS, ~call)):
        before = np.zeros(len(source) + 1, np.int64)
        np.cumsum(chosen, out=before[1:])
        data, places = packed(source[chosen])
        ids = Pieces.of(slices(data, np.diff(places[before[offsets - offsets[0]]])))
        grid.put(Pieces.by_code(ids.lengths, heads_of(tag(field, BYTES), b"").of))
        grid.put(ids)
