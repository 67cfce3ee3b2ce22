"""A profile in columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.kineto.categories import Role
from chakra_et.pool import Pool

IntColumn = npt.NDArray[np.int64]
CodeColumn = npt.NDArray[np.int32]

NO_ID: Final = -1
"""A correlation, stream, device, context or size that the record does not have."""


@dataclass
class DeviceTrace:
    """What Kineto wrote of operations, calls and device work; other records are only counted.

    One entry of each column for each record, in the order of the file. `start_ns` counts from the
    Unix epoch. `pid` and `tid` are as in the file: process and thread for host records, device and
    stream for device work. `external_id`, `rf_id` and `fwd_thread` are 0, `sequence` is -1, and
    the other ids `NO_ID`, where a record has none. `args` holds the raw JSON of what else the
    profiler says of device work, of waits and of communication; b"" for other records.
    """

    path: Path
    metadata: dict[str, Any]
    base_time_ns: int
    counts: dict[tuple[str, str], int]
    role: npt.NDArray[np.uint8]
    category: CodeColumn
    categories: Pool[str]
    name: CodeColumn
    names: Pool[str]
    pid: IntColumn
    tid: IntColumn
    start_ns: IntColumn
    duration_ns: IntColumn
    correlation: IntColumn
    external_id: IntColumn
    rf_id: IntColumn
    sequence: IntColumn
    fwd_thread: IntColumn
    device: IntColumn
    stream: IntColumn
    context: IntColumn
    size_bytes: IntColumn
    args: list[bytes]
    thread_names: dict[tuple[int, int], str]
    warnings: list[str]

    def __len__(self) -> int:
        return len(self.role)

    def __repr__(self) -> str:
        return f"<DeviceTrace {self.path.name}: {len(self)} of {sum(self.counts.values())} records>"

    def rows(self, role: Role) -> IntColumn:
        """The rows of the records of one role."""
        return np.flatnonzero(self.role == role)
