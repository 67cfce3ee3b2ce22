"""The device's view of a run, in columns: what a profiler saw of operations, calls and work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.codes import distinct
from chakra_et.columns import Mask, Rows, TextCodes, no_rows
from chakra_et.io.repairs import Repairs
from chakra_et.narrow import holding_packed
from chakra_et.pool import Pool
from chakra_et.recording.carried_texts import CarriedTexts
from chakra_et.recording.facts import Facts
from chakra_et.recording.flows import Flows
from chakra_et.recording.groups import GroupEntry
from chakra_et.recording.id_set import IdSet
from chakra_et.recording.operands import Operands
from chakra_et.recording.roles import Role
from chakra_et.recording.sparse import Sparse
from chakra_et.recording.waits import Waits

NO_ID: Final = -1
"""A correlation, stream, device, context or size that the record does not have."""

OUTSIDE: Final = "outside of the window"
"""Why records are left out that a window does not hold."""

COLUMNS: Final = {
    "role": np.uint8, "kind": np.uint8, "blocks": np.bool_, "category": np.int32, "name": np.int32,
    "pid": np.int64, "tid": np.int64, "start_ns": np.int64, "duration_ns": np.int64,
    "correlation": np.int64, "external_id": np.int64, "rf_id": np.int64, "sequence": np.int64,
    "fwd_thread": np.int64, "device": np.int64, "stream": np.int64, "size_bytes": np.int64,
    "shapes": np.int32,
}  # fmt: skip
"""The fields of a device trace with one entry for each record, and their types."""
_ABSENT: Final = {"correlation": NO_ID, "sequence": -1, "device": NO_ID, "stream": NO_ID,
                  "size_bytes": NO_ID}  # fmt: skip
"""What stands in a column for a record that does not have it; elsewhere 0."""


@holding_packed(
    "category", "pid", "tid", "duration_ns", "correlation", "external_id", "rf_id",
    "sequence", "fwd_thread", "device", "stream", "size_bytes", "shapes",
)  # fmt: skip
@dataclass(eq=False, repr=False)
class DeviceTrace:
    """What a profiler wrote of operations, calls and device work; other records are only counted.

    One entry of each column for each record, in the order of the file. `role` and `kind` say what
    it is. `start_ns` counts from the Unix epoch. `pid` and `tid` are as in the file: process and
    thread for host records; for device work the row that a viewer shows it on, which stands for
    device and stream where these are not told. `external_id`, `rf_id` and `fwd_thread` are 0,
    `sequence` is -1, and the other ids `NO_ID`, where a record has none. `correlation` is what a
    call and the work that it launched have in common. `blocks` is true for calls that return only
    when what they launched is over, as far as their names tell, and for copies that their call
    waits for whatever it is called. `shapes` are codes into `shape_texts`, an operation's input
    shapes as text, b"" where it has none. `args` holds what else the profiler says of device work,
    as text that is carried.
    """

    path: Path
    role: npt.NDArray[np.uint8]
    kind: npt.NDArray[np.uint8]
    blocks: Mask
    category: TextCodes
    categories: Pool[str]
    name: TextCodes
    names: Pool[str]
    pid: Rows
    tid: Rows
    start_ns: Rows
    duration_ns: Rows
    correlation: Rows
    external_id: Rows
    rf_id: Rows
    sequence: Rows
    fwd_thread: Rows
    device: Rows
    stream: Rows
    size_bytes: Rows
    shapes: TextCodes
    shape_texts: Pool[bytes]
    args: Sequence[str]
    warnings: list[str]
    repairs: Repairs
    base_time_ns: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)
    """What else the file says of the recording: carried."""
    trace_name: Any = None
    device_properties: Any = None
    machine: str | None = None
    """What the profile calls the host."""
    rank: int | None = None
    world_size: int | None = None
    groups: list[GroupEntry] = field(default_factory=list)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    """How many records the file holds, by category and form."""
    totals: dict[str, int] = field(default_factory=dict)
    """The same as a report tells it: by category, or by form where that says more."""
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Records in `totals` that are not among the rows, by the same name and the reason."""
    work_categories: frozenset[str] = frozenset()
    """Categories that hold work on a device, whether the file has them or not."""
    silent_on: frozenset[str] = frozenset()
    """Attributes of nodes that the recording does not tell: columns here only tell rows apart."""
    process_names: dict[int, str] = field(default_factory=dict)
    labels: dict[int, set[str]] = field(default_factory=dict)
    """What a process is called: by its name, by labels, and by an id that is no number."""
    waits: Waits = field(default_factory=Waits)
    collectives: Sparse[Facts] = field(default_factory=Sparse)
    """What kernels, and records of collectives, tell of communication, by row."""
    operands: Sparse[Operands] = field(default_factory=Sparse)
    """The inputs of operations that communicate."""
    launch_flows: Flows = field(default_factory=Flows)
    """From calls or operations to device work."""
    forward_flows: Flows = field(default_factory=Flows)
    """From forward to backward operations, of all threads in the file."""
    graph_flows: Flows = field(default_factory=Flows)
    """Between device rows: what the nodes of graphs wait for."""
    process: Rows = field(default_factory=no_rows)
    """The process of each record, device work included, where the recorder tells it; else empty."""
    released_ns: Rows = field(default_factory=no_rows)
    """Of a window, when each record was released by work outside it; the least integer for none.
    Empty for a whole recording."""

    outside_calls: Rows = field(default_factory=no_rows)
    """Of a window that was read alone: correlation ids of calls outside it whose work is here."""
    outside_rf_ids: IdSet = field(default_factory=IdSet)
    """The same: record-function ids of operations outside it."""

    @classmethod
    def of(cls, path: Path, count: int, repairs: Repairs, **told: Any) -> DeviceTrace:
        """A trace of so many records; columns that are not `told` are filled with what stands for
        an absent value, and pools and lists begin empty.
        """
        columns: dict[str, Any] = {
            name: np.full(count, _ABSENT.get(name, 0), dtype)
            for name, dtype in COLUMNS.items()
            if name not in told
        }
        rest: dict[str, Any] = {
            "categories": Pool(), "names": Pool(), "shape_texts": Pool({b"": 0}),
            "args": [""] * (0 if "args" in told else count), "warnings": [],
        }  # fmt: skip
        return cls(path=path, repairs=repairs, **{**columns, **rest, **told})

    def select(self, mask: Mask, reason: str) -> DeviceTrace:
        """The trace of some of the records; the others are counted as left out."""
        dropped = self.category[~mask]
        left_out = Counter(self.left_out)
        for code, count in zip(*np.unique(dropped, return_counts=True), strict=True):
            left_out[self.counted_as(int(code)), reason] += int(count)
        args: Sequence[str]
        if isinstance(self.args, CarriedTexts):
            args = self.args.select(mask)
        else:
            args = [text for text, keep in zip(self.args, mask.tolist(), strict=True) if keep]
        columns = {name: getattr(self, name)[mask] for name in COLUMNS}
        for name in ("process", "released_ns"):
            if len(getattr(self, name)):
                columns[name] = getattr(self, name)[mask]
        return replace(
            self,
            args=args,
            left_out=left_out,
            waits=self.waits.select(mask),
            collectives=self.collectives.select(mask),
            operands=self.operands.select(mask),
            **columns,
        )

    def counted_as(self, category: int) -> str:
        """The name in `totals` of records of a category, by its code."""
        return self.categories.in_order[category] or NO_CATEGORY

    def devices(self, rows: Rows) -> Rows:
        """The number of the device of work: its own, else that of the row it is shown on."""
        told = self.device[rows]
        return np.where(told == NO_ID, self.pid[rows], told)

    def streams(self, rows: Rows) -> Rows:
        """The number of the stream of work: its own, else that of the row it is shown on."""
        told = self.stream[rows]
        return np.where(told == NO_ID, self.tid[rows], told)

    @property
    def has_work_of(self) -> frozenset[str]:
        """Categories of device work: those that are known, and others that the file has."""
        names = self.categories.in_order
        found = distinct(self.category[self.role == Role.WORK]).tolist()
        return self.work_categories | {names[code] for code in found}

    def rows(self, role: Role) -> Rows:
        """The rows of the records of one role."""
        return np.flatnonzero(self.role == role)

    def __len__(self) -> int:
        return len(self.role)

    def __repr__(self) -> str:
        return f"<DeviceTrace {self.path.name}: {len(self)} of {sum(self.counts.values())} records>"


NO_CATEGORY: Final = "(phase X)"
"""What a report calls records that last and have no category."""
