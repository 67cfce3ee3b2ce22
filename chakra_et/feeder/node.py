"""A node of a trace, read from its bytes when asked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from chakra_et.converters.et.attribute_codec import decode_attribute
from chakra_et.converters.et.columns_in_attributes import EDGE_KINDS, EXACT_DURATION, EXACT_START
from chakra_et.converters.et.edge_kinds import parse_kinds
from chakra_et.converters.et.io_codec import decode_io
from chakra_et.converters.et.wire import WireError
from chakra_et.definitions import Kind, NodeAttributes, NodeType
from chakra_et.feeder import errors
from chakra_et.feeder.known_attributes import NEAR_NS
from chakra_et.feeder.record import Record
from chakra_et.model import AttributeKey, AttributeValue, EdgeKind, Node, NodeIO
from chakra_et.model.attribute_values import INTEGER_KINDS


class _Types(dict[int, NodeType | int]):
    """Types by number; a number that the schema does not name stays a number."""

    def __missing__(self, number: int) -> int:
        return number


TYPES: Final = _Types({int(kind): kind for kind in NodeType})
_INTEGERS: Final = INTEGER_KINDS | {Kind.BOOL}
_REALS: Final = INTEGER_KINDS | {Kind.DOUBLE, Kind.FLOAT}
_EXACT: Final = frozenset({Kind.INT64})
_TEXTS: Final = frozenset({Kind.STRING})


class FeederNode(NodeAttributes):
    """A node as a feeder hands it out: typed fields, and the registered attributes as properties.

    An attribute that the trace does not carry is None, which is not the same as 0.
    """

    __slots__ = ()

    _record: Record | None

    def __repr__(self) -> str:
        return f"<FeederNode {self.id} {self.type!s} {self.name!r} duration_ns={self.duration_ns}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeederNode):
            return NotImplemented
        return self.message == other.message

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    @abstractmethod
    def message(self) -> bytes:
        """The node as the file has it."""

    @property
    def id(self) -> int:
        """The node's id, unique within its trace."""
        return self._read().id

    def _read(self) -> Record:
        if self._record is None:
            self._record = Record(self.message)  # type: ignore[misc]  # a slot of the subclass
        return self._record

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self._read().name.decode("utf-8", "surrogateescape")

    @property
    def type(self) -> NodeType | int:
        """What the node does; a plain int for a type that the schema does not name."""
        return TYPES[self._read().type]

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
        return exact if exact is not None and abs(exact - micros * 1000) <= NEAR_NS else None

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
            key, value = self._decode(data)
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
                key, value = self._decode(data)
                if key.name == name:
                    yield key.kind, value

    def _decode(self, data: bytes) -> tuple[AttributeKey, AttributeValue]:
        try:
            return decode_attribute(data)
        except WireError as error:
            raise errors.malformed_attribute(self.id, str(error)) from None

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


class MessageNode(FeederNode):
    """A node that is nothing but its bytes."""

    __slots__ = ("_message", "_record")

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._record = None

    @property
    def message(self) -> bytes:
        """The node as the file has it."""
        return self._message


class Messages(Protocol):
    """Where the bytes of nodes lie."""

    def message(self, row: int) -> bytes:
        """The bytes of a node."""

    def start_ns(self, row: int) -> int | None:
        """The start of a node, as columns tell it."""


class ScannedNode(FeederNode, msgspec.Struct, gc=False, eq=False):
    """A node of a trace that was read whole: the fields that every simulator reads are at hand.

    A struct, because one is made in a third of the time of another object with these fields.
    """

    _place: Messages
    _row: int
    id: int
    type: NodeType | int
    duration_ns: int
    is_cpu_op: bool | None
    _record: Record | None = None

    @property
    def message(self) -> bytes:
        """The node as the file has it."""
        return self._place.message(self._row)

    @property
    def start_ns(self) -> int | None:
        """When the node started, in ns of the trace's clock; None if the trace does not say."""
        return self._place.start_ns(self._row)


HandedNode: TypeAlias = FeederNode | Node
"""What a feeder hands out: of a file a `FeederNode`, of a `Trace` its own nodes."""
