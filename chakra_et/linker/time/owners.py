"""Whose time each moment of a host thread is, and so whose time each node's interval holds.

A moment belongs to the innermost activity that is open then. A node's own time runs on to the next
start on its thread, past its end: what it holds from there on is time of those that called it, and
from the end of the outermost of these on it is nobody's.
"""

from __future__ import annotations

import msgspec
import numpy as np

from chakra_et.codes import among, search_rows
from chakra_et.columns import EVER, NEVER, NO_ROW, Rows, count_up
from chakra_et.kernel import kernel
from chakra_et.linker.activities import Activities
from chakra_et.model import GAP, TimeParts


class Moments(msgspec.Struct):
    """The timelines of all host threads, cut where the owner changes, by lane and time.

    Piece i of thread `lane[i]` runs from `begin_ns[i]` to the next piece, or for ever.
    """

    lane: Rows
    begin_ns: Rows
    owner: Rows


def moments(table: Activities) -> Moments:
    """Whose time the threads' timelines are. One step for each start and end of an activity."""
    order = table.host_order[~among(table.host_order, table.rests)]
    if (module := kernel()) is not None:
        columns = table.lane, table.start_ns, table.end_ns, table.nested_in
        return Moments(*module.moments(order, tuple(map(np.ascontiguousarray, columns)), GAP))
    lane, start = table.lane[order], table.start_ns[order]
    last = np.append(lane[1:] != lane[:-1], True)[: len(order)]
    until = np.where(last, NEVER, np.append(start[1:], 0)[: len(order)])
    slot, owner, now = np.arange(len(order)), order, start
    first = np.flatnonzero(np.append(True, last[:-1])[: len(order)])
    found = [(first, np.full(len(first), NO_ROW), np.full(len(first), EVER))]
    ends = np.append(table.end_ns, NEVER)  # which is that of `NO_ROW`
    while len(slot):
        # What is open when nothing else begins lasts to its end, then its caller has the time.
        end = np.maximum(ends[owner], now)
        takes = np.flatnonzero(end > now)
        found.append((slot[takes], owner[takes], now[takes]))
        more = np.flatnonzero(end < until[slot])
        slot, owner, now = slot[more], table.nested_in[owner[more]], end[more]
    slots, owners, begins = (np.concatenate(part) for part in zip(*found, strict=True))
    del found  # Long recordings have many pieces.
    owners[owners == NO_ROW] = GAP
    # What one slot holds was found in the order of time.
    by_time = np.argsort(slots, kind="stable")
    return Moments(lane[slots[by_time]], begins[by_time], owners[by_time])


def exclusive_ns(table: Activities, pieces: Moments) -> Rows:
    """For how long each activity was the innermost one that was open on its thread."""
    own = np.flatnonzero(pieces.owner != GAP)
    # What somebody owns is followed by another piece of the same thread, a gap at the latest.
    took = pieces.begin_ns[own + 1] - pieces.begin_ns[own]
    # bincount adds floats; whole nanoseconds below 2**53 stay exact.
    return np.bincount(pieces.owner[own], took, minlength=len(table)).astype(np.int64)


def main_owners(table: Activities, parts: TimeParts) -> Rows:
    """Whose most of the time of each of the table's rests is; else what was open when it began."""
    told = np.flatnonzero(among(parts.node, table.rests) & ~parts.gap)
    told = told[np.argsort(parts.ns[told], kind="stable")]
    owner = np.full(len(table), NO_ROW, np.int64)
    order = table.host_order
    at = np.flatnonzero(among(order, table.rests))
    owner[order[at]] = order[at - 1]
    owner[parts.node[told]] = parts.owner[told]
    return owner[table.rests]


def owned_parts(table: Activities, pieces: Moments, begin_ns: Rows, end_ns: Rows) -> TimeParts:
    """The parts of the own times of host activities that are others' (`TimeParts.of_others`), by
    row, in the order of time.
    """
    rows = table.host_order
    rows = rows[end_ns[rows] > begin_ns[rows]]
    lane, timelines = table.lane[rows], (pieces.lane, pieces.begin_ns)
    if (module := kernel()) is not None:
        owned = *timelines, pieces.owner
        return TimeParts(*module.owned_parts(owned, rows, lane, begin_ns[rows], end_ns[rows]))
    first = search_rows(timelines, (lane, begin_ns[rows])) - 1
    after = search_rows(timelines, (lane, end_ns[rows]), "left")
    each = after - first
    piece = np.repeat(first, each) + count_up(each)
    place = np.repeat(np.arange(len(rows)), each)
    others = np.flatnonzero(pieces.owner[piece] != rows[place])
    piece, place = piece[others], place[others]
    node, last = rows[place], piece == after[place] - 1
    ends = np.where(last, end_ns[node], np.append(pieces.begin_ns[1:], 0)[piece])
    ns = ends - np.maximum(pieces.begin_ns[piece], begin_ns[node])
    told = np.flatnonzero(ns > 0)
    return TimeParts(node[told], pieces.owner[piece[told]], ns[told])
