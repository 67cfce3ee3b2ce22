"""Conversions whose reports add up, and questions to what they made."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from chakra_et.conversion import Conversion, convert
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.output.explain import explain, labels
from chakra_et.linker.output.report import Report
from chakra_et.model import EdgeKind, Trace


def write(path: Path, text: str | bytes) -> Path:
    """The file with this content."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def converted(host: Path | None = None, device: Path | None = None, **options: Any) -> Conversion:
    """The conversion of files whose report adds up."""
    result = convert(host, device, **options)
    assert_adds_up(result.report)
    assert_no_loose_ends(result)
    return result


def assert_adds_up(report: Report) -> None:
    """Every record read is kept, merged, or left out for a reason; every node comes from one.

    Every edge rests on something.
    """
    tallies = [report.host_nodes, *report.records.values()]
    for tally in tallies:
        assert tally.total == tally.kept + tally.merged + tally.left_out.total(), tally
        assert min(tally.total, tally.kept, tally.merged) >= 0, tally
        assert all(count > 0 for count in tally.left_out.values()), tally
    for kind, told in report.as_dict()["edges"].items():
        assert told["count"] == sum(entry["count"] for entry in told["evidence"]), kind
        guesses = {e.label for e in Evidence if e.kind.label == kind and e.guess}
        counts = [entry["count"] for entry in told["evidence"] if entry["by"] in guesses]
        assert told["inferred"] == sum(counts), kind
    made = sum(tally.kept for tally in tallies) + sum(report.added.values())
    assert made == sum(report.nodes.values())


def assert_sums_add_up(report: dict[str, Any]) -> None:
    """The same of a report as JSON."""
    tallies = [report["host_nodes"], report["device_events"], *report["records"].values()]
    for tally in tallies:
        left_out = sum(item["count"] for item in tally["left_out"])
        assert tally["kept"] + tally["merged"] + left_out == tally["total"]


def assert_no_loose_ends(result: Conversion) -> None:
    """Every edge leads from a node of the trace to a later one."""
    sources = result.trace.source_rows()
    assert (sources >= 0).all()
    assert (sources < result.trace.edges.target).all()


def names(result: Conversion) -> list[str]:
    """The names of all nodes."""
    nodes = result.load().nodes
    return [nodes.names[code] for code in nodes.name_code.tolist()]


def callers(result: Conversion, name: str) -> set[str]:
    """The names of the nodes that call those of a name."""
    nodes = result.load().nodes
    by_id = {node.id: node.name for node in nodes}
    return {
        by_id[source]
        for node in nodes
        if node.name == name
        for source, kind, _ in node.edges
        if kind is EdgeKind.CALL
    }


def launches(result: Conversion) -> dict[str, str]:
    """Names of device work, and of the calls that launched it."""
    by_id = {node.id: node.name for node in result.trace.nodes}
    return {
        node.name: by_id[source]
        for node in result.trace.nodes
        for source, kind, _ in node.edges
        if kind is EdgeKind.LAUNCH
    }


def edges_into(result: Conversion, name: str) -> set[tuple[str, str, str | None]]:
    """Source, kind and evidence of all edges but calls into the one node of a name."""
    trace = result.trace
    (row,) = (row for row, other in enumerate(names(result)) if other == name)
    by_id = {node.id: node.name for node in trace.nodes}
    return {
        (by_id[edge.source], edge.kind.label, edge.evidence)
        for edge in explain(trace, row)
        if edge.kind is not EdgeKind.CALL
    }


def repair_kinds(report: Report) -> dict[str, int]:
    """What was mended, and how often."""
    return {repair["kind"]: repair["count"] for repair in report.repairs}


def by_evidence(trace: Trace) -> Counter[tuple[str, str | None]]:
    """How many edges of which kind rest on what, by all that the trace says."""
    kinds = [EdgeKind(kind).label for kind in trace.edges.kind.tolist()]
    return Counter(zip(kinds, labels(trace), strict=True))


def real(data: Path, name: str) -> Conversion:
    """The conversion of a real profile, or of rank 0 of a real run."""
    place = data / name
    if place.is_file():
        return converted(None, place)
    rank = "" if (place / "host.json.gz").is_file() else ".0"
    return converted(place / f"host{rank}.json.gz", place / f"device{rank}.json.gz")
