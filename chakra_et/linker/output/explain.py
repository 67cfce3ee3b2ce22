"""What each edge of a trace rests on: how it is written, and read again.

A file says it in the attribute `edge_evidence` only where it is not what nearly all edges of that
kind rest on (`usual`).
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from chakra_et.linker.evidence import Codes, Evidence
from chakra_et.model import UNKNOWN_NS, EdgeKind, Trace, edge_evidence
from chakra_et.version import PROGRAM

_NONE: Final = 255
"""No evidence is the usual one: it is always said."""
_USUAL: Final = {
    EdgeKind.CALL: Evidence.CALL_NESTING,
    EdgeKind.PROGRAM: Evidence.PROGRAM_STARTS,
    EdgeKind.LAUNCH: Evidence.LAUNCH_CORRELATION,
    EdgeKind.STREAM: Evidence.STREAM_ORDER,
    EdgeKind.DATA: Evidence.DATA_STORAGE,
    EdgeKind.GROUP: Evidence.GROUP_ORDER,
}
_LABELS: Final = [evidence.label for evidence in Evidence]
_BY_KIND: Final = np.array([_USUAL.get(kind, _NONE) for kind in EdgeKind], np.uint8)


class Explained(msgspec.Struct, frozen=True):
    """An edge into a node; `evidence` is a label, or None where the trace does not tell."""

    source: int
    kind: EdgeKind
    inferred: bool
    evidence: str | None


def usual(trace: Trace) -> Codes:
    """What each edge rests on if nothing is said of it; `_NONE` where something must be.

    Host work without times is in the order of its numbers. Launched work is called by the caller
    of its launch, and what the host trace holds by what it says, if it holds the caller too.
    """
    edges, nodes = trace.edges, trace.nodes
    target, call = edges.target, np.flatnonzero(edges.kind == EdgeKind.CALL)
    codes = _BY_KIND[edges.kind]
    untimed = (edges.kind == EdgeKind.PROGRAM) & (nodes.start_ns == UNKNOWN_NS)[target]
    codes[untimed] = Evidence.PROGRAM_NUMBERS
    launched = np.zeros(len(nodes), np.bool_)
    launched[target[edges.kind == EdgeKind.LAUNCH]] = True
    recorded = np.append(nodes.attributes.present("host_id"), False)
    both = recorded[target[call]] & recorded[nodes.rows_of(edges.source[call])]
    codes[call[both]] = Evidence.CALL_PARENT
    codes[call[launched[target[call]]]] = Evidence.CALL_LAUNCH
    return codes


def tell(trace: Trace, codes: Codes) -> None:
    """Write what the edges rest on, an `Evidence` each, where it is not the usual."""
    told = np.flatnonzero(codes != usual(trace))
    labels = [_LABELS[code] for code in codes[told].tolist()]
    said = dict(zip(told.tolist(), labels, strict=True))
    edge_evidence.set_entries(trace.nodes, trace.edges, said)


def labels(trace: Trace) -> list[str | None]:
    """What each edge rests on, in the order of the edges; None where the trace does not tell.

    It does not for edges of other tools, nor for those that a pass has inferred.
    """
    said, codes = edge_evidence.entries(trace), usual(trace)
    known = (codes != _NONE) & ~trace.edges.inferred
    known &= str(trace.metadata.get("producer") or "").startswith(PROGRAM)
    found: list[str | None] = [
        _LABELS[code] if tells else None
        for code, tells in zip(codes.tolist(), known.tolist(), strict=True)
    ]
    for edge, label in said.items():
        found[edge] = label
    return found


def explain(trace: Trace, row: int) -> list[Explained]:
    """The edges into a node, each with what it rests on."""
    into = trace.edges.into(row)
    begin = int(trace.edges.offsets[row])
    evidence = labels(trace)[begin : begin + len(into)]
    return [Explained(*edge, label) for edge, label in zip(into, evidence, strict=True)]
