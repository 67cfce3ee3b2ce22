"""Which forward operation each backward operation follows: what hands work over between threads.

Two kinds of evidence, the better first. A `fwdbwd` flow is a record of one pair. A sequence number
is a count of the thread that ran the forward operation: operations of several threads may have the
same, and then it names none.
"""

from __future__ import annotations

import msgspec
import numpy as np

from chakra_et.codes import codes, order_of, row_keys
from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.edges.thread.backward_names import pairs_by_name
from chakra_et.linker.evidence import Codes, Evidence
from chakra_et.linker.joining.flow_ends import open_at
from chakra_et.linker.tallies import JoinTally
from chakra_et.model import EdgeKind
from chakra_et.recording import DeviceTrace, HostTrace, Role


class ForwardBackward(msgspec.Struct):
    """`forward[a]` is the operation that backward operation a follows, or `NO_ROW`.

    `by[a]` is the `Evidence` of that: `THREAD_FLOW`, `THREAD_SEQUENCE` or `THREAD_NAMES`.

    An operation around backward ones, on their thread, follows what the first of them follows;
    `named[a]` is true where the evidence is about a itself. `flows` counts the arrows of the
    profile, `joined` those with an operation at both ends.
    """

    forward: Rows
    by: Codes
    named: Mask
    flows: int
    joined: int

    def behind(self, count: int) -> ForwardBackward:
        """The same for a table that is longer by so many rows, which follow nothing."""
        none = np.full(count, NO_ROW, np.int64)
        by = np.full(count, Evidence.THREAD_TIMES, np.uint8)
        named = np.append(self.named, np.zeros(count, np.bool_))
        columns = np.append(self.forward, none), np.append(self.by, by), named
        return ForwardBackward(*columns, self.flows, self.joined)

    def lanes(self, table: Activities) -> Rows:
        """By activity, the thread of the operation that it follows, or `NO_ROW`."""
        return np.where(self.forward != NO_ROW, table.lane[self.forward], NO_ROW)


def find_forward_backward(
    table: Activities, device: DeviceTrace | None, host: HostTrace | None = None
) -> ForwardBackward:
    """The forward operation of each backward operation: by flow, else by sequence number.

    Where a profile has neither, names tell, and shapes where the host trace has them.
    """
    count = len(table)
    nothing = np.full(count, NO_ROW, np.int64)
    by = np.full(count, Evidence.THREAD_TIMES, np.uint8)
    found = ForwardBackward(nothing, by, np.zeros(count, np.bool_), 0, 0)
    if device is None:
        return found
    ops = np.flatnonzero((table.role == Role.OP) & (table.record != NO_ROW))
    flows = device.forward_flows
    source, target = (open_at(table, device, ops, end) for end in (flows.source, flows.target))
    joined = (source != NO_ROW) & (target != NO_ROW) & (source != target)
    found.flows, found.joined = len(flows), int(np.count_nonzero(joined))
    _take(table, found, source[joined], target[joined], Evidence.THREAD_FLOW)
    _take(table, found, *_by_sequence(table, device, ops), Evidence.THREAD_SEQUENCE)
    if not found.named.any():
        _take(table, found, *pairs_by_name(table, device, host), Evidence.THREAD_NAMES)
    return found


def _by_sequence(table: Activities, device: DeviceTrace, ops: Rows) -> tuple[Rows, Rows]:
    """Pairs of a forward and a backward operation with one sequence number.

    Of several forward operations on one thread, the last that began before is taken: those around
    it had not taken the number yet, they only saw which one was next.
    """
    record = table.record[ops]
    sequence, backward = device.sequence[record], device.fwd_thread[record] > 0
    forward = ops[(sequence >= 0) & ~backward]
    later = ops[(sequence >= 0) & backward]
    none = np.zeros(0, np.int64)
    if len(forward) == 0 or len(later) == 0:
        return none, none
    known, wanted = (device.sequence[table.record[rows]] for rows in (forward, later))
    times = np.concatenate((table.start_ns[forward], table.start_ns[later]))
    code = codes(np.append(known, wanted))
    key = row_keys(code, times)
    order = np.argsort(key[: len(forward)], kind="stable")
    forward, number = forward[order], code[: len(forward)][order]
    place = np.searchsorted(key[: len(forward)][order], key[len(forward) :], "left") - 1
    count = int(code.max()) + 1
    lowest, highest = np.full(count, len(table)), np.full(count, NO_ROW)
    np.minimum.at(lowest, number, table.lane[forward])
    np.maximum.at(highest, number, table.lane[forward])
    mine = code[len(forward) :]
    told = (place >= 0) & (number[place] == mine) & (lowest[mine] == highest[mine])
    return forward[place[told]], later[told]


def _take(
    table: Activities, found: ForwardBackward, source: Rows, target: Rows, by: Evidence
) -> None:
    """Note pairs where nothing better is known, and pass them on to the operations around."""
    new = ~found.named[target] & ((found.forward[target] == NO_ROW) | (found.by[target] == by))
    source, target = source[new], target[new]
    found.forward[target], found.by[target], found.named[target] = source, by, True
    waits = np.flatnonzero(table.lane[source] != table.lane[target])
    # Of several inside an operation, the first in time counts. All climb one step at a time, and
    # one that comes to where an earlier one has been goes no further.
    first = waits[order_of(table.start_ns[target[waits]], -waits)]
    by_turn = np.full(len(table), len(first), np.int64)
    turn, outer = np.arange(len(first)), table.nested_in[target[first]]
    while len(turn):
        climbs = (outer != NO_ROW) & (found.forward[outer] == NO_ROW)
        turn, outer = turn[climbs], outer[climbs]
        np.minimum.at(by_turn, outer, turn)
        goes_on = by_turn[outer] == turn
        turn, outer = turn[goes_on], table.nested_in[outer[goes_on]]
    taken = np.flatnonzero(by_turn < len(first))
    found.forward[taken], found.by[taken] = source[first[by_turn[taken]]], by


def forward_backward_joins(found: ForwardBackward, waits: Codes) -> list[JoinTally]:
    """Flows that found their operations, and what named the thread that each thread waited for.

    `waits` holds an `Evidence` for each wait of a thread for another one.
    """
    flows = "flows from forward to backward to operations"
    joins = [JoinTally(flows, "time on the thread", found.joined, found.flows)]
    what = "waits of threads to the thread waited for"
    for by in (e for e in Evidence if e.kind is EdgeKind.THREAD):
        joins.append(JoinTally(what, by.label, int(np.count_nonzero(waits == by)), len(waits)))
    return [join for join in joins if join.of]
