"""Which call launched which device work, and for which operation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from accounts import callers, converted, launches, names, write
from recordings import MAIN, PID, HostRecording, Profile

from chakra_et import ChakraError, convert
from chakra_et.conversion import Conversion
from chakra_et.converters.kineto import read_device
from chakra_et.directory import convert_directory
from chakra_et.model import EdgeKind


def joined(result: Conversion, what: str) -> tuple[int, int]:
    (join,) = [join for join in result.report.joins if join.what.startswith(what)]
    return join.matched, join.of


HOST_OPS = ["aten::a", "aten::b", "aten::c"]


def host_and_profile(args: list[dict[str, Any]]) -> tuple[HostRecording, Profile]:
    host, profile = HostRecording(), Profile()
    for number, (name, given) in enumerate(zip(HOST_OPS, args, strict=True)):
        host.op(10 + number, name, rf_id=100 + number)
        profile.op(name, 10 * number, 5, **given)
    return host, profile


@pytest.mark.parametrize(
    "args",
    [
        [{"External id": 2563 + i, "Ev Idx": i} for i in range(3)],
        [{"Record function id": 0}] * 3,
        [{"External id": i} for i in (115, 116, 119)],
    ],
    ids=["41", "42", "43"],
)
def test_without_ids_the_order_joins(tmp_path: Path, args: list[dict[str, Any]]) -> None:
    host, profile = host_and_profile(args)
    result = converted(host.write(tmp_path / "h.json"), profile.write(tmp_path / "d.json"))
    join = result.report.joins[0]
    assert (join.by, join.matched, join.of) == ("order within each thread", 3, 3)
    assert [n.start_ns is not None for n in result.trace.nodes if n.name in HOST_OPS] == [True] * 3


def test_sequences_with_gaps_are_aligned(tmp_path: Path) -> None:
    host, profile = HostRecording(), Profile()
    for number in range(46):
        profile.op(f"op {number}", number * 10, 5)
    host.op(10, "op 7").op(11, "op 30").op(12, "only in the host trace")
    result = converted(host.write(tmp_path / "h.json"), profile.write(tmp_path / "d.json"))
    assert (result.report.joins[0].matched, result.report.joins[0].of) == (2, 3)
    assert result.report.records["cpu_op"].merged == 2
    assert len(result.trace.nodes) == 46 + 3


def test_the_launch_tells_not_the_external_id(tmp_path: Path) -> None:
    profile = Profile().op("right", 0, 10, **{"External id": 8})
    profile.call("cudaLaunchKernel", 2, 1, 9)
    profile.op("wrong", 20, 10, **{"External id": 3}).op("other", 40, 10, **{"External id": 3})
    profile.kernel("k", 5, 2, 9, **{"External id": 3})
    assert callers(converted(device=profile.write(tmp_path / "d.json")), "k") == {"right"}


@pytest.mark.parametrize(
    "call", ["cudaMemsetAsync", "cuLaunchKernelEx", "hipMemcpy", "hipGraphLaunch", "aNewCall"]
)
@pytest.mark.parametrize("cat", ["kernel", "gpu_memset", "gpu_memcpy"])
def test_any_call_with_the_id_is_the_launch(tmp_path: Path, call: str, cat: str) -> None:
    profile = Profile().op("op", 0, 10).call(call, 2, 1, 5).kernel("work", 5, 1, 5, cat=cat)
    assert launches(converted(device=profile.write(tmp_path / "d.json"))) == {"work": call}


@pytest.mark.parametrize("before_window", [False, True])
def test_a_graph_is_one_launch_with_many_kernels(tmp_path: Path, before_window: bool) -> None:
    profile = Profile().op("op", 0, 10)
    if not before_window:
        profile.call("hipGraphLaunch", 2, 1, 7)
    for number in range(3):
        profile.kernel(f"k{number}", 20 + 10 * number, 5, 7)
    result = converted(device=profile.write(tmp_path / "d.json"))
    work = {node.name: node for node in result.trace.nodes if node.name.startswith("k")}
    streams = [[k for _, k, _ in work[f"k{n}"].edges].count(EdgeKind.STREAM) for n in range(3)]
    assert streams == [0, 1, 1]
    if before_window:
        assert launches(result) == {}
        assert any("3 of them share correlation ids" in w for w in result.report.warnings)
    else:
        assert launches(result) == dict.fromkeys(work, "hipGraphLaunch")
        assert callers(result, "k2") == {"op"}


@pytest.mark.parametrize("correlation", [4711, 0, -1])
def test_work_without_a_launch_is_kept(tmp_path: Path, correlation: int) -> None:
    profile = Profile().op("op", 0, 10).call("launch", 1, 1, 3)
    profile.kernel("known", 2, 5, 3).kernel("orphan", 20, 5, correlation)
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert result.report.device_events.kept == 2
    assert joined(result, "device events to launching") == (1, 2)
    assert any("1 device event has no launching call" in w for w in result.report.warnings)


def test_launches_without_work_are_counted(tmp_path: Path) -> None:
    profile = Profile().op("op", 0, 1000)
    for number in range(50):
        profile.call("cudaLaunchKernel", number * 10, 5, number + 1)
        if number >= 12:
            profile.kernel("k", number * 10 + 6, 3, number + 1)
    report = converted(device=profile.write(tmp_path / "d.json")).report
    assert any("12 calls (24 %)" in warning for warning in report.warnings)


def merged_profile(tmp_path: Path) -> Path:
    events = []
    for rank, pid in enumerate((PID, PID + 1)):
        profile = (
            Profile().op(f"op of {rank}", 100 * rank, 10).call("launch", 100 * rank + 1, 1, 100)
        )
        profile.kernel(f"k of {rank}", 100 * rank + 10, 2, 100)
        for event in profile.events:
            if event["cat"] == "kernel":
                event["pid"] = event["args"]["device"] = rank
            else:
                event["pid"] = pid
        events += profile.events
    events.append({"ph": "s", "cat": "ac2g", "id": 1, "pid": 1, "tid": 1, "ts": 1})
    return write(tmp_path / "merged.json", json.dumps({"traceEvents": events}))


def test_a_merged_file_is_split_by_process(tmp_path: Path) -> None:
    path = merged_profile(tmp_path)
    results = convert_directory(path, tmp_path / "out")
    assert [result.report.rank for result in results] == [0, 1]
    for rank, result in enumerate(results):
        assert names(result) == [f"op of {rank}", "launch", f"k of {rank}"]
        assert callers(result, f"k of {rank}") == {f"op of {rank}"}
    total = sum(t.total for r in results for t in r.report.records.values())
    assert total == 7
    with pytest.raises(ChakraError, match=r"profiles of 2 processes were merged.*-o DIR"):
        convert(device=path)


def test_the_host_trace_chooses_its_process(tmp_path: Path) -> None:
    host = HostRecording(pid=PID + 1).op(10, "op of 1")
    result = converted(host.write(tmp_path / "h.json"), merged_profile(tmp_path))
    assert "k of 1" in names(result)
    assert "k of 0" not in names(result)


def test_of_nested_calls_with_one_id_the_inner_one_launched(tmp_path: Path) -> None:
    profile = Profile().op("op", 0, 20).call("runtime", 1, 10, 33).call("driver", 3, 2, 33)
    profile.kernel("k", 8, 2, 33)
    assert launches(converted(device=profile.write(tmp_path / "d.json"))) == {"k": "driver"}


def test_of_calls_with_an_id_used_again_the_last_before_launched(tmp_path: Path) -> None:
    profile = Profile().op("op", 0, 200)
    for number in range(3):
        profile.call(f"call {number}", 50 * number, 30 - number, 10**9)
        profile.kernel(f"k{number}", 50 * number + 5, 5, 10**9)
    found = launches(converted(device=profile.write(tmp_path / "d.json")))
    assert found == {f"k{number}": f"call {number}" for number in range(3)}


def test_a_call_with_the_id_of_another_operation(tmp_path: Path) -> None:
    profile = Profile().op("op_K", 100, 5, **{"External id": 23})
    profile.op("op", 0, 10, **{"External id": 22})
    profile.call("cudaLaunchKernel", 2, 1, 9).kernel("k", 4, 1, 9, **{"External id": 23})
    profile.events[2]["args"]["External id"] = 23
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert callers(result, "cudaLaunchKernel") == callers(result, "k") == {"op"}
    assert joined(result, "External ids of device events") == (0, 1)


def test_a_record_function_id_on_device_work(tmp_path: Path) -> None:
    profile = Profile().op("op", 0, 10, rf_id=97).op("later", 20, 10, rf_id=98)
    profile.kernel("k", 30, 2, 5, **{"Record function id": 97})
    host = HostRecording().op(3, "op", rf_id=97).op(4, "later", rf_id=98)
    result = converted(host.write(tmp_path / "h.json"), profile.write(tmp_path / "d.json"))
    assert callers(result, "k") == {"op"}
    assert result.report.joins[0].matched == 2


def test_ids_that_lead_nowhere_are_told(tmp_path: Path) -> None:
    profile = Profile().op("op", 0, 10, **{"External id": 1})
    profile.kernel("k", 30, 2, 77, **{"External id": 9999})
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert joined(result, "device events to launching") == (0, 1)
    assert joined(result, "work without a launching call") == (0, 1)


def test_flow_arrows_do_not_matter(tmp_path: Path) -> None:
    profile = Profile().op("op", 0, 10).call("launch", 1, 1, 3).kernel("k", 5, 1, 3)
    arrow = {"ph": "f", "cat": "ac2g", "id": 9, "pid": PID, "tid": MAIN, "ts": 1, "bp": "e"}
    profile.events.append(arrow)
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert launches(result) == {"k": "launch"}
    assert result.report.records["ac2g"].left_out.total() == 1


def test_processes_and_threads_that_are_text(tmp_path: Path) -> None:
    profile = Profile().op("op", 0, 10)
    profile.events += [
        {"ph": "X", "cat": "Trace", "name": "span", "pid": "Spans", "tid": "PyTorch Profiler",
         "ts": 0, "dur": 20},
        {"ph": "i", "name": "Record Window End", "s": "g", "pid": "", "tid": "", "ts": 20},
        {"ph": "M", "name": "process_name", "pid": "Traces", "tid": 0, "args": {"name": "x"}},
    ]  # fmt: skip
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert len(result.trace.nodes) == 1


# Times, streams and vendors.


def test_kernels_before_their_launch_tell_the_clock_offset(tmp_path: Path) -> None:
    profile = Profile().op("op", 100, 50).call("launch", 100, 5, 3).call("launch", 120, 5, 4)
    profile.kernel("k", 60, 5, 3).kernel("l", 90, 5, 4)
    path = profile.write(tmp_path / "d.json")
    (offset,) = converted(device=path).report.clocks
    assert (offset.early, offset.of, offset.offset_ns, offset.applied) == (2, 2, 40_000, False)
    result = converted(device=path, align_clocks=True)
    start = result.trace.nodes.where(name="launch")[0].start_ns
    assert result.trace.nodes.where(name="k")[0].start_ns == start


def test_times_that_cannot_be_true_are_set_apart(tmp_path: Path) -> None:
    profile = Profile().op("op", 100, 50).op("open", 110, 9223372036854)
    profile.call("launch", 120, 1, 3).kernel("good", 130, 5, 3)
    profile.kernel("zero", 0, 0, 106123).kernel("absurd", 140, 7.4e12, 5)
    profile.events.append({**profile.events[0], "ts": "soon"})
    report = converted(device=profile.write(tmp_path / "d.json")).report
    assert report.records["kernel"].kept == 1
    assert report.records["kernel"].left_out.total() == 2
    assert report.records["cpu_op"].kept == 2
    assert any("had not ended" in warning for warning in report.warnings)


def test_times_as_text(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": "12", "tid": "34"}
    events = [{**event, "ts": "1704161511420306.491", "dur": 2.5}, {**event, "ts": 7, "dur": "3"}]
    device = read_device(write(tmp_path / "d.json", json.dumps(events)))
    assert device.start_ns.tolist() == [1704161511420306491, 7000]
    assert device.duration_ns.tolist() == [2500, 3000]
    assert (device.pid.tolist(), device.tid.tolist()) == ([12, 12], [34, 34])


@pytest.mark.parametrize("stream", [2**63 - 1, 2**64 - 2, 2**40, "0x7f00"])
def test_streams_of_64_bits(tmp_path: Path, stream: int | str) -> None:
    profile = Profile().kernel("k", 1, 1, 3).kernel("l", 3, 1, 4)
    for event in profile.events:
        event["args"]["stream"] = stream
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert [kind for _, kind, _ in result.trace.nodes[1].edges] == [EdgeKind.STREAM]


def test_sync_rows_on_shifted_lines_name_their_stream(tmp_path: Path) -> None:
    profile = Profile().kernel("Stream Sync", 1, 1, 3, cat="cuda_sync", stream=7)
    profile.kernel("k", 0, 1, 2, stream=8).events[0]["tid"] = 1_000_007
    assert read_device(profile.write(tmp_path / "d.json")).stream.tolist() == [7, 8]
    profile.events[0]["args"]["stream"] = 4294967295
    assert read_device(profile.write(tmp_path / "d.json")).stream.tolist() == [-1, 8]


def test_a_queue_of_xpu_is_a_stream(tmp_path: Path) -> None:
    profile = Profile().op("aten::mm", 0, 10).call("urEnqueueKernelLaunch", 1, 5, 8)
    profile.call("zeCommandListAppendLaunchKernel", 2, 2, 8)
    for event, cat in zip(profile.events[1:], ("xpu_runtime", "xpu_driver"), strict=True):
        event["cat"] = cat
    for number in range(2):
        profile.kernel(f"gemm{number}", 10 + 5 * number, 2, 8)
        args = {"correlation": 8, "context": "0x55aa", "sycl queue": "0x7f11", "bytes": 4}
        profile.events[-1] |= {"args": args, "tid": 93825}
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert launches(result) == dict.fromkeys(["gemm0", "gemm1"], "zeCommandListAppendLaunchKernel")
    last = result.trace.nodes.where(name="gemm1")[0]
    assert EdgeKind.STREAM in [kind for _, kind, _ in last.edges]


def test_ascend_joins_by_flow(tmp_path: Path) -> None:
    def row(name: str, pid: int, tid: int, ts: str, **more: Any) -> dict[str, Any]:
        return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": 2.0, **more}

    events = [
        row("aten::mm", 7, 1, "1704161511420306.491", cat="cpu_op", args={"Sequence number": 1}),
        row("Node@launch", 702, 1, "1704161511420307.000", args={"connection_id": 55}),
        row("MatMul", 800, 3, "1704161511420310.000", args={"Stream Id": 3}),
        row("nobody's", 900, 3, "1704161511420310.000"),
        {"ph": "M", "name": "process_name", "pid": 702, "tid": 0, "args": {"name": "CANN"}},
        {"ph": "M", "name": "process_name", "pid": 800, "args": {"name": "Ascend Hardware"}},
        {"ph": "s", "cat": "HostToDevice", "id": "9", "pid": 702, "tid": 1,
         "ts": "1704161511420307.000"},
        {"ph": "f", "cat": "HostToDevice", "id": "9", "pid": 800, "tid": 3,
         "ts": "1704161511420310.000"},
    ]  # fmt: skip
    result = converted(device=write(tmp_path / "trace_view.json", json.dumps(events)))
    assert launches(result) == {"MatMul": "Node@launch"}
    assert result.report.records["(phase X)"].left_out.total() == 1
