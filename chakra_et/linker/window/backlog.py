"""The backlog of a window: what streams had still to do when it began, for those who wait for it.

Work that was launched outside the window is left out. What comes after it on its stream, and a call
that waits for it, cannot begin before it is done: that moment is all that is kept of it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.codes import among, codes, order_of
from chakra_et.columns import EVER, NEVER, Mask, Rows
from chakra_et.linker.time.held import LAG_NS
from chakra_et.recording import DeviceTrace, Kind, Role
from chakra_et.shown import several

_WAITS: Final = (Kind.WAIT_STREAM, Kind.WAIT_DEVICE, Kind.WAIT_EVENT)


def releases(device: DeviceTrace, within: Mask) -> Rows:
    """When each record within a window was released by work outside it; else the least integer."""
    released = np.full(len(device), EVER, np.int64)
    begin = int(device.start_ns[within & (device.role != Role.WORK)].min(initial=NEVER))
    _behind_on_stream(device, within, released)
    _waiting_calls(device, within, released)
    released[released <= begin] = EVER
    return released


def _behind_on_stream(device: DeviceTrace, within: Mask, released: Rows) -> None:
    """Work right behind some that is left out begins when all of that on its stream is done.

    So does other work that begins late, right after some that is left out ended on whatever stream:
    its stream was made to wait for that.
    """
    work = device.rows(Role.WORK)
    stream = codes(
        device.devices(work),
        device.streams(work),
    )
    order = order_of(stream, device.start_ns[work])
    work, stream = work[order], stream[order]
    start, end = device.start_ns[work], device.start_ns[work] + device.duration_ns[work]
    mine, follows = within[work], np.append(False, stream[1:] == stream[:-1])
    before = np.append(EVER, end[:-1])
    behind = mine & follows & np.append(False, ~mine[:-1])
    released[work[behind]] = np.minimum(before, start)[behind]
    ready = np.maximum(np.where(follows, before, EVER), _launched(device, work))
    late = np.flatnonzero(mine & ~behind & (start - LAG_NS > ready))
    left_out = np.append(EVER, np.sort(end[~mine]))
    last = left_out[np.searchsorted(left_out, start[late], "right") - 1]
    held = last >= start[late] - LAG_NS
    released[work[late[held]]] = last[held]


def _launched(device: DeviceTrace, work: Rows) -> Rows:
    """When the last call with the correlation id of each piece of work ended."""
    calls = device.rows(Role.CALL)
    calls = calls[device.correlation[calls] > 0]
    ends = device.start_ns[calls] + device.duration_ns[calls]
    order = order_of(device.correlation[calls], ends)
    ids = np.append(device.correlation[calls][order], NEVER)
    place = np.searchsorted(ids, device.correlation[work], "right") - 1
    found = (place >= 0) & (ids[place] == device.correlation[work])
    return np.where(found, np.append(ends[order], 0)[place], EVER)


def _waiting_calls(device: DeviceTrace, within: Mask, released: Rows) -> None:
    """A call that waits goes on, at the earliest, when the last work that ended during it did."""
    calls = np.flatnonzero(within & (device.role == Role.CALL))
    calls = calls[among(device.kind[calls], _WAITS)]
    outside = np.flatnonzero(~within & (device.role == Role.WORK))
    ends = np.sort(device.start_ns[outside] + device.duration_ns[outside])
    if len(ends) == 0:
        return
    start, until = device.start_ns[calls], device.start_ns[calls] + device.duration_ns[calls]
    last = np.searchsorted(ends, until, "right") - 1
    found = (last >= 0) & (ends[np.maximum(last, 0)] > start)
    released[calls[found]] = ends[last[found]]


def backlog_warnings(device: DeviceTrace, released: Rows) -> list[str]:
    """What a person should know of the backlog of a window."""
    rows = np.flatnonzero(released > EVER)
    if len(rows) == 0:
        return []
    begin = int(device.start_ns[device.role != Role.WORK].min(initial=int(released[rows].min())))
    return [
        f"{several(len(rows), 'record of the window waits', 'records of the window wait')} "
        "for work that was launched outside, until up to "
        f"{(released[rows].max() - begin) / 1e6:.3f} ms after its start, as release_ns says"
    ]
