"""Inputs or outputs of a node: the message IOInfo."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

import numpy as np

from chakra_et.codes import distinct
from chakra_et.converters.et import fields
from chakra_et.converters.et.pieces import Grid, Pieces
from chakra_et.converters.et.side_by_side import Ints, Wire
from chakra_et.converters.et.side_by_side import fields as fields_of
from chakra_et.converters.et.wire import (
    BYTES,
    field_bytes,
    heads_of,
    read_tag,
    read_varint,
    skip,
    tag,
)
from chakra_et.model import NodeIO

_TEXTS: Final = (fields.IO_VALUES, fields.IO_SHAPES, fields.IO_TYPES)


def decode_io(data: bytes) -> NodeIO:
    """The message IOInfo in `data`."""
    found = dict.fromkeys(_TEXTS, b"")
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


def encode_io(io: NodeIO) -> bytes:
    """The message IOInfo of some texts."""
    texts = zip(_TEXTS, io, strict=False)
    return b"".join(field_bytes(field, text) for field, text in texts if text) + io.extra


def encode_ios(outer: bytes, ios: Sequence[tuple[bytes, ...]]) -> list[bytes]:
    """The messages IOInfo of some texts, each as a field whose tag is `outer`."""
    if not ios:
        return []
    grid = Grid(len(ios))
    columns = list(zip_longest(*ios, fillvalue=b""))  # Only some have extra fields.
    for number, column in zip(_TEXTS, columns, strict=False):
        texts = Pieces.of(column)
        grid.put(Pieces.by_code(texts.lengths, heads_of(tag(number, BYTES), b"").of))
        grid.put(texts)
    for column in columns[len(_TEXTS) :]:
        grid.put(Pieces.of(column))
    grid.frame(heads_of(outer))
    return grid.rows()


def decode_ios(wire: Wire, data: bytes, at: Ints, behind: Ints) -> list[NodeIO]:
    """The messages in `at` to `behind` of `data`. Raises WireError for a broken one."""
    found = fields_of(wire, at, behind)
    columns = []
    others = np.ones(len(found.tag), np.bool_)
    for number in _TEXTS:
        column = [b""] * len(at)
        chosen = found.tag == tag(number, BYTES)[0]
        part = found.of(np.flatnonzero(chosen))
        places = zip(part.row.tolist(), part.at.tolist(), part.behind.tolist(), strict=True)
        for row, start, end in places:
            column[row] = data[start:end]
        columns.append(column)
        others &= ~chosen
    result = list(map(NodeIO, *columns))
    for row in distinct(found.row[others]).tolist():
        result[row] = decode_io(data[at[row] : behind[row]])
    return result
