"""Files of schemas 0.0.1 to 0.0.3, rewritten as files of the present schema.

Old nodes parse under the present schema and mean something else, so the schema is decided first,
by all that the file shows: fields that only one schema has, the wire types of attribute values,
and the names of nodes, which begin with the name of their type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from chakra_et.converters.et import fields
from chakra_et.converters.et.first_record import OldSchemaError
from chakra_et.converters.et.wire import (
    BYTES,
    VARINT,
    WireError,
    field_bytes,
    read_tag,
    read_varint,
    skip,
    tag,
    varint,
)

_FIXED32: Final = 5
Field = tuple[int, int, int, int]
"""Number and wire type of a field, and where its value begins and ends."""

_NAMES: Final = (
    "INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE",
    "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE",
)  # fmt: skip
_PREFIX: Final = re.compile("|".join(_NAMES).encode())
_WITHOUT_METADATA: Final = (0, 2, 3, 4, 5, 6, 7)
"""Types up to 0.0.2, which had no METADATA_NODE, as today's numbers."""
_COLLECTIVES_1: Final = (0, 0, 6, 2, 7)
_COLLECTIVES: Final = (0, 6, 2, 7, 5)
"""Old numbers of collectives as today's: from INVALID, and from ALL_REDUCE on."""

# What today's attribute values are called, by the field that holds them.
_FLOAT, _FLOATS, _INT64, _INT64S, _UINT64 = 5, 6, 9, 10, 13
_UINT64S, _BOOL, _BOOLS, _STRING, _STRINGS = 14, 27, 28, 29, 30
_INT32, _UINT32 = 7, 11

_LAYOUTS: Final = {
    "0.0.2": (_FLOAT, _INT64, _STRING, _FLOATS, _INT64S, _STRINGS),
    "0.0.3": (_BOOL, _FLOAT, _INT64, _STRING, _BOOLS, _FLOATS, _INT64S, _STRINGS),
    "0.0.3 with unsigned values": (
        _BOOL, _FLOAT, _UINT64, _INT64, _STRING, _BOOLS, _FLOATS, _UINT64S, _INT64S, _STRINGS,
    ),
}  # fmt: skip
"""Today's field for each value field of an attribute; they began at 4 in each old schema."""
_WIRE: Final = {
    _FLOAT: _FIXED32, _FLOATS: _FIXED32, _INT64: VARINT, _INT64S: VARINT, _UINT64: VARINT,
    _UINT64S: VARINT, _BOOL: VARINT, _BOOLS: VARINT, _STRING: BYTES, _STRINGS: BYTES,
}  # fmt: skip
_LISTS: Final = (_FLOATS, _INT64S, _UINT64S, _BOOLS, _STRINGS)
_FIRST: Final = {
    5: ("tensor_loc", _UINT32), 6: ("tensor_size", _UINT64), 12: ("num_ops", _INT64),
    13: ("comm_type", _INT64), 14: ("involved_dim", _BOOLS), 15: ("communicator_id", _INT32),
    16: ("comm_src", _INT32), 17: ("comm_dst", _INT32), 18: ("comm_size", _INT64),
    19: ("comm_tag", _INT32), 20: ("comm_priority", _INT32),
}  # fmt: skip
"""Fields of a node of 0.0.1 that are attributes today."""
_ONLY_FIRST: Final = ((5, VARINT), (6, VARINT), (7, VARINT))
"""Numbers and wire types of fields of a node that 0.0.2 and 0.0.3 have otherwise."""
_RUN_TIME: Final = 7
_DATA_DEPS: Final = 5
_DURATION: Final = 7


@dataclass
class _Old:
    """A file of an old schema: its metadata record, if any, and its nodes, as fields."""

    data: bytes
    metadata: tuple[int, int] | None
    nodes: list[list[Field]]


def upgrade(data: bytes) -> tuple[bytes, str]:
    """A file of an old schema as one of today's, and which schema it is of.

    Raises OldSchemaError if the file does not show which of the old schemas it is of, and
    WireError if it is damaged.
    """
    old = _split(data)
    schema = _schema(old)
    version = "1.0.0"
    out = [_framed(field_bytes(1, version.encode()) + _metadata(old, schema))]
    write = _node_1 if schema == "0.0.1" else _node_2
    out += [_framed(write(old, node, schema)) for node in old.nodes]
    return b"".join(out), schema


