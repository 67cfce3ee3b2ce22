"""Runs after edits, and how long they take."""

from __future__ import annotations

from chakra_et.model import TraceSet
from chakra_et.replay import replay
from chakra_et.whatif import parse_edit


def edited(traces: TraceSet, *texts: str) -> TraceSet:
    """The run after edits, one after the other."""
    for text in texts:
        traces, _ = parse_edit(text).apply(traces)
    return traces


def spans(traces: TraceSet) -> list[int]:
    """The span of each rank in a replay, in ns."""
    return [figures.span_ns for figures in replay(traces).figures.values()]


def durations(traces: TraceSet) -> list[int]:
    """The durations of all nodes, in ns."""
    return [ns for trace in traces.values() for ns in trace.nodes.duration_ns.tolist()]
