"""Whatever threads, pauses, annotations, launches and waits there are: they replay as recorded."""

from __future__ import annotations

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
    """Records a run in which streams are queues; a call for the device waits for all of them."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.profile = Profile()
        self.calls = 0
        self.busy_until = {7: 0, 8: 0, 20: 0, 21: 0}
        self.two = draw.random() < 0.5
        self.thread(MAIN, 0, 3000, 3)
        if self.two:
            self.thread(BACKWARD, draw.choice([0, 100, 1500]), 3200, 2)

    def thread(self, tid: int, begin: int, end: int, depth: int) -> None:
        """Something, then something else, each perhaps with a pause before it."""
        draw = self.draw
        while begin < end - 4:
            begin += draw.choice([0, 1, 3, 30, 150])
            took = draw.choice([2, 10, 40, 200])
            if begin + took > end:
                break
            kind = draw.random()
            if depth and kind < 0.5:
                category = draw.choice(["cpu_op", "cpu_op", "user_annotation"])
                self.profile.op(draw.choice("xyz"), begin, took, tid=tid, cat=category)
                self.thread(tid, begin + 1, begin + took - 1, depth - 1)
            elif kind < 0.8:
                self.launch(tid, begin, took)
            elif kind < 0.9 and not self.two:
                took = self.wait(begin, took, end)
            else:
                self.profile.op(draw.choice("xy"), begin, took, tid=tid)
            begin += took

    def launch(self, tid: int, begin: int, took: int) -> None:
        """A kernel begins while its call runs, as it ends, or late; each thread has two streams."""
        self.calls += 1
        self.profile.call("cudaLaunchKernel", begin, took, self.calls, tid=tid)
        stream = self.draw.choice([7, 20]) + (tid - MAIN)
        start = begin + self.draw.choice([took // 2, took, took + 5, took + 300])
        start, length = max(start, self.busy_until[stream]), self.draw.choice([1, 20, 300])
        self.profile.kernel(self.draw.choice("km"), start, length, self.calls, stream=stream)
        self.busy_until[stream] = start + length

    def wait(self, begin: int, took: int, end: int) -> int:
        """The call lasts until all streams are done, if there is time for that."""
        done = max(self.busy_until.values())
        if done >= end - 3:
            return 0
        took = done - begin + 2 if done > begin else took
        self.calls += 1
        self.profile.call("cudaDeviceSynchronize", begin, took, self.calls)
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
    path = profile.op("end", 3600, 10).write(tmp_path_factory.mktemp("r") / "device.json")
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
    path = Recorder(Random(seed)).profile.op("end", 3600, 10)
    trace = convert(None, path.write(tmp_path_factory.mktemp("r") / "device.json")).trace
    split = split_host_time(TraceSet({0: trace})).traces[0]
    assert replay(split).figures[0].span_ns == replay(trace).figures[0].span_ns
    whole, parted = (
        {(i.name, i.on_host): i.self_ns for i in operator_times(t) if i.name}
        for t in (trace, split)
    )
    assert {key: parted[key] for key in whole} == whole
