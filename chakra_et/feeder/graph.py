"""The engine for a whole trace.

Most traces are numbered so that every node has a larger id than what it waits for. Running such a
trace from its first node to its last needs no bookkeeping at all, so none is done until somebody
asks for more than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush, nsmallest
from typing import Any, Final

import numpy as np

from chakra_et.definitions import NodeType
from chakra_et.feeder import errors
from chakra_et.feeder.engine import Counts, Engine
from chakra_et.feeder.options import Next, Options, State, gating
from chakra_et.feeder.table import Table

_WAITING, _READY, _TAKEN, _DONE = (
    int(s) for s in (State.WAITING, State.READY, State.TAKEN, State.DONE)
)
_NODE: Final = Next.NODE
_METADATA: Final = int(NodeType.METADATA)


class Graph(Engine):
    """Hands out the nodes of a table."""

    def __init__(self, table: Table, options: Options) -> None:
        self._table = table
        self._options = options
        self._count = len(table)
        self._rank: memoryview | None = None  # row -> place in the order, if that is not by id
        self._by_rank: memoryview | None = None
        if options.order == "start":
            by_rank = np.lexsort((np.arange(self._count), table.starts()))
            rank = np.empty(self._count, np.int64)
            rank[by_rank] = np.arange(self._count)
            self._by_rank, self._rank = by_rank.data, rank.data
        self._in_order = (
            options.order == "id"
            and len(table.stuck) == 0
            and bool((table.parent < table.child).all())
        )
        self._children: memoryview | None = None  # rows, by parent; None: not indexed yet
        self._offsets: memoryview = memoryview(b"")
        self.restart()

    def restart(self) -> None:
        """Every node is as at the start."""
        self._straight = -1  # the row that iteration in id order has reached; -1: not under way
        self._fresh = True  # nothing has been taken yet
        self._settled = False  # whether there is a state for every node
        self.finished = self._count == 0
        self._ready = self._taken = self._done = 0
        self._state = bytearray()
        self._needs: list[int] = []
        self._heap: list[int] = []

    # Running straight through.

    def run(self) -> Iterator[Any]:
        """Take node after node; each is done when the next is asked for."""
        if self._fresh and self._in_order:
            yield from self._run_straight()
            if self.finished:
                return
        while True:
            answer, row = self._next_row()
            if answer is not Next.NODE:
                self.stop = answer
                return
            yield self._table.node(row)
            if self._state[row] == _TAKEN:
                self._finish(row)

    def _run_straight(self) -> Iterator[Any]:
        rows: Iterable[int] = range(self._count)
        if self._options.skip_metadata:
            rows = np.flatnonzero(self._table.type != _METADATA).tolist()
        node = self._table.maker()
        self._fresh = False
        for row in rows:
            self._straight = row
            yield node(row)
            if self._settled:  # somebody asked for more, and found this node taken
                if self._state[row] == _TAKEN:
                    self._finish(row)
                return
        self._straight = -1
        self.finished = True
        self._done = self._count
        self.stop = Next.FINISHED

    # Bookkeeping, from the moment that it is needed.

    def _settle(self) -> None:
        """Have a state for every node."""
        if self._settled:
            return
        self._settled = True
        self._fresh = False
        self._index()
        table, count = self._table, self._count
        needs = np.bincount(table.child, minlength=count)
        if len(table.stuck):
            needs += np.bincount(table.stuck, minlength=count)
        done = self._straight if self._straight >= 0 else count if self.finished else 0
        if done:
            needs -= np.bincount(table.child[table.parent < done], minlength=count)
        state = np.where(needs == 0, _READY, _WAITING).astype(np.uint8)
        state[:done] = _DONE
        self._done = done
        if self._straight >= 0:
            state[self._straight] = _TAKEN
            self._taken = 1
            self._straight = -1
        ready = np.flatnonzero(state == _READY)
        keys = ready if self._rank is None else np.sort(np.asarray(self._rank)[ready])
        self._needs, self._state, self._heap = needs.tolist(), bytearray(state), keys.tolist()
        self._ready = len(self._heap)
        if self._options.skip_metadata:
            self._skip(ready[table.type[ready] == _METADATA].tolist())
            self.finished = self._done == count

    def _index(self) -> None:
        """Who waits for whom, by the node waited for."""
        if self._children is not None:
            return
        table, count = self._table, self._count
        keys = table.parent.astype(np.uint64) << np.uint64(32) | table.child
        keys.sort()
        self._children = keys.astype(np.uint32).data
        offsets = np.zeros(count + 1, np.uint32)
        np.cumsum(np.bincount(table.parent, minlength=count), out=offsets[1:])
        self._offsets = offsets.data

    def _skip(self, rows: list[int]) -> None:
        """Finish ready metadata nodes, and those that become ready by that."""
        while rows:
            row = rows.pop()
            self._ready -= 1
            rows += [child for child in self._release(row) if self._is_metadata(child)]

    def _is_metadata(self, row: int) -> bool:
        return int(self._table.type[row]) == _METADATA

    def _finish(self, row: int) -> None:
        """A taken node is done; what waited for nothing else is ready."""
        self._taken -= 1
        freed = self._release(row)
        if freed and self._options.skip_metadata:
            self._skip([child for child in freed if self._is_metadata(child)])
        self.finished = self._done == self._count

    def _release(self, row: int) -> list[int]:
        self._state[row] = _DONE
        self._done += 1
        children, offsets, needs = self._children, self._offsets, self._needs
        assert children is not None
        freed = []
        for child in children[offsets[row] : offsets[row + 1]]:
            need = needs[child] - 1
            needs[child] = need
            if need == 0:
                freed.append(child)
                self._enter(child)
        return freed

    def _enter(self, row: int) -> None:
        self._state[row] = _READY
        self._ready += 1
        heappush(self._heap, row if self._rank is None else self._rank[row])

    def _at(self, key: int) -> int:
        return key if self._by_rank is None else self._by_rank[key]

    def _next_row(self) -> tuple[Next, int]:
        if not self._settled:
            self._settle()
        heap, state, by_rank = self._heap, self._state, self._by_rank
        while heap:  # keys of nodes that were taken by id are stale
            row = heappop(heap)
            if by_rank is not None:
                row = by_rank[row]
            if state[row] == _READY:
                state[row] = _TAKEN
                self._ready -= 1
                self._taken += 1
                return _NODE, row
        if self._taken:
            return Next.PENDING, -1
        return (Next.FINISHED if self.finished else Next.BLOCKED), -1

    # The protocol.

    def next(self) -> tuple[Next, Any]:
        """Take the first ready node."""
        answer, row = self._next_row()
        return answer, self._table.node(row) if row >= 0 else None

    def take(self, node_id: int) -> Any:
        """Take a ready node."""
        self._settle()
        row = self._row(node_id)
        if self._state[row] != _READY:
            raise errors.not_ready(node_id, State(self._state[row]).label)
        self._state[row] = _TAKEN
        self._ready -= 1
        self._taken += 1
        return self._table.node(row)

    def done(self, node_id: int) -> None:
        """Finish a taken node."""
        self._finish(self._taken_row(node_id))

    def push_back(self, node_id: int) -> None:
        """Make a taken node ready again."""
        row = self._taken_row(node_id)
        self._taken -= 1
        self._enter(row)

    def _row(self, node_id: int) -> int:
        row = self._table.row(node_id)
        if row < 0:
            raise errors.unknown_node(node_id)
        return row

    def _taken_row(self, node_id: int) -> int:
        if not self._settled:
            self._settle()
        row = self._row(node_id)
        if self._state[row] != _TAKEN:
            raise errors.not_taken(node_id, State(self._state[row]).label)
        return row

    def ready(self, limit: int | None) -> list[int]:
        """Ready ids, in order."""
        self._settle()
        wanted = self._ready if limit is None else min(limit, self._ready)
        keys: list[int] = []
        if wanted:
            live = {k for k in self._heap if self._state[self._at(k)] == _READY}
            keys = nsmallest(wanted, live)
            self._heap = list(live)
            heapify(self._heap)
        return [int(self._table.id[self._at(key)]) for key in keys]

    def state(self, node_id: int) -> State:
        """Where a node is on its way."""
        self._settle()
        row = self._table.row(node_id)
        return State.UNKNOWN if row < 0 else State(self._state[row])

    def node(self, node_id: int) -> Any:
        """The view of a node, or None."""
        row = self._table.row(node_id)
        return None if row < 0 else self._table.node(row)

    def children(self, node_id: int) -> list[int]:
        """Ids of the nodes that wait, or waited, for this one."""
        self._index()
        assert self._children is not None
        row = self._row(node_id)
        rows = sorted(set(self._children[self._offsets[row] : self._offsets[row + 1]]))
        return [int(self._table.id[row]) for row in rows]

    def gates(self, node_id: int) -> list[int]:
        """Ids of the parents that this node waits, or waited, for."""
        node = self.node(node_id)
        parents = [] if node is None else gating(node_id, node.edges, self._options)
        if self._options.missing_parent == "drop":
            parents = [parent for parent in parents if self._table.row(parent) >= 0]
        return parents

    def in_state(self, state: State) -> list[int]:
        """Ids of all nodes in a state, ascending."""
        self._settle()
        rows = np.flatnonzero(np.frombuffer(self._state, np.uint8) == state)
        return [int(node_id) for node_id in self._table.id[rows]]

    def all_ids(self) -> list[int]:
        """Ids of all nodes, ascending."""
        return [int(node_id) for node_id in self._table.id]

    def counts(self) -> Counts:
        """How many nodes are where."""
        self._settle()
        held = self._count - self._done
        waiting = held - self._ready - self._taken
        return Counts(waiting, self._ready, self._taken, self._done, held, self._count, True)
