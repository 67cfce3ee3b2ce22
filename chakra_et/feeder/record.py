"""The top level of a node's bytes."""

from __future__ import annotations

from chakra_et.converters.et import fields
from chakra_et.converters.et.wire import BYTES, VARINT, WireError, read_varint, skip


class Record:
    """The top level of a Node's bytes. Raises WireError for what is none."""

    __slots__ = (
        "attributes", "ctrl_deps", "data_deps", "duration_micros", "id", "inputs", "name",
        "outputs", "start_micros", "type",
    )  # fmt: skip

    def __init__(self, data: bytes) -> None:
        self.id = self.type = self.start_micros = self.duration_micros = 0
        self.name = b""
        self.inputs: bytes | None = None
        self.outputs: bytes | None = None
        self.ctrl_deps: list[int] = []
        self.data_deps: list[int] = []
        self.attributes: list[bytes] = []
        at, end = 0, len(data)
        while at < end:
            number, at = read_varint(data, at, end)
            field, wire_type = number >> 3, number & 7
            if not 0 < field < 1 << 29:
                raise WireError("a field without a number", at)
            if wire_type == VARINT:
                value, at = read_varint(data, at, end)
                self._number(field, value)
                continue
            behind = skip(data, at, end, wire_type)
            if wire_type == BYTES:
                length, _ = read_varint(data, at, end)
                self._bytes(field, data, behind - length, behind)
            at = behind

    def _number(self, field: int, value: int) -> None:
        if field == fields.ID:
            self.id = value
        elif field == fields.TYPE:
            self.type = (value & 0xFFFFFFFF) - ((value & 0x80000000) << 1)
        elif field == fields.DURATION_MICROS:
            self.duration_micros = value
        elif field == fields.START_TIME_MICROS:
            self.start_micros = value
        elif field == fields.DATA_DEPS:
            self.data_deps.append(value)
        elif field == fields.CTRL_DEPS:
            self.ctrl_deps.append(value)

    def _bytes(self, field: int, data: bytes, at: int, behind: int) -> None:
        if field == fields.ATTR:
            self.attributes.append(data[at:behind])
        elif field == fields.NAME:
            self.name = data[at:behind]
        elif field in (fields.DATA_DEPS, fields.CTRL_DEPS):
            deps = self.data_deps if field == fields.DATA_DEPS else self.ctrl_deps
            while at < behind:
                value, at = read_varint(data, at, behind)
                deps.append(value)
        elif field == fields.INPUTS:
            self.inputs = data[at:behind]
        elif field == fields.OUTPUTS:
            self.outputs = data[at:behind]
