"""Real traces replay as they were recorded."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from chakra_et.conversion import convert
from chakra_et.model import EdgeKind, Trace, TraceSet
from chakra_et.replay import Replay, replay

RUNS = {"dlrm8": 64, "torchrec4": 48}
"""Communication nodes that match across ranks."""


def profiles(data: Path) -> Iterator[Path]:
    yield from sorted([*data.glob("*/device*.json.gz"), *data.glob("kineto/*.json.gz")])


@cache
def linked(path: Path) -> Trace:
    return convert(None, path).trace


@cache
def replayed(path: Path) -> Replay:
    return replay(linked(path))


def test_spans_and_kernel_starts(data: Path) -> None:
    figures = [next(iter(replayed(path).figures.values())) for path in profiles(data)]
    spans = [abs(f.span_error) for f in figures]
    assert np.median(spans) <= 0.0005
    assert max(spans) <= 0.005
    assert max(f.kernel_start_error["median"] for f in figures) <= 0.005
    assert max(f.kernel_start_error["p95"] for f in figures) <= 0.01
    for f in figures:
        recorded, again = f.recorded.exposed_comm_ns, f.replayed.exposed_comm_ns
        assert abs(recorded - again) <= 0.005 * f.recorded_span_ns


def test_every_device_event_has_a_place_on_its_stream(data: Path) -> None:
    for path in profiles(data):
        trace = linked(path)
        attributes = trace.nodes.attributes
        rows = np.flatnonzero(attributes.present("stream"))
        stream = attributes.dense("stream", 0, np.int64)[rows]
        device = attributes.dense("device", 0, np.int64)[rows]
        streams = len(np.unique(np.stack((device, stream)), axis=1).T)
        ordered = np.zeros(len(trace.nodes), np.bool_)
        ordered[trace.edges.target[trace.edges.kind == EdgeKind.STREAM]] = True
        first = len(rows) - np.count_nonzero(ordered[rows])
        assert first == streams, path


def test_every_edge_leads_forward(data: Path) -> None:
    for path in profiles(data):
        trace = linked(path)
        assert np.all(trace.source_rows() < trace.edges.target)


def test_a_faster_device_shortens_what_waits_for_it(data: Path) -> None:
    trace = linked(data / "torchrec4" / "device.0.json.gz")
    halved = replay(trace, scale=[("is_cpu_op=False", 0.5)]).figures[0]
    assert halved.span_error < -0.05


@pytest.mark.parametrize("run", RUNS)
def test_ranks_meet(data: Path, run: str) -> None:
    paths = sorted((data / run).glob("device.*.json.gz"))
    traces = [convert(None, path).trace for path in paths]
    done = replay(TraceSet(dict(enumerate(traces))))
    assert done.matched == RUNS[run]
    assert max(abs(f.span_error) for f in done.figures.values()) <= 0.005
    assert max(f.kernel_start_error["p95"] for f in done.figures.values()) <= 0.01
    reasons = list(done.unmatched)
    assert reasons == (
        [] if run == "dlrm8" else ["group '0': no counterpart in the trace of ranks [2]"]
    )
