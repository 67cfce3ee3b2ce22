"""The engine for traces with calls whose targets depend on the run.

A call that waits for a stream or a device waits for all that was launched there before. What that
is may change with the durations, or when the call is moved. So nodes are picked in the order in
which they start (Lumos, MLSys'25, Algorithm 1), and when such a call is picked, its targets are
looked up in what has been launched by then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from chakra_et.graph import Adjacency
from chakra_et.replay.engine import Plan, Times

Rows = npt.NDArray[np.int64]


@dataclass
class Waiting:
    """Calls whose targets are found while running.

    `scopes[node]` lists the streams that a call waits for. `work` lists device work in the order of
    each stream, `stream` the stream of each, and `launch` the call that launches it, -1 for work
    launched before the trace began.
    """

    scopes: dict[int, list[int]] = field(default_factory=dict)
    work: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    stream: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    launch: Rows = field(default_factory=lambda: np.zeros(0, np.int64))


class _Queues:
    """Streams as queues: what had been launched by a time, asked for at ever later times."""

    def __init__(self, waiting: Waiting) -> None:
        self.position = {int(node): i for i, node in enumerate(waiting.work.tolist())}
        self.last: dict[int, int] = {}
        self.coming: dict[int, list[tuple[int, int]]] = {}
        self.launched_by: dict[int, list[tuple[int, int]]] = {}
        columns = (waiting.work.tolist(), waiting.stream.tolist(), waiting.launch.tolist())
        for node, stream, launch in zip(*columns, strict=True):
            if launch < 0:
                self._settle(stream, node)
            else:
                self.launched_by.setdefault(launch, []).append((stream, node))

    def launch(self, call: int, end: int) -> None:
        """A call that launches work has been picked; it ends at `end`."""
        for stream, node in self.launched_by.get(call, ()):
            self.coming.setdefault(stream, []).append((end, node))

    def target(self, stream: int, now: int) -> int:
        """The last work that a stream had been given by now, -1 if there is none."""
        coming = self.coming.get(stream)
        if coming:
            for end, node in coming:
                if end <= now:
                    self._settle(stream, node)
            self.coming[stream] = [entry for entry in coming if entry[0] > now]
        return self.last.get(stream, -1)

    def _settle(self, stream: int, node: int) -> None:
        before = self.last.get(stream, -1)
        if before < 0 or self.position[node] > self.position[before]:
            self.last[stream] = node


def run_resolving(plan: Plan, waiting: Waiting) -> Times:
    """Run a plan, picking the node that starts first; one heap operation for each node."""
    count = len(plan)
    after = Adjacency.of(count, plan.source, plan.target)
    offsets, items = after.offsets.tolist(), after.items.tolist()
    waits = np.bincount(plan.target, minlength=count).tolist()
    origin = int(plan.release.min()) if count else 0
    start = (plan.release - plan.lag - origin).tolist()
    lag, duration = plan.lag.tolist(), plan.duration.tolist()
    end = [-1] * count
    queues = _Queues(waiting)
    scopes, launches = dict(waiting.scopes), queues.launched_by
    extra: dict[int, list[int]] = {}
    found: list[tuple[int, int]] = []
    # Time and node as one number: comparing numbers is faster than comparing pairs.
    heap = [(start[n] + lag[n]) * count + n for n in range(count) if not waits[n]]
    heapify(heap)
    while heap:
        begin, node = divmod(heappop(heap), count)
        if node in scopes:
            targets = [queues.target(stream, begin) for stream in scopes.pop(node)]
            found += [(target, node) for target in targets if target >= 0]
            for target in targets:
                if target >= 0 and end[target] < 0:
                    waits[node] += 1
                    extra.setdefault(target, []).append(node)
            ready = max([end[target] for target in targets if target >= 0], default=begin)
            start[node] = max(begin, ready) - lag[node]
            if waits[node] or ready > begin:
                if not waits[node]:
                    heappush(heap, ready * count + node)
                continue
        start[node] = begin
        finish = end[node] = begin + duration[node]
        if node in launches:
            queues.launch(node, finish)
        followers = items[offsets[node] : offsets[node + 1]]
        if node in extra:
            followers = followers + extra.pop(node)
        for follower in followers:
            if start[follower] < finish:
                start[follower] = finish
            waits[follower] -= 1
            if not waits[follower]:
                heappush(heap, (start[follower] + lag[follower]) * count + follower)
    ended = np.array(end, np.int64)
    done = np.array(waits, np.int64) == 0
    return Times(np.array(start, np.int64) + origin, ended + origin, done, found)
