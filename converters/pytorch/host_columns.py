"""Columns of the nodes of a host trace, which pieces of a file join."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from chakra_et.codes import recoded
from chakra_et.columns import UNTIMED, Rows
from chakra_et.converters.pytorch.compiled import HostNodes, HostPiece
from chakra_et.converters.pytorch.distinct_io import RawNode, RawPiece
from chakra_et.converters.pytorch.layouts import FlatNode, HostAttr, HostIO, NestedNode
from chakra_et.converters.pytorch.meaning import Texts
from chakra_et.converters.times import time_or_none
from chakra_et.growing import Growing
from chakra_et.io.repairs import QUOTED, Repairs
from chakra_et.narrow import is_many
from chakra_et.pool import Pool
from chakra_et.recording import HostAttribute, HostTrace
from chakra_et.recording.host_trace import COLUMNS, NO_CALLER
from chakra_et.recording.packed_texts import OperandTexts, PackedPool, PackedTexts
from chakra_et.shown import several

KNOWN_SCHEMAS: Final = ("1.0.0", "1.0.1", "1.0.2", "1.0.3", "1.0.4", "1.1.0", "1.1.1")

N = TypeVar("N", FlatNode, NestedNode)
V = TypeVar("V")

_ID_LIMIT: Final = 1 << 64
_RANGES: Final = {"uint64": (0, 1 << 64), "int64": (-1 << 63, 1 << 63)}
_DEFAULTS: Final[dict[str, Any]] = {
    "rf_id": 0,
    "fw_parent": 0,
    "seq_id": -1,
    "scope": 0,
    "tid": 0,
    "fw_tid": 0,
    "op_schema": "",
}
"""Attributes that every node has, in every layout, and their values where one has not."""
_THREADS: Final = {"tid": "thread", "fw_tid": "fw_thread"}
_STRIDES: Final = {"inputs": "input_strides", "outputs": "output_strides"}
_DURATION: Final = attrgetter("dur")
_BORDER: Final = b"\0"
"""Stands between texts that are kept as one while reading; no JSON text holds it."""


def _unsigned(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < _ID_LIMIT else None


def _alike(
    lists: list[list[HostAttr]],
) -> Iterator[tuple[tuple[str, ...], list[int], list[HostAttr]]]:
    """Groups of nodes that have the same attribute names in the same order.

    For each the names, the places of its nodes, and their attributes one after the other. Most
    nodes are like the first one, so these are compared all at once.
    """
    width = len(lists[0]) if lists else 0
    places = [place for place, attrs in enumerate(lists) if len(attrs) == width]
    flat = list(chain.from_iterable([lists[place] for place in places]))
    names = [attr.name for attr in flat]
    others: Iterable[int] = range(len(lists))
    if names == names[:width] * len(places):
        yield tuple(names[:width]), places, flat
        others = sorted(set(others).difference(places)) if len(places) < len(lists) else ()
    groups: dict[tuple[str, ...], list[int]] = {}
    for place in others:
        groups.setdefault(tuple([attr.name for attr in lists[place]]), []).append(place)
    for signature, places in groups.items():
        yield signature, places, list(chain.from_iterable([lists[place] for place in places]))


def _joined(io: HostIO) -> bytes:
    return _BORDER.join((io.values, io.shapes, io.types, io.strides))


def codes_of(pool: Pool[V], values: Iterable[V]) -> npt.NDArray[np.int32]:
    """The codes of values in a pool, which new ones join."""
    return np.array(list(map(pool.__getitem__, values)), np.int32)


class _Columns:
    """Host nodes as they come in, in arrays that grow.

    Nodes come in pieces, so each step works on one field of all of them.
    """

    def __init__(self, repairs: Repairs) -> None:
        self.repairs = repairs
        self.count = 0
        self.columns = Growing()
        self.names: Pool[str] = Pool()
        self.op_schemas: Pool[str] = Pool()
        self.texts: Pool[OperandTexts] = Pool()
        self.packed: PackedPool | None = None
        self.strides: Pool[bytes] = Pool({b"": 0})
        self.shared: dict[bytes, bytes] = {}
        self.attributes: dict[str, HostAttribute] = {}
        self.untimed = 0

    def _put_ids(self, ids: list[int], parents: list[int]) -> None:
        if parents and (min(parents) < 0 or max(parents) >= _ID_LIMIT):
            wrong = sum(not 0 <= parent < _ID_LIMIT for parent in parents)
            self.repairs.mend("caller that is not an unsigned 64-bit integer", None, wrong)
            parents = [parent if 0 <= parent < _ID_LIMIT else NO_CALLER for parent in parents]
        self.columns.put("id", np.array(ids, np.uint64))
        self.columns.put("parent", np.array(parents, np.uint64))
        self.count += len(ids)

    def _put_codes(self, name: str, pool: Pool[V], values: Iterable[V]) -> None:
        self.columns.put(name, codes_of(pool, values))

    def _put_distinct(
        self, name: str, pool: Pool[V], distinct: list[V], codes: npt.NDArray[np.int32]
    ) -> None:
        """Put codes into a list of distinct values, as codes into the pool."""
        self.columns.put(name, recoded(codes, codes_of(pool, distinct)))

    def _put_operands(
        self,
        texts: list[OperandTexts],
        strides: list[bytes],
        codes: dict[str, npt.NDArray[np.int32]],
    ) -> None:
        """Put inputs and outputs, as codes into lists of distinct ones and their strides."""
        text = np.array(self.texts.codes(texts), np.int32)
        stride = codes_of(self.strides, strides)
        for side, column in codes.items():
            self.columns.put(side, text[column])
            self.columns.put(_STRIDES[side], stride[column])

    def _put_joined(self, **sides: Iterable[bytes]) -> None:
        """Put inputs and outputs: values, shapes, types and strides of each, parted by borders."""
        pool: Pool[bytes] = Pool()
        codes = {side: codes_of(pool, joined) for side, joined in sides.items()}
        self._put_texts([text.split(_BORDER) for text in pool], codes)

    def _put_texts(
        self, parts: Iterable[Iterable[bytes]], codes: dict[str, npt.NDArray[np.int32]]
    ) -> None:
        """Put inputs and outputs, as codes into distinct ones: values, shapes, types, strides."""
        share = self.shared.setdefault  # Shapes and types are few.
        texts, strides = [], []
        for values, shapes, types, stride in parts:
            texts.append((values, share(shapes, shapes), share(types, types)))
            strides.append(stride)
        self._put_operands(texts, strides, codes)

    def _with_good_ids(self, nodes: list[N]) -> list[N]:
        ids = [node.id for node in nodes]
        if ids and (min(ids) < 0 or max(ids) >= _ID_LIMIT):
            good = [node for node in nodes if 0 <= node.id < _ID_LIMIT]
            wrong = len(nodes) - len(good)
            self.repairs.leave_out("id that is not an unsigned 64-bit integer", None, wrong)
            return good
        return nodes

    def _put_times(self, nodes: Sequence[FlatNode | NestedNode | RawNode]) -> None:
        """Times that a tool has added: both 0, or no number, stand for none."""
        start = np.full(len(nodes), UNTIMED, np.int64)
        duration = np.zeros(len(nodes), np.int64)
        if any(map(_DURATION, nodes)):
            for row, node in enumerate(nodes):
                begin, lasts = time_or_none(bytes(node.ts)), time_or_none(bytes(node.dur))
                if begin is not None and lasts is not None and (begin or lasts):
                    start[row], duration[row] = begin, lasts
                elif begin is None and lasts:
                    self.untimed += 1
        self.columns.put("start_ns", start)
        self.columns.put("duration_ns", duration)

    def _put_core(self, name: str, values: list[Any]) -> None:
        """A column of one of the attributes that every node has."""
        if name == "op_schema":
            if set(map(type, values)) - {str}:
                wrong = sum(type(text) is not str for text in values)
                self.repairs.mend("op_schema that is not a string", None, wrong)
                values = [text if type(text) is str else "" for text in values]
            self._put_codes(name, self.op_schemas, values)
        else:
            self.columns.put(_THREADS.get(name, name), self._integers(name, values))

    def _integers(self, name: str, values: list[Any]) -> Rows:
        """Numbers as they are; whatever else stands for one becomes one, and is counted."""
        if set(map(type, values)) <= {int}:
            try:
                return np.array(values, np.int64)
            except OverflowError:
                pass
        return np.array([self._integer(name, value) for value in values], np.int64)

    def _integer(self, name: str, value: Any) -> int:
        if isinstance(value, int) and abs(value) < 1 << 63:
            return value
        try:
            number = int(value) if isinstance(value, (str, float)) else None
        except (ValueError, OverflowError):
            number = None
        if number is None or abs(number) >= 1 << 63:
            self.repairs.mend(f"{name} that is not a 64-bit integer", None)
            return int(_DEFAULTS[name])
        self.repairs.mend(QUOTED, None)
        return number

    def finish(
        self, path: Path, metadata: dict[str, Any], unknown: list[str], repairs: Repairs
    ) -> HostTrace:
        schema = str(metadata.pop("schema", ""))
        pid = metadata.pop("pid", None)
        warnings = [f"unknown host node key {key!r} was left out" for key in unknown]
        if schema.split("-")[0] not in KNOWN_SCHEMAS:
            warnings.append(f"unknown host schema {schema!r}; it was read by the keys present")
        if self.untimed:
            warnings.append(
                f"{several(self.untimed, 'duration of a node has', 'durations of nodes have')} "
                f"no start and {'was' if self.untimed == 1 else 'were'} left out"
            )
        for name, attribute in list(self.attributes.items()):
            self._check_attribute(name, attribute)
        columns: dict[str, Any] = {
            name: self.columns.column_for(HostTrace, name) for name in COLUMNS
        }
        self.columns = Growing()
        return HostTrace(
            path=path,
            schema=schema,
            time=None if (time := metadata.pop("time", None)) is None else str(time),
            start_ts=_unsigned(metadata.pop("start_ts", None)),
            finish_ts=_unsigned(metadata.pop("finish_ts", None)),
            kind=np.zeros(self.count, np.uint8),
            dialect=Texts(),
            pid=pid if isinstance(pid, int) and 0 <= pid < 1 << 63 else None,
            metadata=metadata,
            names=self.names,
            op_schemas=self.op_schemas,
            texts=self._operands(),
            strides=self.strides,
            attributes=self.attributes,
            warnings=warnings,
            repairs=repairs,
            **columns,
        )

    def _operands(self) -> Pool[OperandTexts] | PackedPool:
        """Inputs and outputs; those of a long recording are packed, here if not by the kernel."""
        if self.packed is None and is_many(len(self.texts)):
            self.packed, self.texts = PackedPool(PackedTexts.of(self.texts)), Pool()
        return self.texts if self.packed is None else self.packed

    def _check_attribute(self, name: str, attribute: HostAttribute) -> None:
        """Leave out values that are not of the declared type, and second ones of a node."""
        if len(set(attribute.rows)) < len(attribute.rows):
            first = dict(reversed(list(zip(attribute.rows, attribute.values, strict=True))))
            self.repairs.mend(
                f"{name} that a node has twice", None, len(attribute.rows) - len(first)
            )
            attribute.rows, attribute.values = list(first), list(first.values())
        low, high = _RANGES.get(attribute.declared_type, (0, 0))
        if not high or all(type(v) is int and low <= v < high for v in attribute.values):
            return
        good = []
        for row, value in zip(attribute.rows, attribute.values, strict=True):
            try:
                whole = int(value) if isinstance(value, (int, str)) else high
            except ValueError:
                whole = high
            if low <= whole < high:
                good.append((row, whole))
        wrong = len(attribute.values) - len(good)
        self.repairs.mend(f"{name} of another type than declared", None, wrong or 1)
        attribute.rows, attribute.values = [row for row, _ in good], [value for _, value in good]
        if not good:
            del self.attributes[name]


class NestedColumns(_Columns):
    """Columns of nodes of layouts B to E."""

    def __init__(self, repairs: Repairs) -> None:
        super().__init__(repairs)
        self._held: HostPiece | None = None

    def add(self, piece: list[NestedNode] | HostPiece, /) -> None:
        """Take in some nodes; what the kernel has read it holds until others come, or the end."""
        if isinstance(piece, HostPiece):
            self._held = piece
            return
        self._take_held()
        nodes = self._with_good_ids(piece)
        self._add_nodes(nodes)
        self._put_joined(
            inputs=[_joined(node.inputs) for node in nodes],
            outputs=[_joined(node.outputs) for node in nodes],
        )

    def _add_nodes(self, nodes: list[NestedNode] | list[RawNode]) -> None:
        """Take in nodes, but for their inputs and outputs."""
        self._add_attributes([node.attrs for node in nodes])
        self._put_ids([node.id for node in nodes], [node.ctrl_deps for node in nodes])
        self._put_codes("name", self.names, [node.name for node in nodes])
        self._put_times(nodes)

    def finish(
        self, path: Path, metadata: dict[str, Any], unknown: list[str], repairs: Repairs
    ) -> HostTrace:
        if self._held is not None and self.count == 0:
            # Nothing but this: the texts stay as they are.
            nodes = self._held.take()
            self._add_columns(nodes, np.arange(len(nodes.texts), dtype=np.int32))
            self._held, self.packed = None, PackedPool(nodes.texts)
        self._take_held()
        return super().finish(path, metadata, unknown, repairs)

    def _take_held(self) -> None:
        """Take in the nodes that the kernel holds."""
        if self._held is not None:
            nodes, self._held = self._held.take(), None
            self._add_columns(nodes, codes_of(self.texts, nodes.texts))

    def _add_columns(self, nodes: HostNodes, text: npt.NDArray[np.int32]) -> None:
        """Take in nodes that are columns already; `text` has the codes of their texts here."""
        columns = nodes.columns
        for name, declared, places, values in nodes.told:
            attribute = self.attributes.setdefault(name, HostAttribute(declared))
            attribute.rows += (places + self.count).tolist()
            attribute.values += values
        for name in ("id", "parent"):
            self.columns.put(name, columns[name])
        for name in _DEFAULTS:
            if name != "op_schema":
                self.columns.put(_THREADS.get(name, name), columns[name])
        self._put_distinct("name", self.names, nodes.names, columns["name"])
        self._put_distinct("op_schema", self.op_schemas, nodes.op_schemas, columns["op_schema"])
        for side, strides in _STRIDES.items():
            self.columns.put(side, recoded(columns[side], text))
            self._put_distinct(strides, self.strides, nodes.strides, columns[strides])
        self.columns.put("start_ns", np.full(len(nodes), UNTIMED, np.int64))
        self.columns.put("duration_ns", np.zeros(len(nodes), np.int64))
        self.count += len(nodes)

    def _add_attributes(self, lists: list[list[HostAttr]]) -> None:
        """Turn each node's list of named values into columns: those that all have, and others."""
        core: dict[str, list[Any]] = {}
        for names, places, flat in _alike(lists):
            values = [attr.value for attr in flat]
            for k, name in enumerate(names):
                column = values[k :: len(names)]
                if name not in _DEFAULTS:
                    self._add_attribute(name, flat[k].type, places, column)
                elif len(places) == len(lists):
                    core[name] = column
                else:
                    whole = core.setdefault(name, [_DEFAULTS[name]] * len(lists))
                    for place, value in zip(places, column, strict=True):
                        whole[place] = value
        for name, default in _DEFAULTS.items():
            self._put_core(name, core.get(name) or [default] * len(lists))

    def _add_attribute(
        self, name: str, declared: str, places: list[int], column: list[Any]
    ) -> None:
        # PyTorch writes an empty text where there is nothing to say.
        if column.count("") == len(column):
            return
        said = [k for k, value in enumerate(column) if value != ""]
        attribute = self.attributes.setdefault(name, HostAttribute(declared))
        attribute.rows += [self.count + places[k] for k in said]
        attribute.values += [column[k] for k in said]


