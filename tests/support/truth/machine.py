"""The model machine: runs programs, and knows who waited for whom.

Its rules. A thread does one thing after the other, without gaps. A launch submits its work as the
call ends; a blocking copy as the call begins. Streams are queues; work begins `lag_ns` after the
work before it, the events its stream waits for, and its submission. A call that waits goes on when
its targets have ended, and then takes its own time. A collective ends, on all ranks, `transfer_ns`
after the last rank has begun it. A backward pass runs on a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from truth.program import (
    Backward,
    Collective,
    Copy,
    Graph,
    Launch,
    Op,
    Program,
    Record,
    Statement,
    SyncDevice,
    SyncEvent,
    SyncStream,
    WaitEvent,
)

MAIN, BACKWARD = 101, 102
FORWARD_NS, LONG_NS = 120_000, 150_000
"""Lengths around a backward pass: a thread that idles for less than 0.1 ms is not seen to wait."""
UNKNOWN = -1

Key = tuple[str, int]
"""An activity: ("op", its number), ("call", its correlation) or ("work", a number)."""


@dataclass
class Activity:
    """One thing that happened, as a profiler would record it. Times in ns."""

    key: Key
    name: str
    lane: int
    start: int
    end: int = UNKNOWN
    correlation: int = 0
    awaited: int = -1
    stream: int = -1
    record: int = -1
    sync_kind: str = ""
    sequence: int = -1
    forward_thread: int = 0
    collective: bool = False


@dataclass
class Run:
    """What one rank did: all activities, and the true edges by kind."""

    activities: list[Activity] = field(default_factory=list)
    edges: dict[str, set[tuple[Key, Key]]] = field(default_factory=dict)

    def add(self, kind: str, source: Activity | None, target: Activity) -> None:
        if source is not None:
            self.edges.setdefault(kind, set()).add((source.key, target.key))

    @property
    def span(self) -> int:
        return max(a.end for a in self.activities) - min(a.start for a in self.activities)


class _Rank:
    """One rank; `steps` pauses where a collective's end is not known yet."""

    def __init__(
        self,
        number: int,
        statements: list[Statement],
        meetings: list[list[Activity]],
        ranks: int,
        scale: Callable[[str], float],
    ) -> None:
        self.run = Run()
        self.meetings, self.ranks, self.met = meetings, ranks, 0
        self.now = 1000 + 7000 * number
        self.scale = scale
        self.thread = MAIN
        self.before: dict[int, Activity] = {}
        self.queue: dict[int, Activity] = {}
        self.pending: dict[int, list[Activity]] = {}
        self.events: dict[int, tuple[int, int, list[Activity]]] = {}
        self.counts = {"op": 0, "call": 0, "work": 0}
        self.resumes: Activity | None = None
        self.copied: Activity | None = None
        self.statements = statements

    def steps(self) -> Iterator[None]:
        for statement in self.statements:
            if isinstance(statement, Backward):
                yield from self._backward(statement)
            else:
                yield from self._step(statement)

    def _backward(self, statement: Backward) -> Iterator[None]:
        sequence = self.counts["op"]
        forward = self._host("op", "forward", FORWARD_NS)
        forward.sequence = sequence
        self.thread, self.resumes = BACKWARD, forward
        first = self._host("op", "backward", 500)
        first.sequence, first.forward_thread = sequence, 1
        for inner in statement.body:
            yield from self._step(inner)
        self.resumes = self._host("op", "backward end", LONG_NS)
        self.thread = MAIN
        self._host("op", "after backward", 500)

    def _step(self, s: Statement) -> Iterator[None]:
        if isinstance(s, Op):
            self._host("op", "op", s.ns)
        elif isinstance(s, Launch):
            call = self._host("call", "cudaLaunchKernel", s.call_ns)
            yield from self._submit(call, s.stream, self.now, s.kernel_ns, s.lag_ns, s.name)
        elif isinstance(s, Graph):
            call = self._host("call", "cudaGraphLaunch", s.call_ns)
            for ns in s.kernels_ns:
                yield from self._submit(call, s.stream, self.now, ns, s.lag_ns, "graph kernel")
        elif isinstance(s, Collective):
            call = self._host("call", "cudaLaunchKernel", s.call_ns)
            yield from self._submit(call, s.stream, self.now, s.transfer_ns, s.lag_ns, "nccl", True)
        elif isinstance(s, Copy):
            call = self._host("call", "cudaMemcpy", 0)
            copy = yield from self._submit(
                call, s.stream, self.now, s.copy_ns, s.lag_ns, "Memcpy HtoD (Pinned -> Device)"
            )
            self.now = call.end = copy.end + s.after_ns
            self.copied = copy
        elif isinstance(s, Record):
            call = self._host("call", "cudaEventRecord", s.ns)
            self.events[s.event] = (call.correlation, s.stream, self._given(s.stream))
        elif isinstance(s, WaitEvent):
            self._wait_event(s)
        else:
            yield from self._sync(s)

    def _wait_event(self, s: WaitEvent) -> None:
        record, stream, sources = self.events.get(s.event, (-1, -1, []))
        call = self._host("call", "cudaStreamWaitEvent", s.ns)
        if record >= 0:
            call.sync_kind, call.stream = "Stream Wait Event", s.stream
            call.awaited, call.record = stream, record
            if stream != s.stream:
                others = [source for source in sources if source.stream != s.stream]
                self.pending.setdefault(s.stream, []).extend(others)

    def _sync(self, s: Statement) -> Iterator[None]:
        record = stream = -1
        if isinstance(s, SyncEvent):
            record, stream, targets = self.events.get(s.event, (-1, -1, []))
            kind, name = "Event Sync", "cudaEventSynchronize"
        elif isinstance(s, SyncStream):
            kind, name, targets = "Stream Sync", "cudaStreamSynchronize", self._given(s.stream)
        else:
            assert isinstance(s, SyncDevice)
            kind, name = "Context Sync", "cudaDeviceSynchronize"
            targets = list(self.queue.values())
        call = self._host("call", name, s.ns)
        if not (isinstance(s, SyncEvent) and record < 0):
            call.sync_kind = kind
        call.awaited, call.record = stream, record
        call.stream = s.stream if isinstance(s, SyncStream) else -1
        for work in targets:
            yield from self._known(work)
            self.run.add("sync", work, call)
            call.end = max(call.end, work.end + s.ns)
        self.now = call.end

    def _given(self, stream: int) -> list[Activity]:
        """What a stream must have done for all that it was given to be done."""
        last = self.queue.get(stream)
        return [*([last] if last else []), *self.pending.get(stream, [])]

    def _host(self, kind: str, name: str, ns: int) -> Activity:
        self.counts[kind] += 1
        number = self.counts[kind]
        ns = round(ns * self.scale(name))
        activity = Activity((kind, number), name, self.thread, self.now, self.now + ns)
        if kind == "call":
            activity.correlation = number
        self.run.add("program", self.before.get(self.thread), activity)
        self.run.add("thread", self.resumes, activity)
        self.run.add("sync", self.copied, activity)
        self.resumes = self.copied = None
        self.before[self.thread] = activity
        self.run.activities.append(activity)
        self.now = activity.end
        return activity

    def _submit(
        self,
        call: Activity,
        stream: int,
        when: int,
        ns: int,
        lag: int,
        name: str,
        collective: bool = False,
    ) -> Iterator[None]:
        self.counts["work"] += 1
        work = Activity(("work", self.counts["work"]), name, stream, when)
        work.correlation, work.stream, work.collective = call.correlation, stream, collective
        self.run.add("launch", call, work)
        before = self.queue.get(stream)
        self.run.add("stream", before, work)
        events = self.pending.pop(stream, [])
        for event in events:
            self.run.add("event", event, work)
        for source in [*([before] if before else []), *events]:
            yield from self._known(source)
            work.start = max(work.start, source.end)
        work.start += lag
        self.run.activities.append(work)
        self.queue[stream] = work
        ns = round(ns * self.scale(name))
        if not collective:
            work.end = work.start + ns
            return work
        if self.met == len(self.meetings):
            self.meetings.append([])
        meeting = self.meetings[self.met]
        self.met += 1
        meeting.append(work)
        if len(meeting) == self.ranks:
            end = max(member.start for member in meeting) + ns
            for member in meeting:
                member.end = end
        return work

    def _known(self, work: Activity) -> Iterator[None]:
        while work.end == UNKNOWN:
            yield


def play(program: Program, scale: Callable[[str], float] = lambda name: 1.0) -> list[Run]:
    """Run a program; `scale` gives the factor by which things of a name take longer."""
    meetings: list[list[Activity]] = []
    count = len(program.ranks)
    ranks = [_Rank(n, list(s), meetings, count, scale) for n, s in enumerate(program.ranks)]
    running = [rank.steps() for rank in ranks]
    while running:
        running = [steps for steps in running if next(steps, _END) is not _END]
    return [rank.run for rank in ranks]


_END = object()
