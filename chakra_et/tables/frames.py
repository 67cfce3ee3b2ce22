"""The columns of traces as tables: nodes, edges, attributes, groups, ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.definitions import CollectiveType, EdgeKind
from chakra_et.model import UNKNOWN_NS, Trace, TraceSet
from chakra_et.model.attribute_values import array_type
from chakra_et.model.edge_evidence import entries
from chakra_et.model.nodes import type_label
from chakra_et.tables.places import Places
from chakra_et.tables.ranks import rank_table
from chakra_et.tables.table import Column, Table, known, stacked, texts


def node_frame(traces: Mapping[int, Trace]) -> Table:
    """A row for each node: fields, derived times, and every attribute that some node has.

    An attribute that is called like a column before it is `attribute_NAME`. `self_ns` is the time
    that is the node's own; `lane` the thread or stream; `side` host, compute, memory or
    communication; `collective` the name of `comm_type`.
    """
    tables = [_nodes(rank, trace) for rank, trace in traces.items()]
    base = stacked(tables) if tables else Table("nodes", {})
    taken = {name.lower() for name in base.columns}
    columns = dict(base.columns)
    for name in _attribute_names(traces):
        called = f"attribute_{name}" if name.lower() in taken else name
        columns[called] = _attribute(traces, name)
        taken.add(called.lower())
    return Table("nodes", columns)


def _nodes(rank: int, trace: Trace) -> Table:
    of, places = trace.nodes, Places(trace)
    timed = of.start_ns != UNKNOWN_NS
    lane, names = places.lane
    kinds = of.attributes.dense("comm_type", -1, np.int64)
    labels = {int(kind): kind.name for kind in CollectiveType}
    columns: dict[str, Column] = {
        "rank": np.full(len(of), rank, np.int64),
        "id": of.id,
        "name": of.name,
        "type": texts([type_label(kind) for kind in of.type.tolist()]),
        "side": places.kind,
        "lane": np.array([*names, ""], object)[lane],
        "start_ns": known(np.where(timed, of.start_ns, 0), timed),
        "duration_ns": of.duration_ns,
        "self_ns": of.self_ns,
        "collective": texts([labels.get(kind) for kind in kinds.tolist()]),
    }
    for side, code in (("input", of.input_code), ("output", of.output_code)):
        for place, what in enumerate(("values", "shapes", "types")):
            distinct = [_text(item[place]) for item in of.texts]
            columns[f"{side}_{what}"] = np.array([*distinct, None], object)[code]
    return Table("nodes", columns)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _attribute_names(traces: Mapping[int, Trace]) -> list[str]:
    found = [c.key.name for trace in traces.values() for c in trace.nodes.attributes.columns]
    return list(dict.fromkeys(found))


def _attribute(traces: Mapping[int, Trace], name: str) -> Column:
    """One attribute of all nodes: of one type if all nodes have it in one kind, else objects."""
    columns = [c for trace in traces.values() for c in trace.nodes.attributes.named(name)]
    types = {array_type(column.key.kind) for column in columns}
    first = next(iter(types))
    if len(types) > 1 or first is None:
        parts = [trace.nodes.attributes.dense(name, None, object) for trace in traces.values()]
        return np.concatenate(parts)
    values = [trace.nodes.attributes.dense(name, 0, first) for trace in traces.values()]
    there = [trace.nodes.attributes.present(name) for trace in traces.values()]
    return known(np.concatenate(values), np.concatenate(there))


def edge_frame(traces: Mapping[int, Trace]) -> Table:
    """A row for each edge: `target` waits for `source`, both ids of the rank's nodes.

    `source_known` says whether a node has the id; `evidence` what the file says that the edge
    rests on, where that is not the usual evidence of its kind.
    """
    tables = [_edges(rank, trace) for rank, trace in traces.items()]
    return stacked(tables) if tables else Table("edges", {})


def _edges(rank: int, trace: Trace) -> Table:
    said = entries(trace)
    labels = np.array([kind.label for kind in EdgeKind], object)
    places = {int(kind): place for place, kind in enumerate(EdgeKind)}
    code = np.array([places[kind] for kind in range(len(places))], np.int64)[trace.edges.kind]
    return Table(
        "edges",
        {
            "rank": np.full(len(trace.edges), rank, np.int64),
            "source": trace.edges.source,
            "target": trace.nodes.id[trace.edges.target],
            "kind": labels[code],
            "inferred": trace.edges.inferred,
            "source_known": trace.source_rows() >= 0,
            "evidence": texts([said.get(place) for place in range(len(trace.edges))]),
        },
    )


def attribute_frame(traces: Mapping[int, Trace]) -> Table:
    """A row for each attribute of each node, with its value as text, and as number if it is one."""
    rank: list[npt.NDArray[Any]] = []
    ids, numbers = [np.zeros(0, np.uint64)], [np.zeros(0, np.float64)]
    names: list[str] = []
    kinds: list[str] = []
    values: list[str | None] = []
    for number, trace in traces.items():
        for column in trace.nodes.attributes.columns:
            count = len(column.rows)
            rank.append(np.full(count, number, np.int64))
            ids.append(trace.nodes.id[column.rows])
            names += [column.key.name] * count
            kinds += ["" if column.key.kind is None else column.key.kind.name.lower()] * count
            values += [_shown(value) for value in column.values]
            is_number = isinstance(column.values, np.ndarray)
            numbers.append(
                column.values.astype(np.float64) if is_number else np.full(count, np.nan)
            )
    return Table(
        "attributes",
        {
            "rank": np.concatenate([*rank, np.zeros(0, np.int64)]),
            "node": np.concatenate(ids),
            "name": texts(names),
            "kind": texts(kinds),
            "value": texts(values),
            "number": np.concatenate(numbers),
        },
    )


def _shown(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return str(value.tolist() if isinstance(value, np.generic) else value)


def group_frame(traces: Mapping[int, Trace]) -> Table:
    """A row for each process group that some rank knows."""
    told = (traces if isinstance(traces, TraceSet) else TraceSet(traces)).groups
    return Table(
        "groups",
        {
            "pg_name": texts([group.name for group in told]),
            "pg_desc": texts([group.description for group in told]),
            "size": np.array([group.size for group in told], np.int64),
            "ranks": texts([list(group.ranks) for group in told]),
            "source": texts([group.source for group in told]),
            "inferred": np.array([group.inferred for group in told], np.bool_),
        },
    )


def rank_frame(traces: Mapping[int, Trace]) -> Table:
    """A row for each rank: what its file says of the whole, and where its time goes."""
    said = ("producer", "schema", "trace_name")
    columns = dict(rank_table(traces).columns)
    world = [trace.world_size for trace in traces.values()]
    there = np.array([size is not None for size in world], np.bool_)
    columns["world_size"] = known(np.array([size or 0 for size in world], np.int64), there)
    for name in said:
        columns[name] = texts(
            [
                value if isinstance(value := trace.metadata.get(name), str) else None
                for trace in traces.values()
            ]
        )
    return Table("ranks", columns)


FRAMES: Final[dict[str, Callable[[Mapping[int, Trace]], Table]]] = {
    "nodes": node_frame,
    "edges": edge_frame,
    "attributes": attribute_frame,
    "groups": group_frame,
    "ranks": rank_frame,
}
"""What the columns of traces give, by name."""


def frame(traces: Mapping[int, Trace], what: str) -> Table:
    """One of `FRAMES`. Raises ValueError for another name."""
    if what not in FRAMES:
        raise ValueError(f"no table {what!r}: there are {', '.join(FRAMES)}")
    return FRAMES[what](traces)
