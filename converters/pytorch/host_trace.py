"""A host trace in columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from chakra_et.pool import Pool

IntColumn = npt.NDArray[np.int64]
CodeColumn = npt.NDArray[np.int32]


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
    attributes: dict[str, HostAttribute]
    warnings: list[str]

    def __len__(self) -> int:
        return len(self.id)

    def __repr__(self) -> str:
        return f"<HostTrace {self.path.name}: schema {self.schema}, {len(self)} nodes>"
