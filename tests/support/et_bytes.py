"""Small ET files, made of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chakra_et.converters.et import decode_et, encode_et
from chakra_et.converters.et.wire import field_bytes, read_varint, varint
from chakra_et.model import Trace

VERSION = field_bytes(1, b"1.0.0")
"""The payload of metadata that says the version."""


def encoded(trace: Trace) -> bytes:
    """The file of a trace."""
    return b"".join(encode_et(trace))


def framed(*messages: bytes) -> bytes:
    """The file of these messages."""
    return b"".join(varint(len(message)) + message for message in messages)


def unframed(data: bytes) -> Iterator[bytes]:
    """The messages of a file."""
    at = 0
    while at < len(data):
        length, at = read_varint(data, at, len(data))
        yield data[at : at + length]
        at += length


def one_node(message: bytes) -> Any:
    """The node that a message is read as."""
    return decode_et(framed(VERSION, message)).nodes[0]
