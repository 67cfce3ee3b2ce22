"""One kernel for several operations: coalesced collectives and batches of sends and receives."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.linker.communication_table import NO_COMMUNICATION, operation
from chakra_et.linker.nesting import NONE

if TYPE_CHECKING:
    from chakra_et.linker.activities import Activities
    from chakra_et.linker.communication import _Seen
    from chakra_et.linker.facts import Facts


def share_kernels(
    table: Activities, seen: _Seen, found: dict[int, Facts], covered: set[int]
) -> list[str]:
    """Give kernels that no record of a collective encloses the records just before their launch.

    Operations of one kind, and one that is alone, merge into their kernel. Of a batch of sends and
    receives each stays a node of its own, on its record; the kernel is then compute.
    Changes `found` and `covered`; returns what to warn of.
    """
    lanes = _records_by_lane(table, seen, covered)
    launched = sorted(
        (int(table.start_ns[table.launch[row]]), row) for row in found if table.launch[row] != NONE
    )
    since: dict[int, int] = {}
    batches = messages = 0
    for start, row in launched:
        lane = int(table.lane[table.launch[row]])
        after, since[lane] = since.get(lane, -(1 << 62)), start
        facts = found[row]
        if facts.name is not None and operation(facts.name) is not None:
            continue
        starts, rows = lanes.get(lane, ([], []))
        members = rows[bisect_right(starts, after) : bisect_left(starts, start)]
        members = [m for m in members if m not in covered]
        told = [(m, t) for m in members if (t := seen.host_facts(m)) is not None]
        told = [(m, t) for m, t in told if t.name not in NO_COMMUNICATION]
        kinds = {operation(t.name or "") for _, t in told}
        if len(told) == 1 or (len(kinds) == 1 and isinstance(next(iter(kinds)), CollectiveType)):
            _merge(facts, [t for _, t in told])
            covered.update(m for m, _ in told)
        elif told and all(isinstance(kind, NodeType) for kind in kinds):
            del found[row]
            batches, messages = batches + 1, messages + len(told)
    if not batches:
        return []
    return [
        f"{batches} kernels carry batches of {messages} sends and receives; each of these is a "
        "node of its own, and the kernels count as compute"
    ]


def _merge(facts: Facts, members: list[Facts]) -> None:
    """Take the facts of several operations of one kind for those of their kernel."""
    sizes = [member.size_bytes for member in members]
    facts.name = facts.size_bytes = None
    facts.merge(members[0])
    facts.size_bytes = None if None in sizes else sum(size or 0 for size in sizes)
    if len(members) > 1:
        facts.sources.append(f"{len(members)} coalesced operations")


def _records_by_lane(
    table: Activities, seen: _Seen, covered: set[int]
) -> dict[int, tuple[list[int], list[int]]]:
    """Starts and rows, ascending, of the records on each thread that have no kernel yet."""
    lanes: dict[int, tuple[list[int], list[int]]] = {}
    rows = [row for row in seen.records() if row not in covered and table.lane[row] != NONE]
    for start, row in sorted((int(table.start_ns[row]), row) for row in rows):
        starts, places = lanes.setdefault(int(table.lane[row]), ([], []))
        starts.append(start)
        places.append(row)
    return lanes
