"""The nodes of a trace: columns for algorithms, views for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from chakra_et.definitions import EdgeKind, Kind, NodeAttributes, NodeType
from chakra_et.model.attribute_values import INTEGER_KINDS, AttributeValue
from chakra_et.model.attributes import AttributeTable
from chakra_et.model.time_parts import keep_told, time_parts

if TYPE_CHECKING:
    from chakra_et.model.trace import Trace

UNKNOWN_NS: Final = int(np.iinfo(np.int64).min)
"""The start of a node whose start is not known."""


_DENSE: Final = 4
"""Up to so many numbers for each node, a column by id is worth its memory."""


class NodeIO(NamedTuple):
    """Inputs or outputs of a node, as text that is carried and not interpreted.

    In traces made from PyTorch each is a JSON list; older tools write Python's `str(list)`.
    `extra` holds the bytes of protobuf fields that this version does not know.
    """

    values: bytes = b""
    shapes: bytes = b""
    types: bytes = b""
    extra: bytes = b""


class Nodes(Sequence["Node"]):
    """The nodes of one trace in columns; row r of every column describes the same node.

    Columns: `id` uint64; `type` int32 (`NodeType` where known); `name_code` int32 into `names`;
    `start_ns` int64 (`UNKNOWN_NS` where not known); `duration_ns` int64; `input_code` and
    `output_code` int32 into `texts`, -1 where the node has none; `attributes`; `extra`, the bytes
    of unknown protobuf fields by row; `exact_start` and `exact_duration`, whether a file says the
    time in nanoseconds even where its microseconds are exact.
    """

    def __init__(
        self,
        *,
        id: npt.NDArray[np.uint64],
        type: npt.NDArray[np.int32],
        name_code: npt.NDArray[np.int32],
        names: list[str],
        start_ns: npt.NDArray[np.int64],
        duration_ns: npt.NDArray[np.int64],
        input_code: npt.NDArray[np.int32] | None = None,
        output_code: npt.NDArray[np.int32] | None = None,
        texts: Sequence[tuple[bytes, ...]] | None = None,
        attributes: AttributeTable | None = None,
        extra: dict[int, bytes] | None = None,
        exact_start: npt.NDArray[np.bool_] | None = None,
        exact_duration: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        count = len(id)
        self.id = np.asarray(id, np.uint64)
        self.type = np.asarray(type, np.int32)
        self.name_code = np.asarray(name_code, np.int32)
        self.names = names
        self.start_ns = np.asarray(start_ns, np.int64)
        self.duration_ns = np.asarray(duration_ns, np.int64)
        none = np.full(count, -1, np.int32)
        self.input_code = none if input_code is None else np.asarray(input_code, np.int32)
        self.output_code = none if output_code is None else np.asarray(output_code, np.int32)
        self.texts: Sequence[tuple[bytes, ...]] = [] if texts is None else texts
        self.attributes = AttributeTable(count) if attributes is None else attributes
        self.extra: dict[int, bytes] = {} if extra is None else extra
        no = np.zeros(count, np.bool_)
        self.exact_start = no if exact_start is None else exact_start
        self.exact_duration = no if exact_duration is None else exact_duration
        lengths = {
            len(column)
            for column in (
                self.id, self.type, self.name_code, self.start_ns, self.duration_ns,
                self.input_code, self.output_code, self.attributes,
                self.exact_start, self.exact_duration,
            )
        }  # fmt: skip
        if len(lengths) != 1:
            raise ValueError(f"node columns differ in length: {sorted(lengths)}")
        self._trace: Trace | None = None

    def __len__(self) -> int:
        return len(self.id)

    @overload
    def __getitem__(self, row: int | np.integer[Any]) -> Node: ...

    @overload
    def __getitem__(self, row: slice | list[int] | npt.NDArray[Any]) -> list[Node]: ...

    def __getitem__(
        self, row: int | np.integer[Any] | slice | list[int] | npt.NDArray[Any]
    ) -> Node | list[Node]:
        """The node of a row; for a slice, a mask or an array of rows a list of nodes."""
        if isinstance(row, (int, np.integer)):
            position = int(row) + len(self) if row < 0 else int(row)
            if not 0 <= position < len(self):
                raise IndexError(f"row {row} of {len(self)} nodes")
            return Node(self, position)
        return [Node(self, int(r)) for r in np.arange(len(self))[row]]

    def __iter__(self) -> Iterator[Node]:
        return (Node(self, row) for row in range(len(self)))

    def __repr__(self) -> str:
        kinds, counts = np.unique(self.type, return_counts=True)
        found = ", ".join(f"{c} {type_label(int(k))}" for k, c in zip(kinds, counts, strict=True))
        return f"<Nodes {len(self)}: {found}>"

    def by_id(self, node_id: int) -> Node:
        """The node with this id. Raises KeyError if there is none."""
        row = int(self.rows_of(np.array([node_id], np.uint64))[0])
        if row < 0:
            raise KeyError(f"no node with id {node_id}")
        return Node(self, row)

    @cached_property
    def _id_order(self) -> npt.NDArray[np.int64]:
        return np.argsort(self.id, kind="stable")

    @cached_property
    def _counted(self) -> bool:
        """Whether each id is the one before and 1, as converters and builders number nodes."""
        return bool((np.diff(self.id) == 1).all())

    def rows_of(self, ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """The row of each id, int64[len(ids)]; -1 for an id that no node has."""
        if len(self) == 0:
            return np.full(len(ids), -1, np.int64)
        if self._counted:
            # What is below the first id wraps around, far beyond the last.
            row = ids - self.id[0]
            known: npt.NDArray[np.int64] = row.astype(np.int64)
            known[row >= len(self)] = -1
            return known
        least, by_id = self._by_id
        if len(by_id):
            place = np.minimum(ids - least, np.uint64(len(by_id) - 1))
            found: npt.NDArray[np.int64] = by_id[place.astype(np.int64)]
            return found
        ordered = self.id[self._id_order]
        place = np.minimum(np.searchsorted(ordered, ids), len(ordered) - 1)
        return np.where(ordered[place] == ids, self._id_order[place], -1)

    @cached_property
    def _by_id(self) -> tuple[np.uint64, npt.NDArray[np.int64]]:
        """The least id and the row of each id from there on, -1 for none and behind the last; an
        empty column where ids lie far apart.
        """
        least = self.id.min()
        width = int(self.id.max() - least) + 2
        rows = np.full(width if width <= _DENSE * len(self) else 0, -1, np.int64)
        if len(rows):
            # Of several nodes of one id, the first.
            rows[(self.id - least)[::-1].astype(np.int64)] = np.arange(len(self))[::-1]
        return least, rows

    @cached_property
    def self_ns(self) -> npt.NDArray[np.int64]:
        """The time that each node owns, int64[number of nodes], also in the intervals of others.

        It is kept from the first look on, and made anew by `set_time_parts` alone.
        """
        return time_parts(self).by_owner(len(self))

    @property
    def name(self) -> npt.NDArray[np.object_]:
        """The name of every node, object[number of nodes]."""
        return np.array([*self.names, ""], object)[self.name_code]

    def where(self, **conditions: Any) -> list[Node]:
        """The nodes whose fields equal the given values: `nodes.where(type=NodeType.COMM_COLL)`.

        Fields are the columns `id`, `type`, `name`, `start_ns`, `duration_ns` and any attribute.
        A callable as a value is asked about each distinct value: `where(name=str.isupper)`.
        """
        mask = np.ones(len(self), np.bool_)
        for field, wanted in conditions.items():
            column = self.column(field)
            if callable(wanted):
                mask &= np.fromiter(map(wanted, column.tolist()), np.bool_, len(self))
            else:
                mask &= np.fromiter((v == wanted for v in column.tolist()), np.bool_, len(self))
        return [Node(self, int(row)) for row in np.flatnonzero(mask)]

    def column(self, field: str) -> npt.NDArray[Any]:
        """A column by name: `id`, `type`, `name`, `start_ns`, `duration_ns` or an attribute.

        Attributes come as object arrays with None where a node has none.
        Raises KeyError for a name that no node carries.
        """
        if field in ("id", "type", "name", "start_ns", "duration_ns"):
            column: npt.NDArray[Any] = getattr(self, field)
            return column
        if not self.attributes.named(field):
            raise KeyError(f"no node has an attribute {field!r}")
        return self.attributes.dense(field, None, object)

    def take(self, order: npt.NDArray[np.int64]) -> Nodes:
        """The nodes of the given rows, in that order; a row may be taken more than once."""
        places = enumerate(order.tolist()) if self.extra else ()
        return Nodes(
            id=self.id[order],
            type=self.type[order],
            name_code=self.name_code[order],
            names=self.names,
            start_ns=self.start_ns[order],
            duration_ns=self.duration_ns[order],
            input_code=self.input_code[order],
            output_code=self.output_code[order],
            texts=self.texts,
            attributes=self.attributes.take(order),
            extra={new: self.extra[old] for new, old in places if old in self.extra},
            exact_start=self.exact_start[order],
            exact_duration=self.exact_duration[order],
        )

    def copied(self) -> Nodes:
        """The same nodes, in columns of their own."""
        made = self.take(np.arange(len(self)))
        keep_told(self, made)
        return made

    def same(self, other: Nodes) -> bool:
        """Whether both hold the same nodes in the same order."""
        return (
            len(self) == len(other)
            and all(
                np.array_equal(getattr(self, field), getattr(other, field))
                for field in ("id", "type", "name", "start_ns", "duration_ns")
            )
            and all(
                self.io(code) == other.io(other_code)
                for mine, theirs in (
                    (self.input_code, other.input_code),
                    (self.output_code, other.output_code),
                )
                for code, other_code in zip(mine.tolist(), theirs.tolist(), strict=True)
            )
            and self.extra == other.extra
            and self.attributes.same(other.attributes)
        )

    def io(self, code: int) -> NodeIO | None:
        """The inputs or outputs behind a code; None for -1."""
        return None if code < 0 else NodeIO(*self.texts[code])


def type_label(value: int) -> str:
    """The name of a node type, or `type 42` for one that the schema does not name."""
    try:
        return NodeType(value).name
    except ValueError:
        return f"type {value}"


class Node(NodeAttributes):
    """One node of a trace, for people: a view of a row, with the attributes as properties."""

    __slots__ = ("_nodes", "row")

    def __init__(self, nodes: Nodes, row: int) -> None:
        self._nodes = nodes
        self.row = row

    def __repr__(self) -> str:
        start = "?" if self.start_ns is None else f"{self.start_ns}"
        return (
            f"<Node {self.id} {type_label(self.type)} {self.name!r} "
            f"start_ns={start} duration_ns={self.duration_ns}>"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        return self._nodes is other._nodes and self.row == other.row

    def __hash__(self) -> int:
        return hash((id(self._nodes), self.row))

    @property
    def id(self) -> int:
        """The node's id, unique within its trace."""
        return int(self._nodes.id[self.row])

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self._nodes.names[int(self._nodes.name_code[self.row])]

    @property
    def type(self) -> NodeType | int:
        """What the node does; a plain int for a type that the schema does not name."""
        value = int(self._nodes.type[self.row])
        return NodeType(value) if value in NodeType._value2member_map_ else value

    @property
    def start_ns(self) -> int | None:
        """When the node started, in ns of the trace's clock; None if that is not known."""
        value = int(self._nodes.start_ns[self.row])
        return None if value == UNKNOWN_NS else value

    @property
    def duration_ns(self) -> int:
        """How long the node occupies its thread, stream or network, in ns."""
        return int(self._nodes.duration_ns[self.row])

    @property
    def self_ns(self) -> int:
        """The time in ns that is the node's own, wherever on its thread it lies."""
        return int(self._nodes.self_ns[self.row])

    @property
    def inputs(self) -> NodeIO | None:
        """Values, shapes and types of the inputs as text; None if the node has none."""
        return self._nodes.io(int(self._nodes.input_code[self.row]))

    @property
    def outputs(self) -> NodeIO | None:
        """Values, shapes and types of the outputs as text; None if the node has none."""
        return self._nodes.io(int(self._nodes.output_code[self.row]))

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """The node's attributes by name; of repeated ones the first."""
        found: dict[str, AttributeValue] = {}
        for key, value in self._nodes.attributes.at(self.row):
            found.setdefault(key.name, value)
        return found

    @property
    def edges(self) -> list[tuple[int, EdgeKind, bool]]:
        """What the node waits for: source id, kind, and whether the edge was inferred."""
        trace = self._nodes._trace
        return [] if trace is None else trace.edges.into(self.row)

    @property
    def ctrl_deps(self) -> list[int]:
        """Ids of the callers, as the file's field of that name has them."""
        return [source for source, kind, _ in self.edges if kind is EdgeKind.CALL]

    @property
    def data_deps(self) -> list[int]:
        """Ids of all other nodes that this one waits for, as the file's field has them."""
        return [source for source, kind, _ in self.edges if kind is not EdgeKind.CALL]

    def _value(self, name: str, accepted: frozenset[Kind]) -> AttributeValue:
        for key, value in self._nodes.attributes.at(self.row):
            if key.name == name and key.kind in accepted:
                return value
        return None

    def _integer(self, name: str) -> int | None:
        value = self._value(name, INTEGER_KINDS | {Kind.BOOL})
        return None if value is None else int(value)

    def _boolean(self, name: str) -> bool | None:
        value = self._integer(name)
        return None if value is None else bool(value)

    def _real(self, name: str) -> float | None:
        value = self._value(name, INTEGER_KINDS | {Kind.DOUBLE, Kind.FLOAT})
        return None if value is None else float(value)

    def _text(self, name: str) -> str | None:
        value = self._value(name, frozenset({Kind.STRING}))
        return None if value is None else str(value)

    def _items(self, name: str) -> list[Any] | None:
        value = self._nodes.attributes.get(self.row, name)
        return list(value) if isinstance(value, tuple) else None

    def _integers(self, name: str) -> list[int] | None:
        return self._items(name)

    def _booleans(self, name: str) -> list[bool] | None:
        return self._items(name)

    def _texts(self, name: str) -> list[str] | None:
        return self._items(name)
