"""Flow arrows from calls to device work, where a profiler writes no correlation ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from chakra_et.converters.kineto.categories import LAUNCH_FLOWS, Role
from chakra_et.converters.kineto.device_trace import NO_ID, DeviceTrace
from chakra_et.converters.kineto.events import Event
from chakra_et.converters.kineto.times import nanoseconds

Place = tuple[str, str, int]


class Flows:
    """Both ends of each arrow; an end lies where the record begins that it belongs to."""

    def __init__(self) -> None:
        self._ends: dict[str, dict[Any, Place]] = {"s": {}, "f": {}}

    def add(self, events: list[Event]) -> None:
        """Take in the arrows among some records."""
        for event in events:
            if event.ph in self._ends and event.cat in LAUNCH_FLOWS:
                try:
                    start = int(nanoseconds([bytes(event.ts)])[0])
                except ValueError:
                    continue
                self._ends[event.ph][str(event.id)] = (str(event.pid), str(event.tid), start)

    def join(self, device: DeviceTrace) -> None:
        """Give the records at both ends of an arrow one correlation id."""
        if not self._ends["s"]:
            return
        rows = {
            (str(device.pid[row]), str(device.tid[row]), int(start)): row
            for row in np.flatnonzero(device.role >= Role.CALL).tolist()
            for start in [device.start_ns[row] - device.base_time_ns]
        }
        number = int(device.correlation.max(initial=0))
        for name, begin in self._ends["s"].items():
            end = self._ends["f"].get(name)
            call, work = rows.get(begin), rows.get(end) if end is not None else None
            if call is None or work is None or device.correlation[work] != NO_ID:
                continue
            if device.correlation[call] == NO_ID:
                number += 1
                device.correlation[call] = number
            device.correlation[work] = device.correlation[call]
