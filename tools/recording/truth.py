"""What a program and PyTorch say of a run, and what a trace says of it; needs no PyTorch."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from chakra_et import operator_times
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


@dataclass(frozen=True)
class Times:
    """How often an operator ran, and how long, in microseconds: by itself, and in all.

    `own_us` is None in PyTorch's table of what begins on one thread and ends on another, as
    transfers of gloo do.
    """

    calls: int
    own_us: float | None
    all_us: float


def write_averages(directory: Path, rank: int, table: dict[str, Times]) -> None:
    """Write PyTorch's own table of times by operator, beside the directory."""
    content = {name: asdict(times) for name, times in table.items()}
    _averages_file(directory, rank).write_text(json.dumps(content))


def read_averages(directory: Path, rank: int) -> dict[str, Times]:
    """PyTorch's own table of times by operator."""
    content = json.loads(_averages_file(directory, rank).read_bytes())
    return {name: Times(**times) for name, times in content.items()}


def _averages_file(directory: Path, rank: int) -> Path:
    return directory.with_name(f"{directory.name}.averages.{rank}.json")


def averages(trace: Trace) -> dict[str, Times]:
    """The same table of a trace."""
    found: dict[str, Times] = {}
    for item in operator_times(trace):
        if item.name is not None:
            name = re.sub(r"ProfilerStep#\d+", "ProfilerStep*", item.name)
            before = found.get(name, Times(0, 0.0, 0.0))
            own_us = (before.own_us or 0.0) + (item.self_ns + item.wait_ns) / 1000
            all_us = before.all_us + item.total_ns / 1000
            found[name] = Times(before.calls + item.calls, own_us, all_us)
    return found


def closed_late_us(warnings: Iterable[str]) -> float:
    """By how much a linked trace ends transfers before the backend closed their ranges, at most."""
    found = (re.search(r"still open .* for up to (\d+) us", text) for text in warnings)
    return max((float(match[1]) + 1 for match in found if match), default=0.0)


def unlike(
    theirs: dict[str, Times], ours: dict[str, Times], within: float, late_us: float = 0.0
) -> list[str]:
    """The operators of which two tables say something else, by more than a share; and rounding.

    Ours may give each transfer of gloo up to `late_us` less, as the trace has told.
    """
    wrong = sorted(theirs.keys() ^ ours.keys())
    for name in theirs.keys() & ours.keys():
        a, b = theirs[name], ours[name]
        pairs = [(a.all_us, b.all_us)] + ([] if a.own_us is None else [(a.own_us, b.own_us or 0)])
        less = late_us * a.calls if name.startswith("gloo:") else 0.0
        slack = [max(within * x, 0.002 * a.calls) for x, _ in pairs]
        near = all(-most <= x - y <= most + less for (x, y), most in zip(pairs, slack, strict=True))
        if not near or a.calls != b.calls or (a.own_us is None and not name.startswith("gloo:")):
            wrong.append(f"{name}: {a}, {b}")
    return wrong


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
