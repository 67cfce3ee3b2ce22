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


def node_writer(trace: Trace) -> NodeWriter | None:
    """What writes the nodes of a trace, where the kernel is there and all texts are Unicode."""
    module = kernel()
    if module is None:
        return None
    nodes, told = trace.nodes, attributes_of_columns(trace)
    table = nodes.attributes
    count = len(table.columns)
    try:
        writer: NodeWriter = module.NodeWriter(
            node_columns(trace),
            nodes.names,
            vars(nodes.texts) if isinstance(nodes.texts, PackedTexts) else nodes.texts,
            [list(layout) for layout in table.layouts],
            [_attribute(column) for column in [*table.columns, *told]],
            list(range(count, count + len(told))),
            sorted(nodes.extra.items()),
            [*_TAGS, _OUTER],
        )
    except UnicodeEncodeError:
        return None
    return writer


def node_columns(trace: Trace) -> dict[str, npt.NDArray[Any]]:
    """The columns of nodes and edges as the kernel takes them."""
    nodes, edges = trace.nodes, trace.edges
    columns: dict[str, tuple[npt.NDArray[Any], type[np.generic]]] = {
        "id": (nodes.id, np.uint64),
        "name": (nodes.name_code, np.int32),
        "type": (nodes.type, np.int32),
        "start_us": (microseconds(nodes.start_ns).view(np.uint64), np.uint64),
        "duration_us": (microseconds(nodes.duration_ns).view(np.uint64), np.uint64),
        "inputs": (nodes.input_code, np.int32),
        "outputs": (nodes.output_code, np.int32),
        "layout": (nodes.attributes.layout, np.int32),
        "offsets": (edges.offsets, np.int64),
        "source": (edges.source, np.uint64),
        "is_call": (edges.kind == EdgeKind.CALL, np.uint8),
    }
    return {name: np.ascontiguousarray(*column) for name, column in columns.items()}


def _attribute(column: AttributeColumn) -> tuple[npt.NDArray[np.int64], bytes | None, Any]:
    """Rows, what stands before each value, and the values; else whole fields."""
    rows = np.ascontiguousarray(column.rows, np.int64)
    if not is_plain(column.key):
        return rows, None, encode_column(column, _OUTER)
    if column.key.kind is Kind.STRING:
        coded = column.coded
        texts = column.values if coded is None else (coded.codes, coded.distinct)
        return rows, head_of(column.key), texts
    varints = as_varints(column.key, column.values)
    return rows, head_of(column.key), np.ascontiguousarray(varints, np.uint64)
