"""Nodes in JSON as messages on the wire, quickly.

A node of the usual fields is decoded into a struct; attributes and texts that repeat become bytes
once, and integers of attributes join the bytes of what stands before them. Whatever reads otherwise
goes through the mapping as a whole, which also finds what is wrong and where.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import SCALARS, encode_text
from chakra_et.converters.et.json_mapping import JsonError, from_json
from chakra_et.converters.et.json_messages import ATTRIBUTE, NODE, NODE_TYPES
from chakra_et.converters.et.wire import BYTES, VARINT, Heads, field_bytes, tag, varint
from chakra_et.model.attribute_values import INTEGER_KINDS, INTEGER_RANGES

_MOST_KNOWN: Final = 1 << 16
_MOST_HEADS: Final = 1 << 12
_LIMIT: Final = 1 << 64
_TOP: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])
_DIGITS: Final = re.compile("[0-9]{1,20}").fullmatch
_INTEGER: Final = re.compile(rb"(.*:)(\"?)(-?[0-9]{1,20})\2\}", re.DOTALL).fullmatch
_TYPES: Final = {name: number for number, name in NODE_TYPES.names.items()}


class _Io(msgspec.Struct, forbid_unknown_fields=True):
    values: str = ""
    shapes: str = ""
    types: str = ""


class _Node(msgspec.Struct, forbid_unknown_fields=True):
    id: str = "0"
    name: str = ""
    type: str = NODE_TYPES.names[0]
    ctrlDeps: list[str] = []  # noqa: N815 - the names of the format; msgspec copies it
    dataDeps: list[str] = []  # noqa: N815
    startTimeMicros: str = "0"  # noqa: N815
    durationMicros: str = "0"  # noqa: N815
    inputs: _Io | None = None
    outputs: _Io | None = None
    attr: list[msgspec.Raw] = []


_NODE: Final = msgspec.json.Decoder(_Node)


class _UnusualError(Exception):
    """A node that must go through the mapping."""


class NodeRecords:
    """Makes messages of nodes, and remembers what may come again."""

    def __init__(self) -> None:
        self._attributes: dict[bytes, bytes] = {}
        self._heads: dict[bytes, Callable[[int], bytes] | None] = {}

    def of(self, raw: msgspec.Raw, place: str) -> bytes:
        """The message of the node in `raw`. Raises JsonError, which names `place`."""
        try:
            return self._usual(_NODE.decode(raw), place)
        except (msgspec.ValidationError, _UnusualError):
            return self._whole(raw, place)

    def _usual(self, node: _Node, place: str) -> bytes:
        if node.type not in _TYPES:
            raise _UnusualError
        name = encode_text(node.name)
        pieces = [
            _number(fields.ID, node.id),
            field_bytes(fields.NAME, name) if name else b"",
            _TYPE_FIELDS[node.type],
            _ids(fields.CTRL_DEPS, node.ctrlDeps),
            _ids(fields.DATA_DEPS, node.dataDeps),
            _number(fields.START_TIME_MICROS, node.startTimeMicros),
            _number(fields.DURATION_MICROS, node.durationMicros),
            _io(fields.INPUTS, node.inputs),
            _io(fields.OUTPUTS, node.outputs),
        ]
        pieces += [self._attribute(bytes(raw), place, n) for n, raw in enumerate(node.attr)]
        return b"".join(pieces)

    def _whole(self, raw: msgspec.Raw, place: str) -> bytes:
        try:
            parts = _TOP.decode(raw)
        except msgspec.ValidationError:
            raise JsonError("expected an object", place) from None
        attributes = parts.pop("attr", None)
        others = {name: msgspec.json.decode(value) for name, value in parts.items()}
        record = [from_json(NODE, others, place)]
        if attributes is not None and bytes(attributes) != b"null":
            for number, item in enumerate(items(attributes, f"{place}.attr")):
                record.append(self._attribute(bytes(item), place, number))
        return b"".join(record)

    def _attribute(self, text: bytes, place: str, number: int) -> bytes:
        field = self._attributes.get(text)
        if field is None:
            field = self._new_attribute(text, place, number)
            if len(self._attributes) < _MOST_KNOWN:
                self._attributes[text] = field
        return field

    def _new_attribute(self, text: bytes, place: str, number: int) -> bytes:
        parts = _INTEGER(text)
        if parts is not None:
            head = self._heads.get(parts[1])
            if head is not None and (field := head(int(parts[3]))):
                return field
        found = msgspec.json.decode(text)
        field = field_bytes(fields.ATTR, from_json(ATTRIBUTE, found, f"{place}.attr[{number}]"))
        if parts is not None and parts[1] not in self._heads and len(self._heads) < _MOST_HEADS:
            self._heads[parts[1]] = _integer_head(found)
        return field


def items(raw: msgspec.Raw, place: str) -> list[msgspec.Raw]:
    """The items of the list in `raw`. Raises JsonError if it is none."""
    try:
        return _LIST.decode(raw)
    except msgspec.ValidationError:
        raise JsonError("expected a list", place) from None


def _integer_head(found: dict[str, Any]) -> Callable[[int], bytes] | None:
    """Makes the field of an attribute like `found` with another integer.

    None if its last value is not its only one, and an integer.
    """
    name, last = (*found, "")[:2]
    if len(found) != 2 or name != "name" or last not in ATTRIBUTE.numbers:
        return None
    number = ATTRIBUTE.numbers[last]
    kind = ATTRIBUTE.fields[number].type
    if kind not in INTEGER_KINDS or SCALARS[kind].wire_type != VARINT:
        return None
    low, high = INTEGER_RANGES[kind]
    before = from_json(ATTRIBUTE, {"name": found["name"]}, "") + tag(number, VARINT)
    heads = Heads(tag(fields.ATTR, BYTES))
    encode = SCALARS[kind].encode

    def field(value: int) -> bytes:
        if not low <= value <= high:
            return b""
        digits = encode(value)
        return heads[len(before) + len(digits)] + before + digits

    return field


def _integer(text: str) -> int:
    value = int(text) if _DIGITS(text) else _LIMIT
    if value >= _LIMIT:
        raise _UnusualError
    return value


def _number(field: int, text: str) -> bytes:
    value = _integer(text)
    return _TAGS[field] + varint(value) if value else b""


def _ids(field: int, texts: list[str]) -> bytes:
    ids = b"".join([varint(_integer(text)) for text in texts])
    return _HEADS[field][len(ids)] + ids


def _io(field: int, io: _Io | None) -> bytes:
    if io is None:
        return b""
    a, b, c = encode_text(io.values), encode_text(io.shapes), encode_text(io.types)
    content = b"".join((_VALUES[len(a)], a, _SHAPES[len(b)], b, _IO_TYPES[len(c)], c))
    return tag(field, BYTES) + varint(len(content)) + content


_TAGS: Final = {
    field: tag(field, VARINT)
    for field in (fields.ID, fields.START_TIME_MICROS, fields.DURATION_MICROS)
}
_HEADS: Final = {
    field: Heads(tag(field, BYTES), empty=b"") for field in (fields.CTRL_DEPS, fields.DATA_DEPS)
}
_VALUES, _SHAPES, _IO_TYPES = (
    Heads(tag(field, BYTES), empty=b"")
    for field in (fields.IO_VALUES, fields.IO_SHAPES, fields.IO_TYPES)
)
_TYPE_FIELDS: Final = {
    name: tag(fields.TYPE, VARINT) + varint(number) if number else b""
    for name, number in _TYPES.items()
}
