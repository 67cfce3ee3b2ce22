"""Flows that a recorder draws from one record to another, as evidence of edges."""

from __future__ import annotations

from dataclasses import dataclass, field

from chakra_et.columns import Rows, no_rows


@dataclass
class Ends:
    """One end of each flow: process, thread and time, the latter in ns as `start_ns` of a record.

    On a device, process and thread are those of the row that a viewer shows, as in the records.
    """

    pid: Rows = field(default_factory=no_rows)
    tid: Rows = field(default_factory=no_rows)
    time_ns: Rows = field(default_factory=no_rows)

    def __len__(self) -> int:
        return len(self.pid)


@dataclass
class Flows:
    """Flows with both ends: flow i leads from `source[i]` to `target[i]`.

    `incomplete` counts ends without a counterpart, or with several; `ends` counts all.
    """

    source: Ends = field(default_factory=Ends)
    target: Ends = field(default_factory=Ends)
    incomplete: int = 0
    ends: int = 0

    def __len__(self) -> int:
        return len(self.source)
