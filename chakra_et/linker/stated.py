"""Ties that a recording states itself, where it was linked before."""

from __future__ import annotations

import numpy as np

from chakra_et.columns import NO_ROW
from chakra_et.linker.activities import Activities
from chakra_et.linker.carriers import Carriers
from chakra_et.linker.edges.edge_list import EdgeList
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.report import JoinTally
from chakra_et.recording import Stated

_BY = Evidence.CALL_FILE.label


def give_callers(table: Activities, stated: Stated) -> list[JoinTally]:
    """Give device work the host node that launched it."""
    if len(stated.launcher) == 0:
        return []
    work = np.flatnonzero(table.work)
    table.caller[work] = stated.launcher[table.record[work]]
    table.called_by[work] = Evidence.CALL_FILE
    found = int(np.count_nonzero(table.caller[work] != NO_ROW))
    return [JoinTally("device nodes to operations", _BY, found, len(work))]


def stated_waits(table: Activities, stated: Stated, carriers: Carriers, records: int) -> EdgeList:
    """Edges from device work to the host activities that began when it had ended.

    `records` is how many records the device's view has.
    """
    row = np.full(records, NO_ROW, np.int64)
    work = np.flatnonzero(table.work)
    row[table.record[work]] = work
    row[carriers.merged] = carriers.into
    source, target = stated.waits
    return EdgeList.by(Evidence.SYNC_FILE, row[source], target)


def only_stated(joins: list[JoinTally]) -> list[JoinTally]:
    """The joins that the recording states; all where it states none.

    Where it does, it holds no evidence that others could be found by.
    """
    return [join for join in joins if join.by == _BY] or joins
