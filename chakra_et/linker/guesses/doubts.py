"""Guesses held against the other steps of a recording, and against the other ranks of its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from chakra_et.codes import among, distinct
from chakra_et.columns import Mask, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.workers import Workers
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.edges.thread.edges import thread_edges
from chakra_et.linker.edges.thread.forward_backward import ForwardBackward
from chakra_et.linker.edges.thread.host_time import HostTime, host_time
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.guesses.other_ranks import Guesses, account_of
from chakra_et.linker.guesses.repeats import Tried, find_repeats, in_doubt
from chakra_et.linker.tallies import JoinTally
from chakra_et.linker.waits.wait_calls import SLACK_NS, calls_of
from chakra_et.model import EdgeKind
from chakra_et.recording import DeviceTrace, Kind
from chakra_et.shown import several

_ROUNDS: Final = 8
"""So often other threads are looked for, where the one waited for is refuted."""


class Doubts:
    """What other steps, and other ranks, say of a recording's guesses."""

    def __init__(
        self,
        table: Activities,
        device: DeviceTrace | None,
        workers: Workers,
        told: Mapping[str, Rows],
    ) -> None:
        """`told` are the pairs of rows that other ranks refute, by kind of edge."""
        self._device, self._workers, self._told = device, workers, told
        self._repeats = find_repeats(table, device, workers)
        self._awake = np.zeros(0, np.int64)
        self._tried: dict[EdgeKind, Tried] = {}
        self._guessed: dict[EdgeKind, EdgeList] = {}
        self._left_out: dict[EdgeKind, int] = {}
        self.follow(table)

    def follow(self, table: Activities) -> None:
        """Take the table for that of before, with more rows behind all others."""
        self._table = table
        self._repeats = self._repeats.behind(len(table))
        self._begin_ns, self._end_ns = table.start_ns.copy(), table.end_ns
        # What waits for a transfer begins before that has ended.
        self._begin_ns[self._workers.waits] = table.end_ns[self._workers.waits]

    def close(self) -> None:
        """Test nothing any more: what steps have in common can go."""
        del self._repeats

    def without_refuted(self, edges: EdgeList) -> EdgeList:
        """The edges that nothing refutes."""
        wrong, tried = self._test(edges, self._table.end_ns)
        self._note(edges, tried, int(np.count_nonzero(wrong)))
        return edges.select(~wrong)

    def host_time(self, forward_backward: ForwardBackward) -> HostTime:
        """Host time without waits for other threads that something refutes."""
        time, edges = self._waits(forward_backward)
        wrong, tried = self._test(edges, self._ended(time))
        for _ in range(_ROUNDS):
            if not wrong.any():
                break
            self._awake = distinct(np.append(self._awake, edges.target[wrong]))
            time, edges = self._waits(forward_backward)
            wrong, _ = self._test(edges, self._ended(time))
        if edges.kind not in self._tried:
            self._note(edges, tried, len(self._awake))
        self._guessed[edges.kind] = edges
        self._end_ns = self._ended(time)
        return time

    def _waits(self, forward_backward: ForwardBackward) -> tuple[HostTime, EdgeList]:
        """Host time, and the edges that times alone tell, into what waited for another thread.

        Waits that more than times tell of are left out: a range beside its thread ends where
        somebody has waited for it, and who asks for a transfer and does nothing, or only waits, has
        waited for that transfer, however late its worker closed the range.
        """
        asking = calls_of(self._table, self._device, Kind.WAIT_STREAM, Kind.WAIT_DEVICE)
        # Who asks whether work is done has slept since it last asked.
        awake = distinct(np.append(self._awake, calls_of(self._table, self._device, Kind.POLL)))
        time = host_time(self._table, forward_backward, self._workers, awake, asking)
        edges = thread_edges(time)
        workers = self._workers
        awaited = np.append(time.awaited.goes_on, workers.waits)
        told = among(edges.source, workers.transfers) & among(edges.target, awaited)
        told |= among(edges.source, self._table.beside)
        return time, edges.select(~told & (edges.evidence != Evidence.THREAD_NAMES))

    def _ended(self, time: HostTime) -> Rows:
        """When what host activities did themselves had ended.

        Own times may last until the next start on the thread, and callers end after what they call.
        """
        return np.minimum(self._table.end_ns, time.end_ns)

    def _test(self, edges: EdgeList, end_ns: Rows) -> tuple[Mask, Tried]:
        told = self._told.get(edges.kind.label)
        # A call that waits for device work has begun before that has ended.
        begin_ns = end_ns + SLACK_NS if edges.kind is EdgeKind.SYNC else self._begin_ns
        return in_doubt(self._repeats, edges, begin_ns, told, end_ns)

    def _note(self, edges: EdgeList, tried: Tried, left_out: int) -> None:
        self._guessed[edges.kind] = edges
        self._tried[edges.kind] = tried
        if left_out:
            self._left_out[edges.kind] = left_out

    @property
    def account(self) -> Guesses:
        """What other ranks need to know of the guesses."""
        guessed = [self._guessed[kind] for kind in (EdgeKind.EVENT, EdgeKind.THREAD)]
        return account_of(self._table, self._device, self._begin_ns, self._end_ns, guessed)

    def joins(self) -> list[JoinTally]:
        """How many guesses other steps show, of those that they could."""
        return [join for tried in self._tried.values() for join in tried.joins()]

    def warnings(self) -> list[str]:
        """What was left out."""
        return [
            f"{several(count, f'inferred {kind} edge was', f'inferred {kind} edges were')} "
            "left out, as another step or rank refutes them"
            for kind, count in ((kind.label, count) for kind, count in self._left_out.items())
        ]
