"""Timelines, read back: by the protobuf classes that Perfetto's own package ships, and as JSON."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import chakra
from hypothesis import given
from hypothesis import strategies as st
from places import EXAMPLES
from traces import coll, node, run, trace

from chakra_et import EdgeKind, TraceSet, write
from chakra_et.export.chrome import chrome
from chakra_et.export.perfetto import perfetto
from chakra_et.export.scene import Scene, nested
from chakra_et.export.timeline import timeline
from chakra_et.loading import load

Slice = tuple[str, str, str, int, int]
"""Process, track, name, start and duration of a slice."""


class Read:
    """A Perfetto trace as a trace processor reads it: a stack for each track, flows by id."""

    def __init__(self, data: bytes) -> None:
        protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
        self.tracks: dict[int, tuple[str, str]] = {}
        self.slices: list[Slice] = []
        self.nodes: list[int] = []
        self.flows: dict[int, list[str]] = defaultdict(list)
        self.flow_times: dict[int, list[int]] = defaultdict(list)
        self.waits: Counter[str] = Counter()
        names: dict[str, dict[int, str]] = {}
        processes: dict[int, str] = {}
        stacks: dict[int, list[tuple[str, int, int]]] = defaultdict(list)
        now = 0
        for packet in protos.Trace.FromString(data).packet:
            assert packet.trusted_packet_sequence_id == 1
            if packet.HasField("clock_snapshot"):
                clocks = {clock.clock_id: clock for clock in packet.clock_snapshot.clocks}
                assert packet.trace_packet_defaults.timestamp_clock_id == 64
                assert clocks[64].is_incremental
                now = clocks[64].timestamp
                assert now == clocks[6].timestamp
            if packet.HasField("interned_data"):
                for field in ("event_names", "event_categories", "debug_annotation_names"):
                    entries = getattr(packet.interned_data, field)
                    names[field] = {entry.iid: entry.name for entry in entries}
            if packet.HasField("track_descriptor"):
                told = packet.track_descriptor
                if told.HasField("process"):
                    assert told.process.pid > 0
                    processes[told.uuid] = told.process.process_name
                else:
                    self.tracks[told.uuid] = processes[told.parent_uuid], told.name
            if packet.HasField("track_event"):
                now += packet.timestamp
                self._event(packet.track_event, now, stacks, names)
        assert not any(stacks.values()), "every slice ends"

    def _event(self, event: Any, now: int, stacks: Any, names: Any) -> None:
        stack = stacks[event.track_uuid]
        if event.type == event.TYPE_SLICE_BEGIN:
            stack.append((names["event_names"][event.name_iid], now, len(self.slices)))
            self.slices.append((*self.tracks[event.track_uuid], "", 0, 0))
            argument = event.debug_annotations[0]
            assert names["debug_annotation_names"][argument.name_iid] == "node"
            self.nodes.append(argument.uint_value)
            for more in event.debug_annotations[1:]:
                self.waits[names["debug_annotation_names"][more.name_iid]] += 1
        name, start, place = stack[-1]
        if event.type == event.TYPE_SLICE_END:
            stack.pop()
            self.slices[place] = (*self.tracks[event.track_uuid], name, start, now - start)
        for flow in (*event.flow_ids, *event.terminating_flow_ids):
            self.flows[flow].append(name)
            self.flow_times[flow].append(now)


@pytest.fixture(scope="module")
def ddp() -> TraceSet:
    """Two ranks of data-parallel training on the host."""
    return load(EXAMPLES / "ddp_2rank")


def launching() -> TraceSet:
    """Two ranks: an operator, its launch, its kernel, a call that waits for it, a collective."""
    told = {"is_cpu_op": True, "thread": 1}
    return run(
        *(
            trace(
                node(1, name="mm", start=10, took=5, inclusive_ns=20, **told),
                node(2, name="launch", start=15, took=15, inclusive_ns=8, ctrl=(1,), **told),
                node(
                    3,
                    name="gemm",
                    start=40,
                    took=100,
                    deps=(2,),
                    kind=EdgeKind.LAUNCH,
                    is_cpu_op=False,
                    stream=7,
                ),
                node(
                    4,
                    name="synchronize",
                    start=35,
                    took=5,
                    inclusive_ns=110,
                    own_start_ns=140,
                    deps=(3,),
                    kind=EdgeKind.SYNC,
                    **told,
                ),
                coll(5, start=150 + rank, took=50 - rank, pg_name="g", stream=9),
                rank=rank,
                groups={"g": (0, 1)},
            )
            for rank in (0, 1)
        )
    )


def read(scene: Scene) -> Read:
    return Read(b"".join(perfetto(scene)))


def test_slices_have_the_times_and_places_of_the_nodes() -> None:
    found = read(timeline(launching()))
    assert sorted(s for s in found.slices if s[0] == "rank 1") == [
        ("rank 1", "stream 7", "gemm", 40, 100),
        ("rank 1", "stream 9", "node 5", 151, 49),
        ("rank 1", "thread 1", "launch", 15, 8),
        ("rank 1", "thread 1", "mm", 10, 20),
        ("rank 1", "thread 1", "synchronize", 35, 110),
    ]


def test_flows_are_edges_between_tracks_by_kind_and_lead_forward_in_time() -> None:
    found = read(timeline(launching()))
    assert found.waits == {"waits for (launch)": 2, "waits for (sync)": 2}
    edges = sorted(names for flow, names in found.flows.items() if flow & 15 != 15)
    assert edges == [["gemm", "synchronize"]] * 2 + [["launch", "gemm"]] * 2
    assert {flow & 15 for flow in found.flows} == {EdgeKind.LAUNCH, EdgeKind.SYNC, 15}
    assert all(times == sorted(times) for times in found.flow_times.values())


def test_members_of_a_collective_are_tied_across_ranks() -> None:
    found = read(timeline(launching()))
    tied = [names for flow, names in found.flows.items() if flow & 15 == 15]
    assert tied == [["node 5", "node 5"]]


def test_kinds_of_edges_can_be_chosen() -> None:
    scene = timeline(launching(), kinds=[EdgeKind.CALL])
    assert [len(scene.flows), set(scene.flows.kind.tolist())] == [2, {int(EdgeKind.CALL)}]
    assert read(scene).waits == {"waits for (call)": 2}


def test_the_critical_path_is_a_track_on_which_nothing_overlaps(ddp: TraceSet) -> None:
    found = read(timeline(ddp))
    path = [s for s in found.slices if s[0] == "critical path"]
    assert len({track for _, track, *_ in path}) == 1
    assert len(path) > 100
    times = sorted((start, start + took) for *_, start, took in path)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(times))


def test_the_replay_stands_beside_the_recording(ddp: TraceSet) -> None:
    found = read(timeline(ddp, replayed=True))
    counts = Counter(process for process, *_ in found.slices)
    assert set(counts) == {
        "critical path", "rank 0", "rank 1", "rank 0 replayed", "rank 1 replayed",
    }  # fmt: skip
    drawn = sum(1 for one in ddp[0].nodes if one.start_ns is not None and one.type != 1)
    assert counts["rank 0 replayed"] >= counts["rank 0"] > 0
    assert counts["rank 0"] <= drawn


def test_without_recorded_times_the_replay_is_shown() -> None:
    one = trace(node(1, took=5), node(2, took=7, deps=(1,)))
    found = read(timeline({0: one}))
    shown = [s for s in found.slices if s[0] == "rank 0 replayed"]
    assert [(name, start, took) for *_, name, start, took in shown] == [
        ("node 1", 0, 5),
        ("node 2", 5, 7),
    ]
    assert {s[0] for s in found.slices} == {"rank 0 replayed", "critical path"}


def test_clocks_that_differ_are_aligned_by_what_ranks_do_together() -> None:
    def rank(number: int, ahead: int) -> Any:
        work = coll(1, start=100 + ahead, took=50, pg_name="g", stream=1)
        return trace(work, rank=number, groups={"g": (0, 1)})

    starts = [start for *_, start, _ in read(timeline(run(rank(0, 0), rank(1, 9999)))).slices]
    assert set(starts) == {100}


def test_a_circle_of_edges_costs_the_critical_path_alone() -> None:
    told = {"is_cpu_op": True, "thread": 1}
    one = trace(
        node(1, start=0, took=5, deps=(2,), **told), node(2, start=5, took=5, deps=(1,), **told)
    )
    scene = timeline({0: one})
    assert len(scene.slices) == 2
    assert "no critical path: the edges of rank 0 form a cycle" in scene.notes[0]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(1, 2)), max_size=25))
def test_any_intervals_are_read_back_as_they_are(work: list[tuple[int, int, int]]) -> None:
    nodes = [
        node(i, start=start, took=took, is_cpu_op=True, thread=thread)
        for i, (start, took, thread) in enumerate(work, 1)
    ]
    found = read(timeline({0: trace(*nodes)}))
    shown = [s for s in found.slices if s[0] == "rank 0"]
    assert sorted((name, start, took) for *_, name, start, took in shown) == sorted(
        (f"node {i}", start, took) for i, (start, took, _) in enumerate(work, 1)
    )


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), max_size=20))
def test_on_a_line_intervals_nest_or_follow_each_other(work: list[tuple[int, int]]) -> None:
    ordered = sorted(work, key=lambda item: (item[0], -item[1]))
    start = np.array([begin for begin, _ in ordered], np.int64)
    end = start + np.array([took for _, took in ordered], np.int64)
    line, _ = nested(start, end)
    for i in range(len(start)):
        for j in range(i):
            if line[i] == line[j]:
                assert end[j] <= start[i] or end[i] <= end[j]


def test_names_that_are_no_text_are_escaped() -> None:
    one = trace(node(1, name="\x1b<b>\udcff", start=0, took=1, is_cpu_op=True))
    assert read(timeline({0: one})).slices[-1][2] == "\x1b<b>\\xff"
    assert json.loads(b"".join(chrome(timeline({0: one}))))["traceEvents"]


def test_chrome_has_the_same_slices_and_flows_with_their_kinds(ddp: TraceSet) -> None:
    scene = timeline(ddp)
    events = json.loads(b"".join(chrome(scene)))["traceEvents"]
    phases = Counter(event["ph"] for event in events)
    assert phases["X"] == len(scene.slices)
    assert phases["s"] == phases["f"] == len(scene.flows) + len(scene.ties)
    kinds = Counter(event["name"] for event in events if event["ph"] == "s")
    assert kinds["collective"] == len(scene.ties)
    expected = Counter(scene.flows.kinds[kind] for kind in scene.flows.kind.tolist())
    assert kinds == expected + Counter(collective=len(scene.ties))
    processes = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert processes == ["critical path", "rank 0", "rank 1"]


# --- chakra export -------------------------------------------------------------------------------


def test_the_command_says_what_is_in_the_file(tmp_path: Path) -> None:
    write(launching()[0], tmp_path / "t.0.et")
    out = tmp_path / "t.perfetto.gz"
    done = chakra("export", tmp_path / "t.0.et", "--to", "perfetto", "-o", out)
    assert done.code == 0
    assert "slices, on 4 tracks, 2 flows, 0 collectives across ranks" in done.errors
    assert len(Read(gzip.decompress(out.read_bytes())).tracks) == 4


def test_all_ranks_of_a_run_take_less_room_than_their_profiles(data: Path) -> None:
    profiles = sorted(data.glob("dlrm8/device.*"))
    traces = load(data / "dlrm8")
    raw = b"".join(perfetto(timeline(traces)))
    assert len(raw) < sum(len(gzip.decompress(one.read_bytes())) for one in profiles) / 5
    assert len(gzip.compress(raw)) < sum(one.stat().st_size for one in profiles) / 2
    found = Read(raw)
    assert {process for process, *_ in found.slices} == {
        "critical path", *(f"rank {rank}" for rank in range(8)),
    }  # fmt: skip
    kernels = sum(
        int(np.count_nonzero(~one.nodes.attributes.dense("is_cpu_op", False, np.bool_)))
        for one in traces.values()
    )
    on_streams = [s for s in found.slices if s[1].startswith("stream")]
    assert len(on_streams) == kernels
    took = sum(
        int(one.nodes.duration_ns[~one.nodes.attributes.dense("is_cpu_op", False, np.bool_)].sum())
        for one in traces.values()
    )
    assert sum(s[4] for s in on_streams) == took
    launches = sum(one.edges.counts()[EdgeKind.LAUNCH][0] for one in traces.values())
    assert found.waits["waits for (launch)"] == launches
    assert sum(len(names) == 8 for flow, names in found.flows.items() if flow & 15 == 15) == 8