def _split(data: bytes) -> _Old:
    at, frames = 0, []
    while at < len(data):
        length, at = read_varint(data, at, len(data))
        if at + length > len(data):
            raise WireError("a record is cut off", at)
        frames.append((at, at + length))
        at += length
    metadata = (
        frames.pop(0) if frames and data[frames[0][0] : frames[0][0] + 1] != b"\x08" else None
    )
    nodes = [list(_fields(data, *frame)) for frame in frames]
    return _Old(data, metadata, nodes)


def _fields(data: bytes, at: int, end: int) -> Iterator[Field]:
    while at < end:
        number, wire_type, at = read_tag(data, at, end)
        begin = at
        at = skip(data, at, end, wire_type)
        if wire_type == BYTES:
            _, begin = read_varint(data, begin, end)
        yield number, wire_type, begin, at


def _schema(old: _Old) -> str:
    """Which schema the file is of, by elimination. Raises OldSchemaError if it does not show."""
    if old.metadata is None and _is_first(old.nodes):
        return "0.0.1"
    possible = list(_LAYOUTS) if old.metadata is None else list(_LAYOUTS)[1:]
    attributes = [field for node in old.nodes for field in node if field[0] == 11]
    if old.metadata is not None:
        attributes += list(_fields(old.data, *old.metadata))
    for _, _, begin, end in attributes:
        for number, wire_type, _, _ in _fields(old.data, begin, end):
            if number >= 4:
                possible = [s for s in possible if _fits(_LAYOUTS[s], number - 4, wire_type)]
    types = {name for node in old.nodes if (name := _shift(old, node)) is not None}
    if types == {True}:
        possible = [s for s in possible if s == "0.0.2"] or (
            ["0.0.1"] if not attributes and old.metadata is None else []
        )
    elif types == {False}:
        possible = [s for s in possible if s != "0.0.2"]
    certain = {p.split()[0] for p in possible}
    if len(certain) != 1:
        raise OldSchemaError(
            "the first record is a node, as in a file of schema 0.0.1 to 0.0.3, but the file does "
            "not show which of them it is of, or it has lost its metadata",
            0,
        )
    return possible[-1]


def _is_first(nodes: list[list[Field]]) -> bool:
    """Whether nodes are of 0.0.1: with fields that only it has, and without attributes of today.

    Today's nodes have those fields, too, in files that have lost their metadata.
    """
    kinds = {(number, wire_type) for node in nodes for number, wire_type, _, _ in node}
    if (fields.ATTR, BYTES) in kinds:
        return False
    return any(number > 11 or (number, kind) in _ONLY_FIRST for number, kind in kinds)


def _fits(layout: tuple[int, ...], place: int, wire_type: int) -> bool:
    if place >= len(layout):
        return False
    kind = layout[place]
    return wire_type == _WIRE[kind] or (kind in _LISTS and wire_type == BYTES)


def _shift(old: _Old, node: list[Field]) -> bool | None:
    """Whether a node's type counts without METADATA_NODE, by its name; None if it does not tell."""
    name = next((old.data[b:e] for n, _, b, e in node if n == 2), b"")
    match = _PREFIX.match(name)
    kind = next((_number(old, f) for f in node if f[0] == 3), 0)
    if match is None or not 0 < kind < len(_NAMES):
        return None
    today = _NAMES.index(match[0].decode())
    if kind < len(_WITHOUT_METADATA) and _WITHOUT_METADATA[kind] == today:
        return True
    return False if kind == today else None


def _number(old: _Old, field: Field) -> int:
    return read_varint(old.data, field[2], field[3])[0]


def _framed(payload: bytes) -> bytes:
    return varint(len(payload)) + payload


def _metadata(old: _Old, schema: str) -> bytes:
    out = field_bytes(2, _attribute(b"converted_from", _STRING, [schema.encode()]))
    if old.metadata is not None:
        for field in _fields(old.data, *old.metadata):
            out += _old_attribute(old, field, schema)
    return out


