"""The framing of a trace: a varint length before each record, the metadata first."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any, Final

from chakra_et.converters.et.first_record import OldSchemaError, require_metadata
from chakra_et.converters.et.wire import BYTES, WireError, read_varint, skip
from chakra_et.feeder import errors

Buffer = bytes | mmap.mmap

LONGEST_LENGTH: Final = 10
"""Bytes of the longest varint."""


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


def metadata_record(record: bytes, offset: int) -> bytes:
    """The first record, which has to be the metadata. Raises FeederError if it is not."""
    try:
        require_metadata(record, 0, len(record))
    except OldSchemaError:
        raise errors.old_schema() from None
    except WireError as error:
        raise errors.malformed(offset, str(error)) from None
    return record
