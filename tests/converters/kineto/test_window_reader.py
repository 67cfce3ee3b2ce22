"""A window of a long profile is read without holding the rest, and gives what cutting all gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import EXAMPLES
from recordings import HostRecording, Profile

import chakra_et
from chakra_et.converters.kineto.reader import read_device
from chakra_et.converters.kineto.window_reader import read_window
from chakra_et.inputs import open_input
from chakra_et.linker.window import window
from chakra_et.recording import IdSet, Role

STEPS = 50
PER_STEP = 6


def long_run(folder: Path, steps: int = STEPS) -> tuple[Path, Path]:
    """Steps of operations and calls, and a device that is more than two steps behind."""
    host, profile = HostRecording(), Profile()
    for step in range(steps):
        at, number = 1000.0 * step, 10 * step + 1
        host.op(10 * number, f"ProfilerStep#{step}", rf_id=number)
        profile.op(f"ProfilerStep#{step}", at, 900, rf_id=number, cat="user_annotation")
        for k in range(1, 3):
            host.op(10 * number + k, f"op{k}", parent=10 * number, rf_id=number + k)
            profile.op(f"op{k}", at + 100 * k, 50, rf_id=number + k)
            profile.call("cudaLaunchKernel", at + 100 * k + 10, 5, number + k)
            profile.kernel(f"kernel{k}", at + 2500 + 450 * k, 440, number + k, stream=7 + k % 2)
        profile.flow("s", number, at + 110)
        profile.flow("f", number, at + 210)
    return host.write(folder / "host.json"), profile.write(folder / "device.json")


def converted(
    monkeypatch: pytest.MonkeyPatch, apart: bool, out: Path, *files: Any, **options: Any
) -> tuple[bytes, dict[str, Any]]:
    monkeypatch.setattr("chakra_et.inputs.LONG_BYTES", 0 if apart else 1 << 40)
    report = chakra_et.convert(*files, out, **options).report.as_dict()
    # Of arrows the report counts those that were held.
    report["joins"] = [join for join in report["joins"] if not join["what"].startswith("flows")]
    return out.read_bytes(), report


@pytest.mark.parametrize("with_host", [True, False])
@pytest.mark.parametrize("options", [{"steps": "20"}, {"steps": "3..5"}, {"annotation": "op2"}])
def test_a_window_that_was_read_alone_equals_one_that_was_cut_from_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_host: bool, options: dict[str, str]
) -> None:
    host, device = long_run(tmp_path)
    files = (host if with_host else None, device)
    whole, apart = (
        converted(monkeypatch, way, tmp_path / "out.et", *files, **options) for way in (False, True)
    )
    assert apart == whole


REAL = {
    "resnet_rfid/device.json.gz": [{"steps": "5"}, {"annotation": "## backward ##"}],
    "torchrec4/device.0.json.gz": [{"steps": "6"}],
    "torch213/transformer_5steps/device.0.json.gz": [{"annotation": "aten::addmm"}],
}


@pytest.mark.parametrize("name", REAL)
def test_windows_of_real_profiles_are_equal_too(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for options in REAL[name]:
        whole, apart = (
            converted(monkeypatch, way, tmp_path / "out.et", None, data / name, **options)
            for way in (False, True)
        )
        assert apart == whole


def test_no_more_is_held_than_the_window_and_what_holds_it_up(tmp_path: Path) -> None:
    """However long the recording is: 50 steps or 200."""
    held = []
    for steps in (STEPS, 4 * STEPS):
        folder = tmp_path / str(steps)
        folder.mkdir()
        _, path = long_run(folder, steps)
        wanted = window("20", None)
        assert wanted is not None
        device = read_window(path, False, wanted.chosen, with_host=False)
        whole = read_device(path)
        assert len(whole) == 7 * steps
        assert device.counts == whole.counts
        held.append(len(device))
    # A step has 7 records; its kernels, and the four of the two steps before it, are still to run.
    assert held[0] == held[1] <= 7 + 8
    assert len(device.outside_rf_ids) == 0


def test_with_a_host_trace_the_ids_of_other_operations_are_known(tmp_path: Path) -> None:
    _, path = long_run(tmp_path)
    wanted = window("20", None)
    assert wanted is not None
    device = read_window(path, False, wanted.chosen, with_host=True)
    operations = np.count_nonzero(device.role == Role.OP)
    assert len(device.outside_rf_ids) == 3 * STEPS - operations
    assert not device.outside_rf_ids.has(device.rf_id).any()


@pytest.mark.parametrize(
    "odd",
    [
        {"ph": "B", "cat": "cpu_op", "name": "b", "pid": 4000, "tid": 1, "ts": 1},
        {"ph": "X", "cat": "new_kind", "name": "b", "pid": 0, "tid": 1, "ts": 1, "dur": 1},
        {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 4001, "tid": 1, "ts": 1, "dur": 1},
        {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 4000, "tid": 1, "ts": 1, "dur": -1},
        {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 4000, "tid": 1, "ts": "x", "dur": 1},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1,
         "args": {"correlation": "seven"}},
    ],
    ids=["interval", "category", "process", "duration", "time", "id"],
)  # fmt: skip
def test_where_records_depend_on_all_others_all_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: dict[str, Any]
) -> None:
    profile = Profile()
    for step in range(3):
        profile.op(f"ProfilerStep#{step}", 100.0 * step, 90, cat="user_annotation")
    profile.events.append(odd)
    path = profile.write(tmp_path / "device.json")
    wanted = window("1", None)
    assert wanted is not None
    assert len(read_window(path, False, wanted.chosen, with_host=False)) == len(read_device(path))


def test_a_window_that_is_not_there_is_an_error_that_names_what_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, path = long_run(tmp_path, 3)
    monkeypatch.setattr("chakra_et.inputs.LONG_BYTES", 0)
    with pytest.raises(chakra_et.ChakraError, match="ProfilerStep#0, ProfilerStep#1"):
        chakra_et.convert(None, path, steps="9")
    assert len(read_window(path, False, lambda _: False, with_host=False)) == 0


def test_only_long_profiles_are_read_four_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small ones are read whole, once, and cut."""
    given = open_input(EXAMPLES / "simple_add" / "device.json.gz")
    monkeypatch.setattr(
        "chakra_et.converters.kineto.window_reader.read_window",
        lambda *_, **__: pytest.fail("it was read apart"),
    )
    assert len(given.read_part(lambda _: True, False, False)) > 0


@given(
    st.lists(st.integers(1, 1 << 40)),
    st.lists(st.integers(-(1 << 40), 1 << 40)),
)
@settings(max_examples=50)
def test_a_set_of_ids_holds_what_was_put_there(put: list[int], asked: list[int]) -> None:
    ids = IdSet()
    ids.add(np.array(put[: len(put) // 2], np.int64))
    ids.add(np.array(put[len(put) // 2 :], np.int64))
    for numbers in (put, asked, [number + 1 for number in put]):
        found = ids.has(np.array(numbers, np.int64)).tolist()
        assert found == [number in set(put) for number in numbers]
