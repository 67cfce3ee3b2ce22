"""Clocks of host and devices: work that starts before its launch tells how far apart they are."""

from __future__ import annotations

import numpy as np

from chakra_et.codes import distinct
from chakra_et.columns import NO_ROW
from chakra_et.linker.activities import Activities
from chakra_et.linker.tallies import ClockOffset
from chakra_et.recording import DeviceTrace


def align_clocks(table: Activities, device: DeviceTrace, *, apply: bool) -> list[ClockOffset]:
    """Estimate the offset of each device with work that starts too early; add it if asked to."""
    work = np.flatnonzero(table.work)
    place = device.devices(table.record[work])
    launch = table.launch[work]
    delay = np.where(launch != NO_ROW, table.start_ns[work] - table.start_ns[launch], 0)
    found = []
    for number in distinct(place[delay < 0]).tolist():
        rows = place == number
        late = delay[rows]
        offset = int(-late.min())
        if apply:
            table.start_ns[work[rows]] += offset
            table.end_ns[work[rows]] += offset
        of = int(np.count_nonzero(launch[rows] != NO_ROW))
        found.append(ClockOffset(number, int(np.count_nonzero(late < 0)), of, offset, apply))
    return found


def clock_warning(offset: ClockOffset) -> str:
    """What a person should know of an offset."""
    done = "its times were shifted by that" if offset.applied else "--align-clocks shifts its times"
    return (
        f"{offset.early} of {offset.of} activities on device {offset.device} start before their "
        f"launch, by up to {offset.offset_ns} ns: its clock is behind the host's; {done}"
    )
