"""One kernel for several operations: coalesced collectives and batches of sends and receives."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from msgspec.structs import replace

from chakra_et.columns import NO_ROW
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.kernel_names import kernel_name_facts
from chakra_et.linker.communication.views import Views
from chakra_et.recording import Facts
from chakra_et.recording.libraries import NO_COMMUNICATION, operation


def share_kernels(
    table: Activities, views: Views, found: dict[int, Facts], covered: set[int]
) -> list[tuple[int, Facts]]:
    """Give kernels that no record of a collective encloses the records just before their launch.

    Coalesced collectives of one kind and group are one collective of all their tensors. What else
    one kernel carries, each message of a batch above all, is several communications: the first is
    the kernel's, the others are returned, each with the kernel's row. `found` and `covered` change.
    """
    lanes = _records_by_lane(table, views, covered)
    issued = sorted(
        (int(table.start_ns[call]), call, row)
        for row in found
        if (call := _issuer(table, row)) != NO_ROW
    )
    since: dict[int, int] = {}
    further: list[tuple[int, Facts]] = []
    for start, call, row in issued:
        lane = int(table.lane[call])
        after, since[lane] = since.get(lane, -(1 << 62)), start
        own = operation(found[row].name or "")
        if own is not None and views.record_above(row) != NO_ROW:
            continue
        starts, rows = lanes.get(lane, ([], []))
        members = rows[bisect_right(starts, after) : bisect_left(starts, start)]
        told = [(m, t) for m in members if m not in covered and (t := views.host_facts(m))]
        told = [(m, t.copy()) for m, t in told if t.name not in NO_COMMUNICATION]
        if isinstance(own, CollectiveType):
            # Its arguments say all; only the record must not count as another one.
            told = [(m, t) for m, t in told if operation(t.name or "") is own]
            covered.update(m for m, _ in told[-1:])
            continue
        if not told or _contradicts(own or _named(views.name(row)), [t for _, t in told]):
            continue
        covered.update(m for m, _ in told)
        first, *others = _apart([t for _, t in told])
        first.merge(replace(found[row], name=None, size_bytes=None))
        found[row] = first
        further += [(row, other) for other in others]
    return further


def _issuer(table: Activities, row: int) -> int:
    """The call that launched a kernel, else the operation that stands for it; else `NO_ROW`."""
    launch = int(table.launch[row])
    return int(table.caller[row]) if launch == NO_ROW else launch


def _named(kernel: str) -> CollectiveType | NodeType | None:
    """The operation that a kernel's name tells."""
    told = kernel_name_facts(kernel)
    return operation(told.name or "") if told is not None else None


def _contradicts(kind: CollectiveType | NodeType | None, members: list[Facts]) -> bool:
    """Whether a kernel is of a kind that none of the records is."""
    # Numbers of both enumerations overlap: only the same member is the same kind.
    return kind is not None and all(member.kind is not kind for member in members)


def _apart(members: list[Facts]) -> list[Facts]:
    """The communications that records of one kernel are; the order is that of the records."""
    found: dict[object, list[Facts]] = {}
    for place, member in enumerate(members):
        kind = operation(member.name or "")
        group = member.group or member.group_number
        key = place if isinstance(kind, NodeType) else (kind or member.name, group)
        found.setdefault(key, []).append(member)
    return list(map(_together, found.values()))


def _together(members: list[Facts]) -> Facts:
    """The facts of several collectives of one kind and group as those of one."""
    facts = members[0]
    if len(members) > 1:
        sizes = [member.size_bytes for member in members]
        facts.size_bytes = None if None in sizes else sum(size or 0 for size in sizes)
        facts.sources.append(f"{len(members)} coalesced operations")
    return facts


def _records_by_lane(
    table: Activities, views: Views, covered: set[int]
) -> dict[int, tuple[list[int], list[int]]]:
    """Starts and rows, ascending, of the records on each thread that have no kernel yet."""
    lanes: dict[int, tuple[list[int], list[int]]] = {}
    rows = [row for row in views.records() if row not in covered and table.lane[row] != NO_ROW]
    for start, row in sorted((int(table.start_ns[row]), row) for row in rows):
        starts, places = lanes.setdefault(int(table.lane[row]), ([], []))
        starts.append(start)
        places.append(row)
    return lanes
