"""Program order: what a host thread did before."""

from __future__ import annotations

import numpy as np

from chakra_et.codes import order_of
from chakra_et.linker.activities import Activities, begin_order
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.evidence import Evidence
from chakra_et.recording import HostTrace, Recording


def program_edges(table: Activities, recording: Recording) -> EdgeList:
    """One edge into each host activity but the first of its thread, from the one before it.

    Evidence: start times on one thread, where operations and runtime calls are one sequence; for a
    host trace alone, the numbers that the framework gives to operations as they start.
    """
    if recording.device is None and recording.host is not None:
        return _by_numbers(table, recording.host)
    order = table.host_order
    lane = table.lane[order]
    neighbours = np.flatnonzero(lane[1:] == lane[:-1])
    return EdgeList.by(Evidence.PROGRAM_STARTS, order[neighbours], order[neighbours + 1])


def _by_numbers(table: Activities, host: HostTrace) -> EdgeList:
    operations = np.flatnonzero(~host.is_root)
    begun = begin_order(host, table.caller)[operations]
    order = operations[order_of(host.thread[operations], begun)]
    thread = host.thread[order]
    neighbours = np.flatnonzero(thread[1:] == thread[:-1])
    return EdgeList.by(Evidence.PROGRAM_NUMBERS, order[neighbours], order[neighbours + 1])
