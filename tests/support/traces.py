"""Small traces for tests of rules and passes, told in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from chakra_et.definitions import ATTRIBUTES, CollectiveType, Kind, NodeType
from chakra_et.model import (
    UNKNOWN_NS,
    EdgeKind,
    Edges,
    Metadata,
    Nodes,
    ProcessGroup,
    Trace,
    TraceSet,
)

COMP, COLL = NodeType.COMP, NodeType.COMM_COLL
SEND, RECV = NodeType.COMM_SEND, NodeType.COMM_RECV


def node(
    node_id: int,
    node_type: int = COMP,
    *,
    deps: tuple[int, ...] = (),
    ctrl: tuple[int, ...] = (),
    kind: EdgeKind = EdgeKind.DATA,
    start: int | None = None,
    took: int = 0,
    name: str = "",
    inputs: tuple[bytes, bytes, bytes] | None = None,
    **attributes: Any,
) -> dict[str, Any]:
    """A node; attributes are of the registry's kind, or pairs of a kind and a value."""
    return {
        "id": node_id,
        "type": int(node_type),
        "deps": deps,
        "ctrl": ctrl,
        "kind": kind,
        "start": start,
        "took": took,
        "name": name or f"node {node_id}",
        "inputs": inputs,
        "attributes": attributes,
    }


def coll(node_id: int, kind: int = CollectiveType.ALL_REDUCE, size: int = 1024, **more: Any) -> Any:
    """A collective; without a group it is of all ranks."""
    return node(node_id, COLL, comm_type=kind, comm_size=size, is_cpu_op=False, **more)


def send(node_id: int, dst: int, size: int = 64, tag: int = 1, **more: Any) -> Any:
    """A send."""
    return node(node_id, SEND, comm_dst=dst, comm_size=size, comm_tag=tag, is_cpu_op=False, **more)


def recv(node_id: int, src: int, size: int = 64, tag: int = 1, **more: Any) -> Any:
    """A receive."""
    return node(node_id, RECV, comm_src=src, comm_size=size, comm_tag=tag, is_cpu_op=False, **more)


def trace(
    *nodes: dict[str, Any],
    rank: int | None = None,
    world: int | None = None,
    groups: Mapping[str, tuple[int, ...]] | list[ProcessGroup] | str | None = None,
    version: str = "1.0.0",
) -> Trace:
    """A trace of nodes in the given order."""
    order: dict[tuple[str, Kind], tuple[list[int], list[Any]]] = {}
    for row, item in enumerate(nodes):
        for name, value in item["attributes"].items():
            kind = ATTRIBUTES[name].kind if name in ATTRIBUTES else Kind.STRING
            for k, v in [value] if isinstance(value, tuple) else [(kind, value)]:
                rows, values = order.setdefault((name, k), ([], []))
                rows.append(row)
                values.append(v)
    ids = np.array([item["id"] for item in nodes], np.uint64)
    texts = [item["inputs"] for item in nodes if item["inputs"] is not None]
    codes = np.cumsum([item["inputs"] is not None for item in nodes]) - 1
    columns = Nodes(
        id=ids,
        type=np.array([item["type"] for item in nodes], np.int32),
        name_code=np.arange(len(nodes), dtype=np.int32),
        names=[item["name"] for item in nodes],
        start_ns=np.array(
            [UNKNOWN_NS if i["start"] is None else i["start"] for i in nodes], np.int64
        ),
        duration_ns=np.array([item["took"] for item in nodes], np.int64),
        input_code=np.where([i["inputs"] is not None for i in nodes], codes, -1).astype(np.int32),
        texts=texts,
        exact_start=np.ones(len(nodes), np.bool_),
        exact_duration=np.ones(len(nodes), np.bool_),
    )
    for (name, kind), (rows, values) in order.items():
        columns.attributes.add(name, kind, values, np.array(rows, np.int64))
    result = Trace(columns, _edges(nodes), Metadata(version))
    if rank is not None:
        result.metadata.set("rank", Kind.INT64, rank)
    if world is not None:
        result.metadata.set("world_size", Kind.INT64, world)
    if isinstance(groups, str):
        result.metadata.set("process_groups", Kind.STRING, groups)
    elif groups is not None:
        listed = (
            groups
            if isinstance(groups, list)
            else [ProcessGroup(name=n, ranks=r, size=len(r)) for n, r in groups.items()]
        )
        result.groups = listed
    return result


def linked(nodes: list[dict[str, Any]], edges: list[tuple[int, int, EdgeKind]]) -> Trace:
    """A trace of nodes 1, 2 and so on; each edge tells who waits, for whom, and why."""
    made = trace(*nodes)
    told = np.array([(t - 1, s, k) for t, s, k in edges], np.int64).reshape(-1, 3)
    found = Edges.collect(
        len(nodes), told[:, 0], told[:, 1].astype(np.uint64), told[:, 2].astype(np.uint8),
        np.zeros(len(told), np.bool_),
    )  # fmt: skip
    return Trace(made.nodes, found, made.metadata)


def _edges(nodes: tuple[dict[str, Any], ...]) -> Edges:
    """Edges as a file has them: in order, repetitions and all."""
    source: list[int] = []
    kinds: list[int] = []
    offsets = [0]
    for item in nodes:
        source += [*item["ctrl"], *item["deps"]]
        kinds += [EdgeKind.CALL] * len(item["ctrl"]) + [item["kind"]] * len(item["deps"])
        offsets.append(len(source))
    return Edges(
        np.array(offsets, np.int64),
        np.array(source, np.uint64),
        np.array(kinds, np.uint8),
        np.zeros(len(source), np.bool_),
    )


def run(*traces: Trace) -> TraceSet:
    """Traces of ranks 0, 1 and so on, or of the ranks that they tell."""
    return TraceSet({t.rank if t.rank is not None else i: t for i, t in enumerate(traces)})
