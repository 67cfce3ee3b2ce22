"""The fields of many records, read side by side: each step takes the next field of all of them."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et import fields
from chakra_et.converters.et.first_record import TWICE, find_metadata
from chakra_et.converters.et.side_by_side import Ints, Wire
from chakra_et.converters.et.wire import BYTES, FIXED32, FIXED64, VARINT
from chakra_et.feeder import errors
from chakra_et.feeder.cutter import Cutter
from chakra_et.feeder.errors import FeederError
from chakra_et.feeder.frames import LONGEST_LENGTH
from chakra_et.feeder.known_attributes import (
    CPU_KNOWN,
    CPU_TRUE,
    DURATION,
    EDGE_KINDS,
    EDGE_KINDS_HEAD,
    NAME_TAG,
    ODD,
    START,
    TOLD,
    WORD,
    Told,
    take_times,
)

LONG_LIST: Final = 256
"""Bytes of dependencies from which on a list is taken apart by itself."""


class Block:
    """Some records, read side by side."""

    def __init__(self, buffer: npt.NDArray[np.uint8], cutter: Cutter, first: int) -> None:
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
        self.exact = {flag: np.zeros(count, np.uint64) for flag in (DURATION, START)}
        self.edge_count = np.zeros(count, np.int64)
        self.edges: list[tuple[Ints, Ints, npt.NDArray[np.uint64], int]] = []
        self.wire = Wire(buffer)

    def read(self) -> None:
        """Field after field, until every record is read."""
        twice = find_metadata(self.buffer, self.begin, self.end)
        if twice is not None:
            raise errors.malformed(int(self.start[twice]), TWICE)
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
            raise self._bad(rows, "a field without a number")
        if wire_type == VARINT:
            self._number(field, self._varints(rows), rows)
        elif wire_type == BYTES:
            self._bytes(field, rows)
        elif wire_type in (FIXED32, FIXED64):
            self._advance(rows, np.full(len(rows), 8 if wire_type == FIXED64 else 4, np.uint64))
        else:
            raise self._bad(rows, f"a field of wire type {wire_type}")

    def _number(self, field: int, values: npt.NDArray[np.uint64], rows: Ints) -> None:
        if field == fields.ID:
            self.id[rows] = values
        elif field == fields.TYPE:
            self.type[rows] = values.astype(np.uint32).astype(np.int32)
        elif field == fields.START_TIME_MICROS:
            self.start_micros[rows] = values
        elif field == fields.DURATION_MICROS:
            self.duration_micros[rows] = values
        elif field in (fields.CTRL_DEPS, fields.DATA_DEPS):
            self._add_edges(rows, values, field)

    def _add_edges(self, rows: Ints, values: npt.NDArray[np.uint64], field: int) -> None:
        """One more edge of each of `rows`."""
        self.edges.append((rows, self.edge_count[rows], values, field))
        self.edge_count[rows] += 1

    def _bytes(self, field: int, rows: Ints) -> None:
        lengths = self._varints(rows)
        begin = self.cursor[rows]
        self._advance(rows, lengths)
        if field in (fields.CTRL_DEPS, fields.DATA_DEPS):
            self._packed(field, rows, begin)
        elif field == fields.ATTR:
            self._note(rows, begin, lengths)

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
        values, widths = self.wire.varints(at)
        at += widths
        if (widths == 0).any() or (at > end).any():
            raise self._bad(rows, "a number is cut off or has more than ten bytes")
        self.cursor[rows] = at
        return values

    def _packed(self, field: int, rows: Ints, at: Ints) -> None:
        """The numbers in `rows`' stretches of bytes, which end at their cursors."""
        end = self.cursor[rows]
        long = np.flatnonzero(end - at > LONG_LIST)
        for place in long.tolist():
            self._long_list(field, int(rows[place]), int(at[place]), int(end[place]))
        short = np.flatnonzero((end - at <= LONG_LIST) & (end > at))
        rows, at, end = rows[short], at[short], end[short]
        while len(rows):
            values, widths = self.wire.varints(at)
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
        if len(ends) == 0 or ends[-1] != len(raw) - 1 or (ends - starts >= LONGEST_LENGTH).any():
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

    def _note(self, rows: Ints, begin: Ints, lengths: npt.NDArray[np.uint64]) -> None:
        """Take the attributes that columns hold."""
        long = np.flatnonzero(lengths >= WORD + 2)
        if len(long) == 0:
            return
        rows, begin, lengths = rows[long], begin[long], lengths[long]
        head = self.wire.words[begin]
        nameless = (head & np.uint64(0xFF)) != NAME_TAG  # the name comes later, if at all
        if nameless.any():
            self.flags[rows[nameless]] |= ODD | EDGE_KINDS
        kinds = head == EDGE_KINDS_HEAD
        if kinds.any():
            self.flags[rows[kinds]] |= EDGE_KINDS
        for told in TOLD:
            named = np.flatnonzero(head == told.head)
            if len(named):
                self._take(told, rows[named], begin[named], lengths[named].astype(np.int64))

    def _take(self, told: Told, rows: Ints, begin: Ints, lengths: Ints) -> None:
        """Take one attribute of each of `rows`, if it is written as usual and comes first."""
        usual = (lengths > told.size) & ((self.flags[rows] & told.flag) == 0)
        usual[usual] = self.wire.words[begin[usual] + (told.size - WORD)] == told.tail
        value, width = self.wire.varints(begin[usual] + told.size)
        whole = width == lengths[usual] - told.size
        usual[usual] = whole
        self.flags[rows[~usual]] |= ODD
        rows, value = rows[usual], value[whole]
        if told.flag == CPU_KNOWN:
            found = np.where(value != 0, CPU_KNOWN | CPU_TRUE, CPU_KNOWN)
            self.flags[rows] |= found.astype(np.uint8)
        else:
            self.flags[rows] |= told.flag
            self.exact[told.flag][rows] = value

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
            if field == fields.CTRL_DEPS:
                self.edge_control[place] = True
        self._finish_times()
        target = np.repeat(np.arange(len(self.begin)), self.edge_count) + self.first
        self.edge_target = target.astype(np.uint32)
        self.edges = []
        del self.cursor, self.edge_count, self.wire, self.start

    def _finish_times(self) -> None:
        self.start_ns, self.duration_ns = take_times(
            self.start_micros,
            self.exact[START],
            self.duration_micros,
            self.exact[DURATION],
            self.flags,
        )
        del self.duration_micros, self.start_micros, self.exact
