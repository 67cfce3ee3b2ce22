"""Whole traces read at once: the fields that a feeder needs, as columns.

The records are cut one after the other; then their fields are read for many thousand records at a
time, each step taking the next field of all of them. Attributes stay bytes until somebody asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et.wire import BYTES, FIXED32, FIXED64, VARINT
from chakra_et.feeder import errors
from chakra_et.feeder.errors import FeederError
from chakra_et.feeder.frames import Buffer, First, classify, cut

Ints = npt.NDArray[np.int64]

PIECE: Final = 1 << 21
"""Bytes whose records are read side by side: enough to be fast, few enough for the caches."""

LONG_LIST: Final = 256
"""Bytes of dependencies from which on a list is taken apart by itself."""

CPU_KNOWN, CPU_TRUE, EXACT_DURATION, EXACT_START, EDGE_KINDS = 1, 2, 4, 8, 16
CPU_ELSEWHERE = 32
"""Flags: what the attributes of a node tell; the last is for is_cpu_op in an unusual form."""

_ID, _TYPE, _CTRL, _DATA, _START, _DURATION, _ATTR = 1, 3, 4, 5, 6, 7, 10
_TEN: Final = 10
_ONE, _SEVEN = np.uint64(1), np.uint64(0x7F)
_HIGH_BITS = np.uint64(0x8080808080808080)


def _eight(text: bytes) -> np.uint64:
    word: np.uint64 = np.uint64(int.from_bytes(text[:8], "little"))
    return word


_IS_CPU = b"\x0a\x09is_cpu_op\xd8\x01"
_IS_CPU_HEAD, _IS_CPU_TAIL = _eight(_IS_CPU), _eight(_IS_CPU[5:])
_MARKS: Final = (
    (_eight(b"\x0a\x0bduration_ns"), EXACT_DURATION),
    (_eight(b"\x0a\x0dstart_time_ns"), EXACT_START),
    (_eight(b"\x0a\x0aedge_kinds"), EDGE_KINDS),
)


@dataclass
class Columns:
    """The nodes of a trace in file order, and their dependencies."""

    data: Buffer
    metadata: bytes
    begin: Ints  # of each record's payload in `data`
    end: Ints
    id: npt.NDArray[np.uint64]
    type: npt.NDArray[np.int32]
    start_micros: npt.NDArray[np.uint64]
    duration_micros: npt.NDArray[np.uint64]
    flags: npt.NDArray[np.uint8]
    edge_target: npt.NDArray[np.uint32]  # position of the node that waits
    edge_source: npt.NDArray[np.uint64]  # id of the node waited for
    edge_control: npt.NDArray[np.bool_]


def scan(data: Buffer, max_record: int) -> Columns:
    """Read a trace. Raises FeederError for what is none."""
    size = len(data)
    at, metadata = _skip_metadata(data, size, max_record)
    blocks: list[_Block] = []
    buffer = np.frombuffer(data, np.uint8) if size else np.zeros(0, np.uint8)
    done = 0
    while at < size:
        cutter = _Cutter(data, buffer, at, max_record)
        block = _Block(buffer, cutter, done)
        block.read()
        block.finish()
        if cutter.error is not None:  # after those of the records before it
            raise cutter.error
        blocks.append(block)
        done += len(block.begin)
        at = cutter.behind
    return _join(data, metadata, blocks)


def _skip_metadata(data: Buffer, size: int, max_record: int) -> tuple[int, bytes]:
    if size == 0:
        return 0, b""
    begin, end = cut(data, 0, size, 0, max_record)
    record = bytes(data[begin:end])
    first = classify(record)
    if first is First.OLD_SCHEMA:
        raise errors.old_schema()
    if first is First.BAD:
        raise errors.malformed(0, "neither metadata nor a node")
    return (0, b"") if first is First.NODE else (end, record)


class _Cutter:
    """Where the records that start within a piece begin and end, and where the next one is."""

    def __init__(
        self, data: Buffer, buffer: npt.NDArray[np.uint8], base: int, max_record: int
    ) -> None:
        self.error: FeederError | None = None
        size = len(data)
        piece = bytes(data[base : base + PIECE + _TEN])
        starts: list[int] = []
        add = starts.append
        at, stop, last = 0, min(PIECE, size - base), len(piece) - 1
        while at < stop:
            add(at)
            length = piece[at]
            if length < 0x80:
                at += length + 1
            elif at < last and (high := piece[at + 1]) < 0x80:
                at += (length & 0x7F | high << 7) + 2
            else:
                try:
                    at = cut(data, base + at, size, 0, max_record)[1] - base
                except FeederError as error:
                    self.error = error
                    starts.pop()
                    break
        self.behind = base + at
        if self.behind > size:
            self.error = errors.truncated(base + starts.pop())
        self._place(buffer, np.array(starts, np.int64) + base, max_record)

    def _place(self, buffer: npt.NDArray[np.uint8], start: Ints, max_record: int) -> None:
        begin = start + 1
        behind = self.behind
        if self.error is not None and self.error.offset is not None:
            behind = self.error.offset  # the record that cannot be cut is left out
        while len(long := np.flatnonzero(buffer[begin - 1] >= 0x80)):
            begin[long] += 1
        end = np.append(start[1:], behind) if len(start) else start
        big = np.flatnonzero(end - begin > max_record)
        if len(big):
            first = int(big[0])
            self.error = errors.too_large(int(start[first]), int(end[first] - begin[first]))
            start, begin, end = start[:first], begin[:first], end[:first]
        self.start, self.begin, self.end = start, begin, end


class _Block:
    """Some records, read side by side."""

    def __init__(self, buffer: npt.NDArray[np.uint8], cutter: _Cutter, first: int) -> None:
        count = len(cutter.begin)
        self.buffer = buffer
        self.first = first
        self.start, self.begin, self.end = cutter.start, cutter.begin, cutter.end
        self.cursor = self.begin.copy()
        self.id = np.zeros(count, np.uint64)
        self.type = np.zeros(count, np.int32)
        self.start_micros = np.zeros(count, np.uint64)
        self.duration_micros = np.zeros(count, np.uint64)
        self.flags = np.zeros(count, np.uint8)
        self.edge_count = np.zeros(count, np.int64)
        self.edges: list[tuple[Ints, Ints, npt.NDArray[np.uint64], int]] = []
        self.windows: npt.NDArray[np.uint64] = np.ndarray(
            (max(0, len(buffer) - 7),), "<u8", buffer if len(buffer) else None, strides=(1,)
        )

    def read(self) -> None:
        """Field after field, until every record is read."""
        active = np.flatnonzero(self.cursor < self.end)
        while len(active):
            tags = self.buffer[self.cursor[active]]
            first = int(tags[0])
            if (tags == first).all():
                self._step(first, active)
            else:
                for tag in np.flatnonzero(np.bincount(tags)).tolist():
                    self._step(tag, active[tags == tag])
            active = active[self.cursor[active] < self.end[active]]

    def _step(self, tag: int, rows: Ints) -> None:
        """Read one field of each of `rows`, whose next byte is `tag`."""
        field, wire_type = tag >> 3, tag & 7
        if tag >= 0x80:
            numbers = self._varints(rows)
            for number in np.unique(numbers).tolist():
                self._value(number >> 3, number & 7, rows[numbers == number])
            return
        self.cursor[rows] += 1
        self._value(field, wire_type, rows)

    def _value(self, field: int, wire_type: int, rows: Ints) -> None:
        if not 0 < field < 1 << 29:
            raise self._bad(rows, "a field without number")
        if wire_type == VARINT:
            self._number(field, self._varints(rows), rows)
        elif wire_type == BYTES:
            self._bytes(field, rows)
        elif wire_type in (FIXED32, FIXED64):
            self._advance(rows, np.full(len(rows), 8 if wire_type == FIXED64 else 4, np.uint64))
        else:
            raise self._bad(rows, f"a field of wire type {wire_type}")

    def _number(self, field: int, values: npt.NDArray[np.uint64], rows: Ints) -> None:
        if field == _ID:
            self.id[rows] = values
        elif field == _TYPE:
            self.type[rows] = values.astype(np.uint32).astype(np.int32)
        elif field == _START:
            self.start_micros[rows] = values
        elif field == _DURATION:
            self.duration_micros[rows] = values
        elif field in (_CTRL, _DATA):
            self._add_edges(rows, values, field)

    def _add_edges(self, rows: Ints, values: npt.NDArray[np.uint64], field: int) -> None:
        """One more edge of each of `rows`."""
        self.edges.append((rows, self.edge_count[rows], values, field))
        self.edge_count[rows] += 1

    def _bytes(self, field: int, rows: Ints) -> None:
        lengths = self._varints(rows)
        begin = self.cursor[rows]
        self._advance(rows, lengths)
        if field in (_CTRL, _DATA):
            self._packed(field, rows, begin)
        elif field == _ATTR:
            self._mark(rows, begin, lengths)

    def _advance(self, rows: Ints, lengths: npt.NDArray[np.uint64]) -> None:
        left = (self.end[rows] - self.cursor[rows]).astype(np.uint64)
        if (lengths > left).any():
            raise self._bad(rows[lengths > left], "a field is cut off")
        self.cursor[rows] += lengths.astype(np.int64)

    def _varints(self, rows: Ints) -> npt.NDArray[np.uint64]:
        """Read a varint of each row and step behind it."""
        at, end = self.cursor[rows], self.end[rows]
        if (at >= end).any():
            raise self._bad(rows[at >= end], "a number is cut off")
        values, widths = self._decode(at)
        at += widths
        if (widths == 0).any() or (at > end).any():
            raise self._bad(rows, "a number is cut off or has more than ten bytes")
        self.cursor[rows] = at
        return values

    def _decode(self, at: Ints) -> tuple[npt.NDArray[np.uint64], Ints]:
        """The varint at each place and how many bytes it has; 0 if it has no end."""
        byte = self.buffer[at]
        if (byte < 0x80).all():
            return byte.astype(np.uint64), np.ones(len(at), np.int64)
        if int(at.max()) >= len(self.windows):
            return self._decode_slowly(at)
        # Eight bytes at once: find the first without a high bit, then close up the 7-bit groups.
        word = self.windows[at]
        stop = ~word & _HIGH_BITS
        if not stop.all():
            return self._decode_slowly(at)
        low = stop & (~stop + _ONE)
        widths = ((np.frexp(low.astype(np.float64))[1] - 1) >> 3).astype(np.int64) + 1
        word &= (low << _ONE) - _ONE
        values = word & _SEVEN
        for group in range(1, int(widths.max())):
            values |= (word >> np.uint64(group)) & (_SEVEN << np.uint64(7 * group))
        return values, widths

    def _decode_slowly(self, at: Ints) -> tuple[npt.NDArray[np.uint64], Ints]:
        values, widths = np.zeros(len(at), np.uint64), np.zeros(len(at), np.int64)
        open_ = np.arange(len(at))
        for group in range(_TEN):
            open_ = open_[at[open_] + group < len(self.buffer)]
            byte = self.buffer[at[open_] + group]
            values[open_] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * group)
            widths[open_[byte < 0x80]] = group + 1
            open_ = open_[byte >= 0x80]
        return values, widths

    def _packed(self, field: int, rows: Ints, at: Ints) -> None:
        """The numbers in `rows`' stretches of bytes, which end at their cursors."""
        end = self.cursor[rows]
        long = np.flatnonzero(end - at > LONG_LIST)
        for place in long.tolist():
            self._long_list(field, int(rows[place]), int(at[place]), int(end[place]))
        short = np.flatnonzero((end - at <= LONG_LIST) & (end > at))
        rows, at, end = rows[short], at[short], end[short]
        while len(rows):
            values, widths = self._decode(at)
            at = at + widths
            if (widths == 0).any() or (at > end).any():
                raise self._bad(rows, "a list of numbers is cut off")
            self._add_edges(rows, values, field)
            more = at < end
            rows, at, end = rows[more], at[more], end[more]

    def _long_list(self, field: int, row: int, at: int, end: int) -> None:
        raw = self.buffer[at:end]
        ends = np.flatnonzero(raw < 0x80)
        starts = np.concatenate(([0], ends[:-1] + 1))
        if len(ends) == 0 or ends[-1] != len(raw) - 1 or (ends - starts >= _TEN).any():
            raise self._bad(np.array([row]), "a list of numbers is cut off")
        place = np.arange(len(raw)) - np.repeat(starts, ends - starts + 1)
        parts = (raw & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64)
        count = len(ends)
        before = int(self.edge_count[row])
        self.edges.append(
            (
                np.full(count, row),
                np.arange(before, before + count),
                np.add.reduceat(parts, starts),
                field,
            )
        )
        self.edge_count[row] += count

    def _mark(self, rows: Ints, begin: Ints, lengths: npt.NDArray[np.uint64]) -> None:
        """Note attributes that columns tell of."""
        long = np.flatnonzero(lengths >= _TEN)
        if len(long) == 0:
            return
        rows, begin, lengths = rows[long], begin[long], lengths[long]
        head = self.windows[begin]
        odd = (head & np.uint64(0xFF)) != 0x0A  # the name is not the first field: look closer later
        if odd.any():
            self.flags[rows[odd]] |= EXACT_DURATION | EXACT_START | EDGE_KINDS | CPU_ELSEWHERE
        for mark, flag in _MARKS:
            found = head == mark
            if found.any():
                self.flags[rows[found]] |= flag
        cpu = np.flatnonzero(head == _IS_CPU_HEAD)
        if len(cpu):
            self._mark_cpu(rows[cpu], begin[cpu], lengths[cpu])

    def _mark_cpu(self, rows: Ints, begin: Ints, lengths: npt.NDArray[np.uint64]) -> None:
        usual = lengths == len(_IS_CPU) + 1
        usual[usual] = self.windows[begin[usual] + 5] == _IS_CPU_TAIL
        usual &= self.flags[rows] & (CPU_KNOWN | CPU_ELSEWHERE) == 0
        self.flags[rows[~usual]] |= CPU_ELSEWHERE
        value = self.buffer[begin[usual] + len(_IS_CPU)]
        usual_flag = np.where(value != 0, CPU_KNOWN | CPU_TRUE, CPU_KNOWN).astype(np.uint8)
        self.flags[rows[usual]] |= usual_flag

    def _bad(self, rows: Ints, why: str) -> FeederError:
        return errors.malformed(int(self.start[int(rows.min())]), why)

    def finish(self) -> None:
        """Put the edges in order: by target, then as in the file. Drop what is needed no more."""
        first = np.cumsum(self.edge_count) - self.edge_count
        total = int(self.edge_count.sum())
        self.edge_source = np.zeros(total, np.uint64)
        self.edge_control = np.zeros(total, np.bool_)
        for rows, index, values, field in self.edges:
            place = first[rows] + index
            self.edge_source[place] = values
            if field == _CTRL:
                self.edge_control[place] = True
        target = np.repeat(np.arange(len(self.begin)), self.edge_count) + self.first
        self.edge_target = target.astype(np.uint32)
        self.edges = []
        del self.cursor, self.edge_count, self.windows, self.start


def _join(data: Buffer, metadata: bytes, blocks: list[_Block]) -> Columns:
    def column(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        parts = [getattr(block, name) for block in blocks]
        for block in blocks:
            delattr(block, name)
        return np.concatenate(parts) if parts else np.zeros(0, dtype)

    return Columns(
        data,
        metadata,
        column("begin", np.int64),
        column("end", np.int64),
        column("id", np.uint64),
        column("type", np.int32),
        column("start_micros", np.uint64),
        column("duration_micros", np.uint64),
        column("flags", np.uint8),
        column("edge_target", np.uint32),
        column("edge_source", np.uint64),
        column("edge_control", np.bool_),
    )
