"""Joins: nodes without work that stand between many that are waited for and many that wait.

Calls that wait for a whole device, one after the other, wait for the same streams again and again:
each for the last work of every stream. A join waits for what the streams were given since the join
before it, and for that one; the calls wait for their join. So each piece of work is waited for
once, where calls times streams edges would say no more.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import among, distinct
from chakra_et.columns import EVER, NEVER, NO_ROW, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.waits.launched import Launched
from chakra_et.linker.waits.wait_calls import WaitCalls
from chakra_et.model import EdgeKind
from chakra_et.recording import Kind

MANY: Final = 16
"""A join stands between more than this many nodes and more than this many that wait for them."""


class Joins(msgspec.Struct):
    """`end_ns[j]` is when all that join j waits for has ended, `chain[j]` numbers its device.

    `edges` lead into joins, from join to join and from joins into calls; row `first + j` is join j.
    `places` are those of the calls, in `WaitCalls`, that need no other edges.
    """

    end_ns: Rows
    chain: Rows
    edges: EdgeList
    places: Rows


def device_joins(table: Activities, launched: Launched, calls: WaitCalls, slack_ns: int) -> Joins:
    """Joins for calls that wait for all streams of a device, where these save edges.

    What had not ended `slack_ns` after a call, or after a later one, was not waited for by it.
    """
    waits = calls.of(Kind.WAIT_DEVICE)
    devices = distinct(calls.device[waits])
    found = [
        _chain(table, launched, calls, waits[calls.device[waits] == device], int(device), slack_ns)
        for device in devices.tolist()
    ]
    return _together(len(table), [chain for chain in found if chain is not None])


def _chain(
    table: Activities,
    launched: Launched,
    calls: WaitCalls,
    places: Rows,
    device: int,
    slack_ns: int,
) -> Joins | None:
    """The joins of one device, numbered from 0; None where they save nothing."""
    lanes = [lane for (d, _), lane in launched.lane_of.items() if device in (NO_ROW, d)]
    if len(places) <= MANY or len(lanes) <= MANY:
        return None
    call = calls.call[places]
    asked, until = table.start_ns[call], table.end_ns[call] + slack_ns
    until = np.minimum.accumulate(until[::-1])[::-1]
    mine = np.flatnonzero(among(launched.lane, lanes))
    lane, work = launched.lane[mine], launched.work[mine]
    waiting = np.searchsorted(asked, launched.when[mine], "left")
    waiting = np.maximum(waiting, np.searchsorted(until, table.end_ns[work], "left"))
    last = waiting < _least_after(lane, waiting)
    lane, work, waiting = lane[last], work[last], waiting[last]
    used = waiting < len(call)
    first = np.full(len(lanes), len(call), np.int64)
    np.minimum.at(first, np.searchsorted(np.sort(lanes), lane[used]), waiting[used])
    direct = int((len(call) - first).sum())
    work, waiting = work[used], waiting[used]
    begins, join = np.unique(waiting, return_inverse=True)
    own = np.searchsorted(begins, np.arange(len(call)), "right") - 1
    told = np.flatnonzero(own >= 0)
    if direct <= len(work) + len(begins) + len(told):
        return None
    end = np.full(len(begins), EVER, np.int64)
    np.maximum.at(end, join, table.end_ns[work])
    by = np.where(calls.recorded[places], Evidence.SYNC_RECORD, Evidence.SYNC_DEVICE)
    number = len(table) + np.arange(len(begins))
    edges = EdgeList(
        EdgeKind.SYNC,
        np.concatenate((number[:-1], work, number[own[told]])),
        np.concatenate((number[1:], number[join], call[told])),
        np.concatenate((by[begins[1:]], by[waiting], by[told])).astype(np.uint8),
    )
    return Joins(np.maximum.accumulate(end), np.zeros(len(end), np.int64), edges, places)


def _least_after(lane: Rows, values: Rows) -> Rows:
    """The least of the values that come later on the same lane; `NEVER` where there is none."""
    count = len(lane)
    # A running minimum from the end, for each lane: later lanes are moved up, out of its way.
    height = int(values.max(initial=0)) + 1
    apart = (values + lane * height)[::-1]
    least = np.minimum.accumulate(apart)[::-1] - lane * height if count else values
    result = np.full(count, NEVER, np.int64)
    same = np.flatnonzero(lane[1:] == lane[:-1])
    result[same] = least[same + 1]
    return result


def _together(rows: int, chains: list[Joins]) -> Joins:
    """The joins of several devices, one after the other; activities of theirs begin at `rows`."""
    none = np.zeros(0, np.int64)
    edges, before = [EdgeList.by(Evidence.SYNC_DEVICE, none, none)], 0
    for chain in chains:
        found = chain.edges
        source = np.where(found.source >= rows, found.source + before, found.source)
        target = np.where(found.target >= rows, found.target + before, found.target)
        edges.append(EdgeList(found.kind, source, target, found.evidence))
        before += len(chain.end_ns)
    return Joins(
        np.concatenate([none, *(chain.end_ns for chain in chains)]),
        np.repeat(np.arange(len(chains)), [len(chain.end_ns) for chain in chains]),
        EdgeList.joined(edges),
        np.concatenate([none, *(chain.places for chain in chains)]),
    )
