"""Arrows between nodes of a graph: what the profile draws of a graph's own dependencies."""

from __future__ import annotations

import numpy as np

from chakra_et.codes import distinct_rows
from chakra_et.columns import NO_ROW
from chakra_et.linker.activities import Activities
from chakra_et.linker.edge_list import EdgeList, in_time
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.joining.flow_ends import work_at
from chakra_et.linker.tallies import JoinTally
from chakra_et.recording import DeviceTrace


def graph_arrows(
    table: Activities, device: DeviceTrace | None, warnings: list[str]
) -> tuple[EdgeList, list[JoinTally]]:
    """An edge for each arrow from device work to device work.

    An arrow leads from where its source ends to where its target starts; else each end belongs to
    the work that is under way then on its row. What contradicts the recorded times is left out.
    """
    none = np.zeros(0, np.int64)
    work = np.flatnonzero(table.work)
    if device is None or device.graph_flows.ends == 0 or len(work) == 0:
        return EdgeList.by(Evidence.EVENT_ARROW, none, none), []
    arrows = device.graph_flows
    source = work_at(table, device, work, arrows.source, table.end_ns[work])
    target = work_at(table, device, work, arrows.target, table.start_ns[work])
    both = (source != NO_ROW) & (target != NO_ROW) & (source != target)
    edges = EdgeList.by(Evidence.EVENT_ARROW, *distinct_rows(source[both], target[both]))
    what, of = "arrows between nodes of graphs to device work", len(arrows) + arrows.incomplete
    joins = [JoinTally(what, "row and time", int(np.count_nonzero(both)), of)]
    nothing = np.zeros(len(edges), np.bool_)
    return in_time(edges, nothing, table.end_ns, table.start_ns, warnings), joins
