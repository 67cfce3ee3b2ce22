"""Launch: device work waits for the call that launched it.

The call is the one with the same correlation id; where the profile draws arrows in place of writing
ids, the one in which the arrow begins.
"""

from __future__ import annotations

import numpy as np

from chakra_et.codes import among, distinct, order_of, search_rows
from chakra_et.columns import NO_ROW, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.joining.flow_ends import open_at, work_at
from chakra_et.model import EdgeKind
from chakra_et.recording import DeviceTrace, Role
from chakra_et.shown import several


def launch_edges(table: Activities) -> EdgeList:
    """One edge into each device activity whose launch is in the profile.

    Evidence: equal correlation ids, or an arrow.
    """
    target = np.flatnonzero(table.launch != NO_ROW)
    return EdgeList(EdgeKind.LAUNCH, table.launch[target], target, table.launched_by[target])


def take_launches(table: Activities, device: DeviceTrace) -> tuple[Rows, Rows]:
    """Give device work its launch.

    Returns operations and work that arrows lead from and to, where work has no launch.
    """
    table.launch = find_launches(table, device)
    return _follow_arrows(table, device)


def find_launches(table: Activities, device: DeviceTrace) -> Rows:
    """Device work to the runtime or driver call with its correlation id, or `NO_ROW`.

    Of several calls with one id (a driver call inside a runtime call, an id that is used again)
    the last one counts that began before the work; if all began after it, the first.
    One call may launch much work: a graph.
    """
    launch = np.full(len(table), NO_ROW, np.int64)
    calls = np.flatnonzero(table.role == Role.CALL)
    work = np.flatnonzero(table.work)
    ids, wanted = (device.correlation[table.record[rows]] for rows in (calls, work))
    calls, ids = calls[ids > 0], ids[ids > 0]
    if len(calls) == 0 or len(work) == 0:
        return launch
    order = order_of(ids, table.start_ns[calls])
    made = ids[order], table.start_ns[calls[order]]
    behind = search_rows(made, (wanted, table.start_ns[work]))
    last, first = np.maximum(behind - 1, 0), np.minimum(behind, len(calls) - 1)
    place = np.where((behind > 0) & (ids[order[last]] == wanted), last, first)
    launch[work] = np.where(ids[order[place]] == wanted, calls[order[place]], NO_ROW)
    return launch


def _follow_arrows(table: Activities, device: DeviceTrace) -> tuple[Rows, Rows]:
    """Give device work without a launch the call that its arrow begins in; else an operation.

    An arrow begins anywhere inside a call, or an operation, and ends where its work starts. Of work
    with a call, nesting alone tells the operation: a call on the thread of a queue is made while
    the operation that asked for it goes on, and does not wait for it.
    """
    arrows = device.launch_flows
    work = np.flatnonzero(table.work) if len(arrows) else np.zeros(0, np.int64)
    target = work_at(table, device, work, arrows.target, table.start_ns[work])
    timed = np.flatnonzero(table.timed_host) if len(arrows) else work
    source = open_at(table, device, timed, arrows.source)
    drawn = (source != NO_ROW) & (target != NO_ROW)
    drawn[drawn] = table.start_ns[source[drawn]] <= table.start_ns[target[drawn]]
    source, target = source[drawn], target[drawn]
    new = (table.role[source] == Role.CALL) & (table.launch[target] == NO_ROW)
    table.launch[target[new]] = source[new]
    table.launched_by[target[new]] = Evidence.LAUNCH_ARROW
    called = (table.role[source] == Role.OP) & (table.launch[target] == NO_ROW)
    return source[called], target[called]


def launch_warnings(table: Activities, device: DeviceTrace) -> list[str]:
    """What the ties between calls and device work say about the recording."""
    warnings = []
    work = np.flatnonzero(table.work)
    stated = table.called_by[work] == Evidence.CALL_FILE
    orphans = work[(table.launch[work] == NO_ROW) & ~stated]
    if len(orphans):
        ids = device.correlation[table.record[orphans]]
        _, counts = np.unique(ids[ids > 0], return_counts=True)
        shared = int(counts[counts > 1].sum())
        graphs = f"; {shared} of them share correlation ids, as kernels of graphs do" * bool(shared)
        warnings.append(
            f"{several(len(orphans), 'device event has', 'device events have')} "
            "no launching call in the profile (launched before "
            f"it began, or not recorded) and only the order of a stream{graphs}"
        )
    calls = np.flatnonzero(table.role == Role.CALL)
    launching = np.zeros(len(table), np.bool_)
    launching[table.launch[work[table.launch[work] != NO_ROW]]] = True
    names = device.name[table.record[calls]]
    launchers = among(names, distinct(names[launching[calls]]))
    idle = int(np.count_nonzero(launchers & ~launching[calls]))
    if idle:
        percent = 100 * idle / int(np.count_nonzero(launchers))
        warnings.append(
            f"{several(idle, 'call', 'calls')} ({percent:.0f} %) of kinds that launch device work "
            f"{'has' if idle == 1 else 'have'} no device event"
        )
    return warnings
