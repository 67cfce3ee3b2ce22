"""Something begins later by a fixed time: what was not there before it, such as a late rank."""

from __future__ import annotations

import numpy as np

from chakra_et.definitions import Kind
from chakra_et.errors import ChakraError
from chakra_et.model import Trace, TraceSet
from chakra_et.passes.edit import set_attribute
from chakra_et.replay.selectors import select
from chakra_et.whatif.edit import Change, Edit
from chakra_et.whatif.values import numbers

_ALL: float = -1.0


def delay(text: str, selector: str, value: str) -> Edit:
    """Some nodes begin later than they could, on one rank or on all."""
    micros, rank = numbers(text, value, defaults=(0.0, _ALL))
    late_ns = round(micros * 1000)

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        if rank != _ALL and rank not in traces:
            raise ChakraError(
                f"{text}: there is no rank {rank:g}", remedy="Name a rank of the run."
            )
        made, nodes = dict(traces.items()), 0
        for place, trace in traces.items():
            if rank in (_ALL, place):
                made[place], chosen = _delayed(trace, selector, late_ns)
                nodes += chosen
        return TraceSet(made), Change(text, nodes, 0, nodes * late_ns, "added")

    return Edit(text, apply)


def _delayed(trace: Trace, selector: str, late_ns: int) -> tuple[Trace, int]:
    rows = np.flatnonzero(select(trace, selector))
    nodes = trace.nodes.copied()
    late = trace.nodes.attributes.dense("late_ns", 0, np.int64)[rows] + late_ns
    set_attribute(nodes.attributes, "late_ns", Kind.INT64, rows, late)
    return Trace(nodes, trace.edges, trace.metadata), len(rows)
