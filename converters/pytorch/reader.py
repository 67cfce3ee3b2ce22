"""Reading host traces of every layout into columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.converters.pytorch.host_trace import HostAttribute, HostTrace
from chakra_et.converters.pytorch.layouts import FlatNode, HostAttr, HostIO, NestedNode
from chakra_et.errors import FormatError
from chakra_et.io.json_array import JsonArray
from chakra_et.io.memory import collection_paused
from chakra_et.io.source import blocks, head
from chakra_et.pool import Pool

KNOWN_SCHEMAS: Final = ("1.0.0", "1.0.1", "1.0.2", "1.0.3", "1.0.4", "1.1.0", "1.1.1")

_CORE: Final = {
    "rf_id": 0,
    "fw_parent": 0,
    "seq_id": -1,
    "scope": 0,
    "tid": 0,
    "fw_tid": 0,
}
_LAYOUT = re.compile(rb'"nodes"\s*:\s*\[.*?"(ctrl_deps|parent)"\s*:', re.DOTALL)


def read_host(path: str | Path) -> HostTrace:
    """Read a PyTorch host trace of any schema version, plain or compressed.

    Raises FormatError, naming file and place, when the file is not one or is damaged.
    """
    start = head(path, 1 << 18)
    nested = (match := _LAYOUT.search(start)) is None or match[1] == b"ctrl_deps"
    columns = _Columns()
    with collection_paused():
        if nested:
            nested_nodes = JsonArray(
                path, blocks(path), "nodes", msgspec.json.Decoder(list[NestedNode])
            )
            for piece in nested_nodes:
                columns.add_nested(piece)
            found, rest = nested_nodes.found, nested_nodes.rest
        else:
            flat_nodes = JsonArray(
                path, blocks(path), "nodes", msgspec.json.Decoder(list[FlatNode])
            )
            for flat_piece in flat_nodes:
                columns.add_flat(flat_piece)
            found, rest = flat_nodes.found, flat_nodes.rest
    metadata = _metadata(path, rest)
    if not found:
        raise FormatError('no array "nodes"', path=path, remedy="Is this a PyTorch host trace?")
    return columns.finish(Path(path), metadata, _unknown_keys(start, nested))


def _metadata(path: str | Path, rest: bytes) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(rest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FormatError(
            f"what surrounds the nodes is not valid JSON: {error}",
            path=path,
            remedy="The recording did not finish: call unregister_callback() on the observer.",
        ) from error
    if not isinstance(document, dict):
        raise FormatError("a JSON list where an object is wanted", path=path)
    document.pop("nodes", None)
    return document


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

    def __init__(self) -> None:
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

    def add_flat(self, nodes: list[FlatNode]) -> None:
        self.id += [node.id for node in nodes]
        self.parent += [node.parent for node in nodes]
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

    def add_nested(self, nodes: list[NestedNode]) -> None:
        first_row = len(self.id)
        self.id += [node.id for node in nodes]
        self.parent += [node.ctrl_deps for node in nodes]
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
        self.op_schema += map(self.op_schemas.__getitem__, core.pop("op_schema"))
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

    def finish(self, path: Path, metadata: dict[str, Any], unknown: list[str]) -> HostTrace:
        schema = str(metadata.pop("schema", ""))
        pid = metadata.pop("pid", None)
        warnings = [f"host node key {key!r} is not known and was left out" for key in unknown]
        if schema.split("-")[0] not in KNOWN_SCHEMAS:
            warnings.append(f"host schema {schema!r} is not known; it was read by the keys present")
        core = {name: self._integers(path, name) for name in _CORE}
        return HostTrace(
            path=path,
            schema=schema,
            pid=pid if isinstance(pid, int) else None,
            metadata=metadata,
            id=self._ids(path, "id", self.id),
            parent=self._ids(path, "parent", self.parent),
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
        )

    def _integers(self, path: Path, name: str) -> npt.NDArray[np.int64]:
        values = self.core[name]
        try:
            return np.array(values, np.int64)
        except (TypeError, ValueError, OverflowError):
            for row, value in enumerate(values):
                if not isinstance(value, int) or abs(value) >= 1 << 63:
                    raise FormatError(
                        f"{name} is {value!r}, which is no 64-bit integer",
                        path=path,
                        place=f"node {self.id[row]}",
                    ) from None
            raise

    def _ids(self, path: Path, name: str, values: list[int]) -> npt.NDArray[np.uint64]:
        if values and (min(values) < 0 or max(values) >= 1 << 64):
            row = next(k for k, value in enumerate(values) if not 0 <= value < 1 << 64)
            raise FormatError(
                f"{name} is {values[row]}, which is no unsigned 64-bit integer",
                path=path,
                place=f"nodes[{row}]",
            )
        return np.array(values, np.uint64)
