"""What a program says that it communicates, and what a trace says of it; needs no PyTorch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.model import Node, Trace

_SIDES: Final = {
    NodeType.COMM_SEND: ("SEND", "comm_dst"),
    NodeType.COMM_RECV: ("RECV", "comm_src"),
}


@dataclass(frozen=True)
class Communication:
    """A communication that a program asked for on one rank."""

    type: str
    """The name of a `CollectiveType`, or SEND, or RECV."""
    size_bytes: int | None
    ranks: tuple[int, ...] | None
    """Global ranks of the group; None of a message, which has its other side."""
    peer: int | None = None
    """The other side of a message, as a global rank."""
    tag: int | None = None
    from_any: bool = False
    """Whether it was received from whoever sent."""


def message(
    kind: str, size_bytes: int, peer: int, tag: int, *, from_any: bool = False
) -> Communication:
    """One side of a message."""
    return Communication(kind, size_bytes, None, peer, tag, from_any)


def write_truth(directory: Path, rank: int, said: Iterable[Communication]) -> None:
    """Write what a rank of the program recorded in a directory said, beside it."""
    _file(directory, rank).write_text(json.dumps([asdict(item) for item in said]))


def read_truth(directory: Path, rank: int) -> list[Communication]:
    """What a rank said, in order."""
    said = json.loads(_file(directory, rank).read_bytes())
    return [
        Communication(**{**item, "ranks": None if item["ranks"] is None else tuple(item["ranks"])})
        for item in said
    ]


def _file(directory: Path, rank: int) -> Path:
    return directory.with_name(f"{directory.name}.truth.{rank}.json")


def communication(trace: Trace) -> list[Node]:
    """The nodes that communicate, in order."""
    kinds = (NodeType.COMM_COLL, *_SIDES)
    return [node for node in trace.nodes if node.type in kinds]


def told(trace: Trace) -> list[Communication]:
    """What a trace says of what its rank communicated, in order."""
    groups = {group.name: group.ranks for group in trace.groups}
    found = []
    for node in communication(trace):
        kind = NodeType(node.type)
        if kind in _SIDES:
            side, peer = _SIDES[kind]
            other, tag = node.attributes.get(peer), node.comm_tag
            from_any = node.name.endswith("AnySource")
            found.append(Communication(side, node.comm_size, None, other, tag, from_any))
        else:
            known = node.comm_type is not None
            name = CollectiveType(int(node.comm_type or 0)).name if known else "unknown"
            found.append(Communication(name, node.comm_size, groups.get(node.pg_name or "")))
    return found


def right(said: list[Communication], found: list[Communication]) -> int:
    """How many communications are found as they were said, in the longest common beginning.

    Of what was received from any rank, the senders count in whatever order.
    """
    senders = [Counter(c.peer for c in each if c.from_any) for each in (said, found)]
    lost = sum((senders[0] - senders[1]).values())
    pairs = zip(said, found, strict=False)
    return sum(_without_sender(a) == _without_sender(b) for a, b in pairs) - lost


def _without_sender(item: Communication) -> Communication:
    return replace(item, peer=None) if item.from_any else item
