"""Ranks that do the same, and the columns of what they do among more ranks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.build import Peer
from chakra_et.build.grid import Grid, Ranks
from chakra_et.build.operation import Operation
from chakra_et.build.places import Place
from chakra_et.build.workload import Workload
from chakra_et.definitions import Kind, NodeType
from chakra_et.errors import ChakraError
from chakra_et.model import Trace
from chakra_et.scale.calls import Call, Calls, GroupKey
from chakra_et.scale.changes import Resized, set_plain
from chakra_et.scale.collectives import Growth
from chakra_et.scale.families import Kin
from chakra_et.scale.grown import GrownWorkload
from chakra_et.scale.resize import resize
from chakra_et.scale.sources import Source

_OF_THE_RANK: Final = {
    "pg_name": Kind.STRING,
    "comm_src": Kind.INT32,
    "comm_dst": Kind.INT32,
}


def operations_of(
    calls: Sequence[Call], rank: int, family_of: Mapping[GroupKey, str], grid: Grid
) -> list[Operation]:
    """Calls as ranks that do the same say them: groups by family, peers by steps on the grid."""
    return [
        Operation(
            NodeType(call.type), "",
            collective=call.collective,
            size_bytes=call.size_bytes,
            tag=call.tag,
            family=None if call.group is None else family_of[call.group],
            peer=None if call.peer is None else _peer(call.peer, rank, grid),
        )
        for call in calls
    ]  # fmt: skip


def _peer(peer: int, rank: int, grid: Grid) -> Peer:
    steps = {
        axis: int(grid.coordinate(axis, peer) - grid.coordinate(axis, rank)) % size
        for axis, size in grid.axes.items()
    }
    return Peer(offsets=tuple((axis, step) for axis, step in steps.items() if step))


@dataclass(eq=False)
class Told:
    """What the ranks of a program communicate, for checks: columns of the communicating nodes."""

    operations: list[Operation]
    operation_of: npt.NDArray[np.int64]
    communication: npt.NDArray[np.int64]
    places: list[Place]


def told(calls: Calls, operations: list[Operation], path: str) -> Told:
    """The calls of a trace in the order in which they were asked for."""
    order = calls.order
    return Told(operations, calls.call_of, order, [(path, int(calls.rows[at])) for at in order])


@dataclass(eq=False)
class Alike:
    """Ranks of the set that do the same, the first of which stands for all."""

    source: Source
    ranks: list[int]
    operations: list[Operation]


def find_alike(
    sources: Sequence[Source], family_of: Mapping[GroupKey, str], grid: Grid
) -> list[Alike]:
    """Ranks grouped by what they do, but for groups and peers, which the grid says alike."""
    found: dict[bytes, Alike] = {}
    for source in sources:
        operations = operations_of(source.calls.calls, source.rank, family_of, grid)
        phases = [(call.phase, call.named) for call in source.calls.calls]
        distinct: dict[object, int] = {}
        codes = [
            distinct.setdefault(pair, len(distinct))
            for pair in zip(operations, phases, strict=True)
        ]
        order = np.array(codes, np.int64)[source.calls.call_of] if codes else source.calls.call_of
        # Calls are numbered by their order in the file, not by names of groups.
        first = np.unique(order, return_index=True)[1]
        rank_of = np.argsort(np.argsort(first))
        mark = hashlib.sha256(source.content)
        mark.update(repr([list(distinct)[i] for i in np.argsort(first).tolist()]).encode())
        mark.update((rank_of[order] if len(first) else order).tobytes())
        alike = found.setdefault(mark.digest(), Alike(source, [], operations))
        alike.ranks.append(source.rank)
    return list(found.values())


class GrownColumns:
    """The nodes of a program among more ranks; see `chakra_et.build.template.Columns`."""

    def __init__(self, alike: Alike, workload: GrownWorkload, growth: Mapping[str, Growth]) -> None:
        calls = alike.source.calls
        self.workload: Workload = workload
        self._grown = workload
        self._calls = calls
        self._base = alike.source.trace()
        of_group = {
            call.group: growth[op.family]
            for call, op in zip(calls.calls, alike.operations, strict=True)
            if call.group is not None and op.family is not None and op.family in growth
        }
        self.resized: Resized = resize(self._base, calls, of_group)
        # What nodes do not name has nothing to differ in.
        self.operations = [
            op if call.named else op._replace(family=None)
            for call, op in zip(calls.calls, alike.operations, strict=True)
        ]
        differs = np.array([op.family is not None or op.peer is not None
                            for op in self.operations], np.bool_)  # fmt: skip
        some = differs[calls.call_of] if len(differs) else calls.call_of.astype(np.bool_)
        self.communication = calls.rows[some]
        self.operation_of = np.zeros(len(self._base.nodes), np.int64)
        self.operation_of[calls.rows] = calls.call_of
        self.places: list[Place] = [(str(alike.source.path), int(r)) for r in self.communication]

    def trace(self, rank: int) -> Trace:
        """The trace of a rank that runs this program."""
        trace = self._base
        codes = self.operation_of[self.communication]
        for name, kind in _OF_THE_RANK.items():
            told = [self._told(name, operation, rank) for operation in self.operations]
            there = np.array([value is not None for value in told], np.bool_)[codes]
            if there.any():
                values = np.array(told, object)[codes[there]].tolist()
                set_plain(trace, name, kind, self.communication[there], values)
        return Trace(trace.nodes, trace.edges, self._grown.metadata(rank))

    def _told(self, name: str, operation: Operation, rank: int) -> str | int | None:
        """What a rank's nodes of an operation have in an attribute."""
        if name == "pg_name":
            family = operation.family
            return None if family is None else str(self._grown.families[family].number(rank))
        if operation.peer is None:
            return None
        outgoing = (operation.type is NodeType.COMM_SEND) == (name == "comm_dst")
        return int(operation.peer.of(self._grown.grid, rank)) if outgoing else rank


def grown_programs(
    every: Sequence[Alike], workload: GrownWorkload, growth: Mapping[str, Growth]
) -> Iterator[tuple[GrownColumns, Ranks]]:
    """The columns of each program, and the ranks that run it."""
    for alike in every:
        ranks = np.flatnonzero(np.isin(workload.source_of, alike.ranks))
        yield GrownColumns(alike, workload, growth), ranks


def check_messages(every: Sequence[Alike], old: Grid, axis: str) -> None:
    """Raise ChakraError for messages along an axis that is to grow."""
    for alike in every:
        for operation in alike.operations:
            if operation.peer is not None and axis in dict(operation.peer.offsets):
                raise ChakraError(
                    f"messages go along axis {axis}: rank {alike.source.rank} sends to another "
                    "place of it, and nothing tells which messages there would be among more ranks",
                    path=alike.source.path,
                    remedy="Generate the set with that degree (`chakra generate`).",
                )


def family_names(kin: Sequence[Kin]) -> dict[GroupKey, str]:
    """The family of each group."""
    return {key: family.name for family in kin for key in family.groups}
