"""Threads that only poll: they ask whether work is done, sleep, and ask again.

What they do is no part of the workload: it takes as long as the run does, however fast that is.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.codes import among
from chakra_et.columns import NO_ROW, Mask
from chakra_et.linker.activities import Activities
from chakra_et.recording import DeviceTrace, Kind, Role

_NO_OTHERS: Final = (Kind.POLL, Kind.PASSIVE)


def polling(table: Activities, device: DeviceTrace) -> Mask:
    """Which activities are on a host thread that runs no operation and only polls."""
    host = table.timed_host & (table.record != NO_ROW)
    rows = np.flatnonzero(host)
    kind, lane = device.kind[table.record[rows]], table.lane[rows]
    other = (table.role[rows] == Role.OP) | ~among(kind, _NO_OTHERS)
    polls = np.zeros(int(table.lane.max(initial=NO_ROW)) + 1, np.bool_)
    polls[lane[kind == Kind.POLL]] = True
    polls[lane[other]] = False
    return np.asarray(host & np.append(polls, False)[table.lane])
