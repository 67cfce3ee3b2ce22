"""Which activities communicate, and the facts of each: what, how many bytes, with whom.

Facts come from the profiler's arguments, from the attributes of the host node, from its positional
inputs, and last from names; they are merged field by field, best source first, and the sources are
kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from operator import itemgetter
from typing import Final

import msgspec
import numpy as np
from msgspec.structs import replace

from chakra_et.columns import NO_ROW, Rows
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.accounts import Told
from chakra_et.linker.communication.carriers import Carriers, find_carriers
from chakra_et.linker.communication.kernel_names import (
    kernel_dtype,
    kernel_name_facts,
    ranks_in_name,
)
from chakra_et.linker.communication.operations_around import merge_operations_around
from chakra_et.linker.communication.process_groups import DEFAULT, GroupTable
from chakra_et.linker.communication.records_apart import cover_apart
from chakra_et.linker.communication.shared_kernels import share_kernels
from chakra_et.linker.communication.transfers import Transfers, add_requests, decide_groups
from chakra_et.linker.communication.views import Views
from chakra_et.linker.communication.workers import Workers, find_workers
from chakra_et.recording import Facts, Recording, Role
from chakra_et.recording.libraries import NO_COMMUNICATION, is_suspect
from chakra_et.shown import several

_SHOWN: Final = 3


class Communications(msgspec.Struct):
    """Communications by activity row.

    A kernel that carries several has a row for the first of them; the others have the rows behind
    those of the table, and `kernels` is the row of the kernel of each, ascending. `carriers` says
    what of the device's work is one communication, `workers` what backends on the host transfer.
    """

    by_row: dict[int, Communication]
    kernels: Rows
    carriers: Carriers
    workers: Workers
    transfers: Transfers

    def of(self, table: Activities) -> dict[int, Communication]:
        """Communications of the rows of a table."""
        return {row: item for row, item in self.by_row.items() if row < len(table)}

    def behind(self, table: Activities, count: int) -> Communications:
        """The same for a table that is longer by so many rows, none of which communicates."""
        size = len(table)
        moved = {row + count * (row >= size): item for row, item in self.by_row.items()}
        return replace(self, by_row=moved)


class Communication(msgspec.Struct):
    """The facts of an activity, resolved: type of node and collective, bytes, group, peers.

    `candidates` are the groups that it is one of, where nothing tells which.
    """

    type: NodeType
    collective: CollectiveType | None
    facts: Facts
    group: str | None
    pieces: int | None = None
    """How many pieces of device work it took, where they were more than one."""
    candidates: tuple[str, ...] = ()


def communicate(
    table: Activities,
    recording: Recording,
    groups: GroupTable,
    named_rank: int | None,
    told: Mapping[int, Mapping[int, Told]],
    warnings: list[str],
) -> tuple[Activities, Communications]:
    """What communicates, and the table in which each communication is one activity.

    `named_rank` is the rank that the files' names tell, `told` what other ranks tell of transfers.
    """
    views = Views(table, recording.host, recording.device)
    table, carriers = find_carriers(views)
    workers = find_workers(table, recording.device)
    views = views.of(table)
    return table, find_communication(views, carriers, groups, workers, warnings, named_rank, told)


def find_communication(
    views: Views,
    carriers: Carriers,
    groups: GroupTable,
    workers: Workers,
    warnings: list[str],
    named_rank: int | None,
    others: Mapping[int, Mapping[int, Told]],
) -> Communications:
    """Facts by activity row.

    One communication is one node: its device work, where the profile has it; the backend's span,
    where communication runs on the host; else the host trace's record of the collective.
    """
    table = views.table
    found: dict[int, Facts] = {}
    covered: set[int] = set()
    for row, asker in sorted(carriers.asked.items()):
        by_record = asker != NO_ROW and views.is_record(asker)
        above = asker if by_record else views.record_above(row)
        covered.update(views.records_around(above))
        found[row] = _kernel_facts(views, row, above)
    further = sorted(share_kernels(table, views, found, covered), key=itemgetter(0))
    cover_apart(table, views, found, covered)
    for row, facts in found.items():
        kernel = views.name(row)
        facts.group_size = facts.group_size or ranks_in_name(kernel)
        merge_operations_around(facts, views, row, facts.dtype or kernel_dtype(kernel))
        if facts.kind is None:
            facts.merge(kernel_name_facts(kernel))
    for row in views.host_spans:
        found[row] = views.span_facts(row)
    asked = add_requests(views, workers, found)
    for row in views.records():
        record = views.host_facts(row)
        if row not in covered and record is not None and record.name not in NO_COMMUNICATION:
            found[row] = record.copy()
            found[row].merge(views.record_tensors(row, record.dtype))
    for row in [row for row in found if _is_inner(views, row, found)]:
        del found[row]
    found |= {len(table) + place: facts for place, (_, facts) in enumerate(further)}
    _learn_rank(found, groups, named_rank)
    groups.settle()
    _learn_groups(found, groups)
    transfers = decide_groups(asked, views, groups, others)
    resolved = {row: _resolve(facts, groups) for row, facts in sorted(found.items())}
    for row, count in carriers.pieces.items():
        resolved[row].pieces = count
    transfers.open_groups |= _of_several_groups(resolved, groups)
    for row, names in transfers.open_groups.items():
        resolved[row].candidates = names
    kernels = np.array([row for row, _ in further], np.int64)
    result = Communications(resolved, kernels, carriers, workers, transfers)
    warnings += [*_suspects(views, carriers), *_doubts(views, result), *_unsized(views, result)]
    warnings += [*_several_ranks(result), *_without_peer(result), *transfers.warnings()]
    warnings += _in_parts(result)
    return result


def _is_inner(views: Views, row: int, found: dict[int, Facts]) -> bool:
    """Whether a record stands for what one around it stands for, as none of them has a kernel."""
    return any(outer in found for outer in views.records_around(row)[1:])


def _kernel_facts(views: Views, row: int, record: int) -> Facts:
    """What the arguments of device work and the record that asked for it say."""
    facts = views.kernel_facts(row).copy()
    facts.merge(views.host_facts(record))
    if facts.size_bytes is None:
        facts.merge(views.record_tensors(record, facts.dtype or kernel_dtype(views.name(row))))
    if facts.splits_cut and views.has_splits(record):
        facts.splits_cut = False
    return facts


def _in_parts(found: Communications) -> list[str]:
    """What to say of reduce-scatters that a backend on the host built of several transfers."""
    asked = Counter(
        request
        for row, request in found.workers.requests().items()
        if row in found.by_row and found.by_row[row].collective is CollectiveType.REDUCE_SCATTER
    )
    parts = [count for count in asked.values() if count > 1]
    if not parts:
        return []
    return [
        f"{several(len(parts), 'reduce-scatter', 'reduce-scatters')} ran as {sum(parts)} "
        "transfers; each of these is a reduce-scatter of its part of the bytes"
    ]


def _doubts(views: Views, found: Communications) -> list[str]:
    """What to say of communication of which the files do not tell all."""
    table, said = views.table, []
    rows = np.array(list(found.of(table)), np.int64)
    without = int(np.count_nonzero((table.role[rows] != Role.WORK) & views.are_records[rows]))
    if without and table.work.any():
        said.append(
            f"{several(without, 'collective has', 'collectives have')} "
            "no kernel in the profile; host records stand for them"
        )
    cut = sum(item.facts.splits_cut is True for item in found.by_row.values())
    if cut:
        said.append(
            f"{several(cut, 'all-to-all operation has', 'all-to-all operations have')} "
            "lists of split sizes that the profiler cut; "
            "the sizes of their parts are known in part only"
        )
    unknown = [
        item
        for item in found.by_row.values()
        if item.type is NodeType.COMM_COLL and item.collective is None
    ]
    if unknown:
        names = sorted({item.facts.name for item in unknown if item.facts.name})[:_SHOWN]
        called = f" (called {', '.join(names)})" if names else ""
        said.append(
            f"{several(len(unknown), 'communication node has', 'communication nodes have')} "
            "no type: neither file says which collective "
            f"it is{called}"
        )
    return said


def _suspects(views: Views, carriers: Carriers) -> list[str]:
    """What to say of kernels that seem to communicate by themselves; they stay compute."""
    rows = views.rows_named(is_suspect, work=True)
    rows = [row for row in rows if row not in carriers.asked]
    if not rows:
        return []
    names = sorted({views.name(row).split("(")[0] for row in rows})[:_SHOWN]
    return [
        f"{several(len(rows), 'kernel seems', 'kernels seem')} "
        "to communicate without a collective library "
        f"({', '.join(names)}); what is sent is unknown: compute, as far as the files tell"
    ]


def _unsized(views: Views, found: Communications) -> list[str]:
    """What to say of communication without a size."""
    table = views.table
    rows = [row for row, item in found.by_row.items() if item.facts.size_bytes is None]
    if not rows:
        return []
    alone = sum(row < len(table) and _only_profiled(table, row) for row in rows)
    them = several(alone, "of them is an operation", "of them are operations")
    of_these = f" ({them} that only the profile saw)" if alone else ""
    kinds = Counter(_kind_name(found.by_row[row]) for row in rows)
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return [
        f"{several(len(rows), 'communication node has', 'communication nodes have')} "
        f"no size, as no input states it{of_these}: {listed}"
    ]


def _several_ranks(found: Communications) -> list[str]:
    """What to say of collectives that are not all of one rank, by their places in groups."""
    told = Counter(item.facts.own_rank for item in found.by_row.values())
    del told[None]
    often = sorted(rank for rank, n in told.items() if rank is not None and n * 10 > told.total())
    if len(often) < 2:
        return []
    return [
        f"the collectives are those of ranks {', '.join(map(str, often))}, but of one process: "
        "profiles with one process number were merged, or each thread is a rank; they were "
        "converted as one rank"
    ]


def _without_peer(found: Communications) -> list[str]:
    """What to say of messages of which nothing tells the other side."""
    messages = [item for item in found.by_row.values() if item.type is not NodeType.COMM_COLL]
    without = sum(item.facts.peer is None for item in messages)
    if not without:
        return []
    return [
        f"{several(without, 'message has', 'messages have')} "
        "no known peer: no input states it (simulators cannot run them)"
    ]


def _kind_name(item: Communication) -> str:
    if item.type is not NodeType.COMM_COLL:
        return item.type.name
    return "of unknown type" if item.collective is None else item.collective.name


def _only_profiled(table: Activities, row: int) -> bool:
    return bool(table.role[row] == Role.OP and table.host[row] == NO_ROW)


def _learn_groups(found: dict[int, Facts], groups: GroupTable) -> None:
    """Sizes of groups that have only a number, and groups that only single records name."""
    for facts in found.values():
        number, size = facts.group_number, facts.group_size
        if number is not None and size is not None:
            groups.sizes_by_number[number] = max(size, groups.sizes_by_number.get(number, 0))
        if facts.group is not None:
            groups.add_named(facts.group, facts.group_ranks, size)


def _learn_rank(found: dict[int, Facts], groups: GroupTable, named: int | None) -> None:
    """The rank, if no metadata tell it: from places in groups, else from the files' names."""
    if groups.rank is not None:
        return
    told = Counter(facts.own_rank for facts in found.values() if facts.own_rank is not None)
    groups.rank = told.most_common(1)[0][0] if told else named


