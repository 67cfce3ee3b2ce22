"""Flows that a recorder draws from one record to another, as evidence of edges."""

from __future__ import annotations

import msgspec

from chakra_et.columns import Rows, no_rows


class Ends(msgspec.Struct):
    """One end of each flow: process, thread and time, the latter in ns as `start_ns` of a record.

    On a device, process and thread are those of the row that a viewer shows, as in the records.
    """

    pid: Rows = msgspec.field(default_factory=no_rows)
    tid: Rows = msgspec.field(default_factory=no_rows)
    time_ns: Rows = msgspec.field(default_factory=no_rows)

    def __len__(self) -> int:
        return len(self.pid)


class Flows(msgspec.Struct):
    """Flows with both ends: flow i leads from `source[i]` to `target[i]`.

    `incomplete` counts ends without a counterpart, or with several; `ends` counts all.
    """

    source: Ends = msgspec.field(default_factory=Ends)
    target: Ends = msgspec.field(default_factory=Ends)
    incomplete: int = 0
    ends: int = 0

    def __len__(self) -> int:
        return len(self.source)
