"""Nodes read one by one, field by field: whatever a piece holds, and where it is damaged."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import decode_attribute
from chakra_et.converters.et.first_record import TWICE, is_metadata
from chakra_et.converters.et.io_codec import decode_io
from chakra_et.converters.et.node_columns import NodeColumns
from chakra_et.converters.et.side_by_side import PIECE
from chakra_et.converters.et.wire import (
    BYTES,
    VARINT,
    WireError,
    count_varints,
    read_record,
    read_tag,
    read_varint,
    skip,
    unpack,
    varint,
)
from chakra_et.model import AttributeColumn, AttributeKey, AttributeTable, AttributeValue
from chakra_et.pool import Pool

_NUMBERS: Final = (fields.ID, fields.TYPE, fields.START_TIME_MICROS, fields.DURATION_MICROS)
_DEPS: Final = (fields.CTRL_DEPS, fields.DATA_DEPS)
_TEXTS: Final = (fields.NAME, fields.INPUTS, fields.OUTPUTS)


class CarefulReader:
    """Collects nodes into columns."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at: list[int] = []
        self._numbers: dict[int, list[int]] = {field: [] for field in _NUMBERS}
        self._names: Pool[bytes] = Pool()
        self._texts: Pool[bytes] = Pool()
        self._codes: dict[int, list[int]] = {field: [] for field in _TEXTS}
        self._keys: Pool[AttributeKey] = Pool()
        self._columns: list[tuple[list[int], list[AttributeValue]]] = []  # rows and values
        self._layouts: Pool[tuple[int, ...]] = Pool({(): 0})
        self._layout: list[int] = []
        self._extra: dict[int, bytes] = {}
        self._deps = bytearray()  # of each node first ctrl_deps, then data_deps
        self._counts: dict[int, list[int]] = {field: [] for field in _DEPS}

    def __len__(self) -> int:
        return len(self._at)

    def read(self, base: int) -> int:
        """Take in the nodes that begin in the piece at `base`; where the next one begins.

        Raises WireError for a damaged one.
        """
        at, stop = base, min(base + PIECE, len(self._data))
        while at < stop:
            begin, at = read_record(self._data, at, "the next node")
            if is_metadata(self._data, begin, at):
                raise WireError(TWICE, begin)
            self._node(self._data, begin, at)
        return at

    def _node(self, data: bytes, at: int, end: int) -> None:
        """Take in the node in `data[at:end]`."""
        self._at.append(at)
        numbers = dict.fromkeys(_NUMBERS, 0)
        texts: dict[int, bytes] = {}
        deps = dict.fromkeys(_DEPS, b"")
        layout: list[int] = []
        extra = b""
        while at < end:
            start = at
            field, wire_type, at = read_tag(data, at, end)
            behind = skip(data, at, end, wire_type)
            if wire_type == BYTES:
                _, at = read_varint(data, at, end)
            if field in numbers and wire_type == VARINT:
                numbers[field], _ = read_varint(data, at, end)
            elif field in deps and wire_type == VARINT:
                deps[field] += varint(read_varint(data, at, end)[0])
            elif field in deps and wire_type == BYTES:
                deps[field] += _ids(data, at, behind)
            elif field in _TEXTS and wire_type == BYTES:
                texts[field] = data[at:behind]
            elif field == fields.ATTR and wire_type == BYTES:
                self._attribute(data, at, behind, layout)
            else:
                extra += data[start:behind]
            at = behind
        self._add(numbers, texts, deps, tuple(layout), extra)

    def _add(
        self,
        numbers: dict[int, int],
        texts: dict[int, bytes],
        deps: dict[int, bytes],
        layout: tuple[int, ...],
        extra: bytes,
    ) -> None:
        for field, number in numbers.items():
            self._numbers[field].append(number)
        self._codes[fields.NAME].append(self._names[texts.get(fields.NAME, b"")])
        for field in (fields.INPUTS, fields.OUTPUTS):
            self._codes[field].append(self._texts[texts[field]] if field in texts else -1)
        for field, ids in deps.items():
            self._deps += ids
            self._counts[field].append(count_varints(ids))
        if extra:
            self._extra[len(self._layout)] = extra
        self._layout.append(self._layouts[layout])

    def _attribute(self, data: bytes, at: int, behind: int, layout: list[int]) -> None:
        key, value = decode_attribute(data[at:behind], at)
        while (number := self._keys[key]) in layout:
            key = AttributeKey(key.name, key.kind, key.occurrence + 1, key.doc, key.extra)
        if number == len(self._columns):
            self._columns.append(([], []))
        rows, values = self._columns[number]
        rows.append(len(self._layout))
        values.append(value)
        layout.append(number)

    def finish(self, others_at: npt.NDArray[np.int64]) -> NodeColumns:
        """All nodes taken in; those of other pieces are at `others_at`.

        Raises WireError for a dependency that is no number.
        """
        columns = [
            AttributeColumn(key, np.array(rows, np.int64), values)
            for key, (rows, values) in zip(self._keys, self._columns, strict=True)
        ]
        layout = np.array(self._layout, np.int32)
        number = {field: np.array(found, np.uint64) for field, found in self._numbers.items()}
        code = {field: np.array(found, np.int32) for field, found in self._codes.items()}
        count = {field: np.array(found, np.int64) for field, found in self._counts.items()}
        return NodeColumns(
            at=np.array(self._at, np.int64),
            id=number[fields.ID],
            type=number[fields.TYPE].astype(np.uint32).view(np.int32),
            start_micros=number[fields.START_TIME_MICROS],
            duration_micros=number[fields.DURATION_MICROS],
            name=code[fields.NAME],
            names=list(self._names),
            inputs=code[fields.INPUTS],
            outputs=code[fields.OUTPUTS],
            texts=list(map(decode_io, self._texts)),
            attributes=AttributeTable(len(layout), columns, list(self._layouts), layout),
            extra=self._extra,
            ctrl_count=count[fields.CTRL_DEPS],
            data_count=count[fields.DATA_DEPS],
            sources=self._sources(others_at),
        )

    def _sources(self, others_at: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        try:
            return unpack(self._deps)
        except WireError as error:
            before = count_varints(bytes(self._deps[: error.at]))
            ends = np.cumsum(np.array(list(self._counts.values()), np.int64).sum(0))
            at = self._at[int(np.searchsorted(ends, before, "right"))]
            row = self._at.index(at) + int(np.searchsorted(others_at, at))
            raise WireError(f"node {row}: {error}", at) from None


def _ids(data: bytes, at: int, end: int) -> bytes:
    """Packed ids, as they stand."""
    if at < end and data[end - 1] >= 0x80:
        raise WireError("a number is cut off", at)
    return data[at:end]
