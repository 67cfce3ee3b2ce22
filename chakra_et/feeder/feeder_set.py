"""The feeders of many ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.feeder.errors import Code, FeederError
from chakra_et.feeder.feeder import Feeder, Source
from chakra_et.feeder.groups import groups_beside
from chakra_et.feeder.node import HandedNode
from chakra_et.feeder.options import Next, Options, State
from chakra_et.io.archive import members
from chakra_et.model.groups import decode_groups

_RANK: Final = re.compile(r"^(?P<prefix>.+)\.(?P<rank>\d+)\.et(\.gz|\.zst)?$")
_EVERYBODY: Final = ("", "0")


@dataclass(frozen=True)
class Collective:
    """A collective that every member has reached: its group, type, and node id by rank."""

    group: str
    type: CollectiveType | int | None
    members: dict[int, int]


class FeederSet:
    """One feeder for each rank, drained fairly, with what ranks need from each other.

    `source` is a directory or a prefix of files `PREFIX.RANK.et`, or a mapping from rank to
    anything that a `Feeder` takes. `groups` says which ranks belong to a process group; what it
    does not say comes from `comm_groups.json` beside the files, from the traces' metadata, and
    from which traces name a group. The group "" or "0" is everybody unless told otherwise.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Mapping[int, Source],
        *,
        groups: Mapping[str, list[int]] | None = None,
        options: Options | None = None,
        **choices: Any,
    ) -> None:
        self._groups: dict[str, list[int]] = {}
        if isinstance(source, Mapping):
            sources: Mapping[int, Any] = source
        else:
            sources = found = find_ranks(source)
            self._groups.update(groups_beside(next(iter(found.values()))))
        self.feeders = {
            rank: Feeder(sources[rank], options=options, **choices) for rank in sorted(sources)
        }
        for feeder in self.feeders.values():
            self._learn_groups(feeder)
        self._groups.update({name: sorted(ranks) for name, ranks in (groups or {}).items()})
        self._turn = 0
        self._scanned = False

    def __repr__(self) -> str:
        return f"<FeederSet of {len(self)} ranks>"

    def __len__(self) -> int:
        return len(self.feeders)

    def __getitem__(self, rank: int) -> Feeder:
        return self.feeders[rank]

    def __iter__(self) -> Iterator[tuple[int, HandedNode]]:
        """Take a node of each rank in turn; it is done when the next is asked for.

        Ranks do not wait for each other here. Raises FeederError if nodes are left in the end.
        """
        while True:
            answer, rank, node = self.next()
            if answer is Next.FINISHED:
                return
            if answer is not Next.NODE:
                raise FeederError(Code.BLOCKED, f"nothing is ready:\n{self.blocked()}".rstrip())
            assert node is not None
            yield rank, node
            if self.feeders[rank].state(node.id) is State.TAKEN:
                self.feeders[rank].done(node.id)

    def _learn_groups(self, feeder: Feeder) -> None:
        text = feeder.metadata.get("process_groups")
        try:
            groups = decode_groups(text) if isinstance(text, str) else ()
        except ValueError:
            return  # the traces' own nodes will tell
        for group in groups:
            if group.ranks:
                self._groups.setdefault(group.name, sorted(group.ranks))

    def next(self) -> tuple[Next, int, HandedNode | None]:
        """Take the first ready node of the next rank that has one."""
        ranks = list(self.feeders)
        answers = set()
        for step in range(len(ranks)):
            place = (self._turn + step) % len(ranks)
            answer, node = self.feeders[ranks[place]].next()
            if answer is Next.NODE:
                self._turn = place + 1
                return answer, ranks[place], node
            answers.add(answer)
        for answer in (Next.PENDING, Next.BLOCKED):
            if answer in answers:
                return answer, -1, None
        return Next.FINISHED, -1, None

    def done(self, rank: int, node_id: int) -> None:
        """Finish a taken node of a rank."""
        self.feeders[rank].done(node_id)

    @property
    def is_finished(self) -> bool:
        """Whether every node of every rank is done."""
        return all(feeder.is_finished for feeder in self.feeders.values())

    def members(self, group: str) -> list[int]:
        """The ranks of a process group."""
        if group not in self._groups:
            if group in _EVERYBODY:
                return list(self.feeders)
            self._scan_groups()
        return self._groups.get(group, [])

    def _scan_groups(self) -> None:
        if self._scanned:
            return
        self._scanned = True
        found: dict[str, list[int]] = {}
        for rank, feeder in self.feeders.items():
            nodes = (_node(feeder, node_id) for node_id in feeder.ids())
            for group in sorted({n.pg_name or "" for n in nodes if _is_collective(n)}):
                found.setdefault(group, []).append(rank)
        for group, ranks in found.items():
            self._groups.setdefault(group, ranks)

    def next_collective_ready(self) -> Collective | None:
        """The first collective, by group, that is ready on every member; None if none is.

        Nothing is taken. Raises FeederError when the members' nodes are not the same collective.
        """
        for group, arrived in sorted(self._arrivals(with_taken=False).items()):
            members = self.members(group)
            if members and all(rank in arrived for rank in members):
                return self._agreed(group, {rank: arrived[rank] for rank in members})
        return None

    def _arrivals(self, *, with_taken: bool) -> dict[str, dict[int, int]]:
        """Per group and rank the first collective that is ready, or taken if those count."""
        arrivals: dict[str, dict[int, int]] = {}
        for rank, feeder in self.feeders.items():
            taken = feeder.ids_in(State.TAKEN) if with_taken else []
            for node_id in [*taken, *feeder.ready()]:
                node = _node(feeder, node_id)
                if _is_collective(node):
                    arrivals.setdefault(node.pg_name or "", {}).setdefault(rank, node_id)
        return arrivals

    def _agreed(self, group: str, members: dict[int, int]) -> Collective:
        nodes = {rank: _node(self.feeders[rank], node_id) for rank, node_id in members.items()}
        first = next(iter(nodes.values()))
        for rank, node in nodes.items():
            what = ""
            if node.comm_type != first.comm_type:
                what = f"comm_type {node.comm_type} against {first.comm_type}"
            elif node.comm_type == CollectiveType.ALL_REDUCE and (
                node.comm_size != first.comm_size
            ):
                what = f"comm_size {node.comm_size} against {first.comm_size}"
            if what:
                raise FeederError(
                    Code.MISMATCH,
                    f"ranks of group {group!r} disagree: node {node.id} of rank {rank} has {what}",
                    node=node.id,
                    other=rank,
                )
        kind = first.comm_type
        if kind in CollectiveType._value2member_map_:
            kind = CollectiveType(kind)  # type: ignore[arg-type]
        return Collective(group, kind, members)

    def blocked(self, limit: int = 20) -> str:
        """Why nothing happens: rank by rank, then what ranks lack from each other."""
        lines = []
        sends: dict[int, _Sends] = {}
        for rank, feeder in self.feeders.items():
            if not feeder.is_finished:
                lines.append(f"rank {rank}: {feeder.blocked(limit)}".rstrip())
                lines += _first(self._explain_receives(rank, feeder, sends), limit, "receives")
        for group, arrived in sorted(self._arrivals(with_taken=True).items()):
            absent = [rank for rank in self.members(group) if rank not in arrived]
            if absent:
                there = [f"node {node} of rank {rank}" for rank, node in arrived.items()]
                came = ", ".join(_first(there, limit, "nodes"))
                who = " ".join(_first(map(str, absent), limit, "ranks"))
                lines.append(f'group "{group}": {came}, wait for rank {who}')
        return "\n".join(lines) + "\n"

    def _explain_receives(
        self, rank: int, feeder: Feeder, sends: dict[int, _Sends]
    ) -> Iterator[str]:
        """For each receive that is ready or taken: is there a send for it?"""
        earlier: dict[tuple[int, int], int] = {}
        for node_id in feeder.ids():
            node = _node(feeder, node_id)
            if node.type != NodeType.COMM_RECV or node.comm_src is None:
                continue
            source, tag = node.comm_src, node.comm_tag or 0
            nth = earlier.get((source, tag), 0)
            earlier[source, tag] = nth + 1
            if feeder.state(node_id) in (State.READY, State.TAKEN):
                sender = self._sender(source, (rank, tag), nth, sends)
                yield f"node {node_id} receives from rank {source} with tag {tag}: {sender}"

    def _sender(
        self, source: int, wanted: tuple[int, int], nth: int, sends: dict[int, _Sends]
    ) -> str:
        """What became of the nth send of `source` to a (rank, tag); `sends` grows by `source`."""
        feeder = self.feeders.get(source)
        if feeder is None:
            return "no such rank"
        if source not in sends:
            sends[source] = _sends(feeder)
        found = sends[source].get(wanted, [])
        if nth >= len(found):
            return "no send for it"
        return f"sent by node {found[nth]}, which is {feeder.state(found[nth]).label}"


