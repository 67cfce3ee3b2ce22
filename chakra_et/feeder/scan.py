"""Whole traces read at once: the fields that a feeder needs, as columns.

The records are cut one after the other; then their fields are read for many thousand records at a
time. Attributes stay bytes until somebody asks, except for the few that every simulator reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et.side_by_side import Ints
from chakra_et.feeder import errors
from chakra_et.feeder.block import Block
from chakra_et.feeder.cutter import Cutter
from chakra_et.feeder.frames import Buffer, cut, metadata_record


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
    flags: npt.NDArray[np.uint8]  # see told.py
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
    blocks: list[Block] = []
    buffer = np.frombuffer(data, np.uint8)
    done = 0
    while at < size:
        cutter = Cutter(data, buffer, at, max_record)
        block = Block(buffer, cutter, done)
        block.read()
        block.finish()
        if cutter.error is not None:  # after those of the records before it
            raise cutter.error
        blocks.append(block)
        done += len(block.begin)
        at = cutter.behind
    return _join(data, metadata, blocks)


def _join(data: Buffer, metadata: bytes, blocks: list[Block]) -> Columns:
    def column(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        parts = [getattr(block, name) for block in blocks]
        for block in blocks:
            delattr(block, name)
        return np.concatenate(parts) if parts else np.zeros(0, dtype)

    return Columns(
        data,
        metadata,
        column("begin", np.int64),
        column("end", np.int64),
        column("id", np.uint64),
        column("type", np.int32),
        column("start_ns", np.int64),
        column("duration_ns", np.int64),
        column("flags", np.uint8),
        column("edge_target", np.uint32),
        column("edge_source", np.uint64),
        column("edge_control", np.bool_),
    )
