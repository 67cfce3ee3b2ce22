"""A host trace in columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.io.repairs import Repairs
from chakra_et.pool import Pool

NO_CALLER: Final = 0
"""The parent of a node that PyTorch could not give one."""

UNTIMED: Final = np.iinfo(np.int64).min
"""The start of a node without a time."""

IntColumn = npt.NDArray[np.int64]
CodeColumn = npt.NDArray[np.int32]


COLUMNS: Final = (
    "id", "parent", "rf_id", "fw_parent", "seq_id", "scope", "thread", "fw_thread", "name",
    "op_schema", "inputs", "outputs", "input_strides", "output_strides", "start_ns", "duration_ns",
)  # fmt: skip
"""The fields of a host trace with one entry for each node."""


@dataclass
class HostAttribute:
    """An attribute that some host nodes carry beyond those that every node has."""

    declared_type: str
    rows: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)


@dataclass
class HostTrace:
    """What PyTorch's ExecutionTraceObserver wrote; one entry of each column for each node.

    `parent` is the id of the caller, of a root its own. `rf_id` is the record-function id (0 where
    there is none), `thread` the framework's own thread number, `scope` the record scope.
    `name`, `op_schema`, `inputs`, `outputs` are codes into the pools beside them; `input_strides`
    and `output_strides` are codes into `strides`, 0 (the empty text) where the file has none.
    `start_ns`, since the Unix epoch, and `duration_ns` are `UNTIMED` and 0 where no tool has added
    times.
    """

    path: Path
    schema: str
    pid: int | None
    metadata: dict[str, Any]
    id: npt.NDArray[np.uint64]
    parent: npt.NDArray[np.uint64]
    rf_id: IntColumn
    fw_parent: IntColumn
    seq_id: IntColumn
    scope: IntColumn
    thread: IntColumn
    fw_thread: IntColumn
    name: CodeColumn
    names: Pool[str]
    op_schema: CodeColumn
    op_schemas: Pool[str]
    inputs: CodeColumn
    outputs: CodeColumn
    texts: Pool[tuple[bytes, bytes, bytes]]
    input_strides: CodeColumn
    output_strides: CodeColumn
    strides: Pool[bytes]
    start_ns: IntColumn
    duration_ns: IntColumn
    attributes: dict[str, HostAttribute]
    warnings: list[str]
    repairs: Repairs
    stubs: int = 0
    """How many nodes, at the end, stand for callers that the file names but does not hold."""
    outside: int = 0
    """How many nodes of the file lie outside of the window that was asked for."""

    @property
    def recorded(self) -> int:
        """How many nodes the file holds, readable or not."""
        return len(self) - self.stubs + self.outside + self.repairs.left_out

    @property
    def is_timed(self) -> bool:
        """Whether nodes have times that a tool has added."""
        return bool((self.start_ns != UNTIMED).any())

    def select(self, mask: npt.NDArray[np.bool_]) -> HostTrace:
        """The trace of some of the nodes."""
        place = np.cumsum(mask) - 1
        attributes = {}
        for name, attribute in self.attributes.items():
            keep = mask[np.array(attribute.rows, np.int64)]
            chosen = np.flatnonzero(keep).tolist()
            if chosen:
                rows = [int(place[attribute.rows[k]]) for k in chosen]
                values = [attribute.values[k] for k in chosen]
                attributes[name] = HostAttribute(attribute.declared_type, rows, values)
        columns = {name: getattr(self, name)[mask] for name in COLUMNS}
        return replace(self, attributes=attributes, **columns)

    def __len__(self) -> int:
        return len(self.id)

    def __repr__(self) -> str:
        return f"<HostTrace {self.path.name}: schema {self.schema}, {len(self)} nodes>"
