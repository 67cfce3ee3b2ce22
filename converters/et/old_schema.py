"""Files of old schemas, which parse as something else under the present one."""

from __future__ import annotations

from typing import Final

from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import NAME as _ATTRIBUTE_NAME
from chakra_et.converters.et.attribute_codec import decode_attribute
from chakra_et.converters.et.wire import (
    BYTES,
    VARINT,
    WireError,
    read_tag,
    read_varint,
    skip,
    tag,
)

_NODE_ID: Final = tag(fields.ID, VARINT)[0]
_VERSION: Final = tag(fields.METADATA_VERSION, BYTES)[0]
_ATTR: Final = tag(fields.METADATA_ATTR, BYTES)[0]
_OLD_ATTRIBUTE: Final = 11
_ADVICE: Final = "such files cannot be read"


class OldSchemaError(WireError):
    """A file of a schema before 0.0.4; the message says which."""


def refuse_old_schema(data: bytes, at: int, end: int) -> None:
    """Raise OldSchemaError if the first record, `data[at:end]`, is not today's metadata."""
    first = data[at] if at < end else None
    if first == _NODE_ID:
        raise OldSchemaError(
            f"the first record is a node, as in a file of schema {_node_schema(data, at, end)}, "
            f"or of a file that has lost its metadata: {_ADVICE}",
            at,
        )
    if first == _VERSION and _is_message(_payload(data, at, end)):
        raise OldSchemaError(
            f"the metadata is that of schema 0.0.3 (August to October 2023): {_ADVICE}", at
        )
    if first == _ATTR and not _is_attribute(_payload(data, at, end)):
        raise OldSchemaError(
            f"the first record is a node: the file has no metadata, and {_ADVICE}", at
        )


def _payload(data: bytes, at: int, end: int) -> bytes:
    """The content of the field at `at`."""
    length, start = read_varint(data, at + 1, end)
    return data[start : min(start + length, end)]


def _node_schema(data: bytes, at: int, end: int) -> str:
    """Which of the old schemas a node is of, as far as its fields tell."""
    try:
        while at < end:
            field, wire_type, at = read_tag(data, at, end)
            at = skip(data, at, end, wire_type)
            if field > _OLD_ATTRIBUTE:
                return "0.0.1"
            if field == _OLD_ATTRIBUTE and wire_type == BYTES:
                return "0.0.2 or 0.0.3"
    except WireError:
        pass
    return "0.0.1 to 0.0.3"


def _is_message(text: bytes) -> bool:
    """Whether a version is in truth an attribute: a message that begins with a name."""
    at = 0
    try:
        while at < len(text):
            field, wire_type, behind = read_tag(text, at, len(text))
            if at == 0 and (field, wire_type) != (_ATTRIBUTE_NAME, BYTES):
                return False
            at = skip(text, behind, len(text), wire_type)
    except WireError:
        return False
    return bool(text)


def _is_attribute(text: bytes) -> bool:
    """Whether a field is an attribute rather than the name of a node."""
    try:
        key, _ = decode_attribute(text)
    except WireError:
        return False
    return bool(key.name) or key.kind is not None or not text
