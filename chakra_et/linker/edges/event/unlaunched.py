"""Waits between work that was launched before the window, or by calls that were not recorded.

No call and no record tells of them: they were asked for before the profile began. Only times do.
"""

from __future__ import annotations

import numpy as np

from chakra_et.columns import NO_ROW, UNTIMED, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.edges.event.edges import SOON_NS
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.waits.launched import Launched


def unlaunched_edges(table: Activities, launched: Launched) -> EdgeList:
    """One edge into each piece of work without a launch that began late, and soon after another.

    It began more than `SOON_NS` after its stream was free and its operation, if one is known, was
    over, or it is the first of its stream; and at most `SOON_NS` after the end of other work
    without a launch on another stream: what was launched later cannot have been waited for.
    """
    orphans = launched.work[table.launch[launched.work] == NO_ROW]
    source = _ended_elsewhere(table, orphans)
    caller, callers = table.caller[orphans], table.caller[source]
    ready = _free_since(table, launched)[orphans]
    called = caller != NO_ROW
    ready[called] = np.maximum(ready[called], table.end_ns[caller[called]])
    start = table.start_ns[orphans]
    # A stream that nothing was seen on may have been free for ever.
    late = (ready == UNTIMED) | (start - np.maximum(ready, UNTIMED // 2) > SOON_NS)
    soon = (source != NO_ROW) & (start - table.end_ns[source] <= SOON_NS)
    asked = ~called | (callers == NO_ROW) | (table.start_ns[callers] < table.start_ns[caller])
    use = late & soon & asked
    return EdgeList.by(Evidence.EVENT_ORPHANS, source[use], orphans[use])


def _free_since(table: Activities, launched: Launched) -> Rows:
    """By activity, when the work before it on its stream had ended; `UNTIMED` for the first."""
    work, lane = launched.work, launched.lane
    since = np.full(len(table), UNTIMED, np.int64)
    same = np.flatnonzero(lane[1:] == lane[:-1])
    since[work[same + 1]] = table.end_ns[work[same]]
    return since


def _ended_elsewhere(table: Activities, rows: Rows) -> Rows:
    """For each of `rows`, that of the others which had ended last on another lane; or `NO_ROW`."""
    if len(rows) == 0:
        return rows
    by_end = rows[np.argsort(table.end_ns[rows], kind="stable")]
    lane = table.lane[by_end]
    # Where the last end is on the own lane, that before the run of ends on it counts.
    begins = np.flatnonzero(np.append(True, lane[1:] != lane[:-1]))
    place = np.searchsorted(table.end_ns[by_end], table.start_ns[rows], "right") - 1
    run = begins[np.searchsorted(begins, np.maximum(place, 0), "right") - 1]
    place = np.where((place >= 0) & (lane[place] == table.lane[rows]), run - 1, place)
    return np.where(place >= 0, by_end[place], NO_ROW)
