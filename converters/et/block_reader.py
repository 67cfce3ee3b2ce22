"""Nodes read a piece of the file at a time: each field of all of them becomes a column."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et import fields as numbers
from chakra_et.converters.et.attribute_columns import AttributeColumns, Mark, UnusualError
from chakra_et.converters.et.distinct import pooled
from chakra_et.converters.et.first_record import find_metadata
from chakra_et.converters.et.io_codec import decode_ios
from chakra_et.converters.et.node_columns import NodeColumns
from chakra_et.converters.et.side_by_side import (
    PIECE,
    Fields,
    Ints,
    Wire,
    add_starts,
    fields,
)
from chakra_et.converters.et.wire import (
    BYTES,
    LONGEST_VARINT,
    VARINT,
    WireError,
    ZerosError,
    read_varint,
    tag,
    unpack,
)
from chakra_et.model import AttributeTable, NodeIO
from chakra_et.pool import Pool

_ID: Final = tag(numbers.ID, VARINT)[0]
_TYPE: Final = tag(numbers.TYPE, VARINT)[0]
_START: Final = tag(numbers.START_TIME_MICROS, VARINT)[0]
_DURATION: Final = tag(numbers.DURATION_MICROS, VARINT)[0]
_NAME: Final = tag(numbers.NAME, BYTES)[0]
_INPUTS: Final = tag(numbers.INPUTS, BYTES)[0]
_OUTPUTS: Final = tag(numbers.OUTPUTS, BYTES)[0]
_ATTR: Final = tag(numbers.ATTR, BYTES)[0]
_DEPS: Final = {
    tag(number, wire_type)[0]: place
    for place, number in enumerate((numbers.CTRL_DEPS, numbers.DATA_DEPS))
    for wire_type in (VARINT, BYTES)
}
"""Tags of dependencies, packed or not, and their place among a node's sources."""
_KNOWN: Final = np.zeros(0x80, np.bool_)
_KNOWN[[_ID, _TYPE, _START, _DURATION, _NAME, _INPUTS, _OUTPUTS, _ATTR, *_DEPS]] = True
_ZEROS: Final = 1 << 16
"""So many empty records within a piece are no nodes; a file system that loses power leaves such."""
_LAYOUT: Final = np.dtype("<i4")


