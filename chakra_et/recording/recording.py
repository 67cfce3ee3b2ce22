"""One rank's recording: both views, and what it says itself of how they tie."""

from __future__ import annotations

import msgspec
import numpy as np

from chakra_et.columns import Rows, no_rows
from chakra_et.recording.device_trace import DeviceTrace
from chakra_et.recording.host_trace import HostTrace


class Stated(msgspec.Struct):
    """What a recording says itself of the ties between its views, where it was linked before.

    `record[h]` is the row in the device's view of host node h, `launcher[d]` the host node that
    launched record d; `NO_ROW` where there is none. After record `waits[0, k]` had ended, host node
    `waits[1, k]` began. All are empty where a recording says nothing.
    """

    record: Rows = msgspec.field(default_factory=no_rows)
    launcher: Rows = msgspec.field(default_factory=no_rows)
    waits: Rows = msgspec.field(default_factory=lambda: np.zeros((2, 0), np.int64))


class Recording(msgspec.Struct):
    """The host's and the device's view of one rank; either may be missing.

    `warnings` says what of the files is not carried.
    """

    host: HostTrace | None = None
    device: DeviceTrace | None = None
    stated: Stated = msgspec.field(default_factory=Stated)
    warnings: list[str] = msgspec.field(default_factory=list)

    @property
    def file_warnings(self) -> list[str]:
        """What both readers have to say of their files."""
        views = (self.host, self.device)
        return [text for view in views if view is not None for text in view.warnings]
