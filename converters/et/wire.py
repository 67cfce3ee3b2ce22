"""The protobuf wire format: varints, tags, and whole columns of fields at a time.

Written from the public description at https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5

LONGEST_VARINT: Final = 10
_SHIFTS: Final = np.arange(0, 7 * LONGEST_VARINT, 7, dtype=np.uint64)
_CONTINUED: Final = bytes(range(0x80, 0x100))


_SHORT: Final = [bytes((value,)) for value in range(0x80)]


class WireError(ValueError):
    """Bytes that are no protobuf message; `at` is where, counted from the start of the data."""

    def __init__(self, problem: str, at: int) -> None:
        super().__init__(problem)
        self.at = at


class ZerosError(WireError):
    """Zeros where records should be: as many nodes as bytes, if they were believed."""


def varint(value: int) -> bytes:
    """A non-negative integer as a varint; a negative one as its two's complement of 64 bits."""
    if 0 <= value < 0x4000:  # most of them
        return _SHORT[value] if value < 0x80 else bytes((value & 0x7F | 0x80, value >> 7))
    value &= 0xFFFFFFFFFFFFFFFF
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The varint at `at` and the position behind it. Raises WireError if there is none."""
    if at < end and data[at] < 0x80:
        return data[at], at + 1
    value = shift = 0
    start = at
    while True:
        if at >= end:
            raise WireError("a number is cut off", start)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift >= 7 * LONGEST_VARINT:
            raise WireError("a number of more than ten bytes", start)


def read_record(data: bytes, at: int, what: str) -> tuple[int, int]:
    """Where the payload of the record at `at` begins and ends. Raises WireError if it is cut."""
    try:
        length, start = read_varint(data, at, len(data))
    except WireError as error:
        raise WireError(f"the length of {what}: {error}", at) from None
    if start + length > len(data):
        missing = start + length - len(data)
        raise WireError(f"{what} is cut off: {missing} of its {length} bytes are missing", at)
    return start, start + length


def read_tag(data: bytes, at: int, end: int) -> tuple[int, int, int]:
    """Field number and wire type of the field at `at`, and the position of its value."""
    number, behind = read_varint(data, at, end)
    if number < 8 or number > 0xFFFFFFFF:
        raise WireError(f"field number {number >> 3}, which no field can have", at)
    return number >> 3, number & 7, behind


def count_varints(data: bytes) -> int:
    """How many varints stand in `data`, which ends with one."""
    return len(data) if data.isascii() else len(data.translate(None, _CONTINUED))


def unpack(data: bytes | bytearray) -> npt.NDArray[np.uint64]:
    """All varints of `data`. Raises WireError for one that is cut off or too long."""
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw < 0x80) + 1
    if (ends[-1] if len(ends) else 0) != len(raw):
        raise WireError("a number is cut off", len(raw))
    starts = np.zeros(len(ends), np.int64)
    starts[1:] = ends[:-1]
    lengths = ends - starts
    longest = int(lengths.max(initial=0))
    if longest > LONGEST_VARINT:
        at = int(starts[np.argmax(lengths > LONGEST_VARINT)])
        raise WireError("a number of more than ten bytes", at)
    values = np.zeros(len(ends), np.uint64)
    for place in range(longest):
        chosen = np.flatnonzero(lengths > place)
        part = (raw[starts[chosen] + place] & 0x7F).astype(np.uint64)
        values[chosen] |= part << np.uint64(7 * place)
    return values


def skip(data: bytes, at: int, end: int, wire_type: int) -> int:
    """The position behind a field's value. Raises WireError if the value is cut off or unknown."""
    if wire_type == VARINT:
        return read_varint(data, at, end)[1]
    if wire_type == BYTES:
        length, behind = read_varint(data, at, end)
        behind += length
    elif wire_type == FIXED64:
        behind = at + 8
    elif wire_type == FIXED32:
        behind = at + 4
    else:
        raise WireError(f"a field of wire type {wire_type}", at)
    if behind > end:
        raise WireError("a field is cut off", at)
    return behind


def tag(field: int, wire_type: int) -> bytes:
    """What stands before the value of a field."""
    return varint(field << 3 | wire_type)


class Heads(dict[int, bytes]):
    """What stands before a payload of some length in a field: `heads[length]`; each made once.

    `empty` stands before one of no length, if given.
    """

    def __init__(self, before: bytes, empty: bytes | None = None) -> None:
        super().__init__({} if empty is None else {0: empty})
        self.before = before

    def __missing__(self, length: int) -> bytes:
        head = self.before + varint(length)
        if length < 1 << 16:
            self[length] = head
        return head

    def of(self, lengths: Iterable[int]) -> Iterator[bytes]:
        """What stands before payloads of these lengths."""
        return map(self.__getitem__, lengths)


