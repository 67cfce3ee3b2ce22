"""Writing nodes by the compiled kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import as_varints, encode_column, head_of, is_plain
from chakra_et.converters.et.columns_in_attributes import attributes_of_columns, microseconds
from chakra_et.converters.et.wire import BYTES, VARINT, tag
from chakra_et.definitions import Kind
from chakra_et.kernel import kernel
from chakra_et.model import AttributeColumn, EdgeKind, Trace
from chakra_et.recording.packed_texts import PackedTexts

if TYPE_CHECKING:
    from chakra_et.kernel._native import NodeWriter

_NUMBERS = (fields.ID, fields.TYPE, fields.START_TIME_MICROS, fields.DURATION_MICROS)
_TAGS = [
    tag(field, VARINT if field in _NUMBERS else BYTES)
    for field in (
        fields.ID, fields.NAME, fields.TYPE, fields.CTRL_DEPS, fields.DATA_DEPS,
        fields.START_TIME_MICROS, fields.DURATION_MICROS, fields.INPUTS, fields.OUTPUTS,
    )
]  # fmt: skip
_TAGS += [tag(field, BYTES) for field in (fields.IO_VALUES, fields.IO_SHAPES, fields.IO_TYPES)]
_OUTER = tag(fields.ATTR, BYTES)


def node_writer(trace: Trace) -> CompiledNodes | None:
    """What writes the nodes of a trace, where the kernel is there and all names are Unicode."""
    module, nodes = kernel(), trace.nodes
    if module is None:
        return None
    texts = vars(nodes.texts) if isinstance(nodes.texts, PackedTexts) else nodes.texts
    layouts = [list(layout) for layout in nodes.attributes.layouts]
    try:
        writer = module.NodeWriter(nodes.names, texts, layouts, [*_TAGS, _OUTER])
    except UnicodeEncodeError:
        return None
    return CompiledNodes(trace, writer)


class CompiledNodes:
    """Writes nodes in order. Those that are taken together cost memory for their attributes."""

    def __init__(self, trace: Trace, writer: NodeWriter) -> None:
        self._trace, self._writer, self._first = trace, writer, 0

    def take(self, first: int, end: int) -> bool:
        """Have the nodes from `first` up to `end` written next; False if a text is not Unicode."""
        nodes = self._trace.nodes
        columns = [column.within(first, end) for column in nodes.attributes.columns]
        told = attributes_of_columns(self._trace, first, end)
        extra = [(row - first, data) for row, data in nodes.extra.items() if first <= row < end]
        try:
            self._writer.take(
                node_columns(self._trace, first, end),
                [_attribute(column, first) for column in [*columns, *told]],
                list(range(len(columns), len(columns) + len(told))),
                sorted(extra),
            )
        except UnicodeEncodeError:
            return False
        self._first = first
        return True

    def write(self, first: int, end: int) -> bytes:
        """Some of the nodes that were taken, each with its length before it."""
        return self._writer.write(first - self._first, end - self._first)


def node_columns(trace: Trace, first: int, end: int) -> dict[str, npt.NDArray[Any]]:
    """The columns of some nodes and their edges as the kernel takes them."""
    nodes, edges, rows = trace.nodes, trace.edges, slice(first, end)
    offsets = edges.offsets[first : end + 1]
    places = slice(int(offsets[0]), int(offsets[-1]))
    columns: dict[str, tuple[npt.NDArray[Any], type[np.generic]]] = {
        "id": (nodes.id[rows], np.uint64),
        "name": (nodes.name_code[rows], np.int32),
        "type": (nodes.type[rows], np.int32),
        "start_us": (microseconds(nodes.start_ns[rows]).view(np.uint64), np.uint64),
        "duration_us": (microseconds(nodes.duration_ns[rows]).view(np.uint64), np.uint64),
        "inputs": (nodes.input_code[rows], np.int32),
        "outputs": (nodes.output_code[rows], np.int32),
        "layout": (nodes.attributes.layout[rows], np.int32),
        "offsets": (offsets - offsets[0], np.int64),
        "source": (edges.source[places], np.uint64),
        "is_call": (edges.kind[places] == EdgeKind.CALL, np.uint8),
    }
    return {name: np.ascontiguousarray(*column) for name, column in columns.items()}


def _attribute(
    column: AttributeColumn, first: int
) -> tuple[npt.NDArray[np.int64], bytes | None, Any]:
    """Rows from `first` on, what stands before each value, and the values; else whole fields."""
    rows = np.ascontiguousarray(column.rows - first, np.int64)
    if not is_plain(column.key):
        return rows, None, encode_column(column, _OUTER)
    if column.key.kind is Kind.STRING:
        coded = column.coded
        if coded is None:
            return rows, head_of(column.key), column.values
        return rows, head_of(column.key), (coded.codes.astype(np.int32), coded.distinct)
    varints = as_varints(column.key, column.values)
    return rows, head_of(column.key), np.ascontiguousarray(varints, np.uint64)
