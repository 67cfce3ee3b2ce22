"""What a trace that was linked before says of its own ties, in place of what we would find."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.converters.linked import LinkedTrace
from chakra_et.linker.activities import Activities
from chakra_et.linker.carriers import Carriers
from chakra_et.linker.edges.edge_list import EdgeList
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.join import HostJoin
from chakra_et.linker.nesting import NONE
from chakra_et.linker.report import JoinTally, Report
from chakra_et.model import Trace

_BY: Final = Evidence.CALL_FILE.label
_TIMES: Final = "(phase X)"
"""Where the report counts the times of host nodes, which are no records of their own."""
_UNTOLD: Final = ("thread", "device")
"""Attributes for which a linked trace has nothing to say."""


def told_join(linked: LinkedTrace) -> HostJoin:
    """Which host nodes the file gives a time."""
    matched = int(np.count_nonzero(linked.record != NONE))
    return HostJoin(linked.record, _BY, matched, len(linked.host) - linked.host.stubs)


def give_callers(table: Activities, linked: LinkedTrace) -> JoinTally:
    """Give device work the host node that launched it."""
    work = np.flatnonzero(table.work)
    table.caller[work] = linked.launcher[table.record[work]]
    table.called_by[work] = Evidence.CALL_FILE
    found = int(np.count_nonzero(table.caller[work] != NONE))
    return JoinTally("device nodes to operations", _BY, found, len(work))


def told_syncs(table: Activities, linked: LinkedTrace, carriers: Carriers) -> EdgeList:
    """Edges from device work to the host activities that began when it had ended."""
    row = np.full(len(linked.device), NONE, np.int64)
    work = np.flatnonzero(table.work)
    row[table.record[work]] = work
    row[carriers.merged] = carriers.into
    source, target = linked.synced
    return EdgeList.by(Evidence.SYNC_FILE, row[source], target)


def leave_unsaid(trace: Trace, report: Report) -> None:
    """Take out what stands there only because host nodes were given times."""
    report.records.pop(_TIMES, None)
    report.joins = [join for join in report.joins if join.by == _BY]
    for name in _UNTOLD:
        for column in trace.nodes.attributes.named(name):
            trace.nodes.attributes.remove(column, column.rows)
