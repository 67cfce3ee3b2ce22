"""Communications of several ranks that belong together.

Collectives match by group, by type and by their place among the group's collectives of that rank,
counted from a call that all recordings have; sends match receives by the two ranks, the tag and
their place. What finds no counterpart runs with its recorded duration, and is reported with the
reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.model import UNKNOWN_NS, AttributeTable, ProcessGroup, Trace, TraceSet
from chakra_et.model.attribute_values import INTEGER_KINDS
from chakra_et.replay.columns import MET

_NEARLY: Final = 4
"""Ends that are so many times closer than calls follow each other are those of one call."""
_SHIFT: Final = 4
"""How many calls the recordings of two ranks may begin apart."""


@dataclass
class Match:
    """One communication: the row of each member's node, by rank, with its size in bytes."""

    members: dict[int, int]
    collective: CollectiveType | None
    size_bytes: int
    place: str


@dataclass
class Matching:
    """All matches, and how many nodes had none, by reason."""

    matches: list[Match] = field(default_factory=list)
    unmatched: Counter[str] = field(default_factory=Counter)

    @property
    def matched_nodes(self) -> int:
        """How many nodes have a counterpart."""
        return sum(len(match.members) for match in self.matches)


class _Member(NamedTuple):
    row: int
    type: int
    size: int
    end_ns: int


def match_communication(traces: TraceSet) -> Matching:
    """Match the communications of all ranks."""
    matching = Matching()
    groups = {group.name: group for group in traces.groups}
    calls: dict[str, dict[int, list[_Member]]] = defaultdict(dict)
    messages: dict[tuple[int, int, int], dict[NodeType, list[_Member]]] = defaultdict(dict)
    for rank, trace in traces.items():
        _collect(rank, trace, calls, messages, matching)
    for name, ranks in sorted(calls.items()):
        _match_group(name, groups.get(name), ranks, traces, matching)
    for (source, target, tag), sides in sorted(messages.items()):
        _match_messages(source, target, tag, sides, matching)
    return matching


def _integers(trace: Trace, rows: Rows, name: str, default: int) -> list[int]:
    """An attribute of some nodes; `default` where a node has no integer of that name."""
    found = np.full(len(trace.nodes), default, object)
    for column in trace.nodes.attributes.named(name):
        if column.key.kind in INTEGER_KINDS and not column.key.occurrence:
            found[column.rows] = column.values
    return [int(value) for value in found[rows].tolist()]


def _collect(
    rank: int,
    trace: Trace,
    calls: dict[str, dict[int, list[_Member]]],
    messages: dict[tuple[int, int, int], dict[NodeType, list[_Member]]],
    matching: Matching,
) -> None:
    nodes = trace.nodes
    met = nodes.attributes.dense(MET, UNKNOWN_NS, np.int64)
    counted = np.where(met == UNKNOWN_NS, nodes.start_ns, met)
    ends = np.where(counted == UNKNOWN_NS, 0, counted + nodes.duration_ns)
    wanted = np.flatnonzero(
        np.isin(nodes.type, (NodeType.COMM_COLL, NodeType.COMM_SEND, NodeType.COMM_RECV))
    )
    # Rows need not be in order of time; the order of a group's calls is, but for worker threads:
    # there record-function ids tell which call came first.
    asked = np.array(_integers(trace, wanted, "rf_id", 0), object)
    key = asked if (asked > 0).all() else nodes.start_ns[wanted]
    wanted = wanted[np.argsort(key, kind="stable")]
    numbers = (
        _integers(trace, wanted, name, default)
        for name, default in (
            ("comm_size", 0), ("comm_type", -1), ("comm_dst", -1), ("comm_src", -1), ("comm_tag", 0)
        )
    )  # fmt: skip
    alone, names = _alone(nodes.attributes), _texts(nodes.attributes, "pg_name")
    columns = (wanted, nodes.type[wanted], ends[wanted])
    for row, code, end, size, told, to, by, tag in zip(
        *(column.tolist() for column in columns), *numbers, strict=True
    ):
        kind = _NODES[code]
        if kind is NodeType.COMM_COLL:
            if row in alone:
                matching.unmatched[alone[row]] += 1
                continue
            calls[names.get(row, "")].setdefault(rank, []).append(_Member(row, told, size, end))
            continue
        peer = to if kind is NodeType.COMM_SEND else by
        if peer < 0:
            matching.unmatched["the other rank of a message is unknown"] += 1
            continue
        pair = (rank, peer) if kind is NodeType.COMM_SEND else (peer, rank)
        sides = messages[pair[0], pair[1], tag]
        sides.setdefault(kind, []).append(_Member(row, code, size, end))


def _alone(attributes: AttributeTable) -> dict[int, str]:
    """Why collectives can have no counterpart, by row."""
    took = _texts(attributes, "takes_recorded_time")
    found = {row: f"{told}, which takes its recorded time" for row, told in took.items()}
    unknown = _texts(attributes, "pg_candidates")
    return found | dict.fromkeys(unknown, "the group of a collective is unknown")


def _texts(attributes: AttributeTable, name: str) -> dict[int, str]:
    """An attribute of the nodes that have one, as text, by row: the first of each."""
    found: dict[int, str] = {}
    for column in reversed(attributes.named(name)):
        found.update(zip(column.rows.tolist(), map(str, column.values), strict=True))
    return found


_NODES: Final = {int(kind): kind for kind in NodeType}
_TYPES: Final = {int(kind): kind for kind in CollectiveType}