@lru_cache(maxsize=1 << 8)
def heads_of(before: bytes, empty: bytes | None = None) -> Heads:
    """The same for all who ask."""
    return Heads(before, empty)


def field_bytes(field: int, payload: bytes) -> bytes:
    """A field of text, bytes or a message."""
    return tag(field, BYTES) + varint(len(payload)) + payload


def _varint_table(
    values: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Each value as some bytes, as many as the longest needs, of which `lengths` are its varint."""
    width = max(1, -(-int(values.max(initial=0)).bit_length() // 7))
    groups = (values[:, None] >> _SHIFTS[:width]).astype(np.uint8)
    lengths = np.ones(len(values), np.int64)
    for place in range(1, width):
        lengths += values >= np.uint64(1 << 7 * place)
    more = np.arange(width) < (lengths - 1)[:, None]
    return groups & np.uint8(0x7F) | more.astype(np.uint8) << np.uint8(7), lengths


def packed(values: npt.NDArray[np.uint64]) -> tuple[bytes, npt.NDArray[np.int64]]:
    """All values as varints in one piece, and where each begins: int64[len(values) + 1]."""
    offsets = np.zeros(len(values) + 1, np.int64)
    if len(values) == 0:
        return b"", offsets
    table, lengths = _varint_table(values)
    np.cumsum(lengths, out=offsets[1:])
    return _where(table, np.arange(table.shape[1]) < lengths[:, None]), offsets


def _where(table: npt.NDArray[np.uint8], used: npt.NDArray[np.bool_]) -> bytes:
    """The bytes that are used, row by row: by their places, which takes NumPy a sixth of a mask."""
    return table.ravel()[np.flatnonzero(used)].tobytes()


class Block(NamedTuple):
    """One field of many messages: each row's field is the first `lengths` bytes of `table`."""

    table: npt.NDArray[np.uint8]
    lengths: npt.NDArray[np.int64]

    def at(self, rows: npt.NDArray[np.int64]) -> Block:
        """The fields of some rows."""
        return Block(self.table[rows], self.lengths[rows])


def varint_block(
    before: bytes, values: npt.NDArray[np.uint64], outer: bytes = b"", *, omit_zero: bool = False
) -> Block | None:
    """For each value the bytes `before` (a tag, say) and the value as a varint.

    With `outer`, that pair is the payload of a field of a message whose tag is `outer`; None where
    its length may not fit into one byte. `omit_zero` gives zeros no bytes at all.
    """
    if outer and len(before) + LONGEST_VARINT >= 0x80:
        return None
    if len(values) and not omit_zero and values.min() == values.max():
        payload = before + varint(int(values[0]))
        whole = outer + varint(len(payload)) * bool(outer) + payload
        table = np.broadcast_to(np.frombuffer(whole, np.uint8), (len(values), len(whole)))
        return Block(table, np.full(len(values), len(whole)))
    digits, lengths = _varint_table(values)
    head = np.frombuffer(outer + b"\0" * bool(outer) + before, np.uint8)
    table = np.empty((len(values), len(head) + digits.shape[1]), np.uint8)
    table[:, : len(head)] = head
    table[:, len(head) :] = digits
    if outer:
        table[:, len(outer)] = len(before) + lengths
    lengths = lengths + len(head)
    if omit_zero:
        lengths[values == 0] = 0
    return Block(table, lengths)


def laid_out(
    count: int, blocks: Sequence[tuple[npt.NDArray[np.int64], Block]]
) -> tuple[bytes, npt.NDArray[np.int64]]:
    """The fields of all blocks, row by row, and how many bytes each row has.

    A block comes with the rows that it is of.
    """
    width = sum(block.table.shape[1] for _, block in blocks)
    table, used = np.zeros((count, width), np.uint8), np.zeros((count, width), np.bool_)
    lengths = np.zeros(count, np.int64)
    at = 0
    for places, block in blocks:
        rows = slice(None) if len(places) == count else places
        behind = at + block.table.shape[1]
        table[rows, at:behind] = block.table
        used[rows, at:behind] = np.arange(behind - at) < block.lengths[:, None]
        lengths[rows] += block.lengths
        at = behind
    return _where(table, used), lengths


def joined(blocks: Sequence[Block]) -> list[bytes]:
    """For each row the fields of all blocks, one after the other."""
    count = len(blocks[0].lengths)
    return slices(*laid_out(count, [(np.arange(count), block) for block in blocks]))


def slices(data: bytes, lengths: npt.NDArray[np.int64]) -> list[bytes]:
    """Pieces of these lengths, one after the other."""
    # Half as long as by subscripts: no object is made for each place.
    return list(map(BytesIO(data).read, lengths.tolist()))
