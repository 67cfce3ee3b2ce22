"""All edges between the activities of a recording."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from chakra_et.columns import Rows, let_go
from chakra_et.io.memory import give_back
from chakra_et.linker import activities
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.communication import Communications
from chakra_et.linker.edge_list import EdgeList, by_precedence
from chakra_et.linker.edges.call import call_edges
from chakra_et.linker.edges.data.edges import data_edges, mark_only_ties
from chakra_et.linker.edges.device_waits import DeviceWaits, device_waits
from chakra_et.linker.edges.event.graph_arrows import graph_arrows
from chakra_et.linker.edges.group import group_edges
from chakra_et.linker.edges.launch import launch_edges
from chakra_et.linker.edges.program import program_edges
from chakra_et.linker.edges.stream import stream_edges
from chakra_et.linker.edges.stream_pieces import stream_piece_edges
from chakra_et.linker.edges.sync import stated_waits
from chakra_et.linker.edges.thread.edges import backward_edges, thread_edges
from chakra_et.linker.edges.thread.forward_backward import (
    ForwardBackward,
    find_forward_backward,
    forward_backward_joins,
)
from chakra_et.linker.edges.thread.host_time import HostTime
from chakra_et.linker.evidence import Rule
from chakra_et.linker.guesses.doubts import Doubts
from chakra_et.linker.notes import Notes
from chakra_et.linker.time.late_ends import end_at_readers
from chakra_et.linker.time.rests import find_rests, with_rests
from chakra_et.linker.waits.stream_order import StreamOrder, stream_order
from chakra_et.recording import Recording


class Linkage(msgspec.Struct):
    """Activities, and what has been found of them. Rows that are added stand behind all others."""

    table: Activities
    streams: StreamOrder
    communications: Communications
    forward_backward: ForwardBackward
    time: HostTime
    waits: DeviceWaits
    doubts: Doubts
    edges: dict[Rule, EdgeList] = msgspec.field(default_factory=dict)

    @property
    def ordered(self) -> list[EdgeList]:
        """The edges by precedence."""
        return by_precedence(self.edges)

    def grow(self, longer: Activities) -> None:
        """Take a table with more rows, which neither communicate nor follow anything."""
        added = len(longer) - len(self.table)
        self.communications = self.communications.behind(self.table, added)
        self.forward_backward = self.forward_backward.behind(added)
        self.table = longer


def find_edges(
    table: Activities,
    recording: Recording,
    communications: Communications,
    refuted: Mapping[str, Rows],
    notes: Notes,
) -> Linkage:
    """The edges of all rules; `refuted` are pairs of rows that other ranks refute, by kind.

    The table is used up, where one with more rows takes its place.
    """
    host, device, workers = recording.host, recording.device, communications.workers
    streams = stream_order(table)
    data = data_edges(table, host, communications.by_row, notes.warnings)
    notes.warnings += end_at_readers(table, data, workers)
    follows = find_forward_backward(table, device, host)
    doubts = Doubts(table, device, workers, refuted)
    time, waits = doubts.host_time(follows), DeviceWaits(table)
    found = Linkage(table, streams, communications, follows, time, waits, doubts)
    in_streams = stream_edges(table, streams)
    longer = with_rests(table, find_rests(table, device, time, in_streams))
    found.grow(longer)
    if longer is not table:
        let_go(table, activities.COLUMNS)  # Who gave the table still holds it.
    give_back()
    _find_waits(found, recording, notes)
    found.edges |= _plain_edges(found, recording, in_streams)
    found.edges |= _wait_edges(found)
    others = found.ordered
    found.edges[Rule.DATA] = mark_only_ties(
        found.table, streams, data, others, found.waits.recorded, notes.warnings
    )
    found.edges[Rule.FORWARD_BACKWARD] = backward_edges(
        found.table, found.time, found.forward_backward
    )
    notes.joins += [
        *doubts.joins(),
        *forward_backward_joins(found.forward_backward, found.time.by),
    ]
    return found


def _find_waits(found: Linkage, recording: Recording, notes: Notes) -> None:
    """Waits for device work and for other threads, without those that something refutes."""
    device, doubts = recording.device, found.doubts
    arrows, drawn = graph_arrows(found.table, device, notes.warnings)
    notes.joins += drawn
    rows = np.array(sorted(found.communications.of(found.table)), np.int64)
    waits = device_waits(found.table, device, found.streams, rows, arrows)
    found.grow(waits.table)
    doubts.follow(found.table)
    waits.events = doubts.without_refuted(waits.events)
    found.time = doubts.host_time(found.forward_backward)
    waits.take_syncs(doubts.without_refuted(waits.syncs))
    stated = stated_waits(found.table, recording, found.communications.carriers)
    waits.syncs = EdgeList.joined([waits.syncs, stated])
    found.waits = waits
    doubts.close()


def _plain_edges(
    found: Linkage, recording: Recording, in_streams: EdgeList
) -> dict[Rule, EdgeList]:
    """What calls, threads, launches and streams tell."""
    table, carriers = found.table, found.communications.carriers
    return {
        Rule.CALL: call_edges(table),
        Rule.PROGRAM: program_edges(table, recording),
        Rule.THREAD_WAIT: thread_edges(found.time),
        Rule.LAUNCH: launch_edges(table),
        Rule.STREAM: in_streams,
        Rule.STREAM_PIECE: stream_piece_edges(table, found.streams, carriers),
    }


def _wait_edges(found: Linkage) -> dict[Rule, EdgeList]:
    """What waits, and the order in process groups, tell."""
    table, waits, inferred = found.table, found.waits, found.waits.events.inferred
    spoken = found.communications.of(table)
    return {
        Rule.BLOCKING_COPY: waits.copies,
        Rule.SYNC: waits.syncs,
        Rule.EVENT: waits.events.select(~inferred),
        Rule.GROUP: group_edges(table, spoken, found.communications.workers),
        Rule.INFERRED_EVENT: waits.events.select(inferred),
    }
