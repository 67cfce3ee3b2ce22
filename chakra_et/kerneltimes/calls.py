"""The calls of a trace: what each is, and how long it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import codes
from chakra_et.columns import NO_ROW, Rows
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.io.json_text import from_json
from chakra_et.kerneltimes.features import (
    BYTES,
    HOST,
    LINKS,
    RANKS,
    Features,
    Key,
    Texts,
    dtype_of,
    features_of_call,
    features_of_generated,
    no_features,
)
from chakra_et.model import Trace
from chakra_et.tables.places import Places

_ANY: Final = "device"


@dataclass(frozen=True)
class Calls:
    """The calls of one trace; row c of `keys`, `features` and `took_ns` is call c.

    A call of an operator on the host has the operator's own time. One on a device has the time of
    all device work that the operator itself launched, however many kernels. A transfer is a call of
    its own. `call_of[n]` is the call that node n belongs to, -1 for none: calls of the runtime,
    Python, annotations.
    """

    keys: list[Key]
    features: Features
    took_ns: Rows
    call_of: Rows


@dataclass(frozen=True)
class _Shapes:
    """The distinct shapes and types in texts, of which many differ by values alone; and which of
    them each text has. The last number is for no text.
    """

    of_text: Rows
    distinct: list[tuple[bytes, bytes]]

    @classmethod
    def of(cls, texts: Sequence[tuple[bytes, ...]]) -> _Shapes:
        """Those of all texts of a trace."""
        known: dict[tuple[bytes, bytes], int] = {}
        numbers = [known.setdefault((text[1], text[2]), len(known)) for text in texts]
        numbers.append(known.setdefault((b"", b""), len(known)))
        return cls(np.array(numbers, np.int64), list(known))


def calls_of(trace: Trace) -> Calls:
    """The calls of a trace, from its nodes as they are: with other shapes they are other calls."""
    places, shapes = Places(trace), _Shapes.of(trace.nodes.texts)
    made = [
        _on_host(trace, places, shapes),
        _on_device(trace, places, shapes),
        _transfers(trace, places),
    ]
    call_of = np.full(len(trace.nodes), NO_ROW, np.int64)
    first = 0
    for calls in made:
        rows = np.flatnonzero(calls.call_of >= 0)
        call_of[rows] = calls.call_of[rows] + first
        first += len(calls.keys)
    return Calls(
        [key for calls in made for key in calls.keys],
        np.concatenate([calls.features for calls in made]),
        np.concatenate([calls.took_ns for calls in made]),
        call_of,
    )


def _on_host(trace: Trace, places: Places, shapes: _Shapes) -> Calls:
    rows = np.flatnonzero(places.operator & ~places.communication)
    call_of = np.full(len(trace.nodes), NO_ROW, np.int64)
    call_of[rows] = np.arange(len(rows))
    keys, features = _described(trace, rows, shapes, [HOST] * len(rows))
    return Calls(keys, features, trace.nodes.self_ns[rows], call_of)


def _on_device(trace: Trace, places: Places, shapes: _Shapes) -> Calls:
    """Device work by the operator that launched it; each by itself where none did."""
    nodes = trace.nodes
    work, by = places.device_work
    ran = places.ran[work]
    work, by = work[ran], by[ran]
    launcher = np.where(by >= 0, by, work)
    rows, of = np.unique(launcher, return_inverse=True)
    call_of = np.full(len(nodes), NO_ROW, np.int64)
    call_of[work] = of
    took = np.zeros(len(rows), np.int64)
    np.add.at(took, of, nodes.self_ns[work])
    number = np.zeros(len(rows), np.int64)
    number[of] = nodes.attributes.dense("device", 0, np.int64)[work]
    names = _device_names(trace)
    devices = [names.get(n, _ANY) for n in number.tolist()]
    keys, features = _described(trace, rows, shapes, devices)
    return Calls(keys, features, took, call_of)


def _described(
    trace: Trace, rows: Rows, shapes: _Shapes, device: list[str]
) -> tuple[list[Key], Features]:
    """Keys and features of operators; each distinct one is looked at once."""
    if not len(rows):
        return [], no_features(0)
    nodes, attributes = trace.nodes, trace.nodes.attributes
    inputs, outputs = (shapes.of_text[c[rows]] for c in (nodes.input_code, nodes.output_code))
    told = [attributes.dense(name, -1, np.int64)[rows] for name in ("num_ops", "tensor_size")]
    kind, kinds = _kinds(trace, rows)
    code = codes(kind, inputs, outputs, *told)
    _, first = np.unique(code, return_index=True)
    found = no_features(len(first))
    dtypes = []
    for place, at in enumerate(first.tolist()):
        texts = Texts(*shapes.distinct[inputs[at]], *shapes.distinct[outputs[at]])
        flops, moved = int(told[0][at]), int(told[1][at])
        found[place] = (
            features_of_call(kinds[kind[at]], texts)
            if max(flops, moved) < 0
            else features_of_generated(kinds[kind[at]], flops, moved, texts.output_shapes)
        )
        dtypes.append(dtype_of(texts.input_types))
    pairs = list(zip(code.tolist(), device, strict=True))
    named = [kinds[k] for k in kind[first].tolist()]
    known = {(c, where): Key(named[c], dtypes[c], where) for c, where in set(pairs)}
    keys = [known[pair] for pair in pairs]
    return keys, found[code]


def _kinds(trace: Trace, rows: Rows) -> tuple[Rows, list[str]]:
    """What each node does: its kind of operator if a generator told it, else its name."""
    nodes = trace.nodes
    names = list(nodes.names)
    code = nodes.name_code.astype(np.int64)
    known = {name: place for place, name in enumerate(names)}
    for column in nodes.attributes.named("op_type"):
        for value in column.values:
            if str(value) not in known:
                known[str(value)] = len(names)
                names.append(str(value))
        code[column.rows] = [known[str(value)] for value in column.values]
    return code[rows], names


def _transfers(trace: Trace, places: Places) -> Calls:
    nodes, attributes = trace.nodes, trace.nodes.attributes
    rows = np.flatnonzero(places.communication & ~places.carried)
    call_of = np.full(len(nodes), NO_ROW, np.int64)
    call_of[rows] = np.arange(len(rows))
    kinds = attributes.dense("comm_type", -1, np.int64)[rows].tolist()
    sizes = {group.name: group.size or len(group.ranks) for group in trace.groups}
    features = no_features(len(rows))
    size = attributes.dense("comm_size", -1, np.int64)[rows]
    features[:, BYTES] = np.where(size >= 0, size, np.nan)
    keys = []
    for place, (row, kind) in enumerate(zip(rows.tolist(), kinds, strict=True)):
        collective = nodes.type[row] == NodeType.COMM_COLL
        known = kind in set(CollectiveType)
        name = CollectiveType(kind).name if collective and known else ""
        keys.append(Key(name or ("COLLECTIVE" if collective else "SEND_RECV"), "", LINKS))
        group = sizes.get(str(attributes.get(row, "pg_name") or ""), trace.world_size or 0)
        features[place, RANKS] = (group or np.nan) if collective else 2
    return Calls(keys, features, nodes.duration_ns[rows], call_of)


def _device_names(trace: Trace) -> dict[int, str]:
    """The names of devices by number, as the profiler told them."""
    told = trace.metadata.get("device_properties")
    try:
        listed = from_json(told if isinstance(told, str) else "[]")
    except msgspec.DecodeError:
        return {}
    return {
        place: str(item["name"])
        for place, item in enumerate(listed if isinstance(listed, list) else [])
        if isinstance(item, dict) and item.get("name")
    }
