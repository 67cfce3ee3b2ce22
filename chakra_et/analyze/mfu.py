"""Utilisation: the floating-point operations of each rank over what its device could have done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chakra_et.model import Trace
from chakra_et.replay.columns import Columns
from chakra_et.replay.figures import recorded_bounds
from chakra_et.tables.work import work_of


@dataclass(frozen=True)
class Utilisation:
    """`flops` of a rank in `span_ns`, as `counted` of its operators tell."""

    flops: int
    span_ns: int
    counted: int

    @property
    def per_second(self) -> float:
        """Floating-point operations per second."""
        return self.flops / self.span_ns * 1e9 if self.span_ns else 0.0


def utilisation(columns: Mapping[int, Columns]) -> dict[int, Utilisation]:
    """Operations and span of every rank, from the attribute `num_ops`, else from shapes."""
    return {rank: _of_rank(c.trace, c) for rank, c in columns.items()}


def _of_rank(trace: Trace, columns: Columns) -> Utilisation:
    attributes = trace.nodes.attributes
    begin, end = recorded_bounds(columns)
    span = end - begin
    told = attributes.present("num_ops")
    if told.any():
        flops = attributes.dense("num_ops", 0, np.int64)
        return Utilisation(int(flops.sum()), span, int(told.sum()))
    work = [_work(trace, row) for row in np.flatnonzero(~columns.device).tolist()]
    known_work = [flops for flops in work if flops]
    return Utilisation(sum(known_work), span, len(known_work))


def _work(trace: Trace, row: int) -> int | None:
    nodes = trace.nodes
    nothing = (b"", b"", b"")
    inputs, outputs = (
        nodes.texts[code] if code >= 0 else nothing
        for code in (int(nodes.input_code[row]), int(nodes.output_code[row]))
    )
    name = nodes.names[nodes.name_code[row]]
    return work_of(name, inputs[1], inputs[2], outputs[1], outputs[2]).flops
