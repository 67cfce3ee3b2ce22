"""Threads that only poll: they ask whether work is done, sleep, and ask again.

What they do is no part of the workload: it takes as long as the run does, however fast that is.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.kineto import DeviceTrace, Role
from chakra_et.linker.activities import Activities
from chakra_et.linker.nesting import NONE

_POLL: Final = re.compile(r"\w+(Event|Stream)Query\w*")
_BESIDE: Final = re.compile(
    r"\w+(SetDevice|Get\w+|PeekAtLastError|ExchangeStreamCaptureMode)|\w*sleep"
)
"""What such threads call beside: nothing of it gives a device work or waits for any."""


def polling(table: Activities, device: DeviceTrace) -> npt.NDArray[np.bool_]:
    """Which activities are on a host thread that runs no operation and only polls."""
    names = device.names.in_order
    polls = np.array([bool(_POLL.fullmatch(name)) for name in names], np.bool_)
    beside = np.array([bool(_BESIDE.fullmatch(name)) for name in names], np.bool_)
    host = table.timed_host & (table.record != NONE)
    rows = np.flatnonzero(host)
    name, lane = device.name[table.record[rows]], table.lane[rows]
    other = (table.role[rows] == Role.OP) | ~(polls | beside)[name]
    lanes = np.setdiff1d(lane[polls[name] & ~other], lane[other])
    return np.asarray(host & np.isin(table.lane, lanes))
