"""Records of collectives whose kernels were launched by another thread, or by no recorded call."""

from __future__ import annotations

from collections import defaultdict, deque

from chakra_et.columns import NO_ROW
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.kernel_names import kernel_name_facts
from chakra_et.linker.communication.views import Views
from chakra_et.recording import Facts
from chakra_et.recording.libraries import NO_COMMUNICATION

_Entry = tuple[int, int, Facts]
"""When an activity began or was asked for, its row, and what it tells."""


def cover_apart(
    table: Activities, views: Views, found: dict[int, Facts], covered: set[int]
) -> None:
    """Give such kernels their records, so that no collective counts twice.

    A kernel with arguments takes the first record before it that tells the same. Kernels without
    take records in order, where there are as many of a kind. `found` and `covered` change.
    """
    records = _records(table, views, covered)
    if not records:
        return
    kernels = _kernels(table, views, found, {int(table.lane[row]) for _, row, _ in records})
    told = [entry for entry in kernels if entry[2].name is not None]
    waiting: dict[object, deque[_Entry]] = defaultdict(deque)
    for entry in records:
        waiting[_same(entry[2])].append(entry)
    for when, _, facts in told:
        left = waiting[_same(facts)]
        if left and left[0][0] <= when:
            covered.add(left.popleft()[1])
    _take_in_order([entry for entry in kernels if entry[2].name is None], records, views, covered)


def _take_in_order(
    kernels: list[_Entry], records: list[_Entry], views: Views, covered: set[int]
) -> None:
    by_kind: dict[object, list[_Entry]] = defaultdict(list)
    for entry in kernels:
        named = kernel_name_facts(views.name(entry[1]))
        by_kind[_kind(named) if named else None].append(entry)
    by_kind.pop(None, None)
    for kind, some in by_kind.items():
        left = [r for r in records if r[1] not in covered and _kind(r[2]) == kind]
        before = all(r[0] <= k[0] for r, k in zip(left, some, strict=False))
        if len(left) == len(some) and before:
            for (_, row, told), (_, _, facts) in zip(left, some, strict=True):
                facts.merge(told)
                covered.add(row)


def _records(table: Activities, views: Views, covered: set[int]) -> list[_Entry]:
    """The records without a kernel, by start."""
    rows = [row for row in views.records() if row not in covered]
    told = ((int(table.start_ns[row]), row, views.host_facts(row)) for row in rows)
    return sorted(
        ((start, row, facts) for start, row, facts in told
         if facts is not None and facts.name not in NO_COMMUNICATION),
        key=lambda entry: entry[:2],
    )  # fmt: skip


def _kernels(
    table: Activities, views: Views, found: dict[int, Facts], lanes: set[int]
) -> list[_Entry]:
    """The kernels without a record that no thread of the records launched, by launch or start."""
    entries = []
    for row, facts in found.items():
        launch = int(table.launch[row])
        apart = launch == NO_ROW or int(table.lane[launch]) not in lanes
        if apart and views.record_above(row) == NO_ROW:
            asked = row if launch == NO_ROW else launch
            entries.append((int(table.start_ns[asked]), row, facts))
    return sorted(entries, key=lambda entry: entry[:2])


def _kind(facts: Facts) -> object:
    # Numbers of both enumerations overlap.
    return None if facts.kind is None else (type(facts.kind), facts.kind)


def _same(facts: Facts) -> object:
    return (_kind(facts), facts.size_bytes, facts.group, facts.peer, facts.sequence)