def _resolve(facts: Facts, groups: GroupTable) -> Communication:
    kind = facts.kind
    group = facts.group
    if group is None and facts.group_number is not None:
        group = groups.name_of_number(facts.group_number)
    if group is None:
        group = groups.only_of_size(facts.group_size)
    if group is None and not groups.groups and groups.world_size:
        group = DEFAULT
    if facts.peer is None and facts.peer_in_group is not None:
        facts.peer = groups.global_rank(group, facts.peer_in_group)
    if isinstance(kind, NodeType):
        if facts.peer is None:
            facts.peer = groups.other_of_two(group)
        return Communication(kind, None, facts, group)
    if kind is CollectiveType.BARRIER and facts.size_bytes is None:
        facts.size_bytes = 0
    if kind is CollectiveType.SCATTER and _is_elsewhere(facts, group, groups):
        facts.size_bytes = facts.output_bytes
    return Communication(NodeType.COMM_COLL, kind, facts, group)


def _is_elsewhere(facts: Facts, group: str | None, groups: GroupTable) -> bool:
    """Whether another rank is the root, so that what this one brings is the buffer that it gets.

    Records tell of all ranks alike what the root hands out.
    """
    if facts.root_in_group is None or facts.output_bytes is None or groups.rank is None:
        return False
    root = groups.global_rank(group, facts.root_in_group)
    return root is not None and root != groups.rank


def _of_several_groups(
    found: dict[int, Communication], groups: GroupTable
) -> dict[int, tuple[str, ...]]:
    """The groups that collectives without one may be of, where there are several of this rank."""
    mine = [group for group in groups.groups.values() if groups.has_rank(group)]
    # A file can tell any size of the world: only as many ranks as there are in groups are compared.
    ranks = {group.ranks for group in mine}
    whole = all(len(r) == groups.world_size and r == tuple(range(len(r))) for r in ranks)
    if len(mine) < 2 or (len(ranks) == 1 and whole):
        return {}
    names = tuple(group.name for group in mine)
    return {
        row: names
        for row, item in found.items()
        if item.group is None and item.type is NodeType.COMM_COLL
    }
