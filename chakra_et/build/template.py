"""The bytes of a program's nodes, encoded once, and what to change in them for each rank.

Ranks that run one program differ in the names of their groups and the numbers of their peers.
Names of groups have one length; numbers of peers are varints, so ranks whose peers need equally
many bytes share a template, and become files by writing those bytes over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from chakra_et.build.grid import Ranks
from chakra_et.build.operation import Operation, Peer
from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import encode_attribute
from chakra_et.converters.et.encoder import encode_metadata, encode_nodes
from chakra_et.converters.et.wire import Heads, field_bytes, varint
from chakra_et.definitions import Kind, NodeType
from chakra_et.model import AttributeKey, Trace

if TYPE_CHECKING:
    from chakra_et.build.places import Place
    from chakra_et.build.workload import Workload


class Talking(Protocol):
    """What a program communicates.

    `communication` holds the rows that name a group or a peer, `operation_of` the operation of
    every row; `places` says of each of those rows where it was asked for.
    """

    operations: list[Operation]
    operation_of: npt.NDArray[np.int64]
    communication: npt.NDArray[np.int64]
    places: list[Place]


class Columns(Talking, Protocol):
    """The nodes of a program: all but what differs between the ranks that run it."""

    workload: Workload

    def trace(self, rank: int) -> Trace:
        """The trace of a rank that runs this program."""


@dataclass
class Slot:
    """Where one value stands, which ranks have to themselves: `width` bytes at each of `offsets`.

    `family` says that it is the name of the group of that family, `peer` that it is that peer; the
    rank itself if neither is told.
    """

    width: int
    offsets: npt.NDArray[np.int64]
    family: str | None = None
    peer: Peer | None = None


@dataclass
class Template:
    """All nodes of one rank as they stand in a file, with the slots that its copies change.

    `ranks` are those that need slots of these widths.
    """

    workload: Workload
    ranks: Ranks
    data: bytes
    slots: list[Slot]
    nodes: int
    edges: int

    def file(self, rank: int) -> bytes:
        """The whole file of one of the ranks."""
        before = head(self.workload, rank)
        file = np.frombuffer(before + self.data, np.uint8).copy()
        for slot in self.slots:
            value = np.frombuffer(slot_value(self.workload, slot, rank), np.uint8)
            for place in range(slot.width):
                file[slot.offsets + (len(before) + place)] = value[place]
        return bytes(file.data)


def head(workload: Workload, rank: int) -> bytes:
    """The first record of a rank's file: the metadata."""
    metadata = encode_metadata(workload.metadata(rank))
    return varint(len(metadata)) + metadata


def templates(columns: Columns, ranks: Ranks) -> Iterator[Template]:
    """As few templates as the widths of peers allow."""
    peers = sorted({op.peer for op in columns.operations if op.peer is not None}, key=repr)
    kind_of = np.zeros(len(ranks), np.int64)
    if peers:
        grid = columns.workload.grid
        widths = [_widths(ranks), *(_widths(peer.of(grid, ranks)) for peer in peers)]
        kind_of = np.unique(np.stack(widths), axis=1, return_inverse=True)[1].ravel()
    for kind in range(int(kind_of.max()) + 1):
        yield _template(columns, ranks[kind_of == kind])


def slot_value(workload: Workload, slot: Slot, rank: int) -> bytes:
    """What a rank has in a slot."""
    if slot.family is not None:
        return str(workload.families[slot.family].number(rank)).encode()
    return varint(_peer(workload, slot, rank))


def _peer(workload: Workload, slot: Slot, rank: int) -> int:
    return rank if slot.peer is None else int(slot.peer.of(workload.grid, rank))


def _widths(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many bytes each number needs as a varint."""
    widths = np.ones(len(numbers), np.int64)
    for place in range(1, 6):
        widths += numbers >= 1 << 7 * place
    return widths


def _template(columns: Columns, ranks: Ranks) -> Template:
    """The records of all nodes in one piece, and the slots in it."""
    rank = int(ranks[0])
    trace = columns.trace(rank)
    bodies = [body for block in encode_nodes(trace) for body in block]
    heads = list(map(Heads(b"").__getitem__, map(len, bodies)))
    data = b"".join(chain.from_iterable(zip(heads, bodies, strict=True)))
    ends = np.cumsum(np.fromiter(map(len, heads), np.int64, len(heads)))
    ends += np.cumsum(np.fromiter(map(len, bodies), np.int64, len(bodies)))
    offsets: dict[_Key, list[int]] = {}
    widths: dict[_Key, int] = {}
    known: dict[int, list[tuple[_Key, bytes, int]]] = {}
    workload = columns.workload
    for row in columns.communication.tolist():
        code = int(columns.operation_of[row])
        if code not in known:
            known[code] = list(_slots(workload, columns.operations[code], rank))
        body, end = bodies[row], int(ends[row])
        for key, piece, width in known[code]:
            # Its last occurrence is the attribute: names stand before it, and times behind.
            behind = len(body) - body.rindex(piece) - len(piece)
            offsets.setdefault(key, []).append(end - behind - width)
            widths[key] = width
    slots = [Slot(widths[key], np.array(at, np.int64), *key) for key, at in offsets.items()]
    return Template(workload, ranks, data, slots, len(bodies), len(trace.edges))


_Key: TypeAlias = "tuple[str | None, Peer | None]"


def _slots(
    workload: Workload, operation: Operation, rank: int
) -> Iterator[tuple[_Key, bytes, int]]:
    """The slots in the node of an operation: the attribute that ends with it, and its width."""
    if operation.family is not None:
        yield _slot(workload, "pg_name", (operation.family, None), rank)
    if operation.peer is not None:
        sends = operation.type == NodeType.COMM_SEND
        itself, other = ("comm_src", "comm_dst") if sends else ("comm_dst", "comm_src")
        yield _slot(workload, itself, (None, None), rank)
        yield _slot(workload, other, (None, operation.peer), rank)


def _slot(workload: Workload, name: str, key: _Key, rank: int) -> tuple[_Key, bytes, int]:
    slot = Slot(0, np.zeros(0, np.int64), *key)
    value = slot_value(workload, slot, rank)
    told: str | int = value.decode() if slot.family else _peer(workload, slot, rank)
    kind = Kind.STRING if slot.family else Kind.INT32
    piece = field_bytes(fields.ATTR, encode_attribute(AttributeKey(name, kind), told))
    return key, piece, len(value)
