"""One attribute as protobuf: the message AttributeProto."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et.wire import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    Block,
    WireError,
    field_bytes,
    heads_of,
    read_tag,
    read_varint,
    skip,
    tag,
    unpack,
    varint,
    varint_block,
)
from chakra_et.definitions import Kind
from chakra_et.model import AttributeColumn, AttributeKey, AttributeValue

NAME, DOC = 1, 2


class Scalar(NamedTuple):
    """How values of one kind stand in a message."""

    wire_type: int
    encode: Callable[[Any], bytes]
    decode: Callable[[Any], AttributeValue]


def _signed(bits: int) -> Callable[[int], int]:
    half, whole = 1 << (bits - 1), 1 << bits

    def decode(value: int) -> int:
        value &= whole - 1
        return value - whole if value >= half else value

    return decode


def _fixed(layout: str) -> tuple[Callable[[Any], bytes], Callable[[bytes], AttributeValue]]:
    packer = struct.Struct(layout)
    return packer.pack, lambda data: packer.unpack(data)[0]


def _zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _zagzig(value: int) -> int:
    return value >> 1 ^ -(value & 1)


def encode_text(text: str) -> bytes:
    """Text as UTF-8; what `decode_text` kept of other bytes becomes these again."""
    return text.encode("utf-8", "surrogateescape")


def decode_text(data: bytes) -> str:
    """UTF-8 as text; bytes that are none are kept as lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


SCALARS: Final[dict[Kind, Scalar]] = {
    Kind.DOUBLE: Scalar(FIXED64, *_fixed("<d")),
    Kind.FLOAT: Scalar(FIXED32, *_fixed("<f")),
    Kind.INT32: Scalar(VARINT, varint, _signed(32)),
    Kind.INT64: Scalar(VARINT, varint, _signed(64)),
    Kind.UINT32: Scalar(VARINT, varint, lambda value: value & 0xFFFFFFFF),
    Kind.UINT64: Scalar(VARINT, varint, int),
    Kind.SINT32: Scalar(VARINT, _zigzag, lambda value: _zagzig(value & 0xFFFFFFFF)),
    Kind.SINT64: Scalar(VARINT, _zigzag, _zagzig),
    Kind.FIXED32: Scalar(FIXED32, *_fixed("<I")),
    Kind.FIXED64: Scalar(FIXED64, *_fixed("<Q")),
    Kind.SFIXED32: Scalar(FIXED32, *_fixed("<i")),
    Kind.SFIXED64: Scalar(FIXED64, *_fixed("<q")),
    Kind.BOOL: Scalar(VARINT, lambda value: b"\1" if value else b"\0", bool),
    Kind.STRING: Scalar(BYTES, encode_text, decode_text),
    Kind.BYTES: Scalar(BYTES, bytes, bytes),
}
LISTS: Final[dict[Kind, Scalar]] = {Kind(kind + 1): scalar for kind, scalar in SCALARS.items()}
_COLUMN_KINDS: Final = frozenset({Kind.INT32, Kind.INT64, Kind.UINT32, Kind.UINT64, Kind.BOOL})


def encode_attribute(key: AttributeKey, value: AttributeValue) -> bytes:
    """The payload of one AttributeProto."""
    head = field_bytes(NAME, encode_text(key.name)) if key.name else b""
    doc = field_bytes(DOC, encode_text(key.doc)) if key.doc else b""
    return head + doc + _encode_value(key.kind, value) + key.extra


def _encode_value(kind: Kind | None, value: AttributeValue) -> bytes:
    if kind is None:
        return b""
    if kind in SCALARS:
        scalar = SCALARS[kind]
        payload = scalar.encode(value)
        if scalar.wire_type == BYTES:
            return field_bytes(kind, payload)
        return tag(kind, scalar.wire_type) + payload
    scalar = LISTS[kind]
    if scalar.wire_type == BYTES:
        return field_bytes(kind, b"".join(field_bytes(1, scalar.encode(item)) for item in value))
    items = b"".join(map(scalar.encode, value))
    return field_bytes(kind, field_bytes(1, items) if items else b"")


def is_plain(key: AttributeKey) -> bool:
    """Whether each value of a column stands behind the same bytes, as a varint or a text."""
    return (key.kind in _COLUMN_KINDS or key.kind is Kind.STRING) and not key.extra


def head_of(key: AttributeKey) -> bytes:
    """What stands in the attribute's message before each value of a plain column."""
    assert key.kind is not None
    before = encode_attribute(AttributeKey(key.name, None, 0, key.doc), None)
    return before + tag(key.kind, SCALARS[key.kind].wire_type)


