"""Chrome traces that PyTorch's profiler did not write: told apart, never converted to nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recordings import Profile, write_json

import chakra_et
from chakra_et.converters.kineto import read_device
from chakra_et.errors import FormatError


def span(name: str, cat: str | None = None, **more: Any) -> dict[str, Any]:
    kind = {} if cat is None else {"cat": cat}
    return {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": 1.5, "dur": 2, **kind, **more}


def process(name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": name}}


AUTOGRAD = [
    span("aten::mm", pid="CPU functions", args={}),
    {**span("aten::mm", "cpu_to_cuda", pid="CPU functions"), "ph": "s", "id": 0},
    span("sgemm", pid="CUDA functions", args={}),
    {**span("sgemm", "cpu_to_cuda", pid="CUDA functions"), "ph": "f", "id": 0},
]
XLA = [process("/device:GPU:0"), span("loop_add_fusion", args={"hlo_op": "add.3"})]
TENSORFLOW = [process("/job:localhost/replica:0/task:0/device:CPU:0 Compute"), span("MatMul", "Op")]
NCCL = [
    {**span("AllReduce", "COLL", id=3, args={"SeqNum": 0}), "ph": "b"},
    {**span("AllReduce", "COLL", id=3), "ph": "e"},
    {**span("Progress", "PROXY", id=4), "ph": "b"},
]
NPKIT = [{**span("NPKIT_EVENT_RECV", "GPU"), "ph": phase} for phase in "BE"]

FOREIGN: dict[str, tuple[list[dict[str, Any]], str]] = {
    "legacy autograd": (AUTOGRAD, "torch.autograd.profiler without Kineto"),
    "legacy autograd, host alone": (AUTOGRAD[:1], "torch.autograd.profiler without Kineto"),
    "xla": (XLA, "XLA or TensorFlow"),
    "xla on a TPU": ([process("/device:TPU:3"), span("fusion.7")], "XLA or TensorFlow"),
    "xla, host alone": ([process("/host:CPU"), span("PjitFunction(f)")], "XLA or TensorFlow"),
    "tensorflow": (TENSORFLOW, "XLA or TensorFlow"),
    "nccl plug-in": (NCCL, "plug-in of NCCL"),
    "npkit": (NPKIT, "NPKit"),
    "horovod": ([{**span("NEGOTIATE_ALLREDUCE"), "ph": "B"}], "Horovod"),
    "browser": ([span("RunTask", "disabled-by-default-devtools.timeline")], "Chromium"),
    "onnx runtime": ([span("model_run", "Session")], "ONNX Runtime"),
    "perf": ([span("swapper", "sched")], "ftrace or perf"),
    "clang": ([span("ExecuteCompiler")], "Clang"),
    "nobody known": ([span("tick", "frobnicator")], "its writer is unknown"),
    "marks only": ([{**span("mark"), "ph": "i"}], "its writer is unknown"),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("bare", [True, False])
@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_a_trace_of_another_maker_is_refused(
    tmp_path: Path, kind: str, bare: bool, name: str
) -> None:
    events, maker = FOREIGN[kind]
    path = write_json(tmp_path / name, events if bare else {"traceEvents": events})
    with pytest.raises(FormatError) as refused:
        chakra_et.convert(device=path, output=tmp_path / "o.et")
    assert refused.value.path == path
    assert "not of PyTorch's profiler" in refused.value.problem
    assert maker in refused.value.problem
    assert refused.value.remedy is not None
    assert not (tmp_path / "o.et").exists()


@pytest.mark.parametrize("kind", FOREIGN)
def test_the_reader_says_the_same_where_the_head_does_not_tell(tmp_path: Path, kind: str) -> None:
    events, maker = FOREIGN[kind]
    with pytest.raises(FormatError) as refused:
        read_device(write_json(tmp_path / "t.json", {"traceEvents": events}))
    assert f"none of its {len(events)} records" in refused.value.problem
    assert maker in refused.value.problem


def test_a_trace_of_another_maker_is_passed_over_in_a_directory(tmp_path: Path) -> None:
    profile = Profile().op("aten::mm", 0, 10)
    profile.write(tmp_path / "device.json")
    write_json(tmp_path / "xla.json", {"traceEvents": XLA})
    (result,) = chakra_et.convert_directory(tmp_path, tmp_path / "out")
    assert result.report.records["cpu_op"].kept == 1


def test_unknown_device_work_beside_marks_of_others_is_not_refused(tmp_path: Path) -> None:
    profile = Profile().op("QUEUE", 0, 10, cat="riddle").kernel("k", 20, 5, 1, cat="npu_task")
    result = chakra_et.convert(device=profile.write(tmp_path / "d.json"))
    assert result.report.device_events.kept == 1


def test_a_profile_of_which_nothing_is_left_is_refused(tmp_path: Path) -> None:
    profile = Profile().op("late", 1, 1)
    profile.events[0]["ts"] = "soon"
    profile.events.append({"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "ts": 0})
    with pytest.raises(FormatError, match="nothing is left of 2 records"):
        chakra_et.convert(device=profile.write(tmp_path / "d.json"))


def test_a_profile_without_records_is_an_empty_trace(tmp_path: Path) -> None:
    result = chakra_et.convert(device=Profile().write(tmp_path / "d.json"))
    assert len(result.trace.nodes) == 0
    assert any("holds no records" in warning for warning in result.report.warnings)


def test_records_that_are_text_are_those_of_another_maker(tmp_path: Path) -> None:
    content = {"traceEvents": [], "systemTraceEvents": "# tracer: nop"}
    with pytest.raises(FormatError, match="ftrace or perf"):
        read_device(write_json(tmp_path / "t.json", content))
