"""The report of a conversion: an account of what became of every input record.

`docs/report.md` explains each key; keys are stable, new ones may come.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import msgspec
import numpy as np

from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.accounts import Account
from chakra_et.linker.communication.communication import Communication
from chakra_et.linker.communication.process_groups import GroupTable
from chakra_et.linker.evidence import Codes, Evidence, counted
from chakra_et.linker.finding import Linkage
from chakra_et.linker.guesses.other_ranks import Guesses
from chakra_et.linker.joining.join import HostJoin
from chakra_et.linker.notes import Notes
from chakra_et.linker.output.further_nodes import Graph
from chakra_et.linker.tallies import ClockOffset, JoinTally, Tally
from chakra_et.model import ProcessGroup, Trace
from chakra_et.model.nodes import type_label
from chakra_et.recording import DeviceTrace, HostTrace, Recording, Role
from chakra_et.recording.device_trace import OUTSIDE
from chakra_et.version import PRODUCER

WAIT_RECORD: Final = "record of a wait: evidence, not work"
UNRECORDED: Final = "unrecorded parents"
JOINS: Final = "joins of many waits"
SHARING: Final = "further communications of a kernel"
RESTS: Final = "rests of work behind the last launch of a thread, or before a wait"
UNREADABLE: Final = "(unreadable)"


class Report(msgspec.Struct):
    """What one conversion read, joined, made and left out."""

    host: dict[str, Any] | None
    device: dict[str, Any] | None
    rank: int | None
    world_size: int | None
    host_nodes: Tally
    records: dict[str, Tally]
    joins: list[JoinTally]
    communication: list[dict[str, Any]]
    groups: list[ProcessGroup]
    nodes: dict[str, int] = msgspec.field(default_factory=dict)
    edges: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """By kind: how many, and how many of them inferred."""
    work_categories: frozenset[str] = frozenset()
    """Categories of the profile that hold work on a device."""
    trace: dict[str, Any] | None = None
    """The ET that was the input, where that was one."""
    output: dict[str, Any] | None = None
    evidence: dict[Evidence, int] = msgspec.field(default_factory=dict)
    added: dict[str, int] = msgspec.field(default_factory=dict)
    clocks: list[ClockOffset] = msgspec.field(default_factory=list)
    repairs: list[dict[str, Any]] = msgspec.field(default_factory=list)
    warnings: list[str] = msgspec.field(default_factory=list)
    account: Account | None = None
    """What other ranks of the run may need to know of this one; not part of the report as data."""
    guesses: Guesses | None = None
    """The same of its inferred edges, until the ranks have been held against each other."""

    def __repr__(self) -> str:
        edges = sum(count for count, _ in self.edges.values())
        return f"<Report: {sum(self.nodes.values())} nodes, {edges} edges>"

    @property
    def device_events(self) -> Tally:
        """Kernels, copies, memsets: the records of work on a device."""
        tally = Tally()
        for category, records in self.records.items():
            if category in self.work_categories:
                tally += records
        return tally

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data, ready for JSON."""
        return {
            "producer": PRODUCER,
            "inputs": {"host": self.host, "device": self.device, "trace": self.trace},
            "output": self.output,
            "rank": self.rank,
            "world_size": self.world_size,
            "host_nodes": self.host_nodes.as_dict(),
            "device_events": self.device_events.as_dict(),
            "records": {name: tally.as_dict() for name, tally in self.records.items()},
            "joins": [join.as_dict() for join in self.joins],
            "nodes": self.nodes,
            "added": self.added,
            "edges": {
                kind: {"count": count, "inferred": inferred, "evidence": self._evidence(kind)}
                for kind, (count, inferred) in self.edges.items()
            },
            "communication": self.communication,
            "groups": [
                {
                    "pg_name": group.name,
                    "pg_desc": group.description,
                    "ranks": list(group.ranks),
                    "size": group.size,
                    "source": group.source,
                    "inferred": group.inferred,
                }
                for group in self.groups
            ],
            "clocks": [offset.as_dict() for offset in self.clocks],
            "repairs": self.repairs,
            "warnings": self.warnings,
        }

    def _evidence(self, kind: str) -> list[dict[str, Any]]:
        """How many edges of a kind rest on which evidence, the best first."""
        found = self.evidence.items()
        return [{"by": by.label, "count": count} for by, count in found if by.kind.label == kind]


def make_report(
    recording: Recording,
    join: HostJoin | None,
    found: Linkage,
    added: dict[str, int],
    groups: GroupTable,
    notes: Notes,
) -> Report:
    """Count what became of every record of both inputs; `count_trace` adds what the trace has.

    `added` is as `added_nodes` gives it.
    """
    table, host, device = found.table, recording.host, recording.device
    communications = found.communications
    return Report(
        host=_host_input(host),
        device=_device_input(device),
        rank=groups.rank,
        world_size=groups.world_size,
        host_nodes=_host_nodes(host, int(np.count_nonzero(table.host != NO_ROW))),
        records={} if device is None else _records(table, device, communications.carriers.merged),
        joins=only_stated([*_joins(table, device, join), *notes.joins]),
        communication=_communication(communications.by_row),
        groups=list(groups.groups.values()),
        work_categories=frozenset() if device is None else device.has_work_of,
        added=added,
        clocks=notes.clocks,
        repairs=[
            *([] if host is None else host.repairs.as_list()),
            *([] if device is None else device.repairs.as_list()),
        ],
        warnings=[*notes.warnings, *groups.warnings, *found.doubts.warnings()],
        account=communications.transfers.account,
    )


