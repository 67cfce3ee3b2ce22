"""The rules of `docs/edges.md` for profiles without records of waits, in plain loops.

A reference for the linker: it knows what a profile holds (names, threads, streams, times, which
call launched what) and nothing of what the machine knows. Edges are `{(source, target): inferred}`
by kind, between the keys of activities.
"""

from __future__ import annotations

from truth.machine import Activity, Key, Run

SOON_NS = 20_000
ORDER = ("program", "stream")
WAITS = ("thread", "event")
Edges = dict[str, dict[tuple[Key, Key], bool]]


class Rules:
    """What a profile shows of one run."""

    def __init__(self, run: Run) -> None:
        self.host = [a for a in run.activities if a.key[0] != "work"]
        work = [a for a in run.activities if a.key[0] == "work"]
        self.call = {a.correlation: a for a in self.host if a.key[0] == "call"}
        self.streams: dict[int, list[Activity]] = {}
        for piece in sorted(work, key=lambda a: (a.lane, a.start)):
            self.streams.setdefault(piece.lane, []).append(piece)
        self.launches = sorted(work, key=lambda a: self.launch(a).start)

    def launch(self, work: Activity) -> Activity:
        return self.call[work.correlation]

    def submitted(self, work: Activity) -> int:
        """Work counts as launched when its call has ended, or when it started, if that is earlier.

        A copy that its call waited for counts when the call began.
        """
        call = self.launch(work)
        return max(call.start, min(call.end, work.start))

    def last_launched(self, stream: int, time: int) -> Activity | None:
        given = [w for w in self.streams[stream] if self.submitted(w) <= time]
        return given[-1] if given else None

    def before(self, work: Activity) -> Activity | None:
        queue = self.streams[work.lane]
        place = queue.index(work)
        return queue[place - 1] if place else None

    def late(self, work: Activity) -> bool:
        """Whether work started more than 20 us after its launch and its stream's last work."""
        before = self.before(work)
        ready = max(self.submitted(work), before.end if before else 0)
        return work.start - ready > SOON_NS

    def on_thread(self, thread: int, name: str) -> list[Activity]:
        return [a for a in self.host if a.lane == thread and a.name == name]

    def syncs(self) -> dict[tuple[Key, Key], bool]:
        """Calls that wait for streams, the device or an event, and blocking copies."""
        found: dict[tuple[Key, Key], bool] = {}
        for call in self.host:
            given = [self.last_launched(stream, call.start) for stream in self.streams]
            last = [work for work in given if work is not None and work.end <= call.end]
            if call.name == "cudaDeviceSynchronize":
                found |= {(work.key, call.key): False for work in last}
            elif call.name in ("cudaStreamSynchronize", "cudaEventSynchronize") and last:
                latest = max(last, key=lambda w: (w.end, -w.lane))
                if latest.end > call.start:
                    found[latest.key, call.key] = True
                elif call.name == "cudaStreamSynchronize":
                    mine = [w for w in last if self.launch(w).lane == call.lane] or last
                    used = max(mine, key=lambda w: self.launch(w).start)
                    found[used.key, call.key] = True
        for copy in self.launches:
            if copy.name.startswith("Memcpy"):
                call = self.launch(copy)
                following = [a for a in self.host if a.lane == call.lane and a.start >= call.end
                             and a is not call]  # fmt: skip
                if following and copy.end <= call.end:
                    found[copy.key, following[0].key] = False
        return found

    def events(self) -> dict[tuple[Key, Key], bool]:
        """Work that waits for another stream, as its thread made some stream wait before."""
        found: dict[tuple[Key, Key], bool] = {}
        for target in self.launches:
            call = self.launch(target)
            waits = self.on_thread(call.lane, "cudaStreamWaitEvent")
            earlier = [w for w in self.launches if self.launch(w).lane == call.lane
                       and self.launch(w).start < call.start]  # fmt: skip
            since = max((self.launch(w).start for w in earlier), default=-1)
            there = [self.launch(w).start for w in earlier if w.lane == target.lane]
            meant = [w for w in waits if since <= w.start < call.start]
            possible = [w for w in waits if max(there, default=-1) <= w.start < call.start]
            if meant:
                sources = self.ended(target, meant[-1].start)[: len(meant)]
            elif possible and self.late(target):
                sources = self.soon(target, possible[-1].start)
            else:
                sources = []
            found |= {(source.key, target.key): True for source in sources}
        for thread in {a.lane for a in self.host}:
            launched = [self.launch(w).start for w in self.launches
                        if self.launch(w).lane == thread]  # fmt: skip
            for wait in self.on_thread(thread, "cudaStreamWaitEvent"):
                if wait.start > max(launched, default=-1):
                    for queue in self.streams.values():
                        later = [w for w in queue if self.submitted(w) > wait.start][:1]
                        for target in later:
                            if self.late(target):
                                found |= {(source.key, target.key): True
                                          for source in self.soon(target, wait.start)}  # fmt: skip
        return found

    def ended(self, target: Activity, asked: int) -> list[Activity]:
        """The last work launched on each other stream before a time, if it had ended before.

        Where work starts late, earlier work counts too, if it ended at most 20 us before. What
        ended last comes first.
        """
        found = []
        for stream in self.streams:
            work = self.last_launched(stream, asked) if stream != target.lane else None
            while work is not None and work.end > target.start and self.late(target):
                work = self.before(work)
                if work is not None and target.start - work.end > SOON_NS:
                    work = None
            if work is not None and work.end <= target.start:
                found.append(work)
        return sorted(found, key=lambda w: (-w.end, w.lane))

    def soon(self, target: Activity, asked: int) -> list[Activity]:
        """Of these, the last that had ended, if that was at most 20 us before."""
        return [w for w in self.ended(target, asked) if target.start - w.end <= SOON_NS][:1]


def expected(run: Run) -> Edges:
    """All edges that the rules give, before any is left out."""
    rules = Rules(run)
    certain = {
        kind: dict.fromkeys(run.edges.get(kind, set()), False)
        for kind in ("program", "thread", "launch", "stream")
    }
    return {**certain, "sync": rules.syncs(), "event": rules.events()}


def reaches(edges: list[tuple[Key, Key]], source: Key, target: Key) -> bool:
    """Whether a path of edges leads from one activity to another."""
    after: dict[Key, list[Key]] = {}
    for a, b in edges:
        after.setdefault(a, []).append(b)
    seen, todo = set(), [source]
    while todo:
        here = todo.pop()
        for following in after.get(here, []):
            if following == target:
                return True
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return False


def slimmed(edges: Edges) -> Edges:
    """What is left by the definition of `docs/edges.md`."""
    every = [(kind, pair, guess) for kind, pairs in edges.items() for pair, guess in pairs.items()]
    kept: Edges = {kind: {} for kind in edges}
    for kind, pair, guess in every:
        others = [
            other
            for other_kind, other, other_guess in every
            if other != pair and (guess or (not other_guess and other_kind in (kind, *ORDER)))
        ]
        asked = (guess and kind not in ORDER) or kind in WAITS
        if not (asked and reaches(others, *pair)):
            kept[kind][pair] = guess
    return kept
