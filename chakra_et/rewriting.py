"""Converting an ET to another form: an account of what was read."""

from __future__ import annotations

import filecmp
from pathlib import Path

import numpy as np

from chakra_et.inputs import Input, open_input
from chakra_et.linker.output.report import Report
from chakra_et.linker.tallies import Tally
from chakra_et.model import ProcessGroup, Trace
from chakra_et.model.nodes import type_label


def rewrite_report(given: Input, trace: Trace) -> Report:
    """The report of a trace that is written as it was read: every node is kept."""
    types, counts = np.unique(trace.nodes.type, return_counts=True)
    metadata = trace.metadata
    return Report(
        host=None,
        device=None,
        trace={
            "path": str(given.path),
            "format": given.format.name,
            "version": metadata.version,
            "producer": metadata.get("producer"),
        },
        rank=given.rank if trace.rank is None else trace.rank,
        world_size=trace.world_size,
        host_nodes=Tally(),
        records={"ET nodes": Tally(len(trace.nodes), len(trace.nodes))},
        joins=[],
        edges={kind.label: counted for kind, counted in trace.edges.counts().items()},
        nodes={type_label(int(t)): int(c) for t, c in zip(types, counts, strict=True)},
        communication=[],
        groups=_groups(trace),
    )


def check_rewritten(report: Report, trace: Trace, output: Path) -> None:
    """Say in the report whether the output, read again, is the trace that was read."""
    assert report.trace is not None
    source = Path(report.trace["path"])
    if _same_bytes(source, output):
        report.trace["written"] = "byte for byte the same"
    elif open_input(output).read() == trace:
        report.trace["written"] = "reads back equal in every node, edge and attribute"
    else:
        report.warnings.append(f"{output} does not read back as the content of {source} holds")


def _same_bytes(a: Path, b: Path) -> bool:
    return a.is_file() and filecmp.cmp(a, b, shallow=False)


def _groups(trace: Trace) -> list[ProcessGroup]:
    """The process groups; none where another writer's text cannot be read."""
    try:
        return list(trace.groups)
    except ValueError:
        return []
