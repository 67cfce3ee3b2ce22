"""Whose time each moment of a host thread is, and so whose time each node's interval holds.

A moment belongs to the innermost activity that is open then. A node's own time runs on to the next
start on its thread, past its end: what it holds from there on is time of those that called it, and
from the end of the outermost of these on it is nobody's.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import among, search_rows
from chakra_et.columns import EVER, NEVER, NO_ROW, Mask, Rows, count_up
from chakra_et.kernel import kernel
from chakra_et.linker.activities import Activities
from chakra_et.model import GAP, TimeParts

_TOGETHER: Final = 1 << 17
"""So many activities are looked at together: their pieces need memory for a while."""


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
    first = np.append(True, last[:-1])[: len(order)]
    until = np.where(last, NEVER, np.append(start[1:], 0)[: len(order)])
    ends = np.append(table.end_ns, NEVER)  # which is that of `NO_ROW`
    found = []
    for begin in range(0, max(len(order), 1), _TOGETHER):
        some = slice(begin, begin + _TOGETHER)
        slots = order[some], start[some], until[some], first[some]
        slot, begin_ns, owner = _in_slots(table.nested_in, ends, *slots)
        found.append((lane[some][slot], begin_ns, owner))
    return Moments(*(np.concatenate(part) for part in zip(*found, strict=True)))


def _in_slots(
    nested_in: Rows, ends: Rows, rows: Rows, start: Rows, until: Rows, first: Mask
) -> tuple[Rows, Rows, Rows]:
    """The pieces of times from the start of each of some activities to the next one on the thread.

    The place of the activity, when the piece begins, and whose it is, in the order of time. What is
    before the `first` activity of a thread is nobody's.
    """
    slot, owner, now = np.arange(len(rows)), rows, start
    before = np.flatnonzero(first)
    found = [(before, np.full(len(before), NO_ROW), np.full(len(before), EVER))]
    while len(slot):
        # What is open when nothing else begins lasts to its end, then its caller has the time.
        end = np.maximum(ends[owner], now)
        takes = np.flatnonzero(end > now)
        found.append((slot[takes], owner[takes], now[takes]))
        more = np.flatnonzero(end < until[slot])
        slot, owner, now = slot[more], nested_in[owner[more]], end[more]
    slots, owners, begins = (np.concatenate(part) for part in zip(*found, strict=True))
    owners[owners == NO_ROW] = GAP
    # What one slot holds was found in the order of time.
    by_time = np.argsort(slots, kind="stable")
    return slots[by_time], begins[by_time], owners[by_time]


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
    found = []
    for begin in range(0, max(len(rows), 1), _TOGETHER):
        some = slice(begin, begin + _TOGETHER)
        found.append(_of_others(pieces, rows[some], first[some], after[some], begin_ns, end_ns))
    return TimeParts(*(np.concatenate(part) for part in zip(*found, strict=True)))


def _of_others(
    pieces: Moments, rows: Rows, first: Rows, after: Rows, begin_ns: Rows, end_ns: Rows
) -> tuple[Rows, Rows, Rows]:
    """Node, owner and length of the parts that are others'; the time of each of some rows begins in
    the piece `first` and ends before the piece `after`.
    """
    each = after - first
    piece = np.repeat(first, each) + count_up(each)
    place = np.repeat(np.arange(len(rows)), each)
    others = np.flatnonzero(pieces.owner[piece] != rows[place])
    piece, place = piece[others], place[others]
    node, last = rows[place], piece == after[place] - 1
    # Behind the last piece there is none, but it is the last one of its node.
    following = pieces.begin_ns.take(piece + 1, mode="clip")
    ends = np.where(last, end_ns[node], following)
    ns = ends - np.maximum(pieces.begin_ns[piece], begin_ns[node])
    told = np.flatnonzero(ns > 0)
    return node[told], pieces.owner[piece[told]], ns[told]