class BlockReader:
    """Collects the nodes of whole pieces into columns."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._wire = Wire(np.frombuffer(data, np.uint8))
        self._count = 0
        self._pieces = 0
        self._parts: dict[str, list[npt.NDArray[Any]]] = {}
        self._names: Pool[bytes] = Pool()
        self._texts: Pool[bytes] = Pool()
        self._ios: list[NodeIO] = []  # of the texts
        self._columns = AttributeColumns()
        self._layouts: Pool[bytes] = Pool({b"": 0})
        self._extra: dict[int, bytes] = {}

    def __len__(self) -> int:
        return self._count

    def read(self, base: int) -> int:
        """Take in the nodes that begin in the piece at `base`; where the next one begins.

        Raises UnusualError or WireError where the piece must be read with care, and ZerosError;
        then it has taken in nothing.
        """
        counts = len(self._names), len(self._texts), len(self._layouts)
        mark = self._columns.mark()
        try:
            behind = self._take(base)
        except (UnusualError, WireError):
            self._undo(*counts, mark)
            raise
        self._pieces += 1
        return behind

    def _undo(self, names: int, texts: int, layouts: int, mark: Mark) -> None:
        for parts in self._parts.values():
            del parts[self._pieces :]
        self._names.keep(names)
        self._texts.keep(texts)
        del self._ios[texts:]
        self._layouts.keep(layouts)
        self._columns.undo(mark)

    def _take(self, base: int) -> int:
        begin, end, behind = self._cut(base)
        empty = np.flatnonzero(begin == end)
        if len(empty) > _ZEROS:
            problem = f"zeros in place of nodes, {len(empty)} at least"
            raise ZerosError(problem, int(begin[empty[0]]) - 1)
        if find_metadata(self._wire.buffer, begin, end) is not None:
            raise UnusualError  # the reader that takes care names the place
        found = fields(self._wire, begin, end)
        known = _KNOWN[np.minimum(found.tag, 0x7F)] & (found.tag < 0x80)
        if (known & (self._wire.buffer[found.start] >= 0x80)).any():
            raise UnusualError  # a tag with more bytes than it needs
        self._keep("at", begin)
        self._numbers(found, len(begin))
        self._names_and_texts(found, len(begin))
        self._dependencies(found, len(begin))
        self._attributes(found, len(begin))
        self._unknown(found.of(np.flatnonzero(~known)))
        self._count += len(begin)
        return behind

    def _cut(self, base: int) -> tuple[Ints, Ints, int]:
        """Begin and end of each payload, and where the next record begins."""
        data = self._data

        def long(at: int) -> int:
            length, begin = read_varint(data, base + at, len(data))
            return begin + length - base

        starts: list[int] = []
        piece = data[base : base + PIECE + LONGEST_VARINT]
        behind = base + add_starts(starts, piece, min(PIECE, len(data) - base), long)
        if behind > len(data):
            raise UnusualError
        start = np.array(starts, np.int64) + base
        return start + self._wire.varints(start)[1], np.append(start, behind)[1:], behind

    def _keep(self, column: str, values: npt.NDArray[Any]) -> None:
        self._parts.setdefault(column, []).append(values)

    def _numbers(self, found: Fields, count: int) -> None:
        columns = {"id": _ID, "type": _TYPE, "start_micros": _START, "duration_micros": _DURATION}
        for column, mark in columns.items():
            values = np.zeros(count, np.uint64)
            places = found.tag == mark
            values[found.row[places]] = found.number[places]  # the last one counts
            if column == "type":
                self._keep(column, values.astype(np.uint32).view(np.int32))
            else:
                self._keep(column, values)

    def _names_and_texts(self, found: Fields, count: int) -> None:
        self._coded("name", found, _NAME, self._names, np.full(count, self._names[b""], np.int32))
        for column, mark in (("inputs", _INPUTS), ("outputs", _OUTPUTS)):
            before = len(self._texts)
            none = np.full(count, -1, np.int32)
            part, code = self._coded(column, found, mark, self._texts, none)
            codes, first = np.unique(code, return_index=True)
            new = part.of(first[codes >= before])
            self._ios += decode_ios(self._wire, self._data, new.at, new.behind)

    def _coded(
        self,
        column: str,
        found: Fields,
        mark: int,
        pool: Pool[bytes],
        codes: npt.NDArray[np.int32],
    ) -> tuple[Fields, npt.NDArray[np.int32]]:
        """Put the contents of a field into `pool`; where they stand and what their codes are.

        `codes` are those of nodes without the field.
        """
        part = found.of(np.flatnonzero(found.tag == mark))
        code = pooled(pool, self._wire, self._data, part.at, part.behind)
        codes[part.row] = code
        self._keep(column, codes)
        return part, code

    def _dependencies(self, found: Fields, count: int) -> None:
        buffer = self._wire.buffer
        part = found.of(np.flatnonzero(np.isin(found.tag, list(_DEPS))))
        part = part.of(np.flatnonzero(part.at < part.behind))
        if (buffer[part.behind - 1] >= 0x80).any():
            raise UnusualError
        kind = part.tag >> 3 == numbers.DATA_DEPS
        node_and_kind = part.row << 1 | kind
        order = np.argsort(node_and_kind, kind="stable")
        at, length = part.at[order], (part.behind - part.at)[order]
        ends = np.cumsum(length)
        raw = buffer[
            np.repeat(at - ends + length, length) + np.arange(ends[-1] if len(ends) else 0)
        ]
        before = np.zeros(len(raw) + 1, np.int64)
        np.cumsum(raw < 0x80, out=before[1:])
        counts = np.zeros(2 * count, np.int64)
        np.add.at(counts, node_and_kind[order], before[ends] - before[ends - length])
        self._keep("sources", unpack(raw.tobytes()))
        self._keep("ctrl_count", counts[::2])
        self._keep("data_count", counts[1::2])

    def _attributes(self, found: Fields, count: int) -> None:
        part = found.of(np.flatnonzero(found.tag == _ATTR))
        part = part.of(np.argsort(part.row, kind="stable"))
        row = part.row + self._count
        column = self._columns.take(self._wire, self._data, row, part.at, part.behind)
        raw = column.astype(_LAYOUT).tobytes()
        size = np.bincount(part.row, minlength=count) * _LAYOUT.itemsize
        end = np.cumsum(size)
        wire = Wire(np.frombuffer(raw, np.uint8))
        before = len(self._layouts)
        self._keep("layout", pooled(self._layouts, wire, raw, end - size, end))
        for new in islice(self._layouts, before, None):
            numbers = np.frombuffer(new, _LAYOUT).tolist()
            if len(set(numbers)) < len(numbers):
                raise UnusualError

    def _unknown(self, part: Fields) -> None:
        places = zip(part.row.tolist(), part.start.tolist(), part.behind.tolist(), strict=True)
        for row, start, behind in places:
            node = row + self._count
            self._extra[node] = self._extra.get(node, b"") + self._data[start:behind]

    def finish(self) -> NodeColumns:
        """All nodes taken in."""
        layouts = [tuple(np.frombuffer(raw, _LAYOUT).tolist()) for raw in self._layouts]
        columns = {name: np.concatenate(self._parts.pop(name)) for name in list(self._parts)}
        layout = columns.pop("layout")
        return NodeColumns(
            **columns,
            names=list(self._names),
            texts=self._ios,
            attributes=AttributeTable(self._count, self._columns.finish(), layouts, layout),
            extra=self._extra,
        )
