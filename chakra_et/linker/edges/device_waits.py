"""Edges from device work to those that waited for it: calls, blocking copies, other streams."""

from __future__ import annotations

import msgspec

from chakra_et.codes import among, distinct
from chakra_et.columns import NO_ROW, Rows, no_rows
from chakra_et.linker.activities import Activities, with_joins
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.edges.event.collective_streams import collective_stream_edges
from chakra_et.linker.edges.event.edges import event_edges
from chakra_et.linker.edges.event.unlaunched import unlaunched_edges
from chakra_et.linker.edges.sync import blocking_copies, copy_edges, sync_edges, sync_scopes
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.waits.event_streams import with_streams_of_events
from chakra_et.linker.waits.given import given_to_streams
from chakra_et.linker.waits.joins import device_joins
from chakra_et.linker.waits.launched import launched_work
from chakra_et.linker.waits.stream_order import StreamOrder
from chakra_et.linker.waits.wait_calls import SLACK_NS, wait_calls
from chakra_et.recording import DeviceTrace


def _none(evidence: Evidence) -> EdgeList:
    return EdgeList.by(evidence, no_rows(), no_rows())


class DeviceWaits(msgspec.Struct):
    """Edges into calls that waited, behind blocking copies, and to other streams.

    `table` has the joins that stand in them. `scopes` says what a call waits for, by its row;
    `recorded` whether the profiler records waits.
    """

    table: Activities
    syncs: EdgeList = msgspec.field(default_factory=lambda: _none(Evidence.SYNC_RECORD))
    copies: EdgeList = msgspec.field(default_factory=lambda: _none(Evidence.SYNC_COPY))
    events: EdgeList = msgspec.field(default_factory=lambda: _none(Evidence.EVENT_RECORD))
    scopes: dict[int, str] = msgspec.field(default_factory=dict)
    recorded: bool = False

    def take_syncs(self, syncs: EdgeList) -> None:
        """Take these; of calls that wait for nothing any more, what they wait for is not known."""
        left = distinct(self.syncs.target[~among(self.syncs.target, syncs.target)])
        for call in left.tolist():
            self.scopes.pop(call, None)
        self.syncs = syncs


def device_waits(
    table: Activities,
    device: DeviceTrace | None,
    streams: StreamOrder,
    communication: Rows,
    arrows: EdgeList,
) -> DeviceWaits:
    """All waits for device work; `communication` are the rows that communicate, `arrows` the edges
    that the profile draws inside graphs.
    """
    if device is None:
        return DeviceWaits(table)
    launched = launched_work(table, device, streams)
    calls = with_streams_of_events(table, launched, wait_calls(table, device))
    given = given_to_streams(table, launched, calls)
    joins = device_joins(table, launched, calls, SLACK_NS)
    syncs = sync_edges(table, launched, calls, given, joins)
    kernels = communication[table.work[communication]]
    events = [
        event_edges(table, launched, calls, given, arrows),
        collective_stream_edges(table, launched, calls, kernels),
        unlaunched_edges(table, launched),
    ]
    longer = with_joins(table, joins.end_ns, table.lane.max(initial=NO_ROW) + 1 + joins.chain)
    return DeviceWaits(
        longer,
        syncs,
        copy_edges(table, blocking_copies(table, device)),
        EdgeList.joined(events),
        sync_scopes(calls, launched, syncs, longer.lane),
        calls.has_records,
    )
