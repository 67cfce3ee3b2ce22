"""Nodes on the wire as lines of JSON, quickly.

A field that repeats becomes text once, and integers of attributes join the text of what stands
before them. Whatever reads otherwise goes through the mapping as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec
import numpy as np

from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import NAME, SCALARS
from chakra_et.converters.et.io_codec import decode_io, encode_io
from chakra_et.converters.et.json_mapping import UNKNOWN, gives_back, to_json
from chakra_et.converters.et.json_messages import ATTRIBUTE, NODE, PLAIN_NODE
from chakra_et.converters.et.side_by_side import Wire
from chakra_et.converters.et.side_by_side import fields as fields_of
from chakra_et.converters.et.wire import BYTES, VARINT, read_tag, read_varint, tag, unpack
from chakra_et.definitions import Kind
from chakra_et.model.attribute_values import INTEGER_KINDS

NODES_AT_ONCE: Final = 1 << 10
"""Nodes whose fields are found together: enough to pay, few enough to bound memory."""
_MOST_KNOWN: Final = 1 << 16
_MOST_FIELDS: Final = 1 << 12
_LONG_LIST: Final = 64
"""Bytes of dependencies from which on they are decoded together."""
_ATTR: Final = tag(fields.ATTR, BYTES)[0]
_TEXTS: Final = {
    tag(fields.INPUTS, BYTES)[0]: b'"inputs":',
    tag(fields.OUTPUTS, BYTES)[0]: b'"outputs":',
}
_NUMBERS: Final = {
    tag(fields.ID, VARINT)[0]: b'"id":"%d"',
    tag(fields.START_TIME_MICROS, VARINT)[0]: b'"startTimeMicros":"%d"',
    tag(fields.DURATION_MICROS, VARINT)[0]: b'"durationMicros":"%d"',
}
_IDS: Final = {
    tag(fields.CTRL_DEPS, BYTES)[0]: b'"ctrlDeps":["%s"]',
    tag(fields.DATA_DEPS, BYTES)[0]: b'"dataDeps":["%s"]',
}
_OTHERS: Final = frozenset({tag(fields.NAME, BYTES)[0], tag(fields.TYPE, VARINT)[0]})

encode: Final = msgspec.json.Encoder().encode


class NodeTexts:
    """Makes lines of nodes, and remembers what may come again."""

    def __init__(self) -> None:
        self._attributes: dict[bytes, bytes] = {}
        self._heads: dict[bytes, _IntegerHead | None] = {}
        self._fields: dict[bytes, bytes] = {}

    def of(self, bodies: Sequence[bytes]) -> list[bytes]:
        """The line of each of some messages Node."""
        data = b"".join(bodies)
        size = np.fromiter(map(len, bodies), np.int64, len(bodies))
        end = np.cumsum(size)
        found = fields_of(Wire(np.frombuffer(data, np.uint8)), end - size, end)
        found = found.of(np.argsort(found.row, kind="stable"))
        borders = np.searchsorted(found.row, np.arange(len(bodies) + 1)).tolist()
        parts = list(
            zip(
                found.tag.tolist(),
                found.start.tolist(),
                found.at.tolist(),
                found.behind.tolist(),
                found.number.tolist(),
                strict=True,
            )
        )
        return [
            self._node(data, parts[low:high]) or self._whole(body)
            for body, (low, high) in zip(bodies, pairwise(borders), strict=True)
        ]

    def _node(self, data: bytes, parts: list[tuple[int, int, int, int, int]]) -> bytes:
        """The line; b"" where a field is not as this project writes it."""
        pieces = []
        attributes = []
        last = 0
        for mark, start, at, behind, number in parts:
            if mark == _ATTR:
                attributes.append(self._attribute(data[at:behind]))
                last = mark
                continue
            if mark <= last:
                return b""
            last = mark
            if mark in _NUMBERS:
                piece = _NUMBERS[mark] % number
            elif mark in _IDS:
                ids = _IDS[mark] % b'","'.join(b"%d" % i for i in _ids(data[at:behind]))
                piece = ids if behind > at else b""
            elif mark in _TEXTS:
                piece = _io(_TEXTS[mark], data[at:behind])
            elif mark in _OTHERS:
                piece = self._field(data[start:behind])
            else:
                return b""
            if not piece:
                return b""
            pieces.append(piece)
        if attributes:
            pieces.append(b'"attr":[%s]' % b",".join(attributes))
        return b"{%s}" % b",".join(pieces)

    def _field(self, field: bytes) -> bytes:
        text = self._fields.get(field)
        if text is None:
            found = to_json(NODE, field)
            text = b"" if UNKNOWN in found else encode(found)[1:-1]
            if len(self._fields) < _MOST_FIELDS:
                self._fields[field] = text
        return text

    def _attribute(self, data: bytes) -> bytes:
        text = self._attributes.get(data)
        if text is None:
            text = self._new_attribute(data)
            if len(self._attributes) < _MOST_KNOWN:
                self._attributes[data] = text
        return text

    def _new_attribute(self, data: bytes) -> bytes:
        at = _value_place(data)
        before = data[:at]
        head = self._heads.get(before)
        if head is not None:
            value, behind = read_varint(data, at, len(data))
            if behind == len(data):
                return head.text(value)
        found = to_json(ATTRIBUTE, data)
        if at and before not in self._heads and len(self._heads) < _MOST_FIELDS:
            self._heads[before] = _integer_head(before, found)
        return encode(found)

    def _whole(self, body: bytes) -> bytes:
        def attribute(data: bytes) -> msgspec.Raw:
            return msgspec.Raw(self._attribute(data))

        found = to_json(NODE, body, attribute)
        # Fields that the model does not know keep their order only if all come back as they were.
        others = "storage" in found or "dataOp" in found
        if others and not gives_back(NODE, to_json(NODE, body), body):
            found = to_json(PLAIN_NODE, body, attribute)
        return encode(found)


class _IntegerHead:
    """The text of an attribute around its integer."""

    def __init__(self, kind: Kind, found: dict[str, Any]) -> None:
        value = list(found.values())[1]
        quote = b'"' * isinstance(value, str)
        self._before = encode(found)[: -len(encode(value)) - 1] + quote
        self._behind = quote + b"}"
        self._decode: Callable[[Any], Any] = SCALARS[kind].decode

    def text(self, value: int) -> bytes:
        """The attribute with a value as it stands on the wire."""
        return b"%s%d%s" % (self._before, self._decode(value), self._behind)


def _integer_head(before: bytes, found: dict[str, Any]) -> _IntegerHead | None:
    """The head of an attribute of an integer; None for another one."""
    field, wire_type, _ = read_tag(before, 2 + before[1], len(before))
    kind = Kind(field) if field in Kind._value2member_map_ else None
    if kind not in INTEGER_KINDS or wire_type != VARINT or len(found) != 2 or "name" not in found:
        return None
    return None if UNKNOWN in found else _IntegerHead(kind, found)


def _value_place(data: bytes) -> int:
    """Where the value of an attribute begins whose name stands first; 0 if it does not."""
    if len(data) < 2 or data[0] != NAME << 3 | BYTES or data[1] >= 0x80:
        return 0
    at = 2 + data[1]
    at += 1 + (at < len(data) and data[at] >= 0x80)
    return at if at < len(data) and data[at - 1] < 0x80 else 0


def _ids(data: bytes) -> Sequence[int]:
    if len(data) > _LONG_LIST:
        found: list[int] = unpack(data).tolist()
        return found
    ids = []
    at = 0
    while at < len(data):
        value, at = read_varint(data, at, len(data))
        ids.append(value)
    return ids


def _io(name: bytes, data: bytes) -> bytes:
    io = decode_io(data)
    texts = {"values": io.values, "shapes": io.shapes, "types": io.types}
    try:
        found = {key: text.decode() for key, text in texts.items() if text}
    except UnicodeDecodeError:
        return b""
    return name + encode(found) if encode_io(io) == data and not io.extra else b""
