"""How traces and nodes look on a terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from chakra_et.cli.terminal import Plain, say, show_rows
from chakra_et.model import GAP, EdgeKind, Node, Trace, time_parts
from chakra_et.model.nodes import type_label

if TYPE_CHECKING:
    from rich.console import Console

    from chakra_et.linker.output.explain import Explained


def trace_facts(trace: Trace) -> dict[str, Any]:
    """What is in an ET, as plain data."""
    metadata = trace.metadata
    kinds = Counter(trace.nodes.type.tolist())
    return {
        "version": metadata.version,
        "rank": trace.rank,
        "world_size": trace.world_size,
        "producer": metadata.get("producer"),
        "schema": metadata.get("schema"),
        "nodes": len(trace.nodes),
        "nodes_by_type": {type_label(kind): count for kind, count in sorted(kinds.items())},
        "edges": len(trace.edges),
        "edges_by_kind": {
            kind.label: {"count": count, "inferred": inferred}
            for kind, (count, inferred) in trace.edges.counts().items()
        },
        "dangling_edges": int((trace.source_rows() < 0).sum()),
        "groups": [
            {
                "pg_name": group.name,
                "ranks": list(group.ranks),
                "size": group.size,
                "pg_desc": group.description,
            }
            for group in trace.groups
        ],
        "attributes": sorted({column.key.name for column in trace.nodes.attributes.columns}),
    }


def show_trace(console: Console | Plain, facts: dict[str, Any]) -> None:
    """The facts about an ET."""
    told = ("version", "rank", "world_size", "producer", "schema")
    rows = [
        (label.replace("_", " "), facts[label]) for label in told if facts[label] not in (None, "")
    ]
    nodes = ", ".join(f"{count} {kind}" for kind, count in facts["nodes_by_type"].items())
    rows.append(("nodes", f"{facts['nodes']}: {nodes}" if nodes else "none"))
    edges = ", ".join(
        f"{found['count']} {kind}"
        + (f" ({found['inferred']} inferred)" if found["inferred"] else "")
        for kind, found in facts["edges_by_kind"].items()
    )
    rows.append(("edges", f"{facts['edges']}: {edges}" if edges else "none"))
    if facts["dangling_edges"]:
        rows.append(("", f"{facts['dangling_edges']} edges lead from ids that no node has"))
    for group in facts["groups"]:
        ranks = group["ranks"] or f"{group['size']} ranks"
        rows.append(("group", f"{group['pg_name']}: {ranks} {group['pg_desc']}"))
    rows.append(("attributes", ", ".join(facts["attributes"])))
    show_rows(console, rows)


def node_facts(trace: Trace, node: Node) -> dict[str, Any]:
    """The fields of a node of a trace, and what it waits for and why, as plain data."""
    from chakra_et.linker.output.explain import explain

    facts: dict[str, Any] = {
        "id": node.id,
        "type": type_label(node.type),
        "name": node.name,
        "start_ns": node.start_ns,
        "duration_ns": node.duration_ns,
        "time_of": [{"whose": whose, "ns": ns} for whose, ns in _shares(trace, node)],
        "attributes": dict(node.attributes),
    }
    for label, io in (("inputs", node.inputs), ("outputs", node.outputs)):
        if io is not None:
            parts = (io.values, io.shapes, io.types)
            facts[label] = " ".join(part.decode("utf-8", "replace") for part in parts)
    facts["edges"] = [
        {
            "from": edge.source,
            "kind": edge.kind.label,
            "inferred": edge.inferred,
            "evidence": edge.evidence,
            "text": _explained(trace, edge),
        }
        for edge in explain(trace, node.row)
    ]
    return facts


def show_node(console: Console | Plain, facts: dict[str, Any]) -> None:
    """The facts about a node."""
    say(console, f"{facts['id']} {facts['type']} {facts['name']}", "bold")
    start = "not known" if facts["start_ns"] is None else facts["start_ns"]
    rows: list[tuple[str, object]] = [("start_ns", start), ("duration_ns", facts["duration_ns"])]
    rows += [(f"  {share['ns']}", share["whose"]) for share in facts["time_of"]]
    rows += list(facts["attributes"].items())
    rows += [(label, facts[label]) for label in ("inputs", "outputs") if label in facts]
    for edge in facts["edges"]:
        called = edge["kind"] == EdgeKind.CALL.label
        rows.append(("called by" if called else "waits for", edge["text"]))
    show_rows(console, rows)


def _shares(trace: Trace, node: Node) -> list[tuple[str, int]]:
    """Whose time the duration of a node is, where it is not all the node's own."""
    parts = time_parts(trace.nodes)
    mine = np.flatnonzero(parts.node == node.row)
    if len(mine) < 2:
        return []
    shares = []
    for owner, ns in zip(parts.owner[mine].tolist(), parts.ns[mine].tolist(), strict=True):
        other = None if owner == GAP else trace.nodes[owner]
        whose = "a gap between operations" if other is None else f"of {other.id} {other.name}"
        shares.append(("its own" if owner == node.row else whose, ns))
    elsewhere = node.self_ns - int(parts.ns[mine[parts.owner[mine] == node.row]].sum())
    return [*shares, ("its own, in other nodes", elsewhere)] if elsewhere else shares


def _explained(trace: Trace, edge: Explained) -> str:
    """`811 aten::t (sync, inferred: end during the call)`."""
    source = int(trace.nodes.rows_of(np.array([edge.source], np.uint64))[0])
    name = trace.nodes[source].name if source >= 0 else "(no node has this id)"
    kind = f"{edge.kind.label}, inferred" if edge.inferred else edge.kind.label
    return f"{edge.source} {name} ({kind}: {edge.evidence or 'the file does not say by what'})"
