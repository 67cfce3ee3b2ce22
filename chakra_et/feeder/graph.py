"""The engine for a whole trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush, nsmallest
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.definitions import NodeType
from chakra_et.feeder import errors
from chakra_et.feeder.engine import Counts, Engine
from chakra_et.feeder.errors import FeederError
from chakra_et.feeder.options import Next, Options, State, gating
from chakra_et.feeder.straight import Straight
from chakra_et.feeder.table import Table

_WAITING, _READY, _TAKEN, _DONE = (
    int(s) for s in (State.WAITING, State.READY, State.TAKEN, State.DONE)
)
_NODE: Final = Next.NODE


class Graph(Engine):
    """Hands out the nodes of a table.

    Keys order the nodes: a key is the row itself, or with another order than by id its rank. A
    trace in order is run by `Straight`; `_settle` gives every node a state when more is wanted.
    """

    def __init__(self, table: Table, options: Options) -> None:
        self._table = table
        self._options = options
        self._count = len(table)
        self._rank: memoryview | None = None  # row -> key
        self._by_rank: memoryview | None = None  # key -> row
        rows, rank = np.arange(self._count), None
        if options.order == "start":
            rows = np.lexsort((rows, table.starts()))
            rank = np.empty(self._count, np.int64)
            rank[rows] = np.arange(self._count)
            self._by_rank, self._rank = rows.data, rank.data
        skipped = np.zeros(self._count, np.bool_)
        if options.skip_metadata:
            skipped = table.type == NodeType.METADATA
        self._skipped = skipped.tobytes()
        self._rows = rows[~skipped[rows]] if table.is_in_order(rank) else None
        self._children: memoryview | None = None  # rows, by parent; None: not indexed yet
        self._offsets: memoryview = memoryview(b"")
        self._straight: Straight | None = None
        self.restart()

    def restart(self) -> None:
        """Every node is as at the start."""
        if self._straight is not None:
            self._straight.stop()  # ends a loop over it
        self._straight = None if self._rows is None else Straight(self._table, self._rows)
        self.finished = self._count == 0
        self._ready = self._taken = self._done = 0
        self._run_row = -1  # what a run in order had taken when the bookkeeping began
        self._state = bytearray()  # by row; empty: not settled
        self._needs: list[int] = []  # how many parents of a row are not done
        self._heap: list[int] = []  # keys of ready nodes, and stale ones of those taken by id
        if self._straight is not None:
            self._sync(self._straight)

    def run(self) -> Iterator[Any]:
        """Take node after node; each is done when the next is asked for."""
        return chain.from_iterable(self._run_parts())  # nothing is done here per node

    def _run_parts(self) -> Iterator[Iterator[Any]]:
        straight = self._straight
        if straight is not None and straight.is_free:
            yield from straight.run()
            if straight.finished:
                self._sync(straight)
                self.stop = Next.FINISHED
                return
            self._end(self._run_row)
        yield self._run_singly()

    def _run_singly(self) -> Iterator[Any]:
        while (row := self._pop()) >= 0:
            yield self._table.node(row)
            self._end(row)
        self.stop = self._why_none()

    def _end(self, row: int) -> None:
        """A run goes on: its last node is done, if nobody has finished it or begun anew."""
        if row >= 0 and self._state and self._state[row] == _TAKEN:
            self._taken -= 1
            self._finish(row)

    def _sync(self, straight: Straight) -> None:
        if straight.finished:
            self._done, self.finished = self._count, True

    # Bookkeeping, from the moment that it is needed.

    def _settle(self) -> None:
        """Have a state for every node."""
        if self._state:
            return
        self._index()
        table, count = self._table, self._count
        needs = np.bincount(table.child, minlength=count)
        needs += np.bincount(table.stuck, minlength=count)
        state = np.full(count, _WAITING, np.uint8)
        if self._straight is not None:
            self._take_over(self._straight, needs, state)
        ready = np.flatnonzero((needs == 0) & (state == _WAITING))
        state[ready] = _READY
        keys = ready if self._rank is None else np.sort(np.asarray(self._rank)[ready])
        self._needs, self._state, self._heap = needs.tolist(), bytearray(state), keys.tolist()
        self._ready = len(keys)
        if self._options.skip_metadata:
            for row in ready.tolist():
                if self._skipped[row]:
                    self._ready -= 1
                    self._finish(row)

    def _take_over(
        self, straight: Straight, needs: npt.NDArray[np.int64], state: npt.NDArray[np.uint8]
    ) -> None:
        """Go on where a run in order is: whatever comes before its next node is done."""
        assert self._rows is not None
        handed, taken = straight.stop()
        place = handed - taken
        key = self._count
        if place < len(self._rows):
            row = int(self._rows[place])
            key = row if self._rank is None else self._rank[row]
            if taken:
                state[row], self._taken, self._run_row = _TAKEN, 1, row
        done = np.arange(self._count) < key
        if self._rank is not None:
            done = done[np.asarray(self._rank)]
        needs -= np.bincount(self._table.child[done[self._table.parent]], minlength=self._count)
        state[done] = _DONE
        self._done = key
        self._straight = None

    def _index(self) -> None:
        if self._children is None:
            self._children, self._offsets = self._table.children()

    def _finish(self, row: int) -> None:
        """A node is done; what waited for nothing else is ready, or skipped and done as well."""
        state, needs, heap = self._state, self._needs, self._heap
        children, offsets, skipped, rank = self._children, self._offsets, self._skipped, self._rank
        assert children is not None
        finished, freed = [row], 0
        for row in finished:  # which grows
            state[row] = _DONE
            for child in children[offsets[row] : offsets[row + 1]]:
                need = needs[child] - 1
                needs[child] = need
                if need == 0:
                    if skipped[child]:
                        finished.append(child)
                    else:
                        state[child] = _READY
                        freed += 1
                        heappush(heap, child if rank is None else rank[child])
        self._ready += freed
        self._done += len(finished)
        self.finished = self._done == self._count

    def _pop(self) -> int:
        """Take the first ready row; -1 if there is none."""
        if not self._state:
            self._settle()
        heap, state, by_rank = self._heap, self._state, self._by_rank
        while heap:
            key = heappop(heap)
            row = key if by_rank is None else by_rank[key]
            if state[row] == _READY:
                state[row] = _TAKEN
                self._ready -= 1
                self._taken += 1
                return row
        return -1

    def _why_none(self) -> Next:
        if self._taken:
            return Next.PENDING
        return Next.FINISHED if self.finished else Next.BLOCKED

    # The protocol.

    def next(self) -> tuple[Next, Any]:
        """Take the first ready node."""
        straight = self._straight
        if straight is not None:
            node = straight.next()
            if node is not None:
                return _NODE, node
            if straight.finished:
                return Next.FINISHED, None
        row = self._pop()
        return (self._why_none(), None) if row < 0 else (_NODE, self._table.node(row))

    def take(self, node_id: int) -> Any:
        """Take a ready node."""
        self._settle()
        row = self._table.row(node_id)
        if row < 0 or self._state[row] != _READY:
            raise self._refusal(row, node_id, errors.not_ready)
        self._state[row] = _TAKEN
        self._ready -= 1
        self._taken += 1
        return self._table.node(row)

    def done(self, node_id: int) -> None:
        """Finish a taken node."""
        straight = self._straight
        if straight is not None and straight.taken == node_id:
            straight.done()
            self._sync(straight)
            return
        row = self._taken_row(node_id)
        self._taken -= 1
        self._finish(row)

    def push_back(self, node_id: int) -> None:
        """Make a taken node ready again."""
        row = self._taken_row(node_id)
        self._taken -= 1
        self._state[row] = _READY
        self._ready += 1
        heappush(self._heap, row if self._rank is None else self._rank[row])

    def _taken_row(self, node_id: int) -> int:
        if not self._state:
            self._settle()
        row = self._table.row(node_id)
        if row < 0 or self._state[row] != _TAKEN:
            raise self._refusal(row, node_id, errors.not_taken)
        return row

    def _refusal(
        self, row: int, node_id: int, error: Callable[[int, str], FeederError]
    ) -> FeederError:
        if row < 0:
            return errors.unknown_node(node_id)
        return error(node_id, State(self._state[row]).label)

    # Looking.

    def ready(self, limit: int | None) -> list[int]:
        """Ready ids, in order."""
        self._settle()
        live = {key for key in self._heap if self._state[self._row_of(key)] == _READY}
        self._heap = list(live)
        heapify(self._heap)
        keys = sorted(live) if limit is None else nsmallest(limit, live)
        return [int(self._table.id[self._row_of(key)]) for key in keys]

    def _row_of(self, key: int) -> int:
        return key if self._by_rank is None else self._by_rank[key]

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
        row = self._table.row(node_id)
        if row < 0:
            raise errors.unknown_node(node_id)
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
        return self._ids(self._table.id[rows])

    def all_ids(self) -> list[int]:
        """Ids of all nodes, ascending."""
        return self._ids(self._table.id)

    @staticmethod
    def _ids(ids: npt.NDArray[np.uint64]) -> list[int]:
        found: list[int] = ids.tolist()
        return found

    def counts(self) -> Counts:
        """How many nodes are where."""
        count = self._count
        if self.finished:
            return Counts(0, 0, 0, count, 0, count, True)
        self._settle()
        held = count - self._done
        waiting = held - self._ready - self._taken
        return Counts(waiting, self._ready, self._taken, self._done, held, count, True)