def as_varints(key: AttributeKey, values: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Numbers as they are written: negative ones as their two's complement of 64 bits."""
    if key.kind is Kind.UINT64:
        return np.asarray(values, np.uint64)
    return np.asarray(values.astype(np.int64).view(np.uint64))


def encode_block(key: AttributeKey, values: npt.NDArray[Any], outer: bytes) -> Block | None:
    """Values of a column of varints as a block of fields; None for a column of another kind."""
    if key.kind not in _COLUMN_KINDS or key.extra:
        return None
    return varint_block(head_of(key), as_varints(key, values), outer)


def encode_column(column: AttributeColumn, outer: bytes) -> list[bytes]:
    """Each value of a column as a field of the node message; `outer` is that field's tag."""
    key = column.key
    if key.kind in (Kind.DOUBLE, Kind.FLOAT):
        return _encode_reals(column, outer)
    if key.kind is Kind.STRING and not key.extra:
        return _encode_texts(key, column.values, outer)
    known: dict[AttributeValue, bytes] = {}
    pieces = []
    objects = column.values if isinstance(column.values, list) else column.values.tolist()
    # Among real lists, 0.0 equals -0.0 and one NaN may stand for another; objects tell them apart.
    marks = map(id, objects) if key.kind in (Kind.DOUBLE_LIST, Kind.FLOAT_LIST) else objects
    for value, mark in zip(objects, marks, strict=True):
        piece = known.get(mark)
        if piece is None:
            payload = encode_attribute(key, value)
            piece = known[mark] = outer + varint(len(payload)) + payload
        pieces.append(piece)
    return pieces


def _encode_texts(key: AttributeKey, values: list[str], outer: bytes) -> list[bytes]:
    """Texts, each distinct one made once."""
    heads, outer_heads = heads_of(head_of(key)), heads_of(outer)
    distinct = list(set(values))
    texts = [text.encode("utf-8", "surrogateescape") for text in distinct]
    payloads = [heads[len(text)] + text for text in texts]
    fields = [outer_heads[len(payload)] + payload for payload in payloads]
    return list(map(dict(zip(distinct, fields, strict=True)).__getitem__, values))


def _encode_reals(column: AttributeColumn, outer: bytes) -> list[bytes]:
    """Reals as their bytes stand in the array: every NaN keeps its bits."""
    key, values = column.key, column.values
    assert key.kind is not None
    before = encode_attribute(AttributeKey(key.name, None, 0, key.doc), None)
    before += tag(key.kind, SCALARS[key.kind].wire_type)
    width = values.dtype.itemsize
    raw = values.astype(f"<f{width}").tobytes()
    before = outer + varint(len(before) + width + len(key.extra)) + before
    return [before + raw[at : at + width] + key.extra for at in range(0, len(raw), width)]


def decode_attribute(data: bytes, at: int = 0) -> tuple[AttributeKey, AttributeValue]:
    """Key and value of the AttributeProto in `data`. Of several values the last counts.

    `at` is where the data begins in its file. Raises WireError for what is no such message.
    """
    name = doc = ""
    kind: Kind | None = None
    value: AttributeValue = None
    extra = b""
    start, here, end = 0, 0, len(data)
    try:
        while here < end:
            start = here
            field, wire_type, here = read_tag(data, here, end)
            behind = skip(data, here, end, wire_type)
            if field in (NAME, DOC) and wire_type == BYTES:
                text = decode_text(_payload(data, here, end))
                name, doc = (text, doc) if field == NAME else (name, text)
            elif (found := _kind(field, wire_type)) is not None:
                kind, value = found, _decode_value(found, data, here, behind)
            else:
                extra += data[start:behind]
            here = behind
    except WireError as error:
        raise WireError(f"attribute {name!r}: {error}", at + start) from None
    return AttributeKey(name, kind, 0, doc, extra), value


def _kind(field: int, wire_type: int) -> Kind | None:
    """The kind of a value field; None where the schema names none of that wire type."""
    if not Kind.DOUBLE <= field <= Kind.BYTES_LIST:
        return None
    kind = Kind(field)
    wanted = SCALARS[kind].wire_type if kind in SCALARS else BYTES
    return kind if wanted == wire_type else None


def _payload(data: bytes, at: int, end: int) -> bytes:
    length, at = read_varint(data, at, end)
    return data[at : at + length]


def _decode_value(kind: Kind, data: bytes, at: int, behind: int) -> AttributeValue:
    if kind in SCALARS:
        return _decode_scalar(SCALARS[kind], data, at, behind)
    return _decode_list(LISTS[kind], _payload(data, at, behind))


def _decode_scalar(scalar: Scalar, data: bytes, at: int, behind: int) -> AttributeValue:
    if scalar.wire_type == VARINT:
        return scalar.decode(read_varint(data, at, behind)[0])
    if scalar.wire_type == BYTES:
        return scalar.decode(_payload(data, at, behind))
    return scalar.decode(data[at:behind])


def decode_content(kind: Kind, data: bytes) -> AttributeValue:
    """The value in the content of a field of text, bytes or a list."""
    return SCALARS[kind].decode(data) if kind in SCALARS else _decode_list(LISTS[kind], data)


def _decode_list(scalar: Scalar, data: bytes) -> tuple[AttributeValue, ...]:
    """The items of a list message, packed or one by one."""
    items: list[AttributeValue] = []
    here, end = 0, len(data)
    while here < end:
        field, wire_type, here = read_tag(data, here, end)
        behind = skip(data, here, end, wire_type)
        if field != 1 or wire_type not in (scalar.wire_type, BYTES):
            raise WireError("a list holds something other than values", here)
        if wire_type == scalar.wire_type:
            items.append(_decode_scalar(scalar, data, here, behind))
        else:
            items += _unpack(scalar, _payload(data, here, behind))
        here = behind
    return tuple(items)


def _unpack(scalar: Scalar, data: bytes) -> list[AttributeValue]:
    if scalar.wire_type == VARINT:
        return [scalar.decode(value) for value in unpack(data).tolist()]
    width = 8 if scalar.wire_type == FIXED64 else 4
    if len(data) % width:
        raise WireError("a packed list is cut off", len(data))
    return [scalar.decode(data[i : i + width]) for i in range(0, len(data), width)]
