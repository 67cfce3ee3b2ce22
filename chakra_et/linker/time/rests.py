"""What is left of a thread's work behind its last call that gave work to somebody else.

A call's own time ends where its work begins, and the rest belongs to what follows on the thread. If
nothing follows, or what follows waits, that time is a node of its own: no host time is lost. So is
what a thread does at its end when a transfer is over for which it has waited.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
from msgspec.structs import asdict

from chakra_et.codes import among
from chakra_et.columns import NEVER, NO_ROW, Rows, no_rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.workers import Workers
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.edges.sync import blocking_copies
from chakra_et.linker.edges.thread.host_time import HostTime
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.time.held import ends_of_outrun
from chakra_et.linker.time.last_waits import waits_at_ends
from chakra_et.linker.waits.wait_calls import calls_of
from chakra_et.recording import DeviceTrace, Kind

_WAITS: Final = (Kind.WAIT_STREAM, Kind.WAIT_DEVICE, Kind.WAIT_EVENT, Kind.FREE)
"""What a call that holds up its thread does."""


class Rests(msgspec.Struct):
    """Rests of threads: each follows the call `after[k]`, from `begin_ns[k]` to `end_ns[k]`."""

    after: Rows
    begin_ns: Rows
    end_ns: Rows

    def __len__(self) -> int:
        return len(self.after)


def first_given(table: Activities, workers: Workers) -> Rows:
    """When the first work began that each host activity gave to a device or to a worker thread.

    Where a call was not recorded, its operation stands for it.
    """
    launcher = np.where(table.launch != NO_ROW, table.launch, table.caller)
    launcher[workers.transfers] = workers.asked
    given = table.work.copy()
    given[workers.transfers] = True
    work = np.flatnonzero(given & (launcher != NO_ROW))
    first = np.full(len(table), NEVER, np.int64)
    np.minimum.at(first, launcher[work], table.start_ns[work])
    return first


def find_rests(
    table: Activities, device: DeviceTrace | None, time: HostTime, in_streams: EdgeList
) -> Rests:
    """The calls whose own time is cut where nothing follows that could go on with it.

    `in_streams` are the edges between pieces of work of one stream.
    """
    if device is None:
        return Rests(no_rows(), no_rows(), no_rows())
    first = np.minimum(first_given(table, time.workers), ends_of_outrun(table, [in_streams]))
    order = table.host_order
    following = np.full(len(table), NO_ROW, np.int64)
    same = table.lane[order][1:] == table.lane[order][:-1]
    following[order[:-1][same]] = order[1:][same]
    calls = order[first[order] < time.end_ns[order]]
    after = following[calls]
    ends = waits_at_ends(table, time)
    waits = among(after, calls_of(table, device, *_WAITS))
    copied = _ends_of_copies(table, device)
    # What follows a blocking copy knows how long that took to return.
    waits &= copied[calls] == NO_ROW
    idle = among(after, time.waiting) & (copied[calls] == NO_ROW)
    woken = time.awaited.woken_ns(table)
    until = np.where(after == NO_ROW, ends.until(table.lane[calls]), woken[after])
    begin = np.maximum(np.maximum(first[calls], table.start_ns[calls]), copied[calls])
    end = np.maximum(_last_end(table, calls, until), begin)
    use = ((after == NO_ROW) | idle) & (end > begin) | waits & (until > begin)
    return Rests(
        np.append(calls[use], ends.after),
        np.append(begin[use], ends.begin_ns),
        np.append(end[use], ends.end_ns),
    )


def _ends_of_copies(table: Activities, device: DeviceTrace) -> Rows:
    """By call, when the blocking copy that it made has ended, or `NO_ROW`."""
    copies = blocking_copies(table, device)
    ends = np.full(len(table), NO_ROW, np.int64)
    np.maximum.at(ends, table.launch[copies], table.end_ns[copies])
    return ends


def _last_end(table: Activities, rows: Rows, until: Rows) -> Rows:
    """When the last of what is around each of `rows`, or itself, ends by a time; else 0."""
    last = np.zeros(len(rows), np.int64)
    around = rows
    while (around != NO_ROW).any():
        ends = np.where(around == NO_ROW, 0, table.end_ns[around])
        last = np.where(ends <= until, np.maximum(last, ends), last)
        around = np.where(around == NO_ROW, NO_ROW, table.nested_in[around])
    return last


def with_rests(table: Activities, rests: Rests) -> Activities:
    """The table with a host activity for each rest, behind all others, in place on its thread.

    It has no record of its own, and is called by nobody: what it goes on with was.
    """
    if len(rests) == 0:
        return table
    new = np.arange(len(rests)) + len(table)
    none = np.full(len(rests), NO_ROW, np.int64)
    rows: dict[str, Any] = {
        "start_ns": rests.begin_ns,
        "end_ns": rests.end_ns,
        "lane": table.lane[rests.after],
        "role": table.role[rests.after],
        "called_by": np.full(len(rests), Evidence.CALL_NESTING, np.uint8),
        "annotates": np.zeros(len(rests), np.bool_),
        "launched_by": np.full(len(rests), Evidence.LAUNCH_CORRELATION, np.uint8),
    }
    place = np.empty(len(table), np.int64)
    place[table.host_order] = np.arange(len(table.host_order))
    order = np.insert(table.host_order, place[rests.after] + 1, new)
    lists: dict[str, Any] = {"host_order": order, "beside": table.beside, "rests": new}
    columns: dict[str, Any] = {
        name: np.append(column, rows.get(name, none))
        for name, column in asdict(table).items()
        if name not in lists
    }
    return Activities(**columns, **lists)
