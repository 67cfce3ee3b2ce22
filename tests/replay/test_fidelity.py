"""Real traces replay as they were recorded."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traces_index import trace_files

from chakra_et import operator_times
from chakra_et.conversion import convert
from chakra_et.converters.kineto.categories import ROLES
from chakra_et.model import EdgeKind, Trace, TraceSet
from chakra_et.recording import Role
from chakra_et.replay import Replay, replay

NEVER = 2**62
RUNS = {"dlrm8": 64, "torchrec4": 48}
"""Communication nodes that match across ranks."""


def profiles(data: Path) -> Iterator[Path]:
    yield from trace_files(data, "*/device*.json.gz")
    yield from trace_files(data, "kineto/*.json.gz")


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


def by_nesting(path: Path) -> dict[str, list[int]]:
    """Self and total ns by name of host records: from the file, by nesting on each thread alone.

    A moment is of the record that is open and began last. Of records that begin at the same time,
    calls are inside operations; else the file's order tells if it is that of the starts, or the
    longer one is around the shorter.
    """
    document = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    threads: dict[tuple[Any, Any], list[tuple[int, Role, int, str]]] = {}
    for e in document["traceEvents"] if isinstance(document, dict) else document:
        role = ROLES.get(e.get("cat"))
        if e.get("ph") == "X" and role in (Role.OP, Role.CALL):
            start, took = (round(Decimal(e[key]) * 1000) for key in ("ts", "dur"))
            threads.setdefault((e["pid"], e["tid"]), []).append((start, role, -took, e["name"]))
    operations = [[r for r in records if r[1] is Role.OP] for records in threads.values()]
    in_order = all(sorted(ops, key=itemgetter(0)) == ops for ops in operations)
    by_start = itemgetter(0, 1) if in_order else itemgetter(0, 1, 2)
    found: dict[str, list[int]] = {}
    for records in threads.values():
        open_now: list[tuple[int, str]] = []
        now = 0
        for start, _, minus, name in [*sorted(records, key=by_start), (NEVER, Role.OP, 0, "")]:
            while open_now and now < start:
                end, innermost = open_now[-1]
                found[innermost][0] += max(min(end, start) - now, 0)
                now = max(now, min(end, start))
                if end <= start:
                    open_now.pop()
            now = start
            found.setdefault(name, [0, 0])[1] -= minus
            open_now.append((start - minus, name))
    del found[""]
    return found


def test_times_by_operator_are_those_of_the_profiles_own_nesting(data: Path) -> None:
    """What a thread waited is in the profile's self time; the rest is somebody's in the trace."""
    for path in profiles(data):
        trace, expected = linked(path), by_nesting(path)
        found: dict[str, list[int]] = {name: [0, 0] for name in expected}
        for item in operator_times(trace):
            if item.name is not None and (item.on_host or item.name.startswith("gloo:")):
                found[item.name][0] += item.self_ns + item.wait_ns
        for column in trace.nodes.attributes.named("inclusive_ns"):
            for row, took in zip(column.rows.tolist(), column.values.tolist(), strict=True):
                found[trace.nodes[row].name][1] += took
        assert found == expected, path


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
