"""How reports and traces look on a terminal."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from chakra_et.conversion import Conversion
from chakra_et.linker.explain import Explained, explain
from chakra_et.linker.report import Report, Tally
from chakra_et.model import GAP, EdgeKind, Node, Trace, time_parts
from chakra_et.model.nodes import type_label

_WARNINGS_SHOWN: Final = 8


def show_conversion(console: Console, conversion: Conversion) -> None:
    """The short form of a report."""
    report = conversion.report
    rank = "" if report.rank is None else f" (rank {report.rank})"
    output = report.output
    title = f"{conversion.output}{rank}" if conversion.output else f"trace{rank}"
    console.print(Text(title, style="bold"))
    table = _plain_table()
    for label, text in _lines(report):
        table.add_row(label, Text(text))
    if output is not None:
        size = f"{output['nodes']} nodes, {output['edges']} edges"
        if output["bytes"] is not None:
            size += f", {output['bytes']} bytes"
        table.add_row("written", Text(size))
    console.print(table)
    for warning in report.warnings[:_WARNINGS_SHOWN]:
        console.print(Text(f"  warning: {warning}", style="yellow"))
    if len(report.warnings) > _WARNINGS_SHOWN:
        console.print(f"  and {len(report.warnings) - _WARNINGS_SHOWN} more warnings")


def _lines(report: Report) -> list[tuple[str, str]]:
    lines = []
    if report.host is not None:
        lines.append(("host nodes", _tally(report.host_nodes)))
    if report.device is not None:
        lines.append(("device events", _tally(report.device_events)))
        everything = Tally()
        for tally in report.records.values():
            everything += tally
        lines.append(("profile records", _tally(everything)))
    for repair in report.repairs:
        where = "" if repair["offset"] is None else f", first at byte {repair['offset']}"
        lines.append(("mended", f"{repair['count']} x {repair['kind']}{where} ({repair['file']})"))
    for join in report.joins:
        if join.of:
            lines.append(("joined", f"{join.matched} of {join.of} {join.what}, by {join.by}"))
    lines.append(("nodes", ", ".join(f"{n} {name}" for name, n in report.nodes.items())))
    lines.append(("edges", _edges(report)))
    lines += [("communication", text) for text in _communication(report)]
    return lines


def _tally(tally: Tally) -> str:
    left_out = tally.left_out.total()
    text = f"{tally.total}: {tally.kept} kept, {tally.merged} merged, {left_out} left out"
    if left_out:
        text += " (" + "; ".join(f"{n} {why}" for why, n in tally.left_out.most_common()) + ")"
    return text


def _edges(report: Report) -> str:
    return ", ".join(
        f"{count} {kind}" + (f" ({inferred} inferred)" if inferred else "")
        for kind, (count, inferred) in report.edges.items()
    )


def _communication(report: Report) -> list[str]:
    return [
        f"{item['count']} {item['collective'] or item['type']}, {item['bytes']} bytes, "
        f"{_group(item['pg_name'])} (facts from {item['facts_from']})"
        for item in report.communication
    ]


def _group(name: str | None) -> str:
    return "group not known" if name is None else f"group {name}"


def show_facts(console: Console, facts: dict[str, Any]) -> None:
    """Facts by label."""
    table = _plain_table()
    for label, value in facts.items():
        table.add_row(label, Text(str(value)))
    console.print(table)


def show_trace(console: Console, trace: Trace) -> None:
    """What is in an ET."""
    table = _plain_table()
    metadata = trace.metadata
    for label, value in (
        ("version", metadata.version or "(none)"),
        ("rank", trace.rank),
        ("world size", trace.world_size),
        ("producer", metadata.get("producer")),
        ("schema", metadata.get("schema")),
    ):
        if value is not None:
            table.add_row(label, Text(str(value)))
    kinds = Counter(trace.nodes.type.tolist())
    nodes = ", ".join(f"{n} {type_label(kind)}" for kind, n in sorted(kinds.items()))
    table.add_row("nodes", Text(f"{len(trace.nodes)}: {nodes}"))
    edges = ", ".join(
        f"{count} {kind.label}" + (f" ({inferred} inferred)" if inferred else "")
        for kind, (count, inferred) in trace.edges.counts().items()
    )
    table.add_row("edges", Text(f"{len(trace.edges)}: {edges}"))
    dangling = int((trace.source_rows() < 0).sum())
    if dangling:
        table.add_row("", Text(f"{dangling} edges lead from ids that no node has", style="yellow"))
    for group in trace.groups:
        ranks = list(group.ranks) if group.ranks else f"{group.size} ranks"
        table.add_row("group", Text(f"{group.name}: {ranks} {group.description}"))
    names = sorted({column.key.name for column in trace.nodes.attributes.columns})
    table.add_row("attributes", Text(", ".join(names)))
    console.print(table)


def show_node(console: Console, trace: Trace, node: Node) -> None:
    """The fields of a node of a trace, and what it waits for and why."""
    console.print(Text(f"{node.id} {type_label(node.type)} {node.name}", style="bold"))
    table = _plain_table()
    start = "not known" if node.start_ns is None else node.start_ns
    fields = {"start_ns": start, "duration_ns": node.duration_ns, **node.attributes}
    for label, value in fields.items():
        table.add_row(label, Text(str(value)))
        if label == "duration_ns":
            for whose, ns in _shares(trace, node):
                table.add_row(f"  {ns}", Text(whose))
    for label, io in (("inputs", node.inputs), ("outputs", node.outputs)):
        if io is not None:
            parts = (io.values, io.shapes, io.types)
            table.add_row(label, Text(" ".join(part.decode("utf-8", "replace") for part in parts)))
    for edge in explain(trace, node.row):
        label = "called by" if edge.kind is EdgeKind.CALL else "waits for"
        table.add_row(label, Text(_explained(trace, edge)))
    console.print(table)


def _shares(trace: Trace, node: Node) -> list[tuple[str, int]]:
    """Whose time the duration of a node is, where it is not all the node's own."""
    parts = time_parts(trace.nodes)
    mine = np.flatnonzero(parts.node == node.row)
    if len(mine) < 2:
        return []
    shares = []
    for owner, ns in zip(parts.owner[mine].tolist(), parts.ns[mine].tolist(), strict=True):
        other = None if owner == GAP else trace.nodes[owner]
        whose = "nobody's: a gap" if other is None else f"of {other.id} {other.name}"
        shares.append(("its own" if owner == node.row else whose, ns))
    elsewhere = node.self_ns - int(parts.ns[mine[parts.owner[mine] == node.row]].sum())
    return [*shares, ("its own, in other nodes", elsewhere)] if elsewhere else shares


def _explained(trace: Trace, edge: Explained) -> str:
    """`811 aten::t (sync, inferred: end during the call)`."""
    source = int(trace.nodes.rows_of(np.array([edge.source], np.uint64))[0])
    name = trace.nodes[source].name if source >= 0 else "(no node has this id)"
    kind = f"{edge.kind.label}, inferred" if edge.inferred else edge.kind.label
    return f"{edge.source} {name} ({kind}: {edge.evidence or 'the file does not say by what'})"


def _plain_table() -> Table:
    """Labels and texts side by side."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table
