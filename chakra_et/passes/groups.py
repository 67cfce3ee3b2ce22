"""Process groups and messages as a simulator wants them: by number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from chakra_et.definitions import Kind, NodeType
from chakra_et.model import ProcessGroup, TraceSet, number_in_name
from chakra_et.passes.base import Change, PassResult, run_pass
from chakra_et.passes.edit import copied, drop_attribute, set_attribute
from chakra_et.validators.astra_sim_limits import TAGS
from chakra_et.validators.sequences import WORLD, group_key, issue_order
from chakra_et.validators.view import ABSENT, RunView, TraceView

Key = tuple[str, tuple[int, ...]]


@run_pass(
    "number-groups",
    "Groups called by numbers above 0, the members of each known.",
    ensures="ET402 ET407 ET714 ET715",
)
def number_groups(traces: TraceSet) -> PassResult:
    """Number the groups, and give the group of all ranks a number where others are used too.

    A group that no table explains has the ranks that use its name, unless its size says that there
    are others: then its members stay unknown.
    """
    run = RunView({rank: TraceView(trace, rank) for rank, trace in traces.items()})
    used = _used(run)
    members = {key: _members(run, key, ranks) for key, ranks in used.items()}
    everyone = tuple(range(traces.world_size))
    members = {key: everyone if key == ("", ()) else ranks for key, ranks in members.items()}
    numbers = _numbers(members)
    explicit = len(members) > 1
    table = [_group(run, key, str(numbers[key]), ranks) for key, ranks in members.items()]
    if everyone not in [group.ranks for group in table]:
        free = _free(numbers.values())
        table.append(ProcessGroup(name=str(free), ranks=everyone, size=len(everyone)))
    changed, changes = {}, []
    for rank, trace in traces.items():
        view = run.views[rank]
        changed[rank] = copied(trace)
        changes += _rename(run, view, changed[rank].nodes.attributes, numbers, explicit)
        changed[rank].groups = [g for g in table if rank in g.ranks or not g.ranks]
        if changed[rank].groups != view.groups:
            changes.append(Change("groups rewritten", len(changed[rank].groups), rank))
    return PassResult(TraceSet(changed), changes)


def _members(run: RunView, key: Key, users: list[int]) -> tuple[int, ...]:
    """The ranks of a group: those that a table tells, else those that use it, if it has no more."""
    size = max(
        (v.group_of[key[0]].size for v in run.views.values() if key[0] in v.group_of), default=0
    )
    return key[1] or (tuple(users) if size in (0, len(users)) else ())


def _group(run: RunView, key: Key, number: str, ranks: tuple[int, ...]) -> ProcessGroup:
    """The group under its number; what was known of it otherwise stays."""
    name = key[0] or "0"
    known = next((v.group_of[name] for v in run.views.values() if name in v.group_of), None)
    renamed = "" if name in (number, "0") else f"was {name!r}"
    guessed = not key[1] and bool(key[0])
    return ProcessGroup(
        name=number,
        ranks=ranks,
        size=len(ranks) or (known.size if known is not None else 0),
        description=(known.description if known is not None else "") or renamed,
        source="ranks that use the name" if guessed else known.source if known is not None else "",
        inferred=guessed or (known is not None and known.inferred),
    )


def comm_groups(traces: TraceSet) -> dict[str, list[int]]:
    """The content of comm_groups.json: members by number, of every group that a trace knows."""
    return {
        group.name: list(group.ranks)
        for group in sorted(traces.groups, key=lambda group: int(group.name))
        if group.ranks
    }


def _used(run: RunView) -> dict[Key, list[int]]:
    """Every group that collectives name, and the ranks that do."""
    used: dict[Key, list[int]] = {}
    for rank, view in run.views.items():
        rows = view.collectives[~view.present("pg_candidates")[view.collectives]]
        names = view.texts("pg_name")[rows].astype(str)
        for key in {group_key(run, view, name): None for name in np.unique(names).tolist()}:
            used.setdefault(key, []).append(rank)
    return used


def _numbers(keys: Iterable[Key]) -> dict[Key, int]:
    """A number above 0 for each group: the one that it is called by, if no other one is."""
    numbers: dict[Key, int] = {}
    taken: set[int] = set()
    wanting = []
    for key in keys:
        number = number_in_name(key[0])
        if number and number < 1 << 31 and number not in taken:
            numbers[key] = number
            taken.add(number)
        else:
            wanting.append(key)
    for key in sorted(wanting):
        numbers[key] = _free(taken)
        taken.add(numbers[key])
    return numbers


def _free(taken: Iterable[int]) -> int:
    """The least number above 0 that is free."""
    used = set(taken)
    return next(number for number in range(1, len(used) + 2) if number not in used)


def _rename(
    run: RunView, view: TraceView, table: Any, numbers: dict[Key, int], explicit: bool
) -> list[Change]:
    rows = view.communication[~view.present("pg_candidates")[view.communication]]
    names = view.texts("pg_name")[rows].astype(str)
    collective = view.nodes.type[rows] == NodeType.COMM_COLL
    new: list[str] = []
    for name, is_collective in zip(names.tolist(), collective.tolist(), strict=True):
        key = group_key(run, view, name)
        # A message needs no group; a name that is no number would stop the simulator.
        number = numbers.get(key) if is_collective or name not in WORLD else None
        new.append("" if number is None or (key == ("", ()) and not explicit) else str(number))
    wanted = np.array(new, object)
    differ = wanted != names
    # Without other groups, the world is best left without a name: then it follows the topology.
    if not differ.any():
        return []
    bare, named = rows[differ & (wanted == "")], rows[differ & (wanted != "")]
    drop_attribute(table, "pg_name", bare)
    set_attribute(table, "pg_name", Kind.STRING, named, wanted[differ & (wanted != "")].tolist())
    pairs = sorted(set(zip(names[differ].tolist(), wanted[differ].tolist(), strict=True)))
    text = ", ".join(f"{a or 'no name'} to {b or 'no name'}" for a, b in pairs)
    return [Change(f"groups renamed ({text})", int(differ.sum()), view.rank)]


@run_pass("number-messages", "A tag on every message.", ensures="ET210 ET720")
def number_messages(traces: TraceSet) -> PassResult:
    """Where a tag is missing or too large, number the messages between each two ranks."""
    sides = (NodeType.COMM_SEND, NodeType.COMM_RECV)
    views = {rank: TraceView(trace, rank) for rank, trace in traces.items()}
    wrong = False
    for view in views.values():
        tags = view.integers("comm_tag")[view.of_type(*sides)]
        wrong |= bool(((tags == ABSENT) | (tags < 0) | (tags >= TAGS)).any())
    if not wrong:
        return PassResult(traces, [])
    changed, changes = {}, []
    for rank, view in views.items():
        changed[rank] = copied(view.trace)
        count = 0
        for side, peer in ((NodeType.COMM_SEND, "comm_dst"), (NodeType.COMM_RECV, "comm_src")):
            rows = issue_order(view, view.of_type(side))
            peers = view.integers(peer)[rows]
            order = np.argsort(peers, kind="stable")
            sorted_peers = peers[order]
            first = np.searchsorted(sorted_peers, sorted_peers)
            tags = np.empty(len(rows), np.int64)
            tags[order] = np.arange(len(rows)) - first
            by_row = np.argsort(rows)
            table = changed[rank].nodes.attributes
            set_attribute(table, "comm_tag", Kind.INT32, rows[by_row], tags[by_row])
            count += len(rows)
        if count:
            changes.append(Change("messages numbered", count, rank))
    return PassResult(TraceSet(changed), changes)
