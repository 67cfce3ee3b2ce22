"""Whole traces read at once: the fields that a feeder needs, as columns.

The compiled kernel reads record after record. Where it is not, or where a file is damaged, the
records are cut one after the other; then their fields are read for many thousand records at a time.
Attributes stay bytes until somebody asks, except for the few that every simulator reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et.side_by_side import Ints
from chakra_et.feeder import errors
from chakra_et.feeder.block import Block
from chakra_et.feeder.cutter import Cutter
from chakra_et.feeder.frames import Buffer, cut, metadata_record
from chakra_et.feeder.known_attributes import (
    CPU_KNOWN,
    CPU_TRUE,
    EDGE_KINDS,
    EDGE_KINDS_START,
    ODD,
    TOLD,
    take_times,
)
from chakra_et.kernel import kernel

_TOLD: Final = [(told.before, told.flag, CPU_TRUE * (told.flag == CPU_KNOWN)) for told in TOLD]
"""For the kernel: bytes before the number, the node's flag, and one more where it is not 0."""

_COLUMNS: Final[dict[str, npt.DTypeLike]] = {
    "begin": np.int64,
    "end": np.int64,
    "id": np.uint64,
    "type": np.int32,
    "start_ns": np.int64,
    "duration_ns": np.int64,
    "flags": np.uint8,
    "edge_target": np.uint32,
    "edge_source": np.uint64,
    "edge_control": np.bool_,
}


@dataclass
class Columns:
    """The nodes of a trace in file order, and their dependencies."""

    data: Buffer
    metadata: bytes
    begin: Ints  # of each record's payload in `data`
    end: Ints
    id: npt.NDArray[np.uint64]
    type: npt.NDArray[np.int32]
    start_ns: Ints  # NOWHERE: the trace does not say
    duration_ns: Ints
    flags: npt.NDArray[np.uint8]  # see known_attributes.py
    edge_target: npt.NDArray[np.uint32]  # position of the node that waits
    edge_source: npt.NDArray[np.uint64]  # id of the node waited for
    edge_control: npt.NDArray[np.bool_]


def scan(data: Buffer, max_record: int) -> Columns:
    """Read a trace. Raises FeederError for what is none."""
    size = len(data)
    if size == 0:
        raise errors.truncated(0)
    begin, at = cut(data, 0, size, 0, max_record)
    metadata = metadata_record(bytes(data[begin:at]), 0)
    buffer = np.frombuffer(data, np.uint8)
    found = _compiled(buffer, at, max_record)
    if found is None:
        found = _side_by_side(data, buffer, at, max_record)
    return Columns(data, metadata, **found)


def _compiled(
    buffer: npt.NDArray[np.uint8], at: int, max_record: int
) -> dict[str, npt.NDArray[Any]] | None:
    """The columns by the kernel; None without it, and for a file that is damaged."""
    module = kernel()
    if module is None:
        return None
    found = module.feeder_columns(buffer, at, max_record, _TOLD, EDGE_KINDS_START, EDGE_KINDS, ODD)
    if found is None:
        return None
    columns: dict[str, npt.NDArray[Any]]
    columns, (_, exact_duration, exact_start), _ = found
    columns["start_ns"], columns["duration_ns"] = take_times(
        columns.pop("start_micros"),
        exact_start,
        columns.pop("duration_micros"),
        exact_duration,
        columns["flags"],
    )
    columns["edge_control"] = columns["edge_control"].view(np.bool_)
    return columns


def _side_by_side(
    data: Buffer, buffer: npt.NDArray[np.uint8], at: int, max_record: int
) -> dict[str, npt.NDArray[Any]]:
    """The columns, field by field of many records. Raises FeederError."""
    blocks: list[Block] = []
    done = 0
    while at < len(data):
        cutter = Cutter(data, buffer, at, max_record)
        block = Block(buffer, cutter, done)
        block.read()
        block.finish()
        if cutter.error is not None:  # after those of the records before it
            raise cutter.error
        blocks.append(block)
        done += len(block.begin)
        at = cutter.behind
    return {name: _joined(name, dtype, blocks) for name, dtype in _COLUMNS.items()}


def _joined(name: str, dtype: npt.DTypeLike, blocks: list[Block]) -> npt.NDArray[Any]:
    parts = [getattr(block, name) for block in blocks]
    for block in blocks:
        delattr(block, name)
    return np.concatenate(parts) if parts else np.zeros(0, dtype)
