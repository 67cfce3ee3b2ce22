"""The host's view of a run, in columns: operations, who called them, and their tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.columns import UNTIMED, Mask, Rows, TextCodes
from chakra_et.io.repairs import Repairs
from chakra_et.narrow import holding_packed
from chakra_et.pool import Pool
from chakra_et.recording.facts import Facts, Request
from chakra_et.recording.groups import GroupEntry
from chakra_et.recording.operators import Operators
from chakra_et.recording.packed_texts import OperandTexts, PackedPool
from chakra_et.recording.roles import Kind
from chakra_et.recording.sparse import Sparse
from chakra_et.recording.tensors import Tensors

NO_CALLER: Final = 0
"""The parent of a node that the recorder could not give one."""

COLUMNS: Final = (
    "id", "parent", "rf_id", "fw_parent", "seq_id", "scope", "thread", "fw_thread", "name",
    "op_schema", "inputs", "outputs", "input_strides", "output_strides", "start_ns", "duration_ns",
)  # fmt: skip
"""The fields of a host trace with one entry for each node that a file fills."""


class Dialect(Protocol):
    """How a converter reads the texts of its host traces, when somebody asks."""

    def tensors(self, texts: Sequence[tuple[bytes, ...]]) -> Tensors:
        """All tensors in the values of inputs or outputs."""

    def operators(self, schemas: list[str]) -> Operators:
        """What operators of these schemas do with their arguments."""

    def first_shape(self, shapes: bytes) -> list[int] | None:
        """The shape of the first argument, if it is a tensor that has one."""


class HostAttribute(msgspec.Struct):
    """An attribute that some host nodes carry beyond those that every node has.

    `declared_type` is `uint64`, `int64` or `string`; other types are carried as text.
    """

    declared_type: str
    rows: list[int] = msgspec.field(default_factory=list)
    values: list[Any] = msgspec.field(default_factory=list)


@holding_packed(
    "id", "parent", "rf_id", "fw_parent", "seq_id", "scope", "thread", "fw_thread", "op_schema",
    "input_strides", "output_strides", "duration_ns",
)  # fmt: skip
@dataclass(eq=False, repr=False)
class HostTrace:
    """What the framework's recorder wrote; one entry of each column for each node.

    `parent` is the id of the caller, of a root its own. `rf_id` is the record-function id (0 where
    there is none), `thread` the framework's own thread number, `scope` the record scope.
    `name`, `op_schema`, `inputs`, `outputs` are codes into the pools beside them; `input_strides`
    and `output_strides` are codes into `strides`, 0 (the empty text) where the file has none.
    `start_ns`, since the Unix epoch, and `duration_ns` are `UNTIMED` and 0 where no tool has added
    times. `kind` is one of `Kind`. `texts` hold values, shapes and types as they are carried; what
    they mean, `dialect` tells.
    """

    path: Path
    schema: str
    pid: int | None
    metadata: dict[str, Any]
    """What else the file says of the recording: carried."""
    id: npt.NDArray[np.uint64]
    parent: npt.NDArray[np.uint64]
    rf_id: Rows
    fw_parent: Rows
    seq_id: Rows
    scope: Rows
    thread: Rows
    fw_thread: Rows
    name: TextCodes
    names: Pool[str]
    op_schema: TextCodes
    op_schemas: Pool[str]
    inputs: TextCodes
    outputs: TextCodes
    texts: Pool[OperandTexts] | PackedPool
    input_strides: TextCodes
    output_strides: TextCodes
    strides: Pool[bytes]
    start_ns: Rows
    duration_ns: Rows
    kind: npt.NDArray[np.uint8]
    attributes: dict[str, HostAttribute]
    warnings: list[str]
    repairs: Repairs
    dialect: Dialect
    time: str | None = None
    """When it was recorded, as the file writes it."""
    start_ts: int | None = None
    finish_ts: int | None = None
    stubs: int = 0
    """How many nodes, at the end, stand for callers that the file names but does not hold."""
    outside: int = 0
    """How many nodes of the file lie outside of the window that was asked for."""
    collectives: Sparse[Facts] = field(default_factory=Sparse)
    """What records of collectives tell, by row."""
    all_splits: Sparse[bool] = field(default_factory=Sparse)
    """The rows that tell the sizes of all parts of an all-to-all."""
    requests: Sparse[Request] = field(default_factory=Sparse)
    """What operations tell that ask a backend for a transfer."""
    operand_bytes: Sparse[list[int]] = field(default_factory=Sparse)
    """The bytes of the tensors in each argument of operations that communicate; 0: no tensor."""
    groups: Sparse[list[GroupEntry]] = field(default_factory=Sparse)
    """Process groups that a node lists."""

    @property
    def recorded(self) -> int:
        """How many nodes the file holds, readable or not."""
        return len(self) - self.stubs + self.outside + self.repairs.left_out

    @property
    def is_timed(self) -> bool:
        """Whether nodes have times that a tool has added."""
        return bool((self.start_ns != UNTIMED).any())

    @property
    def is_root(self) -> Mask:
        """Which nodes stand for the process or a thread, not for an operation."""
        roots: Mask = self.kind == Kind.ROOT
        return roots

    def select(self, mask: Mask) -> HostTrace:
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
        return replace(
            self,
            attributes=attributes,
            kind=self.kind[mask],
            collectives=self.collectives.select(mask),
            all_splits=self.all_splits.select(mask),
            requests=self.requests.select(mask),
            operand_bytes=self.operand_bytes.select(mask),
            groups=self.groups.select(mask),
            **columns,
        )

    def __len__(self) -> int:
        return len(self.kind)

    def __repr__(self) -> str:
        return f"<HostTrace {self.path.name}: schema {self.schema}, {len(self)} nodes>"
