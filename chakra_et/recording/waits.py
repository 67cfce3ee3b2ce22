"""Waits as the recorder tells them: who waits, and for which stream, event or call."""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import asdict

from chakra_et.columns import Mask, Rows, no_rows

NOT_TOLD = -1
"""The device, stream or call of a wait that its record does not name."""


class Waits(msgspec.Struct):
    """One entry of each column for each record of a wait, in the order of the records.

    `row` is the record, whose correlation id is that of the call that waits, or that makes a stream
    wait. `kind` is one of `Kind`: `WAIT_STREAM`, `WAIT_DEVICE`, `WAIT_EVENT` or `STREAM_WAIT`.
    `device` and `stream` are those that wait, or that the host waits for. An event that is waited
    for was recorded on stream `awaited`, by the call with the correlation id `recorded_by`. Each is
    `NOT_TOLD` where the record does not say.
    """

    row: Rows = msgspec.field(default_factory=no_rows)
    kind: Rows = msgspec.field(default_factory=no_rows)
    device: Rows = msgspec.field(default_factory=no_rows)
    stream: Rows = msgspec.field(default_factory=no_rows)
    awaited: Rows = msgspec.field(default_factory=no_rows)
    recorded_by: Rows = msgspec.field(default_factory=no_rows)

    def __len__(self) -> int:
        return len(self.row)

    def select(self, mask: Mask) -> Waits:
        """Those of some rows of the records, with the numbers that these have then."""
        kept = mask[self.row]
        columns = {name: column[kept] for name, column in asdict(self).items()}
        return Waits(**columns | {"row": (np.cumsum(mask) - 1)[columns["row"]]})
