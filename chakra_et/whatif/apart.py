"""Communications without the waits of their members, so that edits may move and join them.

A recording tells what a transfer took by when all of its members had come. An edit that moves the
nodes of each rank by another time, or makes one transfer of several, leaves nothing to tell it by.
So waits are taken out before: durations then count from when the last member came.
"""

from __future__ import annotations

import numpy as np

from chakra_et.definitions import Kind
from chakra_et.model import UNKNOWN_NS, Trace, TraceSet
from chakra_et.passes.edit import set_attribute
from chakra_et.replay.columns import MET, Columns
from chakra_et.replay.meetings import Meetings
from chakra_et.whatif.edit import with_parts


def waits_apart(traces: TraceSet) -> TraceSet:
    """The run with the attribute `met_ns` on communications that all members recorded.

    Their durations count from then, so a replay gives what it gave before. Communications of which
    a member ended before the last one came stay as they are, and so does a run of one rank.
    """
    meetings = Meetings.of(traces)
    took = iter(meetings.recorded().of_members.tolist())
    told: list[dict[int, tuple[int, int]]] = [{} for _ in traces]
    for rows in meetings.members:
        mine = [next(took) for _ in rows]
        ranks = [(meetings.ranks[i], row) for i, row in rows.items()]
        if min(mine) < 0 or not all(c.timed[row] and c.met[row] == UNKNOWN_NS for c, row in ranks):
            continue
        came = max(
            int(meetings.ranks[i].begin[row]) - meetings.offsets[i] for i, row in rows.items()
        )
        for (i, row), ns in zip(rows.items(), mine, strict=True):
            told[i][row] = came + meetings.offsets[i], ns
    return TraceSet({
        rank: _counted(meetings.ranks[i], told[i]) if told[i] else trace
        for i, (rank, trace) in enumerate(traces.items())
    })  # fmt: skip


def _counted(columns: Columns, told: dict[int, tuple[int, int]]) -> Trace:
    """A trace whose communications last as told, from when the last member came."""
    rows, came, took = np.array([(row, *told[row]) for row in sorted(told)], np.int64).T
    parts = columns.parts
    longer = np.zeros(len(columns), np.int64)
    longer[rows] = took - columns.duration[rows]
    changed = with_parts(
        columns.trace, columns, parts.ns + np.where(parts.own, longer[parts.node], 0)
    )
    set_attribute(changed.nodes.attributes, MET, Kind.INT64, rows, came)
    return changed
