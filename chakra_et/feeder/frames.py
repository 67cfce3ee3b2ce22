"""The framing of a trace: a varint length before each record, the metadata first."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

from chakra_et.converters.et.attribute_codec import decode_attribute
from chakra_et.converters.et.wire import BYTES, VARINT, WireError, read_varint, skip
from chakra_et.feeder import errors

Buffer = bytes | mmap.mmap

LONGEST_LENGTH: Final = 10
"""Bytes of the longest varint."""


class First(Enum):
    """What the first record of a trace is."""

    METADATA = "metadata"
    NODE = "node"
    OLD_SCHEMA = "old schema"
    BAD = "bad"


def cut(data: Buffer, at: int, end: int, base: int, max_record: int) -> tuple[int, int]:
    """Where the payload of the record at `at` begins and ends; `base` is the offset of data[0].

    Raises FeederError when the record is cut off or too long.
    """
    indexed: Any = data  # a mapped file is read like bytes
    try:
        length, start = read_varint(indexed, at, end)
    except WireError:
        if end - at >= LONGEST_LENGTH:
            raise errors.malformed(base + at, "its length never ends") from None
        raise errors.truncated(base + at) from None
    if length > max_record:
        raise errors.too_large(base + at, length)
    if start + length > end:
        raise errors.truncated(base + at)
    return start, start + length


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Number, wire type, begin and end of the value of each field; raises WireError."""
    while at < end:
        number, at = read_varint(data, at, end)
        behind = skip(data, at, end, number & 7)
        if not 0 < number >> 3 < 1 << 29:
            raise WireError("a field without a number", at)
        if number & 7 == BYTES:
            _, at = read_varint(data, at, end)
        yield number >> 3, number & 7, at, behind
        at = behind


def classify(record: bytes) -> First:
    """What the first record is; a trace may begin with a node, and nothing is swallowed then."""
    if not record:
        return First.METADATA
    try:
        number, wire_type, at, behind = next(fields(record, 0, len(record)))
    except WireError:
        return First.BAD
    if (number, wire_type) == (1, VARINT):
        return First.OLD_SCHEMA if _looks_like_old_node(record) else First.NODE
    if (number, wire_type) == (1, BYTES):
        embedded = _is_embedded_attribute(record[at:behind])
        return First.OLD_SCHEMA if embedded else First.METADATA
    if (number, wire_type) == (2, BYTES) and _looks_like_attribute(record[at:behind]):
        return First.METADATA
    return First.NODE


def _looks_like_attribute(message: bytes) -> bool:
    try:
        decode_attribute(message, 0)
    except (WireError, ValueError):
        return False
    return len(message) > 1 and message[0] == 0x0A


def _is_embedded_attribute(text: bytes) -> bool:
    """Metadata of summer 2023 kept its attributes where the version is now."""
    try:
        found = [(number, wire_type) for number, wire_type, _, _ in fields(text, 0, len(text))]
    except WireError:
        return False
    return len(found) > 1 and found[0] == (1, BYTES) and text[0] == 0x0A


def _looks_like_old_node(record: bytes) -> bool:
    """A node of the schemas before 0.0.4, which numbered fields otherwise."""
    try:
        for number, wire_type, at, behind in fields(record, 0, len(record)):
            if 13 <= number <= 20:
                return True
            if wire_type == VARINT and (number in (4, 5) or 8 <= number <= 11):
                return True
            if wire_type == BYTES and number in (6, 7):
                return True
            if (number, wire_type) == (11, BYTES) and behind - at > 1 and record[at] == 0x0A:
                return True
    except WireError:
        return False
    return False
