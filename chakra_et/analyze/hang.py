"""A job that hangs: who waits for whom, and who never came, from traces that were cut short."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.model import Trace, TraceSet
from chakra_et.replay.matching import first_places


@dataclass(frozen=True)
class Stall:
    """The first call of a group that some of its ranks have made and others have not.

    Messages from one rank to another under one tag are a group of both, too.
    """

    group: str
    place: int
    what: str
    waiting: tuple[int, ...]
    absent: tuple[int, ...]


@dataclass(frozen=True)
class Hang:
    """What holds a job up.

    `suspects` never came where others wait, and wait nowhere themselves; those without a trace come
    first. `last` is the last node that each rank began.
    """

    stalls: list[Stall]
    suspects: list[int]
    last: dict[int, str]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "suspects": self.suspects,
            "stalls": [
                {"group": s.group, "call": s.place, "what": s.what,
                 "waiting": list(s.waiting), "absent": list(s.absent)}
                for s in self.stalls
            ],
            "last": {str(rank): name for rank, name in self.last.items()},
        }  # fmt: skip


def find_hang(traces: TraceSet) -> Hang:
    """Compare the sequences of communications of all ranks."""
    calls: dict[str, dict[int, list[_Call]]] = defaultdict(dict)
    pairs: dict[str, Sequence[int]] = {}
    for rank, trace in traces.items():
        for group, call in _calls(trace):
            calls[group].setdefault(rank, []).append(call)
        for source, target, tag, call in _messages(rank, trace):
            group = f"messages of tag {tag} from rank {source} to {target}"
            pairs[group] = sorted({source, target})
            calls[group].setdefault(rank, []).append(call)
    members = {**_members(traces, calls), **pairs}
    stalls = [s for group in sorted(calls) if (s := _stall(group, calls[group], members[group]))]
    waiting = {rank for stall in stalls for rank in stall.waiting}
    absent = {rank for stall in stalls for rank in stall.absent}
    unseen = sorted(absent - set(traces))
    suspects = [*unseen, *sorted(absent - waiting - set(unseen))]
    last = {rank: name for rank, trace in traces.items() if (name := _last(trace))}
    return Hang(stalls, suspects, last)


@dataclass(frozen=True)
class _Call:
    what: str
    end_ns: int


def _calls(trace: Trace) -> list[tuple[str, _Call]]:
    """Group and call of each collective of a rank, in the order in which they were asked for."""
    nodes, attributes = trace.nodes, trace.nodes.attributes
    found = []
    for row in _asked(trace, NodeType.COMM_COLL):
        kind = attributes.get(row, "comm_type")
        known = isinstance(kind, int) and kind in set(CollectiveType)
        what = CollectiveType(kind).name if known else str(nodes[row].name)
        call = _Call(what, _end_ns(trace, row))
        found.append((str(attributes.get(row, "pg_name") or ""), call))
    return found


def _messages(rank: int, trace: Trace) -> list[tuple[int, int, int, _Call]]:
    """Sender, receiver, tag and call of a rank's sends and receives that name the other rank."""
    attributes, found = trace.nodes.attributes, []
    tags = attributes.dense("comm_tag", 0, np.int64)
    for kind, name in ((NodeType.COMM_SEND, "comm_dst"), (NodeType.COMM_RECV, "comm_src")):
        others = attributes.dense(name, -1, np.int64)
        for row in _asked(trace, kind):
            other, call = int(others[row]), _Call(kind.name, _end_ns(trace, row))
            if other >= 0 and other != rank:
                ends = (rank, other) if kind is NodeType.COMM_SEND else (other, rank)
                found.append((*ends, int(tags[row]), call))
    return found


def _asked(trace: Trace, kind: NodeType) -> list[int]:
    """The rows of communications of a kind, in the order in which they were asked for."""
    rows = np.flatnonzero(trace.nodes.type == kind)
    asked = trace.nodes.attributes.dense("rf_id", 0, np.int64)[rows]
    key = asked if (asked > 0).all() else trace.nodes.start_ns[rows]
    order: list[int] = rows[np.argsort(key, kind="stable")].tolist()
    return order


def _end_ns(trace: Trace, row: int) -> int:
    return int(trace.nodes.start_ns[row] + trace.nodes.duration_ns[row])


def _members(
    traces: TraceSet, calls: dict[str, dict[int, list[_Call]]]
) -> dict[str, Sequence[int]]:
    """The ranks of each group: as the traces say, else all of the world, else those that call."""
    told = {group.name: group.ranks for group in traces.groups if group.ranks}
    sizes = [trace.world_size for trace in traces.values() if trace.world_size]
    world = range(max(sizes)) if sizes else sorted(traces)
    return {
        group: told.get(group) or (world if group in ("", "0", "default_pg") else sorted(ranks))
        for group, ranks in calls.items()
    }


def _stall(group: str, calls: dict[int, list[_Call]], members: Sequence[int]) -> Stall | None:
    """The first call that some have made and others have not; recordings may begin later."""
    first = first_places({rank: [call.end_ns for call in made] for rank, made in calls.items()})
    reached = {rank: first.get(rank, 0) + len(calls.get(rank, [])) for rank in members}
    place = min(reached.values(), default=0)
    waiting = tuple(rank for rank, count in reached.items() if count > place)
    if not waiting:
        return None
    absent = tuple(rank for rank, count in reached.items() if count == place)
    what = calls[waiting[0]][place - first[waiting[0]]].what
    return Stall(group, place, what, waiting, absent)


def _last(trace: Trace) -> str | None:
    """The name of the node that began last."""
    if not len(trace.nodes):
        return None
    return str(trace.nodes[int(np.argmax(trace.nodes.start_ns))].name)