def _match_group(
    name: str,
    group: ProcessGroup | None,
    ranks: dict[int, list[_Member]],
    traces: TraceSet,
    matching: Matching,
) -> None:
    label = f"group {name!r}" if name else "the default group"
    members = set(group.ranks) if group is not None and group.ranks else set(ranks)
    if not name or group is None or not group.ranks:
        members |= set(ranks)
    missing = sorted(members - set(traces))
    if missing:
        calls = sum(map(len, ranks.values()))
        matching.unmatched[f"{label}: ranks {missing[:8]} have no trace"] += calls
        return
    first = first_places(
        {rank: [m.end_ns for m in calls] for rank, calls in ranks.items()},
        {rank: [m.type for m in calls] for rank, calls in ranks.items()},
    )
    for place in range(max(first[rank] + len(ranks[rank]) for rank in ranks)):
        called = {
            rank: ranks[rank][place - first[rank]]
            for rank in sorted(members)
            if rank in ranks and 0 <= place - first[rank] < len(ranks[rank])
        }
        absent = sorted(members - set(called))
        if absent:
            reason = f"{label}: no counterpart in the trace of ranks {absent[:8]}"
            matching.unmatched[reason] += len(called)
            continue
        types = {member.type for member in called.values()}
        if len(types) > 1:
            # From here on the ranks are out of step: what follows would be matched falsely.
            left = sum(len(ranks[rank]) - (place - first[rank]) for rank in members)
            matching.unmatched[f"{label}: types differ from call {place} on"] += left
            return
        told = types.pop()
        matching.matches.append(
            Match(
                {rank: member.row for rank, member in called.items()},
                _TYPES.get(told),
                max(member.size for member in called.values()),
                f"{label}, call {place}",
            )
        )


def first_places(
    ends_ns: Mapping[int, Sequence[int]], types: Mapping[int, Sequence[int]] | None = None
) -> dict[int, int]:
    """Which of the group's calls is the first that each rank's trace has, by when its calls ended.

    Recordings do not begin with the same call everywhere. Members of a call end together, so that
    at the right shift the ends of two ranks differ by one number, that of their clocks. They are of
    one type as well, where `types` are known.
    """
    longest = max(ends_ns, key=lambda rank: len(ends_ns[rank]))
    reference = np.array(ends_ns[longest])
    kinds = {rank: np.array(of) for rank, of in (types or {}).items()}
    shifts = {
        rank: _shift(reference, np.array(ends), kinds.get(longest), kinds.get(rank))
        for rank, ends in ends_ns.items()
    }
    earliest = min(shifts.values())
    return {rank: shift - earliest for rank, shift in shifts.items()}


def _shift(
    reference: Rows, ends: Rows, their_types: Rows | None = None, types: Rows | None = None
) -> int:
    """By how many places a rank's calls begin later than those of the reference."""
    reach = min(_SHIFT + len(reference) - len(ends), len(reference) - 1)
    scores, unlike = {}, _unlike(their_types, types, *_overlap(len(reference), len(ends), 0))
    for shift in range(-min(_SHIFT, len(ends) - 1), reach + 1):
        there, here = _overlap(len(reference), len(ends), shift)
        theirs, mine = reference[there], ends[here]
        # Calls of more than one type that meet speak against a shift.
        if _unlike(their_types, types, there, here) > unlike:
            continue
        if 2 * len(mine) >= len(ends) and len(mine) > 1:
            gap = mine - theirs
            scores[shift] = float(np.median(np.abs(gap - np.median(gap))))
    if _clocks_agree(reference, ends):
        return 0
    best = min(scores, key=lambda shift: (scores[shift], abs(shift)), default=0)
    # Only a clearly better fit speaks against the plain order.
    return best if best and scores[best] * 2 < scores.get(0, np.inf) else 0


def _overlap(reference: int, count: int, shift: int) -> tuple[slice, slice]:
    """The places of the calls that meet at a shift, of the reference and of the other rank."""
    first, other = max(shift, 0), max(-shift, 0)
    length = min(reference - first, count - other)
    return slice(first, first + length), slice(other, other + length)


def _unlike(theirs: Rows | None, mine: Rows | None, there: slice, here: slice) -> float:
    """The share of calls that meet one of another type; 0 where types are not known."""
    if theirs is None or mine is None or not len(mine[here]):
        return 0.0
    return float((theirs[there] != mine[here]).mean())


def _clocks_agree(reference: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> bool:
    """Whether calls in plain order end at nearly the same time, compared with what lies between.

    Then they are the same calls, however much what follows each varies.
    """
    count = min(len(reference), len(ends))
    between = np.diff(reference)
    if count < 2 or not len(between):
        return False
    apart = np.abs(ends[:count] - reference[:count])
    return bool(_NEARLY * np.median(apart) < np.median(between))


def _match_messages(
    source: int,
    target: int,
    tag: int,
    sides: dict[NodeType, list[_Member]],
    matching: Matching,
) -> None:
    sends, receives = sides.get(NodeType.COMM_SEND, []), sides.get(NodeType.COMM_RECV, [])
    for place, (send, receive) in enumerate(zip(sends, receives)):  # noqa: B905 - unequal is told
        matching.matches.append(
            Match(
                {source: send.row, target: receive.row},
                None,
                max(send.size, receive.size),
                f"rank {source} to {target}, tag {tag}, message {place}",
            )
        )
    extra = abs(len(sends) - len(receives))
    if extra:
        side = "receive" if len(sends) > len(receives) else "send"
        matching.unmatched[f"rank {source} to {target}: no {side} for a message"] += extra
