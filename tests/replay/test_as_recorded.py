"""Whatever threads, pauses, annotations, launches and waits there are: they replay as recorded."""

from __future__ import annotations

from collections.abc import Generator
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recordings import BACKWARD, MAIN, Profile

from chakra_et import Trace, TraceSet, operator_times
from chakra_et.conversion import convert
from chakra_et.model import time_parts
from chakra_et.passes import split_host_time
from chakra_et.replay import replay


class Recorder:
    """Records a run of one host thread or two, which take turns as time goes on.

    Streams are queues. A call that waits lasts until what was launched before it is done.
    """

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.profile = Profile()
        self.calls = 0
        self.busy_until = {7: 0, 20: 0}
        self.events: list[tuple[int, int, int]] = []
        self.records_waits = draw.random() < 0.3
        threads = [self.thread(MAIN, 0, 3800, 3)]
        if draw.random() < 0.7:
            threads.append(self.thread(BACKWARD, draw.choice([0, 100, 1500]), 3900, 2))
        turns = dict.fromkeys(range(len(threads)), 0)
        while turns:
            number = min(turns, key=turns.__getitem__)
            if (now := next(threads[number], None)) is None:
                del turns[number]
            else:
                turns[number] = now
        self.profile.op("end", 8000, 10)

    def thread(self, tid: int, begin: int, end: int, depth: int) -> Generator[int, None, int]:
        """Something, then something else, each perhaps with a pause before it; yields the time."""
        draw, now = self.draw, begin
        while now < end - 4:
            now += draw.choice([0, 1, 3, 30, 150, 400])
            yield now
            took = draw.choice([2, 10, 40, 200])
            if now + took > end:
                break
            kind = draw.random()
            if depth and kind < 0.5:
                category = draw.choice(["cpu_op", "cpu_op", "user_annotation"])
                last = yield from self.thread(tid, now + 1, now + took - 1, depth - 1)
                took = max(took, last + 1 - now)
                self.profile.op(draw.choice("xyz"), now, took, tid=tid, cat=category)
            elif kind < 0.75:
                self.launch(tid, now, took)
            elif kind < 0.9:
                took = self.wait(tid, now, took)
            else:
                self.profile.op(draw.choice("xy"), now, took, tid=tid)
            now += took
        return now

    def launch(self, tid: int, begin: int, took: int) -> None:
        """A kernel begins while its call runs, as it ends, or late."""
        self.call("cudaLaunchKernel", tid, begin, took)
        stream = self.draw.choice([*self.busy_until])
        start = begin + self.draw.choice([took // 2, took, took + 5, took + 300])
        start, length = max(start, self.busy_until[stream]), self.draw.choice([1, 20, 300])
        self.profile.kernel(self.draw.choice("km"), start, length, self.calls, stream=stream)
        self.busy_until[stream] = start + length

    def wait(self, tid: int, begin: int, took: int) -> int:
        """A call about a stream, the device or an event; how long it takes."""
        stream = self.draw.choice([*self.busy_until])
        kind = self.draw.choice(["Stream", "Device", "Event", "Record", "Query"])
        told: dict[str, int] = {"stream": stream}
        if kind == "Record" or (kind == "Event" and not self.events):
            self.call("cudaEventRecord", tid, begin, 2)
            self.events.append((self.calls, stream, self.busy_until[stream]))
            return 2
        if kind == "Query":
            return self.call("cudaEventQuery", tid, begin, 1)
        if kind == "Device":
            done, told = max(self.busy_until.values()), {"stream": -1}
        elif kind == "Stream":
            done = self.busy_until[stream]
        else:
            record, stream, done = self.draw.choice(self.events)
            told = {"wait_on_stream": stream, "wait_on_cuda_event_record_corr_id": record}
        took = done - begin + 2 if done > begin else took
        self.call(f"cuda{kind}Synchronize", tid, begin, took)
        if self.records_waits:
            name = {"Device": "Context"}.get(kind, kind)
            self.profile.wait(f"{name} Sync", begin, self.calls, **told)
        return took

    def call(self, name: str, tid: int, begin: int, took: int) -> int:
        self.calls += 1
        self.profile.call(name, begin, took, self.calls, tid=tid)
        return took


def begins(trace: Trace) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """When each node's own time begins."""
    own = trace.nodes.attributes.dense("own_start_ns", 0, np.int64)
    moved = trace.nodes.attributes.present("own_start_ns")
    return np.where(moved, own, trace.nodes.start_ns)


@given(st.integers(0, 10**9))
def test_any_recording_replays_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    profile = Recorder(Random(seed)).profile
    path = profile.write(tmp_path_factory.mktemp("r") / "device.json")
    trace = convert(None, path).trace
    done = replay(trace)
    assert done.figures[0].span_error == 0
    assert np.array_equal(begins(done.trace), begins(trace))
    assert done.paths[0].length_ns == done.figures[0].span_ns
    parts = time_parts(trace.nodes)
    assert parts.ns.min() >= 0
    assert np.array_equal(parts.by_node(len(trace.nodes)), trace.nodes.duration_ns)
    exclusive = trace.nodes.attributes.dense("exclusive_ns", 0, np.int64)
    device = trace.nodes.attributes.present("stream")
    assert (trace.nodes.self_ns <= exclusive)[~device].all()


@given(st.integers(0, 10**9))
def test_split_host_time_changes_no_time(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path = Recorder(Random(seed)).profile.write(tmp_path_factory.mktemp("r") / "device.json")
    trace = convert(None, path).trace
    split = split_host_time(TraceSet({0: trace})).traces[0]
    assert replay(split).figures[0].span_ns == replay(trace).figures[0].span_ns
    whole, parted = (
        {(i.name, i.on_host): i.self_ns for i in operator_times(t) if i.name}
        for t in (trace, split)
    )
    assert {key: parted[key] for key in whole} == whole