class WholeColumns(NestedColumns):
    """The same of a whole file, of which distinct inputs and outputs are decoded once."""

    def add(self, piece: list[NestedNode] | RawPiece | HostPiece, /) -> None:
        """Take in some nodes."""
        if not isinstance(piece, RawPiece):
            super().add(piece)
            return
        self._add_nodes(piece.nodes)
        parts = [(bytes(io.values), bytes(io.shapes), bytes(io.types), bytes(io.strides))
                 for io in piece.ios]  # fmt: skip
        self._put_texts(parts, piece.codes)


class FlatColumns(_Columns):
    """Columns of nodes of layout A."""

    def add(self, piece: list[FlatNode], /) -> None:
        """Take in some nodes."""
        nodes = self._with_good_ids(piece)
        self._put_ids([node.id for node in nodes], [node.parent for node in nodes])
        self._put_codes("name", self.names, [node.name for node in nodes])
        for name in _DEFAULTS:
            self._put_core(name, list(map(attrgetter(name), nodes)))
        inputs = [(node.inputs, node.input_shapes, node.input_types, b"") for node in nodes]
        outputs = [(node.outputs, node.output_shapes, node.output_types, b"") for node in nodes]
        self._put_joined(inputs=map(_BORDER.join, inputs), outputs=map(_BORDER.join, outputs))
        self._put_times(nodes)
