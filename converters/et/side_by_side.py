"""Many protobuf messages read side by side: each step takes the next field of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et.wire import BYTES, FIXED32, FIXED64, LONGEST_VARINT, VARINT, WireError

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

PIECE: Final = 1 << 21
"""Bytes whose records are read side by side: enough to be fast, few enough for the caches."""

_ONE, _SEVEN = np.uint64(1), np.uint64(0x7F)
_HIGH_BITS = np.uint64(0x8080808080808080)


def add_starts(starts: list[int], piece: bytes, stop: int, behind: Callable[[int], int]) -> int:
    """Append where each record that begins before `stop` begins; where the next one would.

    A record is a varint of its length, then its payload. `behind` tells where one ends whose
    length has more than two bytes or is cut off; it may raise.
    """
    add = starts.append
    at, last = 0, len(piece) - 1
    while at < stop:
        add(at)
        length = piece[at]
        if length < 0x80:
            at += length + 1
        elif at < last and (high := piece[at + 1]) < 0x80:
            at += (length & 0x7F | high << 7) + 2
        else:
            at = behind(at)
    return at


class Wire:
    """Bytes as an array, and as words of eight bytes that begin at each of them."""

    def __init__(self, buffer: npt.NDArray[np.uint8]) -> None:
        self.buffer = buffer
        padded = buffer if len(buffer) >= 8 else np.append(buffer, np.zeros(8, np.uint8))
        self.words: Words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))

    def varints(self, at: Ints) -> tuple[Words, Ints]:
        """The varint at each place and how many bytes it has; 0 if it has no end."""
        byte = self.buffer[at]
        if (byte < 0x80).all():
            return byte.astype(np.uint64), np.ones(len(at), np.int64)
        if int(at.max()) > len(self.buffer) - 8:
            return self._slowly(at)
        # Eight bytes at once: find the first without a high bit, then close up the 7-bit groups.
        word = self.words[at]
        stop = ~word & _HIGH_BITS
        if not stop.all():
            return self._slowly(at)
        low = stop & (~stop + _ONE)
        widths = ((np.frexp(low.astype(np.float64))[1] - 1) >> 3).astype(np.int64) + 1
        word &= (low << _ONE) - _ONE
        values = word & _SEVEN
        for group in range(1, int(widths.max())):
            values |= (word >> np.uint64(group)) & (_SEVEN << np.uint64(7 * group))
        return values, widths

    def _slowly(self, at: Ints) -> tuple[Words, Ints]:
        values, widths = np.zeros(len(at), np.uint64), np.zeros(len(at), np.int64)
        open_ = np.arange(len(at))
        for group in range(LONGEST_VARINT):
            open_ = open_[at[open_] + group < len(self.buffer)]
            byte = self.buffer[at[open_] + group]
            values[open_] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * group)
            widths[open_[byte < 0x80]] = group + 1
            open_ = open_[byte >= 0x80]
        return values, widths


class Fields(NamedTuple):
    """Fields of many messages, in each message in their order; all columns are as long.

    `row` is the message, `start` where the tag begins, `at` to `behind` the value: the number, or
    the content of a field of bytes. `number` is the number or the length.
    """

    row: Ints
    tag: Ints
    start: Ints
    at: Ints
    behind: Ints
    number: Words

    def of(self, places: npt.NDArray[np.int64]) -> Fields:
        """Those at `places`."""
        return Fields._make(column[places] for column in self)


def fields(wire: Wire, begin: Ints, end: Ints) -> Fields:
    """The fields of the messages in `begin` to `end`. Raises WireError for a broken one."""
    rows = np.flatnonzero(begin < end)
    start, stop = begin[rows], end[rows]
    steps = []
    while len(rows):
        tag, width = wire.varints(start)
        at = start + width
        _want((width > 0) & (tag >= 8) & (tag <= 0xFFFFFFFF) & (at < stop), start)
        tags = tag.astype(np.int64)
        number, at, behind = _values(wire, tags & 7, at, stop)
        steps.append((rows, tags, start, at, behind, number))
        more = behind < stop
        rows, start, stop = rows[more], behind[more], stop[more]
    if not steps:
        none = np.zeros(0, np.int64)
        return Fields(none, none, none, none, none, none.view(np.uint64))
    return Fields._make(map(np.concatenate, zip(*steps, strict=True)))


def _values(wire: Wire, wire_type: Ints, at: Ints, stop: Ints) -> tuple[Words, Ints, Ints]:
    """Number, begin and end of each value."""
    numbered = (wire_type == VARINT) | (wire_type == BYTES)
    if numbered.all():
        number, width = wire.varints(at)
    else:
        number, width = np.zeros(len(at), np.uint64), np.zeros(len(at), np.int64)
        width[wire_type == FIXED64] = 8
        width[wire_type == FIXED32] = 4
        number[numbered], width[numbered] = wire.varints(at[numbered])
    behind = at + width
    _want((width > 0) & (behind <= stop), at)
    long = wire_type == BYTES
    length = np.where(long, number, 0)
    _want(length <= (stop - behind).view(np.uint64), at)
    return number, np.where(long, behind, at), behind + length.astype(np.int64)


def _want(sound: npt.NDArray[np.bool_], at: Ints) -> None:
    if not sound.all():
        raise WireError("a field is broken", int(at[~sound].min()))
