"""A node of a trace, read from its bytes when asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import decode_attribute
from chakra_et.converters.et.decoder import decode_io
from chakra_et.converters.et.edge_kinds import parse_kinds
from chakra_et.converters.et.told_columns import EDGE_KINDS, EXACT_DURATION, EXACT_START
from chakra_et.converters.et.wire import BYTES, VARINT, WireError, read_varint, skip
from chakra_et.definitions import Kind, NodeAttributes, NodeType
from chakra_et.model import AttributeValue, EdgeKind, NodeIO
from chakra_et.model.attributes import INTEGER_KINDS

TYPES: Final[dict[int, NodeType | int]] = {int(kind): kind for kind in NodeType}
_INTEGERS: Final = INTEGER_KINDS | {Kind.BOOL}
_REALS: Final = INTEGER_KINDS | {Kind.DOUBLE, Kind.FLOAT}
_EXACT: Final = frozenset({Kind.INT64})
_TEXTS: Final = frozenset({Kind.STRING})
_NEAR: Final = 500
"""Microseconds are the exact time rounded, so the two are at most this many ns apart."""


class FeederNode(NodeAttributes):
    """A node as a feeder hands it out: typed fields, and the registered attributes as properties.

    An attribute that the trace does not carry is None, which is not the same as 0.
    """

    __slots__ = ("_message", "_record")

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._record: Record | None = None

    def __repr__(self) -> str:
        return f"<FeederNode {self.id} {self.type!s} {self.name!r} duration_ns={self.duration_ns}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeederNode):
            return NotImplemented
        return self.message == other.message

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def message(self) -> bytes:
        """The node as the file has it."""
        return self._message

    @property
    def id(self) -> int:
        """The node's id, unique within its trace."""
        return self._read().id

    def _read(self) -> Record:
        if self._record is None:
            self._record = Record(self.message)
        return self._record

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self._read().name.decode("utf-8", "surrogateescape")

    @property
    def type(self) -> NodeType | int:
        """What the node does; a plain int for a type that the schema does not name."""
        value = self._read().type
        return TYPES.get(value, value)

    @property
    def start_ns(self) -> int | None:
        """When the node started, in ns of the trace's clock; None if the trace does not say."""
        record = self._read()
        exact = self._near(EXACT_START.name, record.start_micros)
        return exact if exact is not None else record.start_micros * 1000 or None

    @property
    def duration_ns(self) -> int:
        """How long the node occupies its thread, stream or network, in ns."""
        record = self._read()
        exact = self._near(EXACT_DURATION.name, record.duration_micros)
        return record.duration_micros * 1000 if exact is None else exact

    def _near(self, name: str, micros: int) -> int | None:
        exact = self._value(name, _EXACT)
        return exact if exact is not None and abs(exact - micros * 1000) <= _NEAR else None

    @property
    def inputs(self) -> NodeIO | None:
        """Values, shapes and types of the inputs as text; None if the node has none."""
        data = self._read().inputs
        return None if data is None else decode_io(data)

    @property
    def outputs(self) -> NodeIO | None:
        """Values, shapes and types of the outputs as text; None if the node has none."""
        data = self._read().outputs
        return None if data is None else decode_io(data)

    @property
    def attributes(self) -> dict[str, AttributeValue]:
        """The node's attributes by name; of repeated ones the first."""
        found: dict[str, AttributeValue] = {}
        for data in self._read().attributes:
            key, value = decode_attribute(data)
            found.setdefault(key.name, value)
        return found

    @property
    def edges(self) -> list[tuple[int, EdgeKind, bool]]:
        """What the node waits for: id, kind, and whether the edge was inferred."""
        record = self._read()
        calls = [(parent, EdgeKind.CALL, False) for parent in record.ctrl_deps]
        text = self._text(EDGE_KINDS.name)
        told = None if text is None else parse_kinds(text, len(record.data_deps))
        if told is None:
            return calls + [(parent, EdgeKind.DATA, False) for parent in record.data_deps]
        triples = zip(record.data_deps, told[0], told[1], strict=True)
        return calls + [(parent, EdgeKind(kind), guess) for parent, kind, guess in triples]

    def _values(self, name: str) -> Iterator[tuple[Kind | None, AttributeValue]]:
        wanted = name.encode()
        for data in self._read().attributes:
            if wanted in data:
                key, value = decode_attribute(data)
                if key.name == name:
                    yield key.kind, value

    def _value(self, name: str, accepted: frozenset[Kind]) -> AttributeValue:
        for kind, value in self._values(name):
            if kind in accepted:
                return value
        return None

    def _integer(self, name: str) -> int | None:
        value = self._value(name, _INTEGERS)
        return None if value is None else int(value)

    def _boolean(self, name: str) -> bool | None:
        value = self._integer(name)
        return None if value is None else bool(value)

    def _real(self, name: str) -> float | None:
        value = self._value(name, _REALS)
        return None if value is None else float(value)

    def _text(self, name: str) -> str | None:
        value = self._value(name, _TEXTS)
        return None if value is None else str(value)

    def _items(self, name: str) -> list[Any] | None:
        for _, value in self._values(name):
            return list(value) if isinstance(value, tuple) else None
        return None

    def _integers(self, name: str) -> list[int] | None:
        return self._items(name)

    def _booleans(self, name: str) -> list[bool] | None:
        return self._items(name)

    def _texts(self, name: str) -> list[str] | None:
        return self._items(name)


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
                raise WireError("a field without number", at)
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
        elif field == fields.START_MICROS:
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
