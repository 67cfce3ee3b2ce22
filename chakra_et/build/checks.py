"""Whether the programs of all ranks fit together: messages have two ends, collectives all members.

Programs are compared, not nodes: of each program the sequence of sizes and types for every group,
and the messages for every peer. So the work grows with the programs and the ranks, not with both.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from chakra_et.build.grid import Ranks
from chakra_et.build.operation import Operation, Peer
from chakra_et.build.places import BuildError, Place
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.validators.sequences import EQUAL_SIZES

if TYPE_CHECKING:
    from chakra_et.build.template import Talking
    from chakra_et.build.workload import Workload


@dataclass
class Talk:
    """The communication of one program with one group or peer: operations and where they are."""

    operations: list[Operation]
    places: list[Place]

    def place_of(self, index: int) -> Place | None:
        return self.places[index] if index < len(self.places) else None


class Checks:
    """Collects what programs communicate, and compares it when all are there."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._collectives: dict[str, list[tuple[Talk, Ranks]]] = {}
        self._messages: list[tuple[NodeType, Peer, Talk, Ranks]] = []

    def add(self, columns: Talking, ranks: Ranks) -> None:
        """Take in a program and the ranks that run it."""
        groups: dict[str, Talk] = {}
        peers: dict[tuple[NodeType, Peer], Talk] = {}
        codes = columns.operation_of[columns.communication].tolist()
        for code, place in zip(codes, columns.places, strict=True):
            operation = columns.operations[code]
            if operation.peer is None:
                assert operation.family is not None
                talk = groups.setdefault(operation.family, Talk([], []))
            else:
                talk = peers.setdefault((operation.type, operation.peer), Talk([], []))
            talk.operations.append(operation)
            talk.places.append(place)
        for name, family in self._workload.families.items():
            if family.size > 1:
                mine = ranks[family.group_of[ranks] >= 0]
                talk = groups.get(name, Talk([], []))
                self._collectives.setdefault(name, []).append((talk, mine))
        self._messages += [(type, peer, talk, ranks) for (type, peer), talk in peers.items()]

    def finish(self) -> None:
        """Raise BuildError for the first thing that does not fit."""
        for name, talks in self._collectives.items():
            self._check_groups(name, talks)
        self._check_messages()

    def _check_groups(self, name: str, talks: list[tuple[Talk, Ranks]]) -> None:
        """All ranks of a group must run collectives of the same types and sizes, in one order."""
        family = self._workload.families[name]
        kinds: dict[Any, int] = {}
        kind_of = np.full(self._workload.grid.world_size, -1, np.int64)
        of_kind: dict[int, Talk] = {}
        for talk, ranks in talks:
            key = tuple(map(_fit, talk.operations))
            kind = kinds.setdefault(key, len(kinds))
            kind_of[ranks] = kind
            of_kind.setdefault(kind, talk)
        found = kind_of[family.members]
        wrong = np.argwhere(found != found[:, :1])
        if len(wrong) == 0:
            return
        group, member = wrong[0].tolist()
        one, other = (of_kind[int(found[group, m])] for m in (0, member))
        ranks_of = family.members[group, [0, member]].tolist()
        raise _group_error(name, ranks_of, one, other)

    def _check_messages(self) -> None:
        """Each send must have a receive of its tag and size, and each receive a send."""
        grid = self._workload.grid
        ends: dict[tuple[int, int], list[list[Talk]]] = {}
        for type, peer, talk, ranks in self._messages:
            others = peer.of(grid, ranks)
            for rank, other in zip(ranks.tolist(), np.asarray(others).tolist(), strict=True):
                sends = type is NodeType.COMM_SEND
                pair = (rank, other) if sends else (other, rank)
                ends.setdefault(pair, [[], []])[0 if sends else 1].append(talk)
        counted: dict[int, Counter[tuple[int | None, int | None]]] = {}
        known: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
        for pair, (sent, received) in sorted(ends.items(), key=lambda end: end[0][0] != end[0][1]):
            if pair[0] == pair[1]:
                raise BuildError.here(
                    f"rank {pair[0]} would send to itself",
                    "Name another rank, or leave it out.",
                    (sent + received)[0].places[0],
                )
            key = (tuple(map(id, sent)), tuple(map(id, received)))
            if key not in known:
                known.add(key)
                _check_pair(pair, sent, received, counted)


def _check_pair(
    pair: tuple[int, int],
    sent: list[Talk],
    received: list[Talk],
    counted: dict[int, Counter[tuple[int | None, int | None]]],
) -> None:
    def count(talks: list[Talk]) -> Counter[tuple[int | None, int | None]]:
        total: Counter[tuple[int | None, int | None]] = Counter()
        for talk in talks:
            if id(talk) not in counted:
                counted[id(talk)] = Counter((op.tag, op.size_bytes) for op in talk.operations)
            total += counted[id(talk)]
        return total

    sends, receives = count(sent), count(received)
    if sends == receives:
        return
    for surplus, talks, what, missing in (
        (sends - receives, sent, "sends", "receives"),
        (receives - sends, received, "receives", "sends"),
    ):
        for message in surplus:
            place = next(
                place
                for talk in talks
                for op, place in zip(talk.operations, talk.places, strict=True)
                if (op.tag, op.size_bytes) == message
            )
            here, there = pair if what == "sends" else pair[::-1]
            way = "to" if what == "sends" else "from"
            raise BuildError.here(
                f"rank {here} {what} {message[1]} bytes with tag {message[0]} {way} rank {there}, "
                f"which {missing} no such message",
                "Give both ends one tag and size; without tags, one order.",
                place,
            )


def _fit(operation: Operation) -> tuple[int | None, int | None]:
    """What has to be equal on all ranks: the type, and of most types the size."""
    equal = operation.collective in EQUAL_SIZES
    return operation.collective, operation.size_bytes if equal else None


def _group_error(name: str, ranks: list[int], one: Talk, other: Talk) -> BuildError:
    """What to say of two ranks of a group whose collectives differ."""

    def told(talk: Talk, index: int) -> tuple[int | None, int | None] | None:
        return _fit(talk.operations[index]) if index < len(talk.operations) else None

    longest = max(len(one.operations), len(other.operations))
    at = next(i for i in range(longest) if told(one, i) != told(other, i))
    words = [
        "none" if (t := told(talk, at)) is None
        else f"{CollectiveType(t[0] or 0).name} of {t[1] or 'any number of'} bytes"
        for talk in (one, other)
    ]  # fmt: skip
    return BuildError.here(
        f"collective {at} of group {name!r} is {words[0]} on rank {ranks[0]} "
        f"and {words[1]} on rank {ranks[1]}",
        "All ranks of a group run the same collectives in one order.",
        one.place_of(at) or other.place_of(at),
    )
