"""Profiles of every era become columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recordings import MAIN, PID, Profile, write_json

from chakra_et.converters.kineto import read_device
from chakra_et.errors import FormatError
from chakra_et.recording import NO_ID, Role


def test_operations_calls_and_work_are_columns(tmp_path: Path) -> None:
    profile = Profile(base_ns=1_000_000_000)
    profile.op("aten::mm", 5.25, 10.5, rf_id=3, **{"Sequence number": 9, "Fwd thread id": 1})
    profile.call("cudaLaunchKernel", 6, 2.5, 77)
    profile.kernel("gemm", 9.125, 4.002, 77, stream=20, **{"grid": [1, 2, 3]})
    device = read_device(profile.write(tmp_path / "device.json"))
    assert device.role.tolist() == [Role.OP, Role.CALL, Role.WORK]
    assert device.start_ns.tolist() == [1000005250, 1000006000, 1000009125]
    assert device.duration_ns.tolist() == [10500, 2500, 4002]
    assert device.rf_id.tolist() == [3, 0, 0]
    assert device.sequence.tolist() == [9, -1, -1]
    assert device.fwd_thread.tolist() == [1, 0, 0]
    assert device.correlation.tolist() == [NO_ID, 77, 77]
    assert device.stream.tolist() == [NO_ID, NO_ID, 20]
    assert (device.pid.tolist(), device.tid.tolist()) == ([PID, PID, 0], [MAIN, MAIN, 20])
    assert "grid" in device.args[2]
    assert device.args[:2] == ["", ""]


def test_other_records_are_counted(tmp_path: Path) -> None:
    profile = Profile().op("a", 1, 1)
    profile.events.append({"ph": "s", "cat": "ac2g", "id": 1, "pid": 1, "tid": 1, "ts": 1})
    profile.events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {}})
    device = read_device(profile.write(tmp_path / "device.json"))
    assert len(device) == 1
    assert device.counts == {("cpu_op", "X"): 1, ("ac2g", "s"): 1, ("", "M"): 1}


def test_metadata_behind_the_events_counts(tmp_path: Path) -> None:
    document = {"traceEvents": [], "distributedInfo": {"rank": 3}}
    device = read_device(write_json(tmp_path / "device.json", document))
    assert device.metadata["distributedInfo"] == {"rank": 3}


def test_the_display_unit_does_not_scale_times(tmp_path: Path) -> None:
    document = {
        "displayTimeUnit": "ns",
        "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 7}],
    }
    device = read_device(write_json(tmp_path / "device.json", document))
    assert device.start_ns.tolist() == [7000]
    assert "displayTimeUnit" in device.warnings[0]


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"ts": "soon"}, "the time of event 'a' is not a number"),
        ({"dur": 1e300}, "the time of event 'a' is not a number"),
        ({"name": 5}, r"traceEvents\[0\].name: Expected `str`"),
    ],
)
def test_a_wrong_value_is_named_by_its_place(
    tmp_path: Path, event: dict[str, Any], message: str
) -> None:
    whole = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    with pytest.raises(FormatError, match=message):
        read_device(
            write_json(tmp_path / "device.json", {"traceEvents": [whole | event]}), strict=True
        )


def test_a_document_without_events_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match='no array "traceEvents"'):
        read_device(write_json(tmp_path / "device.json", {"schemaVersion": 1}))


REAL = {
    "dlrm8/device.0.json.gz": (3290, 2459),
    "simple_add/device.json.gz": (111, 55),
    "resnet_rfid/device.json.gz": (40573, 26902),
    "torch213/mlp_1step/device.0.json.gz": (212, 181),
}


@pytest.mark.parametrize("name", REAL)
def test_real_profiles_are_read_whole(data: Path, name: str) -> None:
    device = read_device(data / name)
    assert (sum(device.counts.values()), len(device)) == REAL[name]


def test_a_time_of_torch_2_13_is_exact_to_the_nanosecond(data: Path) -> None:
    device = read_device(data / "torch213/mlp_1step/device.0.json.gz")
    # ProfilerStep#1: ts 5114338193367.394, dur 2649.937, base 1790857026000000000
    assert device.start_ns[0] == 1790857026000000000 + 5114338193367394
    assert device.duration_ns[0] == 2649937