def count_trace(report: Report, trace: Trace, evidence: Codes) -> None:
    """Tell nodes and edges of the trace, and what evidence the edges have."""
    types, counts = np.unique(trace.nodes.type, return_counts=True)
    report.nodes = {type_label(int(t)): int(c) for t, c in zip(types, counts, strict=True)}
    report.edges = {kind.label: of_kind for kind, of_kind in trace.edges.counts().items()}
    report.evidence = counted(evidence)


def added_nodes(recording: Recording, graph: Graph) -> dict[str, int]:
    """Nodes that are no records, by what they stand for."""
    added = {
        UNRECORDED: 0 if recording.host is None else recording.host.stubs,
        SHARING: len(graph.kernels),
        JOINS: int(np.count_nonzero(graph.table.joins)),
        RESTS: len(graph.table.rests),
    }
    return {what: count for what, count in added.items() if count}


def _host_nodes(host: HostTrace | None, on_host: int) -> Tally:
    """What became of the nodes of the host trace; those that stand for others do not count."""
    if host is None:
        return Tally()
    left_out = Counter({r.kind: r.left_out for r in host.repairs.kinds.values() if r.left_out})
    if host.outside:
        left_out[OUTSIDE] = host.outside
    return Tally(host.recorded, on_host - host.stubs, left_out=left_out)


def _host_input(host: HostTrace | None) -> dict[str, Any] | None:
    if host is None:
        return None
    return {"path": str(host.path), "schema": host.schema, "pid": host.pid}


def _device_input(device: DeviceTrace | None) -> dict[str, Any] | None:
    if device is None:
        return None
    return {"path": str(device.path), "trace_name": device.trace_name}


def _records(table: Activities, device: DeviceTrace, parts: Rows) -> dict[str, Tally]:
    """Every record of the profile, by the names that it counts them under.

    `parts` are rows of the profile that became part of the activity of another row.
    """
    tallies = {name: Tally(total) for name, total in device.totals.items()}
    for (name, reason), count in sorted(device.left_out.items()):
        if name in tallies:
            tallies[name].left_out[reason] += count
    taken = table.record[table.record != NO_ROW]
    merged = np.zeros(len(device), np.bool_)
    merged[parts] = True
    merged[table.record[(table.record != NO_ROW) & (table.host != NO_ROW)]] = True
    kept = np.zeros(len(device), np.bool_)
    kept[taken] = True
    kept &= ~merged
    counts = [
        np.bincount(device.category[rows], minlength=len(device.categories)).tolist()
        for rows in (kept, merged, device.role == Role.SYNC)
    ]
    for code, (taken_as_is, joined, waits) in enumerate(zip(*counts, strict=True)):
        tally = tallies.get(device.counted_as(code))
        if tally is None:  # no records of their own
            continue
        tally.kept += taken_as_is
        tally.merged += joined
        if waits:
            tally.left_out[WAIT_RECORD] += waits
    lost = Counter({r.kind: r.left_out for r in device.repairs.kinds.values() if r.left_out})
    if lost:
        tallies[UNREADABLE] = Tally(lost.total(), left_out=lost)
    return tallies


def _count(mask: Mask) -> int:
    return int(np.count_nonzero(mask))


def _joins(table: Activities, device: DeviceTrace | None, join: HostJoin | None) -> list[JoinTally]:
    joins = []
    if join is not None:
        joins.append(
            JoinTally("host operations to profiled operations", join.by, join.matched, join.of)
        )
    if device is None:
        return joins
    work = np.flatnonzero(table.work)
    launched = work[table.launch[work] != NO_ROW]
    called = table.caller[table.launch[launched]] != NO_ROW
    calls = np.flatnonzero((table.role == Role.CALL) & (table.record != NO_ROW))
    for by in (Evidence.LAUNCH_CORRELATION, Evidence.LAUNCH_ARROW):
        found = _count(table.launched_by[launched] == by)
        if found or by is Evidence.LAUNCH_CORRELATION:
            joins.append(JoinTally("device events to launching calls", by.label, found, len(work)))
    joins.append(
        JoinTally(
            "launched device events to operations",
            "nesting of the launching call",
            _count(called),
            len(launched),
        )
    )
    joins.append(
        JoinTally(
            "runtime calls to operations",
            "nesting on the thread",
            _count(table.caller[calls] != NO_ROW),
            len(calls),
        )
    )
    return joins


def only_stated(joins: list[JoinTally]) -> list[JoinTally]:
    """The joins that the recording states; all where it states none.

    Where it does, it holds no evidence that others could be found by.
    """
    return [join for join in joins if join.by == Evidence.CALL_FILE.label] or joins


def _communication(found: dict[int, Communication]) -> list[dict[str, Any]]:
    """Communication nodes by type, collective, group and source of the facts."""
    counts: Counter[tuple[Any, ...]] = Counter()
    sizes: Counter[tuple[Any, ...]] = Counter()
    unsized: Counter[tuple[Any, ...]] = Counter()
    for item in found.values():
        sources = ", ".join(dict.fromkeys(item.facts.sources))
        name = None if item.collective is None else item.collective.name
        key = (item.type.name, name, item.group, sources)
        counts[key] += 1
        sizes[key] += item.facts.size_bytes or 0
        unsized[key] += item.facts.size_bytes is None
    return [
        {
            "type": key[0],
            "collective": key[1],
            "pg_name": key[2],
            "facts_from": key[3],
            "count": count,
            "bytes": sizes[key],
            "without_size": unsized[key],
        }
        for key, count in counts.items()
    ]
