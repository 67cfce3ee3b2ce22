"""Group order: a communication waits for the one before it in its process group."""

from __future__ import annotations

import numpy as np

from chakra_et.codes import among, order_of
from chakra_et.columns import NO_ROW
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.communication import Communication
from chakra_et.linker.communication.workers import Workers
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.evidence import Evidence


def group_edges(
    table: Activities, communication: dict[int, Communication], workers: Workers
) -> EdgeList:
    """Edges between neighbours in each process group, in the order in which they were asked for.

    Evidence: the group's name and recorded times. Communications of one group that overlap in time
    (sends and receives in one batch) have no edge between them. Neither have those of different
    worker threads: a free worker takes what is asked for next, and does not wait for the others.
    """
    named = [row for row, facts in communication.items() if facts.group is not None]
    rows = np.array(named, np.int64)
    rows = rows[table.lane[rows] != NO_ROW]
    _, group = np.unique([communication[r].group or "" for r in rows.tolist()], return_inverse=True)
    issued_ns = table.start_ns.copy()
    told = workers.asked != NO_ROW
    issued_ns[workers.transfers[told]] = table.start_ns[workers.asked[told]]
    order = order_of(group.ravel(), issued_ns[rows], table.start_ns[rows])
    rows, group = rows[order], group.ravel()[order]
    follows = (group[1:] == group[:-1]) & (table.end_ns[rows][:-1] <= table.start_ns[rows][1:])
    by_worker = among(rows, workers.transfers)
    lane = table.lane[rows]
    follows &= ~(by_worker[1:] & by_worker[:-1] & (lane[1:] != lane[:-1]))
    places = np.flatnonzero(follows)
    return EdgeList.by(Evidence.GROUP_ORDER, rows[places], rows[places + 1])
