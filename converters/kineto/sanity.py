"""Records whose times cannot be true."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.recording import DeviceTrace, Role
from chakra_et.shown import several

NO_TIME: Final = "its time is not a number"
UNTIMED: Final = "the device could not time it (time and duration are 0)"
ABSURD: Final = "its duration is implausible (more than a day)"

_DAY_NS: Final = 24 * 3600 * 10**9


def quarantine(device: DeviceTrace) -> DeviceTrace:
    """Set records with times that cannot be true apart, each with its reason.

    An operation with an absurd duration had not ended when the recording did: it is kept, and ends
    with the recording. Negative durations count as 0.
    """
    duration = device.duration_ns
    negative = duration < 0
    if negative.any():
        device.warnings.append(
            f"{several(int(np.count_nonzero(negative)), 'duration is', 'durations are')} "
            "negative; 0 was taken"
        )
        device.duration_ns = duration = np.maximum(duration, 0)
    relative = device.start_ns - device.base_time_ns
    hardware = device.role >= Role.CALL
    zero = (relative == 0) & (duration == 0) & (device.role == Role.WORK)
    if zero.any() and np.all(relative[~zero] <= 0):
        zero[:] = False  # the recording begins at 0
    absurd = duration > _DAY_NS
    open_ended = np.flatnonzero(absurd & ~hardware)
    wrong = zero | (absurd & hardware)
    if len(open_ended):
        sane = ~absurd & ~wrong
        end = (device.start_ns + duration)[sane].max(initial=device.start_ns[open_ended].max())
        lasting = duration.copy()
        lasting[open_ended] = np.maximum(end - device.start_ns[open_ended], 0)
        device.duration_ns = lasting
        device.warnings.append(
            f"{several(len(open_ended), 'operation', 'operations')} "
            "had not ended when the recording did: taken to end with it"
        )
    if not wrong.any():
        return device
    device = device.select(~(absurd & hardware), ABSURD)
    return device.select(~zero[~(absurd & hardware)], UNTIMED)
