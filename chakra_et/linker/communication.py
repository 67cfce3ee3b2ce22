"""Which activities communicate, and the facts of each: what, how many bytes, with whom.

Facts come from the profiler's arguments, from the attributes of the host node, from its positional
inputs, and last from names; they are merged field by field, best source first, and the sources are
kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from chakra_et.converters.kineto import DeviceTrace, Role
from chakra_et.converters.pytorch import HostTrace
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication_table import (
    ANNOTATION,
    HOST_BACKENDS,
    KERNEL,
    NO_COMMUNICATION,
    SUSPECT,
    operation,
)
from chakra_et.linker.facts import (
    Facts,
    argument_facts,
    attribute_facts,
    kernel_name_facts,
    positional_facts,
    tensor_bytes,
)
from chakra_et.linker.nesting import NONE
from chakra_et.linker.process_groups import DEFAULT, GroupTable
from chakra_et.linker.shared_kernels import share_kernels
from chakra_et.model import ProcessGroup

RECORD: Final = "record_param_comms"
_SUSPECTS_SHOWN: Final = 3
_ANCESTORS: Final = 8
"""How far up the callers of a launch the record of its collective is looked for."""


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
) -> dict[int, Communication]:
    """Facts by activity row.

    One operation is one node: its kernel, where the profile has it; the backend's span, where
    communication runs on the host; else the host trace's record of the collective.
    """
    seen = _Seen(table, host, device)
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
    warnings += share_kernels(table, seen, found, covered)
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
    _learn_groups(found, groups)
    _learn_rank(found, groups, named_rank)
    resolved = {row: _resolve(facts, groups) for row, facts in sorted(found.items())}
    without = sum(table.role[row] != Role.WORK and seen.name(row) == RECORD for row in resolved)
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
    unknown = sum(c.type is NodeType.COMM_COLL and c.collective is None for c in resolved.values())
    if unknown:
        warnings.append(
            f"{unknown} communication nodes have no type: neither file says which collective it is"
        )
    return resolved


class _Seen:
    """Both files, seen from the activity table."""

    def __init__(
        self, table: Activities, host: HostTrace | None, device: DeviceTrace | None
    ) -> None:
        self.table = table
        self.host = host
        self.device = device
        self.host_names: list[str] = [] if host is None else host.names.in_order
        self.device_names: list[str] = [] if device is None else device.names.in_order
        self.texts = [] if host is None else host.texts.in_order
        self.attributes: dict[int, dict[str, Any]] = {}
        if host is not None:
            for name, attribute in host.attributes.items():
                for row, value in zip(attribute.rows, attribute.values, strict=True):
                    self.attributes.setdefault(row, {})[name] = value

    def name(self, row: int) -> str:
        host_row, record = int(self.table.host[row]), int(self.table.record[row])
        if host_row != NONE and self.host is not None:
            return str(self.host_names[self.host.name[host_row]])
        assert self.device is not None
        return str(self.device_names[self.device.name[record]])

    def rows_named(self, chosen: Any, work: bool) -> list[int]:
        """Activities, on a device or on the host, whose name is one of those chosen."""
        rows: list[int] = []
        side = self.table.work == work
        own = self.table.host != NONE
        if self.host is not None and not work:
            mine = np.array([bool(chosen(name)) for name in self.host_names], np.bool_)
            at = np.flatnonzero(own)
            rows += at[mine[self.host.name[self.table.host[at]]]].tolist()
        if self.device is not None:
            theirs = np.array([bool(chosen(name)) for name in self.device_names], np.bool_)
            at = np.flatnonzero(side & ~own)
            rows += at[theirs[self.device.name[self.table.record[at]]]].tolist()
        return rows

    def kernels(self) -> list[int]:
        """Device work that communicates."""
        rows = set(self.rows_named(KERNEL.match, work=True))
        if self.device is not None:
            for row in np.flatnonzero(self.table.work).tolist():
                if b'"Collective name"' in self.device.args[self.table.record[row]]:
                    rows.add(row)
        return sorted(rows)

    def host_spans(self) -> list[int]:
        """Spans of process groups that communicate on the host."""
        return self.rows_named(lambda name: name.startswith(HOST_BACKENDS), work=False)

    def records(self) -> list[int]:
        """Records of collectives on the host."""
        return self.rows_named(lambda name: name == RECORD, work=False)

    def record_above(self, row: int) -> int:
        """The record of the collective that launched this kernel, or `NONE`."""
        caller = self._caller(row)
        for _ in range(_ANCESTORS):
            if caller == NONE or self.name(caller) == RECORD:
                return caller
            caller = int(self.table.caller[caller])
        return NONE

    def _caller(self, row: int) -> int:
        """The operation around the launch of device work; without a launch, the one it names."""
        launch = int(self.table.launch[row])
        return int(self.table.caller[row if launch == NONE else launch])

    def annotation_above(self, row: int) -> Facts | None:
        """What the span of a collective around the launch is called: `nccl:all_to_all`."""
        caller = self._caller(row)
        for _ in range(_ANCESTORS):
            if caller == NONE:
                return None
            match = ANNOTATION.match(self.name(caller))
            if match and operation(match["name"]) is not None:
                return Facts(name=match["name"], sources=["annotation"])
            caller = int(self.table.caller[caller])
        return None

    def kernel_facts(self, row: int) -> Facts:
        """What the profiler's arguments of a kernel say."""
        assert self.device is not None
        return argument_facts(self.device.args[self.table.record[row]], "kernel args")

    def host_facts(self, row: int) -> Facts | None:
        """What the record of a collective says: its attributes, inputs, and profiled arguments."""
        if row == NONE:
            return None
        facts = Facts()
        host_row, record = int(self.table.host[row]), int(self.table.record[row])
        if host_row != NONE:
            facts.merge(attribute_facts(self.attributes.get(host_row, {})))
            facts.merge(self._positional_facts(host_row))
        if record != NONE and self.device is not None:
            facts.merge(argument_facts(self.device.args[record], "operation args"))
        return facts if facts.name is not None else None

    def has_splits(self, row: int) -> bool:
        """Whether the host node has the split sizes, which are never cut there."""
        host_row = NONE if row == NONE else int(self.table.host[row])
        return "in_split_size" in self.attributes.get(host_row, {})

    def span_facts(self, row: int) -> Facts:
        """What a host backend's span says: its name, and the bytes of its input tensors."""
        match = ANNOTATION.match(self.name(row))
        facts = Facts(name=match["name"] if match else None, sources=["annotation"])
        host_row = int(self.table.host[row])
        if host_row != NONE:
            facts.size_bytes = tensor_bytes(self._inputs(host_row))
            facts.sources.append("input tensors")
        return facts

    def _inputs(self, host_row: int) -> list[Any]:
        assert self.host is not None
        try:
            values = msgspec.json.decode(self.texts[self.host.inputs[host_row]][0])
        except msgspec.DecodeError:
            return []
        return values if isinstance(values, list) else []

    def _positional_facts(self, host_row: int) -> Facts | None:
        return positional_facts(self._inputs(host_row))


def _suspects(seen: _Seen) -> list[str]:
    """What to say of kernels that seem to communicate by themselves; they stay compute."""
    rows = seen.rows_named(lambda name: SUSPECT.search(name) is not None, work=True)
    if not rows:
        return []
    names = sorted({seen.name(row).split("(")[0] for row in rows})[:_SUSPECTS_SHOWN]
    return [
        f"{len(rows)} kernels seem to communicate without a collective library "
        f"({', '.join(names)}); nothing tells what they send, so they count as compute"
    ]


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
