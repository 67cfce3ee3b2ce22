"""From host trace and profile to one trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chakra_et.graph import redundant_edges
from chakra_et.linker.accounts import Told
from chakra_et.linker.activities import Activities, begin_order, collect, with_joins
from chakra_et.linker.assemble import assemble
from chakra_et.linker.callers import caller_warnings
from chakra_et.linker.carriers import find_carriers
from chakra_et.linker.clocks import align_clocks, clock_warning
from chakra_et.linker.communication import Found, find_communication
from chakra_et.linker.companions import with_companions
from chakra_et.linker.doubts import Doubts
from chakra_et.linker.edges.call import call_edges
from chakra_et.linker.edges.data import data_edges, mark_only_ties
from chakra_et.linker.edges.edge_list import EdgeList
from chakra_et.linker.edges.event import event_edges
from chakra_et.linker.edges.graph import graph_arrows
from chakra_et.linker.edges.group import group_edges
from chakra_et.linker.edges.habit import habit_edges
from chakra_et.linker.edges.joins import device_joins
from chakra_et.linker.edges.launch import launch_edges
from chakra_et.linker.edges.launched import launched_work
from chakra_et.linker.edges.orphans import orphan_edges
from chakra_et.linker.edges.pending import given_to_streams
from chakra_et.linker.edges.pieces import piece_edges
from chakra_et.linker.edges.program import program_edges, program_edges_without_times
from chakra_et.linker.edges.recorded_on import with_streams_of_events
from chakra_et.linker.edges.stream import StreamOrder, stream_edges, stream_order
from chakra_et.linker.edges.sync import (
    SLACK_NS,
    blocking_copies,
    copy_edges,
    sync_edges,
    sync_scopes,
)
from chakra_et.linker.edges.thread import backward_edges, thread_edges
from chakra_et.linker.edges.wait_calls import wait_calls
from chakra_et.linker.evidence import Evidence, counted
from chakra_et.linker.explain import tell
from chakra_et.linker.followed import unfollowed_warnings
from chakra_et.linker.guesses import Verdict
from chakra_et.linker.hand_over import find_hand_over, hand_over_joins
from chakra_et.linker.held import LAG_NS
from chakra_et.linker.host_time import HostTime
from chakra_et.linker.join import join_views
from chakra_et.linker.late_ends import end_at_readers
from chakra_et.linker.launch_arrows import follow_launch_arrows
from chakra_et.linker.launches import attribute, launch_warnings
from chakra_et.linker.nesting import NONE
from chakra_et.linker.order import contradicting, in_time, issue_order, sorted_by_edges
from chakra_et.linker.own_time import OwnTime, own_time
from chakra_et.linker.process_groups import find_groups
from chakra_et.linker.report import Report, attribution_joins, make_report
from chakra_et.linker.rests import find_rests, with_rests
from chakra_et.linker.seen import Seen
from chakra_et.linker.stated import give_callers, only_stated, stated_waits
from chakra_et.linker.workers import Workers, find_workers
from chakra_et.model import EdgeKind, Trace
from chakra_et.recording import DeviceTrace, HostTrace, Recording

Rows = npt.NDArray[np.int64]


@dataclass
class Linked:
    """A trace, and the report of how it came to be."""

    trace: Trace
    report: Report


def link(
    recording: Recording,
    rank: int | None = None,
    *,
    named_rank: int | None = None,
    aligned: bool = False,
    told: Mapping[int, Mapping[int, Told]] | None = None,
    verdicts: Mapping[int, Verdict] | None = None,
) -> Linked:
    """Link the host's and the device's view of one rank; either may be missing.

    `rank` is told by the profile if not given, else by members of groups, else it is `named_rank`,
    that of the files' names. With `aligned`, times of devices whose clock is
    behind the host's are shifted. `told` is what other ranks tell of transfers, by rank and
    record-function id, and `verdicts`, by rank, what others say of inferred edges.
    Raises LinkError when the two do not belong together.
    """
    host, device, stated = recording.host, recording.device, recording.stated
    join = join_views(recording)
    table = collect(host, device, None if join is None else join.record)
    warnings = [text for side in (host, device) if side is not None for text in side.warnings]
    warnings += join.warnings if join is not None else []
    warnings += [*unfollowed_warnings(table, host), *caller_warnings(table, host)]
    warnings += recording.warnings
    joins, clocks = give_callers(table, stated), []
    if device is not None:
        follow_launch_arrows(table, device)
        attribution = attribute(table, device)
        joins += attribution_joins(attribution)
        clocks = align_clocks(table, device, apply=aligned)
        warnings += launch_warnings(table, device, attribution)
        warnings += map(clock_warning, clocks)
    groups = find_groups(host, device, rank)
    verdict = None if groups.rank is None else (verdicts or {}).get(groups.rank)
    seen = Seen(table, host, device)
    table, carriers = find_carriers(seen)
    seen = seen.of(table)
    workers = find_workers(table, device)
    found = find_communication(seen, carriers, groups, workers, warnings, named_rank, told)
    streams = stream_order(table)
    data = None
    if host is not None:
        data = data_edges(table, host, found.by_row, warnings)
        warnings += end_at_readers(table, data, workers)
    hand_over = find_hand_over(table, device, host)
    doubts = Doubts(table, device, workers, None if verdict is None else verdict.refuted)
    time = doubts.host_time(hand_over)
    in_streams = stream_edges(table, streams)
    if device is not None and len(rests := find_rests(table, device, time, in_streams)):
        found, hand_over = found.behind(table, len(rests)), hand_over.behind(len(rests))
        table = with_rests(table, rests)
    arrows, drawn = graph_arrows(table, device, warnings)
    communication = np.array(sorted(found.of(table)), np.int64)
    waits = _waits(table, device, streams, communication, arrows)
    added = len(waits.table) - len(table)
    found, hand_over = found.behind(table, added), hand_over.behind(added)
    table = waits.table
    doubts.follow(table)
    waits.events = doubts.without_refuted(waits.events)
    time = doubts.host_time(hand_over)
    waits.take_syncs(doubts.without_refuted(waits.syncs))
    if device is not None:
        more = stated_waits(table, stated, carriers, len(device))
        waits.syncs = EdgeList.joined([waits.syncs, more])
    edges = _edges(table, host, device, streams, time)
    edges.append(piece_edges(table, streams, carriers))
    edges += _more_edges(table, data, streams, edges, waits, found, workers, warnings)
    edges.append(backward_edges(table, time, hand_over))
    own = own_time(table, time, edges, waits.copies, device)
    if device is not None:
        edges = [_in_own_time(table, own, found, warnings) for found in edges]
    order, edges = _forward_order(table, host, streams, workers, own, edges, warnings)
    warnings += _late_warnings(table, streams, own)
    graph = with_companions(table, order, edges, own, found.kernels)
    trace, evidence = assemble(graph, host, device, waits.scopes, found.by_row, groups)
    kept = ~redundant_edges(trace)
    trace.edges, evidence = trace.edges.select(kept), evidence[kept]
    tell(trace, evidence)
    added = int(np.count_nonzero(graph.table.joins))
    report = make_report(table, host, device, join, trace, found, groups, added)
    report.evidence = counted(evidence)
    report.warnings += [*warnings, *groups.warnings]
    report.clocks = clocks
    report.account = found.transfers.account
    report.guesses = doubts.account
    report.warnings += doubts.warnings()
    report.joins += [*joins, *drawn, *doubts.joins(), *hand_over_joins(hand_over, time.by)]
    report.joins = only_stated(report.joins)
    return Linked(trace, report)


@dataclass
class _Waits:
    """Edges from device work: into calls that waited, behind blocking copies, and to other streams.

    `table` has the joins that stand in them. `scopes` says what a call waits for, by its row;
    `recorded` whether the profiler records waits.
    """

    table: Activities
    syncs: EdgeList
    copies: EdgeList
    events: EdgeList
    scopes: dict[int, str]
    recorded: bool

    def take_syncs(self, syncs: EdgeList) -> None:
        """Take these; of calls that wait for nothing any more, what they wait for is not known."""
        left = np.setdiff1d(self.syncs.target, syncs.target)
        for call in left.tolist():
            self.scopes.pop(call, None)
        self.syncs = syncs


def _waits(
    table: Activities,
    device: DeviceTrace | None,
    streams: StreamOrder,
    communication: Rows,
    arrows: EdgeList,
) -> _Waits:
    if device is None:
        none = np.zeros(0, np.int64)
        syncs = EdgeList.by(Evidence.SYNC_RECORD, none, none)
        return _Waits(
            table, syncs, syncs, EdgeList.by(Evidence.EVENT_RECORD, none, none), {}, False
        )
    launched = launched_work(table, device, streams)
    calls = with_streams_of_events(table, launched, wait_calls(table, device))
    given = given_to_streams(table, launched, calls)
    joins = device_joins(table, launched, calls, SLACK_NS)
    syncs = sync_edges(table, launched, calls, given, joins)
    kernels = communication[table.work[communication]]
    events = [
        event_edges(table, launched, calls, given, arrows),
        habit_edges(table, launched, calls, kernels),
        orphan_edges(table, launched),
    ]
    longer = with_joins(table, joins.end_ns, table.lane.max(initial=NONE) + 1 + joins.chain)
    return _Waits(
        longer,
        syncs,
        copy_edges(table, blocking_copies(table, device)),
        EdgeList.joined(events),
        sync_scopes(calls, launched, syncs, longer.lane),
        calls.has_records,
    )


def _edges(
    table: Activities,
    host: HostTrace | None,
    device: DeviceTrace | None,
    streams: StreamOrder,
    time: HostTime,
) -> list[EdgeList]:
    edges = [call_edges(table)]
    if device is None and host is not None:
        operations = np.flatnonzero(~host.is_root)
        plain = program_edges_without_times(
            host.thread[operations], begin_order(host, table.caller)[operations]
        )
        plain.source, plain.target = operations[plain.source], operations[plain.target]
        return [*edges, plain]
    return [
        *edges,
        program_edges(table),
        thread_edges(time),
        launch_edges(table),
        stream_edges(table, streams),
    ]


def _more_edges(
    table: Activities,
    data: EdgeList | None,
    streams: StreamOrder,
    edges: list[EdgeList],
    waits: _Waits,
    found: Found,
    workers: Workers,
    warnings: list[str],
) -> list[EdgeList]:
    """Edges of waits, groups and `data`, beside `edges`.

    What others may imply comes last: where it is left out, it hides no other kind.
    """
    events, guessed = (waits.events.select(waits.events.inferred == by) for by in (False, True))
    more = [waits.copies, waits.syncs, events, group_edges(table, found.of(table), workers)]
    if data is not None:
        others = [*edges, *more, guessed]
        more.append(mark_only_ties(table, streams, data, others, waits.recorded, warnings))
    return [*more, guessed]


def _late_warnings(table: Activities, streams: StreamOrder, own: OwnTime) -> list[str]:
    warnings = []
    if streams.overlaps:
        warnings.append(
            f"{streams.overlaps} device activities start before their predecessor on the stream "
            "has ended; they wait for most of it, or for the last one that had"
        )
    known = "than all that they are known to wait for"
    late, held = own.late_ns[table.work], own.contention_ns
    if late.any():
        warnings.append(
            f"{np.count_nonzero(late)} device activities start more than {LAG_NS // 1000} us later "
            f"{known}, {late.sum() / 1e6:.3f} ms together; the files do not show what held them"
        )
    if held.any():
        warnings.append(
            f"{np.count_nonzero(held)} device activities start more than {LAG_NS // 1000} us later "
            f"{known}, {held.sum() / 1e6:.3f} ms together, while other streams were at work"
        )
    return warnings


def _in_own_time(table: Activities, own: OwnTime, edges: EdgeList, warnings: list[str]) -> EdgeList:
    """What identity tells, of tensors or groups, without what own times of host work forbid.

    An activity's own time may last beyond its end, until the next one on its thread.
    """
    if edges.kind not in (EdgeKind.DATA, EdgeKind.GROUP):
        return edges
    timed = (table.lane[edges.source] != NONE) & (table.lane[edges.target] != NONE)
    edges = edges.select(timed)
    return in_time(edges, table.work[edges.source], own.end_ns, own.begin_ns, warnings)


def _forward_order(
    table: Activities,
    host: HostTrace | None,
    streams: StreamOrder,
    workers: Workers,
    own: OwnTime,
    edges: list[EdgeList],
    warnings: list[str],
) -> tuple[Rows, list[EdgeList]]:
    """An order of all nodes in which edges lead forward; others are left out and counted."""
    begun = np.zeros(len(table), np.int64)
    if host is not None:
        begun[: len(host)] = begin_order(host, table.caller)
    order = issue_order(table, streams, workers, own.begin_ns, begun)
    if contradicting(order, edges) == 0:
        return order, edges
    order, _ = sorted_by_edges(order, edges)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    kept = []
    for found in edges:
        forward = place[found.source] < place[found.target]
        lost = int(np.count_nonzero(~forward))
        if lost:
            warnings.append(
                f"{lost} {found.kind.label} edges contradict the recorded times or each other and "
                "were left out"
            )
        kept.append(found.select(forward))
    return order, kept
