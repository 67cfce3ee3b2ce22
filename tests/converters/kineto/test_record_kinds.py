"""Records that are told in two phases, and records of categories that nobody has told us of."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from accounts import callers, converted
from hypothesis import given
from hypothesis import strategies as st
from recordings import MAIN, PID, Profile, write_json

from chakra_et.converters.kineto import read_device
from chakra_et.model import EdgeKind
from chakra_et.recording import DeviceTrace, Role

Interval = tuple[str, int, int, int]
"""Name, thread, begin and end in us."""


def phase(kind: str, name: str, ts: float, **more: Any) -> dict[str, Any]:
    own = {"cat": "cpu_op", "pid": PID, "tid": MAIN}
    return {"ph": kind, "name": name, "ts": ts, **own, **more}


def read(folder: Path, events: list[dict[str, Any]]) -> DeviceTrace:
    return read_device(write_json(folder / "d.json", {"traceEvents": events}))


@st.composite
def nested(draw: st.DrawFn) -> list[Interval]:
    """Intervals of two threads, each inside another one or beside it."""
    found: list[Interval] = []
    for thread in (1, 2):
        open_now: list[tuple[str, int]] = []
        for time, begins in enumerate(draw(st.lists(st.booleans(), max_size=20))):
            if begins:
                open_now.append((draw(st.sampled_from("abc")), time))
            elif open_now:
                name, begin = open_now.pop()
                found.append((name, thread, begin, time))
    return found


@given(nested(), st.randoms(use_true_random=False))
def test_two_phases_say_what_one_says(intervals: list[Interval], random: Any) -> None:
    whole = [
        phase("X", n, b, tid=t, dur=e - b, args={"External id": 7}) for n, t, b, e in intervals
    ]
    parts = [phase("B", n, b, tid=t, args={"External id": 7}) for n, t, b, _ in intervals]
    parts += [phase("E", random.choice(["", n]), e, tid=t) for n, t, _, e in intervals]
    random.shuffle(parts)
    if not intervals:
        return
    with tempfile.TemporaryDirectory() as folder:
        one, two = (read(Path(folder), events) for events in (whole, parts))
    assert _told(one) == _told(two)
    assert two.warnings == []


def _told(device: DeviceTrace) -> list[tuple[Any, ...]]:
    names = [device.names.in_order[code] for code in device.name.tolist()]
    columns = (device.tid, device.start_ns, device.duration_ns, device.external_id)
    return sorted(zip(names, *(column.tolist() for column in columns), strict=True))


def test_an_interval_of_two_phases_becomes_a_node(tmp_path: Path) -> None:
    events = [phase("B", "outer", 0), phase("B", "aten::mm", 10.25), phase("E", "aten::mm", 30.5)]
    events.append(phase("E", "", 40, cat=""))
    events.append({**phase("B", "cudaLaunchKernel", 41, cat="cuda_runtime"), "args": {}})
    events.append(phase("E", "", 43, cat="cuda_runtime", args={"correlation": 4}))
    work = {"device": 0, "stream": 7, "correlation": 4}
    events.append(phase("B", "gemm", 50, cat="kernel", pid=0, tid=7, args=work))
    events.append(phase("E", "gemm", 60, cat="kernel", pid=0, tid=7))
    result = converted(device=write_json(tmp_path / "d.json", {"traceEvents": events}))
    (mm,) = result.trace.nodes.where(name="aten::mm")
    assert (mm.start_ns, mm.inclusive_ns) == (10_250, 20_250)
    assert callers(result, "aten::mm") == {"outer"}
    (gemm,) = result.trace.nodes.where(name="gemm")
    assert EdgeKind.LAUNCH in [kind for _, kind, _ in gemm.edges]
    assert result.report.device_events.total == 2


Account = tuple[Counter[Any], Counter[Any]]


def account(profile: Path) -> Account:
    """The nodes of a trace and its edges, by names and times."""
    trace = converted(device=profile).trace
    by_id = {n.id: (n.name, n.start_ns, n.duration_ns, n.is_cpu_op) for n in trace.nodes}
    edges = [(by_id[s], by_id[n.id], kind) for n in trace.nodes for s, kind, _ in n.edges]
    return Counter(by_id.values()), Counter(edges)


def real(data: Path, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress((data / "kineto" / name).read_bytes()))
    return document


def in_two_phases(event: dict[str, Any]) -> list[dict[str, Any]]:
    if event["ph"] != "X":
        return [event]
    end = Decimal(str(event["ts"])) + Decimal(str(event.get("dur", 0)))
    begin = {key: value for key, value in event.items() if key != "dur"}
    own = {key: event[key] for key in ("name", "pid", "tid")}
    return [{**begin, "ph": "B"}, {**own, "ph": "E", "ts": str(end), "cat": event.get("cat", "")}]


@pytest.mark.parametrize("name", ["event_sync.json.gz", "train_mi250.json.gz"])
def test_a_real_profile_in_two_phases_is_the_same(data: Path, tmp_path: Path, name: str) -> None:
    document = real(data, name)
    events = [part for event in document["traceEvents"] for part in in_two_phases(event)]
    path = write_json(tmp_path / "d.json", {**document, "traceEvents": events})
    assert account(path) == account(data / "kineto" / name)


@pytest.mark.parametrize("name", ["event_sync.json.gz", "train_mi250.json.gz"])
def test_a_real_profile_of_another_vendor_is_the_same(
    data: Path, tmp_path: Path, name: str
) -> None:
    document = real(data, name)
    others = {"kernel": "npu_task"} | {
        f"{old}_{kind}": f"npu_{kind}"
        for old, kind in [("gpu", "memcpy"), ("gpu", "memset"), ("cuda", "runtime"),
                          ("cuda", "driver"), ("cuda", "sync")]
    }  # fmt: skip
    for event in document["traceEvents"]:
        event["cat"] = others.get(event.get("cat", ""), event.get("cat", ""))
    path = write_json(tmp_path / "d.json", document)
    assert account(path) == account(data / "kineto" / name)


def test_ends_without_a_beginning_are_counted(tmp_path: Path) -> None:
    events = [phase("E", "early", 1), phase("B", "a", 2), phase("E", "a", 5), phase("B", "open", 6)]
    events.append(phase("B", "no time", 6) | {"ts": "soon"})
    result = converted(device=write_json(tmp_path / "d.json", {"traceEvents": events}))
    assert result.report.records["cpu_op"].kept == 1
    assert result.report.records["cpu_op"].left_out.total() == 4
    assert any(warning.startswith("3 records tell") for warning in result.report.warnings)


def two_launches(*, runtime: str, work: str, args: dict[str, Any]) -> Profile:
    profile = Profile().op("aten::mm", 0, 20).call("launch", 5, 5, 1)
    profile.kernel("dev_matmul", 12, 50, 1, stream=3).kernel("k2", 70, 5, 1, stream=3)
    profile.events[1]["cat"] = runtime
    for event in profile.events[2:]:
        event |= {"cat": work, "args": args}
    return profile


PLACED = {"device": 0, "context": 1, "stream": 3, "correlation": 1}


@pytest.mark.parametrize("work", ["privateuse1_kernel", "gpu_kernel", "npu_task", "tpu_op", "x"])
@pytest.mark.parametrize("runtime", ["privateuse1_runtime", "npu_runtime", "rbln_driver"])
@pytest.mark.parametrize(
    "args",
    [PLACED, {"correlation": 1}, {"device_id": 0, "stream_id": "0x3", "correlation": 1}],
    ids=["placed", "launched", "other names"],
)
def test_unknown_work_is_work(
    tmp_path: Path, work: str, runtime: str, args: dict[str, Any]
) -> None:
    profile = two_launches(runtime=runtime, work=work, args=args)
    result = converted(device=profile.write(tmp_path / "d.json"))
    tally = result.report.device_events
    assert (tally.total, tally.kept) == (2, 2)
    (first,) = result.trace.nodes.where(name="dev_matmul")
    assert (first.is_cpu_op, first.duration_ns, first.stream) == (False, 50_000, 3)
    assert callers(result, "dev_matmul") == {"aten::mm"}
    assert any(work in warning for warning in result.report.warnings)


def test_what_tells_nothing_is_left_out_with_its_time(tmp_path: Path) -> None:
    profile = Profile().op("aten::mm", 0, 20).op("mystery", 1, 5.5, cat="riddle")
    profile.kernel("projection", 1, 9, -1, cat="npu_user_annotation")
    profile.events.append({"ph": "X", "name": "bare", "pid": 1, "tid": 1, "ts": 1, "dur": 1})
    report = converted(device=profile.write(tmp_path / "d.json")).report
    assert report.records["riddle"].left_out == {"category not known to this version": 1}
    assert report.device_events.total == 0
    (warning,) = [w for w in report.warnings if "their meaning is unknown" in w]
    assert warning.startswith("3 records (15.500 us in all)")
    assert all(name in warning for name in ("riddle", "npu_user_annotation", "process '1'"))


def test_waits_of_other_vendors_are_evidence(tmp_path: Path) -> None:
    profile = Profile().op("a", 0, 1).kernel("Stream Sync", 1, 1, 3, cat="hip_sync")
    device = read_device(profile.write(tmp_path / "d.json"))
    assert device.role.tolist() == [Role.OP, Role.SYNC]
