"""What the first record of a file is: the metadata, or a node where they have to be.

The rule stands in `schema/README.md`, section "Files". Readers and both feeders go by it; for C++
it is in `frames.hpp`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

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

_VERSION: Final = tag(fields.METADATA_VERSION, BYTES)[0]
_ATTR: Final = tag(fields.METADATA_ATTR, BYTES)[0]
_NAMED: Final = tag(_ATTRIBUTE_NAME, BYTES)[0]
_OLD_ATTRIBUTE: Final = 11
_ADVICE: Final = "such files cannot be read"
TWICE: Final = "metadata in place of a node, as where two files were joined"


class NoMetadataError(WireError):
    """The first record is a node; the file has lost its metadata."""


class OldSchemaError(NoMetadataError):
    """A file of a schema before 0.0.4, as far as its first record shows; the message says which."""


def require_metadata(data: bytes, at: int, end: int) -> None:
    """Raise NoMetadataError if the first record, `data[at:end]`, is not today's metadata.

    Raises WireError where its first field is cut off.
    """
    if at == end or is_metadata(data, at, end):
        return
    number, wire_type, behind = read_tag(data, at, end)
    skip(data, behind, end, wire_type)
    if (number, wire_type) == (fields.METADATA_VERSION, BYTES):
        raise OldSchemaError(
            f"the metadata is that of schema 0.0.3 (August to October 2023): {_ADVICE}", at
        )
    if (number, wire_type) == (fields.ID, VARINT):
        raise OldSchemaError(
            f"the first record is a node, as in a file of schema {_node_schema(data, at, end)}, "
            f"or of a file that has lost its metadata: {_ADVICE}",
            at,
        )
    raise NoMetadataError(
        f"the first record is a node: the file has no metadata, and {_ADVICE}", at
    )


def is_metadata(data: bytes, at: int, end: int) -> bool:
    """Whether the record `data[at:end]` shows that it is metadata, and no node: by its first field.

    That is the version, or an attribute, which begins with its name.
    """
    try:
        number, wire_type, at = read_tag(data, at, end)
        skip(data, at, end, wire_type)
        if wire_type != BYTES or number not in (fields.METADATA_VERSION, fields.METADATA_ATTR):
            return False
        length, at = read_varint(data, at, end)
    except WireError:
        return False
    content = data[at : at + length]
    if number == fields.METADATA_VERSION:
        return not _is_old_attribute(content)
    return _is_attribute(content)


def find_metadata(
    buffer: npt.NDArray[np.uint8], begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]
) -> int | None:
    """Which of the records that lie in `buffer` is metadata, where all have to be nodes."""
    held = np.flatnonzero(begin < end)
    first = buffer[begin[held]]
    for row in held[(first == _VERSION) | (first == _ATTR)].tolist():
        record = buffer[begin[row] : end[row]].tobytes()
        if is_metadata(record, 0, len(record)):
            return int(row)
    return None


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


def _is_old_attribute(text: bytes) -> bool:
    """Whether a version is in truth an attribute of 0.0.3: a message of a name and more."""
    at = count = 0
    try:
        while at < len(text):
            _, wire_type, behind = read_tag(text, at, len(text))
            at = skip(text, behind, len(text), wire_type)
            count += 1
    except WireError:
        return False
    return count > 1 and text[0] == _NAMED


def _is_attribute(text: bytes) -> bool:
    """Whether a field is an attribute rather than the name of a node."""
    if text[:1] != bytes((_NAMED,)):
        return False
    try:
        key, _ = decode_attribute(text)
    except WireError:
        return False
    return bool(key.name)
