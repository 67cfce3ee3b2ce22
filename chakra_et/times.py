"""Time by operator: how often each ran, and its time with and without what it called.

The same table as `torch.profiler`'s `key_averages()`, of a recording or of a replayed timeline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.codes import distinct
from chakra_et.columns import Mask, Rows
from chakra_et.definitions import NodeType
from chakra_et.model import GAP, UNKNOWN_NS, EdgeKind, TimeParts, Trace, time_parts

_DEEPEST: Final = 1000
"""How deep calls are followed: callers in a circle, as damaged files may have them, have no end."""


@dataclass(frozen=True)
class OperatorTime:
    """What all nodes of one name took on the host, or on a device (and in communication), in ns.

    The name of gaps on host threads is None. An operator that does nothing but call itself (another
    overload) counts as one call, and its total once.

    `self_ns` is their own time, without what they called. `total_ns` is the time from their starts
    to their ends. `wait_ns` is the part of these in which they waited for another thread or for a
    device and did nothing: it belongs to nobody and is not in `self_ns`. The profiler's self time
    is the sum of both. A timeline that was replayed no longer tells of waits.

    `timed` of the calls have a time: a profile may know fewer threads than the host trace.
    """

    name: str | None
    on_host: bool
    calls: int
    self_ns: int
    wait_ns: int
    total_ns: int
    timed: int


def operator_times(trace: Trace) -> list[OperatorTime]:
    """Times by name, of host and device work apart; the largest self time first."""
    nodes = trace.nodes
    parts = time_parts(nodes)
    own = nodes.self_ns
    exclusive = nodes.attributes.dense("exclusive_ns", -1, np.int64)
    waited = np.where(exclusive >= 0, np.maximum(exclusive - own, 0), 0)
    total = nodes.attributes.dense("inclusive_ns", -1, np.int64)
    caller = callers_on_host(trace)
    total = np.where(total >= 0, total, _with_callees(caller, own))
    # What is left of a caller behind its last launch is no call of it.
    calls = ~nodes.attributes.present("rest_of")
    again = _called_again(caller, nodes.name_code)
    calls[again], total[again] = False, 0
    on_host = nodes.attributes.dense("is_cpu_op", False, np.bool_)
    key = 2 * nodes.name_code + on_host
    timed = calls & have_times(trace)
    sums = [np.zeros(2 * len(nodes.names), np.int64) for _ in range(5)]
    for into, values in zip(sums, (calls, own, waited, total, timed), strict=True):
        np.add.at(into, key, values)
    # What only tells about the trace, such as its threads, ran nothing.
    ran = distinct(key[nodes.type != NodeType.METADATA])
    found = [
        OperatorTime(nodes.names[i // 2], bool(i % 2), *(int(s[i]) for s in sums))
        for i in ran.tolist()
    ]
    found += _gaps(parts)
    return sorted(found, key=lambda item: (-item.self_ns, item.name or ""))


def have_times(trace: Trace) -> Mask:
    """Which nodes somebody timed: a host trace knows more than the profile beside it, at times."""
    nodes = trace.nodes
    took = (nodes.duration_ns > 0) | nodes.attributes.present("inclusive_ns")
    return np.asarray(took | (nodes.start_ns != UNKNOWN_NS))


def _gaps(parts: TimeParts) -> list[OperatorTime]:
    ns = parts.ns[parts.owner == GAP]
    took = int(ns.sum())
    return [OperatorTime(None, True, len(ns), took, 0, took, len(ns))] if len(ns) else []


def callers(trace: Trace) -> Rows:
    """The row of the caller of each node, by edges of kind call; -1 where there is none."""
    return _callers(trace, np.ones(len(trace.nodes), np.bool_))


def callers_on_host(trace: Trace) -> Rows:
    """The row of the caller of each host node, where that is one, too; else -1."""
    return _callers(trace, trace.nodes.attributes.dense("is_cpu_op", False, np.bool_))


def _callers(trace: Trace, among: npt.NDArray[np.bool_]) -> Rows:
    source, target = trace.source_rows(), trace.edges.target
    calls = (trace.edges.kind == EdgeKind.CALL) & (source >= 0)
    calls &= among[target] & among[source]
    caller = np.full(len(trace.nodes), -1, np.int64)
    caller[target[calls]] = source[calls]
    return caller


def _called_again(caller: Rows, name_code: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Which nodes are the only ones that another of the same name called."""
    callees = np.bincount(caller[caller >= 0], minlength=len(caller))
    return np.asarray((caller >= 0) & (callees[caller] == 1) & (name_code[caller] == name_code))


def _with_callees(caller: Rows, own: Rows) -> Rows:
    """The time of each node and of all that it called."""
    total: Rows = own.copy()
    rows, above = np.flatnonzero(caller >= 0), caller[caller >= 0]
    for _ in range(_DEEPEST):
        np.add.at(total, above, own[rows])
        above = caller[above]
        rows, above = rows[above >= 0], above[above >= 0]
    return total
