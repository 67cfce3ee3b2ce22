"""Protobuf bytes as a trace."""

from __future__ import annotations

from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import decode_attribute, decode_text
from chakra_et.converters.et.first_record import require_metadata
from chakra_et.converters.et.node_reader import read_nodes
from chakra_et.converters.et.wire import (
    BYTES,
    read_record,
    read_tag,
    read_varint,
    skip,
)
from chakra_et.io.memory import collection_paused
from chakra_et.model import Metadata, MetadataAttribute, Trace


def decode_et(data: bytes) -> Trace:
    """The trace in the bytes of an `.et` file.

    Raises WireError, with the position, when the bytes are no such file or the file was cut,
    NoMetadataError when a node stands first, and OldSchemaError when it may be of an old schema.
    """
    at, end = read_record(data, 0, "the metadata")
    require_metadata(data, at, end)
    return decode_records(data)


def decode_records(data: bytes) -> Trace:
    """The trace in records of which the first is known to be the metadata. Raises WireError."""
    at, end = read_record(data, 0, "the metadata")
    metadata = decode_metadata(data, at, end)
    with collection_paused():
        return read_nodes(data, end).trace(metadata)


def decode_metadata(data: bytes, at: int, end: int) -> Metadata:
    """The message GlobalMetadata in `data[at:end]`."""
    metadata = Metadata()
    while at < end:
        start = at
        field, wire_type, at = read_tag(data, at, end)
        behind = skip(data, at, end, wire_type)
        if wire_type == BYTES and field in (fields.METADATA_VERSION, fields.METADATA_ATTR):
            _, at = read_varint(data, at, end)
            if field == fields.METADATA_VERSION:
                metadata.version = decode_text(data[at:behind])
            else:
                key, value = decode_attribute(data[at:behind], at)
                metadata.attributes.append(MetadataAttribute(key, value))
        else:
            metadata.extra += data[start:behind]
        at = behind
    return metadata
