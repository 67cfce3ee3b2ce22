"""The engine for traces with calls whose targets depend on the run.

A call that waits for a stream or a device waits for all that was launched there before. What that
is may change with the durations, or when the call is moved. So nodes are picked in the order in
which they start (Lumos, MLSys'25, Algorithm 1), and when such a call is picked, its targets are
looked up in what has been launched by then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heappushpop
from itertools import chain
from typing import Any

import numpy as np

from chakra_et.columns import Rows
from chakra_et.graph import Adjacency
from chakra_et.kernel import kernel
from chakra_et.replay.engine import Plan, Times, kernel_columns

_MANY = 16
"""Of more targets than this, those are noted that hold a call up: the others say no more."""

_WAITS, _LAUNCHES, _AWAITED = 1, 2, 4
"""Marks of nodes: calls whose targets are looked up, calls that launch, and targets so found."""


@dataclass
class Waiting:
    """Calls whose targets are found while running.

    `scopes[node]` lists the streams that a call waits for. `work` lists device work in the order of
    each stream, `stream` the stream of each, `launch` the call that launches it, -1 for work
    launched before the trace began, and `own` how long after its node has begun that call
    ends: then it has given the work to its stream, though the node may last until the work begins.
    """

    scopes: dict[int, list[int]] = field(default_factory=dict)
    work: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    stream: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    launch: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    own: Rows = field(default_factory=lambda: np.zeros(0, np.int64))


class _Queues:
    """Streams as queues: what had been launched by a time, asked for at ever later times."""

    def __init__(self, waiting: Waiting) -> None:
        self.position = {int(node): i for i, node in enumerate(waiting.work.tolist())}
        self.last: dict[int, int] = {}
        self.coming: dict[int, list[tuple[int, int]]] = {}
        self.launched_by: dict[int, list[tuple[list[tuple[int, int]], int]]] = {}
        columns = (waiting.work.tolist(), waiting.stream.tolist(), waiting.launch.tolist())
        for node, stream, launch in zip(*columns, strict=True):
            if launch < 0:
                self._settle(stream, node)
            else:
                queue = self.coming.setdefault(stream, [])
                self.launched_by.setdefault(launch, []).append((queue, node))

    def target(self, stream: int, now: int) -> int:
        """The last work that a stream had been given by now, -1 if there is none."""
        coming = self.coming.get(stream)
        if coming:
            for end, node in coming:
                if end <= now:
                    self._settle(stream, node)
            # The list itself is known to the calls that launch into it.
            coming[:] = [entry for entry in coming if entry[0] > now]
        return self.last.get(stream, -1)

    def _settle(self, stream: int, node: int) -> None:
        before = self.last.get(stream, -1)
        if before < 0 or self.position[node] > self.position[before]:
            self.last[stream] = node


def run_resolving(plan: Plan, waiting: Waiting) -> Times:
    """Run a plan, picking the node that starts first; one heap operation for each node.

    The compiled kernel does it where it is.
    """
    # One more than needed, so that no time of a pick is 0.
    origin = int(plan.release.min()) - 1 if len(plan) else 0
    module = kernel()
    found = None if module is None else _run_compiled(module, plan, waiting, origin)
    return _run_in_python(plan, waiting, origin) if found is None else found


def _run_compiled(module: Any, plan: Plan, waiting: Waiting, origin: int) -> Times | None:
    """None for times that do not fit into 64 bits."""
    scopes = list(waiting.scopes.values())
    offsets = np.zeros(len(scopes) + 1, np.int64)
    np.cumsum([len(streams) for streams in scopes], out=offsets[1:])
    columns = (
        np.fromiter(waiting.scopes, np.int64, len(scopes)),
        offsets,
        np.fromiter(chain.from_iterable(scopes), np.int64, int(offsets[-1])),
        waiting.work,
        waiting.stream,
        waiting.launch,
        waiting.own,
    )
    found = module.replay_resolving(
        kernel_columns(plan, plan.release - plan.lag - origin),
        tuple(np.ascontiguousarray(column, np.int64) for column in columns),
        _MANY,
    )
    if found is None:
        return None
    start, end, done, targets, calls, _, _ = found
    pairs = list(zip(targets.tolist(), calls.tolist(), strict=True))
    return Times(start + origin, end + origin, done.view(np.bool_), pairs)


def _run_in_python(plan: Plan, waiting: Waiting, origin: int) -> Times:
    count = len(plan)
    after = Adjacency.of(count, plan.source, plan.target)
    offsets, items = after.offsets.tolist(), after.items.tolist()
    waits = np.bincount(plan.target, minlength=count).tolist()
    start = (plan.release - plan.lag - origin).tolist()
    lag, duration = plan.lag.tolist(), plan.duration.tolist()
    end = [-1] * count
    calls = _Calls(waiting, start, end, waits, lag)
    special, launched = calls.special, calls.queues.launched_by
    # Time and node as one number: comparing numbers is faster than comparing pairs.
    bits = max(count.bit_length(), 1)
    mask = (1 << bits) - 1
    heap = [start[n] + lag[n] << bits | n for n in range(count) if not waits[n]]
    heapify(heap)
    # What became ready last is not pushed until the next pick: often it is that pick.
    held = 0
    while heap or held:
        if held:
            key, held = heappushpop(heap, held), 0
        else:
            key = heappop(heap)
        node, begin = key & mask, key >> bits
        if special[node] & _WAITS:
            later = calls.pick(node, begin)
            if later != begin:
                held = later << bits | node if later else 0
                continue
        start[node] = begin
        finish = end[node] = begin + duration[node]
        followers = items[offsets[node] : offsets[node + 1]]
        kind = special[node]
        if kind & _LAUNCHES:
            given = min(begin + calls.own[node], finish)
            for queue, work in launched[node]:
                queue.append((given, work))
        if kind & _AWAITED:
            followers += calls.followers.pop(node)
        for follower in followers:
            if start[follower] < finish:
                start[follower] = finish
            waits[follower] -= 1
            if not waits[follower]:
                if held:
                    heappush(heap, held)
                held = start[follower] + lag[follower] << bits | follower
    done = np.array(waits, np.int64) == 0
    ended = np.array(end, np.int64) + origin
    return Times(np.array(start, np.int64) + origin, ended, done, calls.found)


class _Calls:
    """The nodes that are more than a start and a duration: calls that launch, and calls that wait.

    `start`, `end` and `waits` are the engine's own lists.
    """

    def __init__(
        self, waiting: Waiting, start: list[int], end: list[int], waits: list[int], lag: list[int]
    ) -> None:
        self.start, self.end, self.waits, self.lag = start, end, waits, lag
        self.scopes = dict(waiting.scopes)
        self.queues = _Queues(waiting)
        launch = waiting.launch.tolist()
        self.own = dict(zip(launch, waiting.own.tolist(), strict=True))
        self.followers: dict[int, list[int]] = {}
        self.found: list[tuple[int, int]] = []
        self.special = bytearray(len(end))
        for node in self.scopes:
            self.special[node] |= _WAITS
        for node in self.queues.launched_by:
            self.special[node] |= _LAUNCHES

    def pick(self, node: int, now: int) -> int:
        """When a node that is picked may start: now, later, or (0) when its targets have ended."""
        if node not in self.scopes:
            return now
        targets = [self.queues.target(stream, now) for stream in self.scopes.pop(node)]
        targets = [target for target in targets if target >= 0]
        if len(targets) > _MANY:
            targets = self._holding(targets)
        self.found += [(target, node) for target in targets]
        ready = now
        for target in targets:
            if self.end[target] < 0:
                self.waits[node] += 1
                self.followers.setdefault(target, []).append(node)
                self.special[target] |= _AWAITED
            else:
                ready = max(ready, self.end[target])
        # A delay is that of the call, not of its return.
        self.start[node], self.lag[node] = ready, 0
        return 0 if self.waits[node] else ready

    def _holding(self, targets: list[int]) -> list[int]:
        """Of many targets those that hold a call up: all that have not ended, else the last."""
        running = [target for target in targets if self.end[target] < 0]
        return running or [max(targets, key=self.end.__getitem__)]
