"""Which activities communicate, and the facts of each: what, how many bytes, with whom.

Facts come from the profiler's arguments, from the attributes of the host node, from its positional
inputs, and last from names; they are merged field by field, best source first, and the sources are
kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.kineto import DeviceTrace, Role
from chakra_et.converters.pytorch import HostTrace
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication_table import NO_COMMUNICATION, SUSPECT, operation
from chakra_et.linker.facts import Facts, kernel_name_facts
from chakra_et.linker.nesting import NONE
from chakra_et.linker.process_groups import DEFAULT, GroupTable
from chakra_et.linker.seen import RECORD, Seen
from chakra_et.linker.shared_kernels import share_kernels
from chakra_et.model import ProcessGroup

_SUSPECTS_SHOWN: Final = 3


@dataclass
class Found:
    """Communications by activity row.

    A kernel that carries several has a row for the first of them; the others have the rows behind
    those of the table, and `kernels` is the row of the kernel of each, ascending.
    """

    by_row: dict[int, Communication]
    kernels: npt.NDArray[np.int64]

    def of(self, table: Activities) -> dict[int, Communication]:
        """Communications of the rows of a table."""
        return {row: item for row, item in self.by_row.items() if row < len(table)}


@dataclass
class Communication:
    """The facts of an activity, resolved: type of node and collective, bytes, group, peers."""

    type: NodeType
    collective: CollectiveType | None
    facts: Facts
    group: str | None


def find_communication(
    table: Activities,
    host: HostTrace | None,
    device: DeviceTrace | None,
    groups: GroupTable,
    warnings: list[str],
    named_rank: int | None = None,
) -> Found:
    """Facts by activity row.

    One communication is one node: its kernel, where the profile has it; the backend's span, where
    communication runs on the host; else the host trace's record of the collective.
    """
    seen = Seen(table, host, device)
    found: dict[int, Facts] = {}
    covered: set[int] = set()
    for row in seen.kernels():
        record = seen.record_above(row)
        covered.add(record)
        facts = seen.kernel_facts(row)
        facts.merge(seen.host_facts(record))
        if facts.splits_cut and seen.has_splits(record):
            facts.splits_cut = False
        found[row] = facts
    further = sorted(share_kernels(table, seen, found, covered), key=itemgetter(0))
    for row, facts in found.items():
        facts.merge(seen.annotation_above(row))
        facts.merge(kernel_name_facts(seen.name(row)))
    warnings += _suspects(seen)
    for row in seen.host_spans():
        found[row] = seen.span_facts(row)
    for row in seen.records():
        told = seen.host_facts(row)
        if row not in covered and told is not None and told.name not in NO_COMMUNICATION:
            found[row] = told
    found |= {len(table) + place: facts for place, (_, facts) in enumerate(further)}
    _learn_groups(found, groups)
    _learn_rank(found, groups, named_rank)
    resolved = {row: _resolve(facts, groups) for row, facts in sorted(found.items())}
    result = Found(resolved, np.array([row for row, _ in further], np.int64))
    without = sum(
        table.role[row] != Role.WORK and seen.name(row) == RECORD for row in result.of(table)
    )
    if without and table.work.any():
        warnings.append(
            f"{without} collectives have no kernel in the profile; host records stand for them"
        )
    cut = sum(facts.splits_cut is True for facts in found.values())
    if cut:
        warnings.append(
            f"{cut} all-to-all operations have lists of split sizes that the profiler cut; "
            "the sizes of their parts are known in part only"
        )
    warnings += _unsized(result, table)
    unknown = sum(c.type is NodeType.COMM_COLL and c.collective is None for c in resolved.values())
    if unknown:
        warnings.append(
            f"{unknown} communication nodes have no type: neither file says which collective it is"
        )
    return result


def _suspects(seen: Seen) -> list[str]:
    """What to say of kernels that seem to communicate by themselves; they stay compute."""
    rows = seen.rows_named(lambda name: SUSPECT.search(name) is not None, work=True)
    if not rows:
        return []
    names = sorted({seen.name(row).split("(")[0] for row in rows})[:_SUSPECTS_SHOWN]
    return [
        f"{len(rows)} kernels seem to communicate without a collective library "
        f"({', '.join(names)}); nothing tells what they send, so they count as compute"
    ]


def _unsized(found: Found, table: Activities) -> list[str]:
    """What to say of communication without a size; a barrier has none by nature."""
    rows = [
        row
        for row, item in found.by_row.items()
        if item.facts.size_bytes is None and item.collective is not CollectiveType.BARRIER
    ]
    if not rows:
        return []
    alone = sum(row < len(table) and _only_profiled(table, row) for row in rows)
    of_these = f" ({alone} of them are operations that only the profile saw)" if alone else ""
    return [f"{len(rows)} communication nodes have no size, as no input tells it{of_these}"]


def _only_profiled(table: Activities, row: int) -> bool:
    return bool(table.role[row] == Role.OP and table.host[row] == NONE)


def _learn_groups(found: dict[int, Facts], groups: GroupTable) -> None:
    """Sizes of groups that have only a number, and groups that only single records name."""
    for facts in found.values():
        number, size = facts.group_number, facts.group_size
        if number is not None and size is not None:
            groups.sizes_by_number[number] = max(size, groups.sizes_by_number.get(number, 0))
        if facts.group is not None and facts.group not in groups.groups:
            groups.add(
                ProcessGroup(
                    name=facts.group,
                    ranks=tuple(facts.group_ranks or ()),
                    size=size or 0,
                    source="arguments of its collectives",
                )
            )


def _learn_rank(found: dict[int, Facts], groups: GroupTable, named: int | None) -> None:
    """The rank, if no metadata tell it: from places in groups, else from the files' names."""
    if groups.rank is not None:
        return
    told = Counter(facts.own_rank for facts in found.values() if facts.own_rank is not None)
    groups.rank = told.most_common(1)[0][0] if told else named


def _resolve(facts: Facts, groups: GroupTable) -> Communication:
    kind = operation(facts.name) if facts.name else None
    group = facts.group
    if group is None and facts.group_number is not None:
        group = groups.name_of_number(facts.group_number)
    if group is None and len(groups.groups) == 1:
        (group,) = groups.groups
    if group is None and not groups.groups and groups.world_size:
        group = DEFAULT
    if facts.peer is None and facts.peer_in_group is not None:
        facts.peer = groups.global_rank(group, facts.peer_in_group)
    if isinstance(kind, NodeType):
        return Communication(kind, None, facts, group)
    return Communication(NodeType.COMM_COLL, kind, facts, group)


def iterate_sources(found: dict[int, Communication]) -> Iterator[str]:
    """Where the facts of each communication come from, as text."""
    for communication in found.values():
        yield ", ".join(dict.fromkeys(communication.facts.sources))
