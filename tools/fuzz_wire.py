"""Damage to ETs in protobuf: frames, fields, lengths and types, with the rest of the file sound."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

NUMBERS: Final = (
    0, 1, 2, 127, 128, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**70,
)  # fmt: skip
TEXTS: Final = (
    b"", b"a", b"\xff\xfe", b"\x1b[31m\n", bytes(200), b"\x08\x01", b"\x0a\x02\x08\x01",
    b"comm_type", b"pg_name", b"is_cpu_op", b"\x80" * 12, b"n" * 3000,
)  # fmt: skip


class Field(NamedTuple):
    """A field of a message; `value` is a number, or the bytes of all other types."""

    number: int
    kind: int
    value: int | bytes


def varint(number: int) -> bytes:
    """A number as protobuf writes it; longer than allowed if it has more than 64 bits."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def frames(data: bytes) -> list[bytes]:
    """The records of a sound ET."""
    found, at = [], 0
    while at < len(data):
        length, at = _read_varint(data, at)
        found.append(data[at : at + length])
        at += length
    return found


def fields(message: bytes) -> list[Field]:
    """The fields of a sound message. Raises IndexError or ValueError for one that is not."""
    found, at = [], 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _read_varint(message, at)
            found.append(Field(number, kind, value))
            continue
        if kind == 2:
            size, at = _read_varint(message, at)
        else:
            size = {1: 8, 5: 4}.get(kind, -1)
        if size < 0 or at + size > len(message):
            raise ValueError("no message")
        found.append(Field(number, kind, message[at : at + size]))
        at += size
    return found


def encode(parts: list[Field]) -> bytes:
    """A message of these fields, whatever their types."""
    out = []
    for number, kind, value in parts:
        out.append(varint(number << 3 | kind))
        if isinstance(value, int):
            out.append(varint(value))
        else:
            out.append((varint(len(value)) if kind == 2 else b"") + value)
    return b"".join(out)


def mutate_wire(rng: random.Random, data: bytes) -> bytes:
    """An ET with some records or fields changed."""
    records = frames(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not records:
            break
        at = rng.randrange(len(records))
        if rng.random() < 0.7:
            records[at] = _changed(rng, records[at], rng.choice((1, 1, 2, 3)))
        else:
            _change_records(rng, records, at)
    lengths = [len(record) for record in records]
    if lengths and rng.random() < 0.1:
        lengths[rng.randrange(len(lengths))] = rng.choice(NUMBERS)
    return b"".join(varint(size) + record for size, record in zip(lengths, records, strict=True))


def _change_records(rng: random.Random, records: list[bytes], at: int) -> None:
    how = rng.randrange(5)
    if how == 0:
        del records[at]
    elif how == 1:
        records.insert(at, records[rng.randrange(len(records))])
    elif how == 2:
        rng.shuffle(records)
    elif how == 3:
        records[at:at] = [b""] * rng.choice((1, 3, 70_000))
    else:
        records[at] = rng.choice(TEXTS)


def _changed(rng: random.Random, message: bytes, depth: int) -> bytes:
    try:
        parts = fields(message)
    except (IndexError, ValueError):
        return rng.choice(TEXTS)
    if not parts:
        return encode([_new_field(rng)])
    at = rng.randrange(len(parts))
    number, kind, value = parts[at]
    if depth > 1 and isinstance(value, bytes) and kind == 2:
        parts[at] = Field(number, kind, _changed(rng, value, depth - 1))
        return encode(parts)
    how = rng.randrange(7)
    if how == 0:
        parts[at] = Field(number, kind, rng.choice(NUMBERS) if kind == 0 else rng.choice(TEXTS))
    elif how == 1:
        parts[at] = Field(rng.choice((0, 1, 2, 7, 10, 99, 2**29)), kind, value)
    elif how == 2:
        parts[at] = Field(number, rng.randrange(8), value)
    elif how == 3:
        del parts[at]
    elif how == 4:
        parts[at:at] = [parts[rng.randrange(len(parts))]] * rng.choice((1, 2, 50))
    elif how == 5:
        parts.insert(at, _new_field(rng))
    else:
        rng.shuffle(parts)
    return encode(parts)


def _new_field(rng: random.Random) -> Field:
    number = rng.choice((1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 16, 99))
    if rng.random() < 0.5:
        return Field(number, 0, rng.choice(NUMBERS))
    return Field(number, 2, rng.choice(TEXTS))


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
