"""What process groups do by habit, for profiles that show no call that makes a stream wait.

PyTorch runs collectives on streams of their own. Each waits for what the calling thread had given
to its stream before (`ProcessGroupNCCL`, `syncStream`), and whoever uses the result makes its
stream wait for the collective. The first is known from the order of launches, the second only from
times.
"""

from __future__ import annotations

import numpy as np

from chakra_et.codes import among
from chakra_et.columns import NO_ROW, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.edges.event.edges import SOON_NS, unexplained
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.waits.launched import Launched
from chakra_et.linker.waits.wait_calls import WaitCalls
from chakra_et.recording import Kind


def collective_stream_edges(
    table: Activities, launched: Launched, calls: WaitCalls, communication: Rows
) -> EdgeList:
    """Event edges into and out of `communication` (rows of device work); all of them inferred.

    None where the profile has records of waits, or calls that make a stream wait: these say more.
    A communication between other work on its stream, as kernels of a serving engine's own are, has
    none either: it waits by its place on the stream.
    """
    lanes = _own_streams(table, communication)
    communication = communication[among(table.lane[communication], lanes)]
    others = launched.lanes[~among(launched.lanes, lanes)]
    shown = calls.has_records or len(calls.of(Kind.STREAM_WAIT)) > 0
    if shown or len(lanes) == 0 or len(others) == 0:
        communication = communication[:0]
    before = _given_before(table, launched, communication, others)
    after = _late_after(table, launched, communication, others)
    return EdgeList.joined(
        [
            EdgeList.by(Evidence.EVENT_HABIT, *_columns(before)),
            EdgeList.by(Evidence.EVENT_HABIT_TIMES, *_columns(after)),
        ]
    )


def _own_streams(table: Activities, communication: Rows) -> Rows:
    """Streams of which no more than half of the work is anything but communication."""
    lanes, count = np.unique(table.lane[communication], return_counts=True)
    every, all_ = np.unique(table.lane[table.work], return_counts=True)
    own: Rows = lanes[2 * count >= all_[np.searchsorted(every, lanes)]]
    return own


def _columns(pairs: list[tuple[int, int]]) -> tuple[Rows, Rows]:
    """Sources and targets."""
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _given_before(
    table: Activities, launched: Launched, communication: Rows, others: Rows
) -> list[tuple[int, int]]:
    """The last work that the same thread had launched on a stream without communication."""
    found = []
    for row in communication[table.launch[communication] != NO_ROW].tolist():
        call = int(table.launch[row])
        last = launched.last_before(others, np.full(len(others), table.start_ns[call], np.int64))
        last = last[last != NO_ROW]
        launch = table.launch[last]
        last = last[(launch != NO_ROW) & (table.lane[launch] == table.lane[call])]
        if len(last) == 0:
            continue
        source = int(last[np.argmax(table.start_ns[table.launch[last]])])
        if table.end_ns[source] <= table.start_ns[row]:
            found.append((source, row))
    return found


def _late_after(
    table: Activities, launched: Launched, communication: Rows, others: Rows
) -> list[tuple[int, int]]:
    """Work that starts late, and soon after a communication that was launched before it."""
    if len(communication) == 0:
        return []
    by_end = communication[np.argsort(table.end_ns[communication], kind="stable")]
    ends = table.end_ns[by_end]
    late = unexplained(table, launched) > SOON_NS
    work = launched.work[among(launched.lane, others) & late[launched.work]]
    place = np.searchsorted(ends, table.start_ns[work], "right") - 1
    found = []
    for target, nearest in zip(work.tolist(), place.tolist(), strict=True):
        source = int(by_end[nearest])
        soon = nearest >= 0 and table.start_ns[target] - table.end_ns[source] <= SOON_NS
        if soon and launched.when[launched.place[source]] < launched.when[launched.place[target]]:
            found.append((source, target))
    return found
