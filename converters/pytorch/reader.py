"""Reading host traces of every layout into columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.converters.pytorch.host_trace import NO_CALLER, HostAttribute, HostTrace
from chakra_et.converters.pytorch.layouts import FlatNode, HostAttr, HostIO, NestedNode
from chakra_et.converters.pytorch.unrecorded import add_unrecorded, drop_repeated_documents
from chakra_et.io.memory import collection_paused
from chakra_et.io.mended_array import QUOTED
from chakra_et.io.records import Layout, Records, missing_array, read_records
from chakra_et.io.repairs import Repairs
from chakra_et.io.source import head
from chakra_et.pool import Pool

KNOWN_SCHEMAS: Final = ("1.0.0", "1.0.1", "1.0.2", "1.0.3", "1.0.4", "1.1.0", "1.1.1")

N = TypeVar("N", FlatNode, NestedNode)

HEAD_BYTES: Final = 1 << 18
"""How much of a file tells the layout of its nodes."""
_ID_LIMIT: Final = 1 << 64
_RANGES: Final = {"uint64": (0, 1 << 64), "int64": (-1 << 63, 1 << 63)}
_CORE: Final = {
    "rf_id": 0,
    "fw_parent": 0,
    "seq_id": -1,
    "scope": 0,
    "tid": 0,
    "fw_tid": 0,
}
_NESTED: Final = Layout(NestedNode, "nodes", ("id",), "schema")
_FLAT: Final = Layout(FlatNode, "nodes", ("name",), "schema")
_LAYOUT = re.compile(rb'"nodes"\s*:\s*\[.*?"(ctrl_deps|parent)"\s*:', re.DOTALL)


def read_host(path: str | Path, *, strict: bool = False) -> HostTrace:
    """Read a PyTorch host trace of any schema version, plain, compressed or packed.

    Damage is mended where that is possible, and counted in `repairs`; what cannot be mended is
    left out and counted. Callers that the file does not hold get a node of their own.
    Raises FormatError, naming file and place, when the file is no host trace, and for any damage
    if `strict`.
    """
    start = head(path, HEAD_BYTES)
    nested = is_nested(start)
    read: Records[NestedColumns] | Records[FlatColumns]
    with collection_paused():
        if nested:
            read = read_records(path, _NESTED, NestedColumns, strict=strict)
        else:
            read = read_records(path, _FLAT, FlatColumns, strict=strict)
    if not read.found:
        raise missing_array(path, _NESTED, "Is this a PyTorch host trace?")
    unknown = _unknown_keys(start, nested)
    host = read.columns.finish(Path(path), read.metadata, unknown, read.repairs)
    return add_unrecorded(drop_repeated_documents(host, read.starts))


def is_nested(start: bytes) -> bool:
    """Whether nodes have layout B or a later one, by how the file starts."""
    match = _LAYOUT.search(start)
    return match is None or match[1] == b"ctrl_deps"


def _unknown_keys(start: bytes, nested: bool) -> list[str]:
    """Keys of the first node that no layout has: they would be lost, so they are named."""
    match = re.search(rb'"nodes"\s*:\s*\[\s*', start)
    if match is None:
        return []
    try:
        first, _ = json.JSONDecoder(strict=False).raw_decode(start[match.end() :].decode("latin-1"))
    except (json.JSONDecodeError, RecursionError):
        return []
    known = (NestedNode if nested else FlatNode).__struct_fields__
    return [key for key in first if key not in known] if isinstance(first, dict) else []


def _signatures(lists: list[list[HostAttr]]) -> dict[tuple[str, ...], Sequence[int]]:
    """The places of the nodes that have the same attribute names in the same order."""
    width = len(lists[0]) if lists else 0
    alike = [place for place, attrs in enumerate(lists) if len(attrs) == width]
    names = [attr.name for attr in chain.from_iterable([lists[place] for place in alike])]
    groups: dict[tuple[str, ...], Any] = {}
    rest: Sequence[int] = range(len(lists))
    if names == names[:width] * len(alike):
        groups[tuple(names[:width])] = alike
        rest = sorted(set(rest).difference(alike)) if len(alike) < len(lists) else ()
    for place in rest:
        signature = tuple([attr.name for attr in lists[place]])
        groups.setdefault(signature, []).append(place)
    return groups


class _Columns:
    """Host nodes as they come in, in lists that become columns.

    Nodes come by the thousand, so each step works on one field of all of them.
    """

    def __init__(self, repairs: Repairs) -> None:
        self.repairs = repairs
        self.id: list[int] = []
        self.parent: list[int] = []
        self.core: dict[str, list[Any]] = {name: [] for name in _CORE}
        self.name: list[int] = []
        self.op_schema: list[int] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.input_strides: list[int] = []
        self.output_strides: list[int] = []
        self.names: Pool[str] = Pool()
        self.op_schemas: Pool[str] = Pool()
        self.texts: Pool[tuple[bytes, bytes, bytes]] = Pool()
        self.strides: Pool[bytes] = Pool({b"": 0})
        self.attributes: dict[str, HostAttribute] = {}

    def _add_ids(self, ids: list[int], parents: list[int]) -> None:
        if parents and (min(parents) < 0 or max(parents) >= _ID_LIMIT):
            wrong = sum(not 0 <= parent < _ID_LIMIT for parent in parents)
            self.repairs.mend("caller that is no unsigned 64-bit integer", None, wrong)
            parents = [parent if 0 <= parent < _ID_LIMIT else NO_CALLER for parent in parents]
        self.id += ids
        self.parent += parents

    def _with_good_ids(self, nodes: list[N]) -> list[N]:
        ids = [node.id for node in nodes]
        if ids and (min(ids) < 0 or max(ids) >= _ID_LIMIT):
            good = [node for node in nodes if 0 <= node.id < _ID_LIMIT]
            wrong = len(nodes) - len(good)
            self.repairs.leave_out("id that is no unsigned 64-bit integer", None, wrong)
            return good
        return nodes

    def _add_flat(self, nodes: list[FlatNode]) -> None:
        nodes = self._with_good_ids(nodes)
        self._add_ids([node.id for node in nodes], [node.parent for node in nodes])
        self.name += map(self.names.__getitem__, [node.name for node in nodes])
        for name, column in self.core.items():
            column += map(attrgetter(name), nodes)
        self.op_schema += map(self.op_schemas.__getitem__, [node.op_schema for node in nodes])
        self.inputs += self._texts(
            [node.inputs for node in nodes],
            [node.input_shapes for node in nodes],
            [node.input_types for node in nodes],
        )
        self.outputs += self._texts(
            [node.outputs for node in nodes],
            [node.output_shapes for node in nodes],
            [node.output_types for node in nodes],
        )
        self.input_strides += [0] * len(nodes)
        self.output_strides += [0] * len(nodes)

    def _add_nested(self, nodes: list[NestedNode]) -> None:
        nodes = self._with_good_ids(nodes)
        first_row = len(self.id)
        self._add_ids([node.id for node in nodes], [node.ctrl_deps for node in nodes])
        self.name += map(self.names.__getitem__, [node.name for node in nodes])
        inputs, outputs = [node.inputs for node in nodes], [node.outputs for node in nodes]
        self.inputs += self._io(inputs, self.input_strides)
        self.outputs += self._io(outputs, self.output_strides)
        self._add_attributes([node.attrs for node in nodes], first_row)

    def _io(self, io: list[HostIO], strides: list[int]) -> Iterable[int]:
        strides += map(self.strides.__getitem__, map(bytes, [x.strides for x in io]))
        return self._texts([x.values for x in io], [x.shapes for x in io], [x.types for x in io])

    def _texts(self, *fields: list[msgspec.Raw]) -> Iterable[int]:
        triples = zip(*(map(bytes, field) for field in fields), strict=True)
        return map(self.texts.__getitem__, triples)

    def _add_attributes(self, lists: list[list[HostAttr]], first_row: int) -> None:
        """Turn each node's list of named values into columns.

        Most nodes have the same names in the same order; each such group is cut by strides.
        """
        core: dict[str, list[Any]] = {n: [d] * len(lists) for n, d in _CORE.items()}
        core["op_schema"] = [""] * len(lists)
        for signature, places in _signatures(lists).items():
            flat = list(chain.from_iterable([lists[place] for place in places]))
            values = [attr.value for attr in flat]
            for k, name in enumerate(signature):
                column = values[k :: len(signature)]
                if name not in core:
                    self._add_attribute(name, flat[k].type, places, column, first_row)
                elif len(places) == len(lists):
                    core[name] = column
                else:
                    for place, value in zip(places, column, strict=True):
                        core[name][place] = value
        schemas = core.pop("op_schema")
        if set(map(type, schemas)) != {str}:
            wrong = sum(type(text) is not str for text in schemas)
            if wrong:
                self.repairs.mend("op_schema that is no text", None, wrong)
            schemas = [text if type(text) is str else "" for text in schemas]
        self.op_schema += map(self.op_schemas.__getitem__, schemas)
        for name, column in core.items():
            self.core[name] += column

    def _add_attribute(
        self, name: str, declared: str, places: Sequence[int], column: list[Any], first_row: int
    ) -> None:
        # PyTorch writes an empty text where there is nothing to say.
        said = [k for k, value in enumerate(column) if value != ""]
        if said:
            attribute = self.attributes.setdefault(name, HostAttribute(declared))
            attribute.rows += [first_row + places[k] for k in said]
            attribute.values += [column[k] for k in said]

    def finish(
        self, path: Path, metadata: dict[str, Any], unknown: list[str], repairs: Repairs
    ) -> HostTrace:
        schema = str(metadata.pop("schema", ""))
        pid = metadata.pop("pid", None)
        warnings = [f"host node key {key!r} is not known and was left out" for key in unknown]
        if schema.split("-")[0] not in KNOWN_SCHEMAS:
            warnings.append(f"host schema {schema!r} is not known; it was read by the keys present")
        core = {name: self._integers(name) for name in _CORE}
        for name, attribute in list(self.attributes.items()):
            self._check_attribute(name, attribute)
        return HostTrace(
            path=path,
            schema=schema,
            pid=pid if isinstance(pid, int) and 0 <= pid < 1 << 63 else None,
            metadata=metadata,
            id=np.array(self.id, np.uint64),
            parent=np.array(self.parent, np.uint64),
            rf_id=core["rf_id"],
            fw_parent=core["fw_parent"],
            seq_id=core["seq_id"],
            scope=core["scope"],
            thread=core["tid"],
            fw_thread=core["fw_tid"],
            name=np.array(self.name, np.int32),
            names=self.names,
            op_schema=np.array(self.op_schema, np.int32),
            op_schemas=self.op_schemas,
            inputs=np.array(self.inputs, np.int32),
            outputs=np.array(self.outputs, np.int32),
            texts=self.texts,
            input_strides=np.array(self.input_strides, np.int32),
            output_strides=np.array(self.output_strides, np.int32),
            strides=self.strides,
            attributes=self.attributes,
            warnings=warnings,
            repairs=repairs,
        )

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

    def _integers(self, name: str) -> npt.NDArray[np.int64]:
        values = self.core[name]
        try:
            column = np.array(values, np.int64)
        except (TypeError, ValueError, OverflowError):
            column = np.zeros((0, 0), np.int64)
        if column.ndim == 1:
            return column
        return np.array([self._integer(name, value) for value in values], np.int64)

    def _integer(self, name: str, value: Any) -> int:
        if isinstance(value, int) and abs(value) < 1 << 63:
            return value
        try:
            number = int(value) if isinstance(value, (str, float)) else None
        except (ValueError, OverflowError):
            number = None
        if number is None or abs(number) >= 1 << 63:
            self.repairs.mend(f"{name} that is no 64-bit integer", None)
            return _CORE[name]
        self.repairs.mend(QUOTED, None)
        return number


class NestedColumns(_Columns):
    """Columns of nodes of layouts B to E."""

    def add(self, piece: list[NestedNode], /) -> None:
        """Take in some nodes."""
        self._add_nested(piece)


class FlatColumns(_Columns):
    """Columns of nodes of layout A."""

    def add(self, piece: list[FlatNode], /) -> None:
        """Take in some nodes."""
        self._add_flat(piece)
