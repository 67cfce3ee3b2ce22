"""The outermost fields of a protobuf message, as far as its first bytes tell."""

from __future__ import annotations

from typing import Final

_VARINT: Final = 0
_BYTES: Final = 2
_FIXED: Final = {1: 8, 5: 4}


def fields_of(data: bytes, *, cut: bool = True) -> tuple[list[tuple[int, int, bytes]], bool]:
    """Number, wire type and content of each field, and whether all of it is in the wire format.

    If the data may be `cut`, so may the last field: its content is what is there.
    """
    found: list[tuple[int, int, bytes]] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind in (_VARINT, _BYTES):
            length, at = _varint(data, at)
        else:
            length = _FIXED.get(kind, -1)
        if tag < 0 or length < 0 or number == 0:
            return found, cut and at == len(data)
        if kind == _VARINT:
            length = 0
        found.append((number, kind, data[at : at + length]))
        at += length
    return found, cut or at == len(data)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint and what follows it; -1 if it is too long, or cut at the end."""
    value = 0
    for place in range(at, min(at + 10, len(data))):
        value |= (data[place] & 0x7F) << 7 * (place - at)
        if data[place] < 0x80:
            return value, place + 1
    return -1, min(at + 10, len(data))