_Sends = dict[tuple[int, int], list[int]]
"""The sends of a rank, in order of their ids, by receiving rank and tag."""


def _node(feeder: Feeder, node_id: int) -> HandedNode:
    """A node that the feeder holds."""
    node = feeder.node(node_id)
    assert node is not None
    return node


def _sends(feeder: Feeder) -> _Sends:
    found: _Sends = {}
    for node_id in feeder.ids():
        node = _node(feeder, node_id)
        if node.type == NodeType.COMM_SEND and node.comm_dst is not None:
            found.setdefault((node.comm_dst, node.comm_tag or 0), []).append(node_id)
    return found


def _first(texts: Iterable[str], limit: int, what: str) -> list[str]:
    """The first texts, and how many more there are."""
    rest = iter(texts)
    shown = list(islice(rest, limit))
    more = sum(1 for _ in rest)
    return [*shown, f"and {more} more {what}"] if more else shown


def _is_collective(node: Any) -> bool:
    return node is not None and node.type == NodeType.COMM_COLL


def rank_in_name(path: Path) -> int | None:
    """The rank that the name `PREFIX.RANK.et` (compressed or not) tells."""
    match = _RANK.match(path.name)
    return int(match["rank"]) if match else None


def find_ranks(source: str | os.PathLike[str]) -> dict[int, Path]:
    """The files `PREFIX.RANK.et` (compressed or not) of a directory or of a prefix, by rank.

    So are those that an archive, or a packed file, stands for.
    """
    place = Path(source)
    whole = place.is_dir() or place.is_file()
    folder, prefix = (place, None) if whole else (place.parent, place.name)
    found: dict[int, Path] = {}
    prefixes = set()
    paths = list(folder.glob("*.et*")) if folder.is_dir() else []
    if place.is_file():
        paths = [place / name for name in members(place)]
    for path in sorted(paths):
        match = _RANK.match(path.name)
        if match and prefix in (None, match["prefix"]):
            found[int(match["rank"])] = path
            prefixes.add(match["prefix"])
    if not found:
        raise FeederError(Code.IO, "no files PREFIX.RANK.et here", path=place)
    if len(prefixes) > 1:
        names = ", ".join(sorted(prefixes))
        raise FeederError(Code.IO, f"files of several runs ({names}); name a prefix", path=place)
    return found
