"""A profile in columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.kineto.arrows import Arrows
from chakra_et.converters.kineto.categories import DEVICE_CATEGORIES, Role
from chakra_et.io.repairs import Repairs
from chakra_et.pool import Pool

IntColumn = npt.NDArray[np.int64]
CodeColumn = npt.NDArray[np.int32]

NO_ID: Final = -1
"""A correlation, stream, device, context or size that the record does not have."""


_COLUMNS: Final = (
    "role", "category", "name", "pid", "tid", "start_ns", "duration_ns", "correlation",
    "external_id", "rf_id", "sequence", "fwd_thread", "device", "stream", "context", "size_bytes",
    "shapes",
)  # fmt: skip


@dataclass
class DeviceTrace:
    """What Kineto wrote of operations, calls and device work; other records are only counted.

    One entry of each column for each record, in the order of the file. `start_ns` counts from the
    Unix epoch. `pid` and `tid` are as in the file: process and thread for host records, device and
    stream for device work. `external_id`, `rf_id` and `fwd_thread` are 0, `sequence` is -1, and
    the other ids `NO_ID`, where a record has none. `shapes` are codes into `shape_texts`, the raw
    JSON of an operation's input shapes, b"" where it has none. `args` holds the raw JSON of what
    else the profiler says of device work, of waits and of communication; b"" for other records.
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
    shapes: CodeColumn
    shape_texts: Pool[bytes]
    args: list[bytes]
    thread_names: dict[tuple[int, int], str]
    warnings: list[str]
    repairs: Repairs
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Records in `counts` that are not among the rows, by category and reason."""
    process_names: dict[int, str] = field(default_factory=dict)
    labels: dict[int, set[str]] = field(default_factory=dict)
    """What a process is called: by its name, by labels, and by an id that is no number."""
    rank: int | None = None
    """The rank of a process whose profile was part of a merged one."""
    launch_flows: Arrows = field(default_factory=Arrows)
    """Arrows from calls or operations to device work."""
    forward_flows: Arrows = field(default_factory=Arrows)
    """Arrows from forward to backward operations, of all threads in the file."""
    graph_flows: Arrows = field(default_factory=Arrows)
    """Arrows between device rows: what the nodes of graphs wait for."""
    released_ns: IntColumn = field(default_factory=lambda: np.zeros(0, np.int64))
    """Of a window, when each record was released by work outside it; the least integer for none.
    Empty for a whole recording."""

    def select(self, mask: npt.NDArray[np.bool_], reason: str) -> DeviceTrace:
        """The trace of some of the records; the others are counted as left out."""
        dropped = self.category[~mask]
        left_out = Counter(self.left_out)
        categories = self.categories.in_order
        for code, count in zip(*np.unique(dropped, return_counts=True), strict=True):
            left_out[categories[code], reason] += int(count)
        args = [text for text, keep in zip(self.args, mask.tolist(), strict=True) if keep]
        columns = {name: getattr(self, name)[mask] for name in _COLUMNS}
        if len(self.released_ns):
            columns["released_ns"] = self.released_ns[mask]
        return replace(self, args=args, left_out=left_out, **columns)

    def __len__(self) -> int:
        return len(self.role)

    def __repr__(self) -> str:
        return f"<DeviceTrace {self.path.name}: {len(self)} of {sum(self.counts.values())} records>"

    @property
    def work_categories(self) -> frozenset[str]:
        """Categories of device work: those of every vendor, and others that the file has."""
        names = self.categories.in_order
        found = np.unique(self.category[self.role == Role.WORK]).tolist()
        return DEVICE_CATEGORIES | {names[code] for code in found}

    def rows(self, role: Role) -> IntColumn:
        """The rows of the records of one role."""
        return np.flatnonzero(self.role == role)
