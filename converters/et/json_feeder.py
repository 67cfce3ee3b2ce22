"""The older JSON form, `workload_graph`, in the terms of the present one."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from chakra_et.converters.et.json_mapping import JsonError, from_json
from chakra_et.converters.et.json_messages import ATTRIBUTE, value_name
from chakra_et.definitions import ATTRIBUTES, FORMAT_VERSION, TRACE_ATTRIBUTES, Attribute, Kind
from chakra_et.model.attribute_values import INTEGER_RANGES

GRAPH: Final = "workload_graph"
_FIELDS: Final = {
    "Id": "id",
    "Name": "name",
    "NodeType": "type",
    "ctrlDeps": "ctrlDeps",
    "data_deps": "dataDeps",
    "runtime": "durationMicros",
}


def feeder_metadata(document: dict[str, Any]) -> dict[str, Any]:
    """The metadata: what stands beside the graph becomes attributes."""
    attributes = [
        _attribute(TRACE_ATTRIBUTES, name, value)
        for name, value in document.items()
        if name != GRAPH
    ]
    return {"version": FORMAT_VERSION, "attr": attributes}


def feeder_node(node: Any, place: str) -> dict[str, Any]:
    """A node: what no field of the present form holds becomes attributes."""
    if not isinstance(node, dict):
        raise JsonError("expected an object", place)
    if "Id" not in node:
        raise JsonError("the node has no Id", place)
    found = {_FIELDS[name]: value for name, value in node.items() if name in _FIELDS}
    found["attr"] = [
        _attribute(ATTRIBUTES, name, value) for name, value in node.items() if name not in _FIELDS
    ]
    return found


def _attribute(registry: dict[str, Attribute], name: str, value: Any) -> dict[str, Any]:
    """An attribute in the kind of the registry if it takes the value, else in one that does."""
    if value is None:
        return {"name": name}
    kinds = [_kind(value)]
    if name in registry:
        kinds.insert(0, registry[name].kind)
    for kind in kinds:
        if kind is not None:
            stored = {"values": value} if isinstance(value, list) else value
            attribute = {"name": name, value_name(kind): stored}
            try:
                from_json(ATTRIBUTE, attribute, "")
            except JsonError:
                continue
            return attribute
    return {"name": name, value_name(Kind.STRING): msgspec.json.encode(value).decode()}


def _kind(value: Any) -> Kind | None:
    """The kind for a value of JSON; None for one that only JSON text can hold."""
    if isinstance(value, list):
        kinds = {_kind(item) for item in value}
        if kinds == {Kind.INT64, Kind.UINT64}:
            return None
        kind = kinds.pop() if len(kinds) == 1 else None
        listed = kind is not None and not kind.name.endswith("_LIST")
        return Kind(kind + 1) if kind is not None and listed else None
    if isinstance(value, bool):
        return Kind.BOOL
    if isinstance(value, int):
        low, high = INTEGER_RANGES[Kind.INT64]
        return Kind.INT64 if low <= value <= high else Kind.UINT64
    return {float: Kind.DOUBLE, str: Kind.STRING}.get(type(value))
