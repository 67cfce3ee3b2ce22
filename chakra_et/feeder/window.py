"""The engine for a window of a trace.

Reads on while fewer than `window` nodes are held, and past that only when nothing could run
otherwise. Nodes may stand in any order in the file.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from typing import Any

from chakra_et.converters.et.wire import WireError
from chakra_et.definitions import NodeType
from chakra_et.feeder import errors
from chakra_et.feeder.engine import Counts, Engine
from chakra_et.feeder.errors import FeederError
from chakra_et.feeder.known_attributes import NOWHERE
from chakra_et.feeder.node import MessageNode
from chakra_et.feeder.options import Next, Options, State, gating
from chakra_et.feeder.reader import Reader

Reopen = Callable[[], Iterator[bytes]]


class _Held:
    """A node that has been read and is not done."""

    __slots__ = ("children", "key", "need", "node", "state")

    def __init__(self, node: MessageNode, key: tuple[int, int]) -> None:
        self.node = node
        self.key = key
        self.need = 0
        self.state = State.WAITING
        self.children: list[_Held] = []


class Window(Engine):
    """Hands out the nodes of a stream."""

    def __init__(self, reopen: Reopen, options: Options) -> None:
        self._reopen = reopen
        self._options = options
        self._peak = 0
        self.restart()

    def restart(self) -> None:
        """Read the input again."""
        self._reader = Reader(self._reopen(), self._options.max_record)
        self._held: dict[int, _Held] = {}
        self._unread: dict[int, list[_Held]] = {}  # nodes that wait for an id not read yet
        self._ready: list[tuple[int, int]] = []  # keys, ascending
        self._seen: dict[int, int] = {}  # pages of 512 ids, as bits
        self._taken = self._done = 0
        self._ended = False
        self._error: FeederError | None = None
        self.finished = False
        self._fill()

    @property
    def metadata(self) -> bytes:
        """The metadata record."""
        return self._reader.metadata

    def _fill(self) -> None:
        options = self._options
        while not self._ended and (
            len(self._held) < options.window or (not self._ready and not self._taken)
        ):
            try:
                if options.strict_window and len(self._held) >= options.window:
                    raise errors.window_full(len(self._held))
                record = self._reader.next()
                if record is None:
                    self._ended = True
                    self._settle_unread()
                else:
                    self._admit(record)
            except FeederError as error:
                self._error = error
                raise
        self.finished = self._ended and not self._held

    def _admit(self, record: bytes) -> None:
        node = MessageNode(record)
        try:
            node_id, edges = node.id, node.edges
        except WireError as error:
            raise errors.malformed(self._reader.record_offset, str(error)) from None
        if self._has_seen(node_id):
            raise errors.duplicate_id(node_id)
        start = node.start_ns if self._options.order == "start" else 0
        held = _Held(node, (NOWHERE if start is None else start, node_id))
        self._seen[node_id >> 9] = self._seen.get(node_id >> 9, 0) | 1 << (node_id & 511)
        self._held[node_id] = held
        for parent, kind, guess in edges:
            if self._options.gates(kind, guess):
                self._link(held, node_id, parent)
        held.children.extend(self._unread.pop(node_id, ()))
        self._peak = max(self._peak, len(self._held))
        if held.need == 0:
            self._enter(held)

    def _link(self, held: _Held, node_id: int, parent: int) -> None:
        if parent == node_id:
            if self._options.self_edge == "fail":
                raise errors.self_edge(node_id)
            held.need += self._options.self_edge == "wait"
        elif (other := self._held.get(parent)) is not None:
            held.need += 1
            other.children.append(held)
        elif not self._has_seen(parent):
            held.need += 1
            self._unread.setdefault(parent, []).append(held)

    def _settle_unread(self) -> None:
        """At the end of the input: what still waits for nodes that never came."""
        fault = self._options.missing_parent
        if fault == "wait" or not self._unread:
            return
        pairs = [(held.node.id, p, held) for p, waiting in self._unread.items() for held in waiting]
        if fault == "fail":
            node_id, parent, _ = min(pairs, key=lambda pair: pair[:2])
            raise errors.missing_parent(node_id, parent)
        self._unread.clear()
        for _, _, held in pairs:
            held.need -= 1
            if held.need == 0:
                self._enter(held)

    def _has_seen(self, node_id: int) -> bool:
        return bool(self._seen.get(node_id >> 9, 0) >> (node_id & 511) & 1)

    def _is_skipped(self, held: _Held) -> bool:
        return self._options.skip_metadata and held.node.type == NodeType.METADATA

    def _enter(self, held: _Held) -> None:
        if self._is_skipped(held):
            self._finish(held)
        else:
            held.state = State.READY
            insort(self._ready, held.key)

    def _finish(self, first: _Held) -> None:
        stack = [first]
        while stack:
            held = stack.pop()
            held.state = State.DONE
            del self._held[held.key[1]]
            self._done += 1
            for child in held.children:
                child.need -= 1
                if child.need == 0:
                    if self._is_skipped(child):
                        stack.append(child)
                    else:
                        self._enter(child)

    def run(self) -> Iterator[Any]:
        """Take node after node; each is done when the next is asked for."""
        while True:
            answer, node = self.next()
            if answer is not Next.NODE:
                self.stop = answer
                return
            yield node
            if self.state(node.id) is State.TAKEN:
                self.done(node.id)

    def next(self) -> tuple[Next, Any]:
        """Take the first ready node."""
        self._check()
        if self._ready:
            held = self._held[self._ready.pop(0)[1]]
            held.state = State.TAKEN
            self._taken += 1
            return Next.NODE, held.node
        if self._taken:
            return Next.PENDING, None
        return (Next.FINISHED if self.finished else Next.BLOCKED), None

    def take(self, node_id: int) -> Any:
        """Take a ready node."""
        self._check()
        held = self._held.get(node_id)
        if held is None or held.state is not State.READY:
            state = self.state(node_id)
            raise (
                errors.unknown_node(node_id)
                if state is State.UNKNOWN
                else errors.not_ready(node_id, state.label)
            )
        self._ready.remove(held.key)
        held.state = State.TAKEN
        self._taken += 1
        return held.node

    def done(self, node_id: int) -> None:
        """Finish a taken node."""
        held = self._taken_node(node_id)
        self._taken -= 1
        self._finish(held)
        self._fill()

    def push_back(self, node_id: int) -> None:
        """Make a taken node ready again."""
        held = self._taken_node(node_id)
        self._taken -= 1
        held.state = State.READY
        insort(self._ready, held.key)

    def _taken_node(self, node_id: int) -> _Held:
        self._check()
        held = self._held.get(node_id)
        if held is None or held.state is not State.TAKEN:
            state = self.state(node_id)
            raise (
                errors.unknown_node(node_id)
                if state is State.UNKNOWN
                else errors.not_taken(node_id, state.label)
            )
        return held

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def ready(self, limit: int | None) -> list[int]:
        """Ready ids, in order."""
        return [node_id for _, node_id in self._ready[:limit]]

    def state(self, node_id: int) -> State:
        """Where a node is on its way."""
        held = self._held.get(node_id)
        if held is not None:
            return held.state
        return State.DONE if self._has_seen(node_id) else State.UNKNOWN

    def node(self, node_id: int) -> Any:
        """The view of a node, or None when it is not held."""
        held = self._held.get(node_id)
        return None if held is None else held.node

    def children(self, node_id: int) -> list[int]:
        """Ids of the nodes read so far that wait for this one."""
        held = self._held.get(node_id)
        if held is None:
            raise errors.unknown_node(node_id)
        return sorted({child.key[1] for child in held.children})

    def gates(self, node_id: int) -> list[int]:
        """Ids of the parents that this node waits, or waited, for."""
        edges = self._held[node_id].node.edges if node_id in self._held else []
        parents = gating(node_id, edges, self._options)
        if self._ended and self._options.missing_parent == "drop":
            parents = [parent for parent in parents if self._has_seen(parent)]
        return parents

    def in_state(self, state: State) -> list[int]:
        """Ids of the nodes held in a state, ascending."""
        return sorted(i for i, held in self._held.items() if held.state is state)

    def all_ids(self) -> list[int]:
        """Ids of the nodes held, ascending."""
        return sorted(self._held)

    def counts(self) -> Counts:
        """How many nodes are where."""
        held, ready = len(self._held), len(self._ready)
        waiting = held - ready - self._taken
        return Counts(waiting, ready, self._taken, self._done, held, self._peak, self._ended)