def _attribute(name: bytes, kind: int, values: list[bytes]) -> bytes:
    """An attribute; each value as it stands on the wire behind its tag."""
    if kind in (_STRING, _STRINGS):
        values = [varint(len(value)) + value for value in values]
    wire_type = _WIRE.get(kind, VARINT)
    if kind in _LISTS:
        items = b"".join(tag(1, wire_type) + value for value in values)
        return field_bytes(1, name) + field_bytes(kind, items)
    return field_bytes(1, name) + tag(kind, wire_type) + values[-1]


def _head(old: _Old, node: list[Field], types: tuple[int, ...]) -> bytes:
    out, parents = b"", b""
    for field in node:
        number, wire_type, begin, end = field
        if number == 1:
            out += tag(fields.ID, VARINT) + old.data[begin:end]
        elif number == 2:
            out += field_bytes(2, old.data[begin:end])
        elif number == 3:
            kind = _number(old, field)
            out += tag(3, VARINT) + varint(types[kind] if kind < len(types) else kind)
        elif number == 4:
            # Unpacked in proto2; packed ones are read as well.
            parents += old.data[begin:end] if wire_type == BYTES else varint(_number(old, field))
    return out + (field_bytes(_DATA_DEPS, parents) if parents else b"")


def _node_1(old: _Old, node: list[Field], _schema: str) -> bytes:
    out = _head(old, node, _WITHOUT_METADATA)
    dims: list[bytes] = []
    for field in node:
        number, _, begin, end = field
        if number == _RUN_TIME:
            out += tag(_DURATION, VARINT) + old.data[begin:end]
        elif number == 13:
            kind = _number(old, field)
            today = _COLLECTIVES_1[kind] if kind < len(_COLLECTIVES_1) else kind
            out += field_bytes(10, _attribute(b"comm_type", _INT64, [varint(today)]))
        elif number == 14:
            dims.append(old.data[begin:end])
        elif number in _FIRST:
            name, kind = _FIRST[number]
            out += field_bytes(10, _attribute(name.encode(), kind, [old.data[begin:end]]))
    return out + (field_bytes(10, _attribute(b"involved_dim", _BOOLS, dims)) if dims else b"")


def _node_2(old: _Old, node: list[Field], schema: str) -> bytes:
    out = _head(old, node, _WITHOUT_METADATA if schema == "0.0.2" else tuple(range(8)))
    for first, field_number in ((5, 8), (8, 9)):
        texts = [
            field_bytes(n - first + 1, old.data[b:e])
            for n, _, b, e in node
            if first <= n < first + 3
        ]
        if texts:
            out += field_bytes(field_number, b"".join(texts))
    for field in node:
        if field[0] == 11:
            out += _old_attribute(old, field, schema, field_number=10)
    return out


def _old_attribute(old: _Old, field: Field, schema: str, *, field_number: int = 2) -> bytes:
    """An attribute of an old schema as a field with one of today's."""
    layout = _LAYOUTS.get(schema, ())
    name, kind, values = b"", None, []
    for number, wire_type, begin, end in _fields(old.data, field[2], field[3]):
        if number == 1:
            name = old.data[begin:end]
        elif number >= 4 and number - 4 < len(layout):
            kind = layout[number - 4]
            if kind in _LISTS and kind != _STRINGS and wire_type == BYTES:
                values += _unpacked(old.data, begin, end, _WIRE[kind])
            else:
                values.append(old.data[begin:end])
    if kind is None or not values:
        return field_bytes(field_number, field_bytes(1, name))
    if name == b"comm_type" and kind in (_INT64, _UINT64):
        number = read_varint(values[-1], 0, len(values[-1]))[0]
        today = _COLLECTIVES[number] if number < len(_COLLECTIVES) else number
        kind, values = _INT64, [varint(today)]
    return field_bytes(field_number, _attribute(name, kind, values))


def _unpacked(data: bytes, at: int, end: int, wire_type: int) -> list[bytes]:
    values = []
    while at < end:
        behind = skip(data, at, end, wire_type)
        values.append(data[at:behind])
        at = behind
    return values
