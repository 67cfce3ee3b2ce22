"""Reading nodes by the compiled kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import LISTS, SCALARS, decode_content, decode_text
from chakra_et.converters.et.attribute_columns import from_varints
from chakra_et.converters.et.node_columns import NodeColumns
from chakra_et.converters.et.side_by_side import PIECE
from chakra_et.converters.et.wire import BYTES, VARINT, WireError, tag
from chakra_et.definitions import Kind
from chakra_et.kernel import kernel
from chakra_et.model import AttributeColumn, AttributeKey, AttributeTable, NodeIO
from chakra_et.model.attribute_values import array_type

_AS_SUCH: Final = (Kind.STRING, Kind.STRING_LIST, Kind.BYTES)
"""Kinds whose values the kernel gives as they are."""
_NUMBERS: Final = (fields.ID, fields.TYPE, fields.START_TIME_MICROS, fields.DURATION_MICROS)
_NODES: Final = [
    tag(field, VARINT if field in _NUMBERS else BYTES)[0]
    for field in (
        fields.ID, fields.NAME, fields.TYPE, fields.START_TIME_MICROS, fields.DURATION_MICROS,
        fields.INPUTS, fields.OUTPUTS, fields.ATTR,
    )
]  # fmt: skip
_SOURCES: Final = [
    tag(field, wire_type)[0]
    for field in (fields.CTRL_DEPS, fields.DATA_DEPS)
    for wire_type in (VARINT, BYTES)
]
_OPERANDS: Final = [
    tag(field, BYTES)[0] for field in (fields.IO_VALUES, fields.IO_SHAPES, fields.IO_TYPES)
]
_WIRE_TYPES: Final = [
    SCALARS[Kind(number)].wire_type if number in SCALARS else BYTES if number in LISTS else -1
    for number in range(max(Kind) + 1)
]


def compiled_nodes(data: bytes, at: int) -> NodeColumns | None:
    """The nodes of the records from `at` on; None without the kernel, and for Python's readers."""
    module = kernel()
    if module is None:
        return None
    found = module.read_nodes(data, at, PIECE, _NODES, _SOURCES, _OPERANDS, _WIRE_TYPES)
    if found is None:
        return None
    columns, names, texts, layout, layouts, attributes, unknown = found
    try:
        told = [_column(attribute, partial(module.texts_at, data)) for attribute in attributes]
        table = AttributeTable(len(layout), told, layouts, layout)
    except WireError:
        return None
    extra: dict[int, bytes] = {}
    for row, field in unknown:
        extra[row] = extra.get(row, b"") + field
    texts = list(map(NodeIO, *texts))
    return NodeColumns(**columns, names=names, texts=texts, attributes=table, extra=extra)


def _column(
    told: tuple[bytes, int, Any, Any, Any, Any], texts_at: Callable[..., Any]
) -> AttributeColumn:
    """One attribute of the model. Raises WireError for a list that is none.

    Texts that mostly differ are made of the file when somebody looks at them.
    """
    name, number, rows, numbers, codes, contents = told
    kind = Kind(number)
    key = AttributeKey(decode_text(name), kind)
    if len(numbers):
        return AttributeColumn.trusted(key, rows, _numbers(kind, numbers))
    if isinstance(contents, tuple):
        return AttributeColumn.deferred(key, rows, lambda: _spread(*texts_at(*contents, number)))
    if kind not in _AS_SUCH:
        contents = [decode_content(kind, content) for content in contents]
    return AttributeColumn.trusted(key, rows, _spread(codes, contents))


def _spread(codes: npt.NDArray[np.int32], contents: list[Any]) -> list[Any]:
    values = np.fromiter(contents, object, len(contents))
    return list(values[codes])


def _numbers(kind: Kind, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
    """Varints, or the bits of numbers of a fixed width, as what they stand for."""
    dtype = np.dtype(array_type(kind))
    if SCALARS[kind].wire_type == VARINT:
        return np.asarray(from_varints(kind, numbers), dtype)
    width = len(SCALARS[kind].encode(0))
    bits = numbers if width == 8 else numbers.astype(np.uint32)
    return np.asarray(bits.view(f"{dtype.kind}{width}"), dtype)
