"""Backward operations of exporters that write neither sequence numbers nor flows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from accounts import converted, edges_into
from recordings import BACKWARD, MAIN, HostRecording, Profile

from chakra_et.columns import NO_ROW
from chakra_et.conversion import convert
from chakra_et.converters.kineto import read_device
from chakra_et.converters.pytorch import read_host
from chakra_et.linker.edges.thread.backward_names import _within_same, pairs_by_name
from chakra_et.linker.edges.thread.forward_backward import find_forward_backward
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.joining.collect import collect
from chakra_et.linker.joining.join import join_host
from chakra_et.replay import replay

NAMES = Evidence.THREAD_NAMES.label
FORWARD = ("aten::mm", "aten::relu", "aten::mm", "aten::mse_loss")


def training(*, third: tuple[str, float] | None = None) -> Profile:
    """A forward pass on one thread; 0.3 ms later the backward pass on another, last first.

    A third thread may have ended something just before that.
    """
    profile = Profile()
    for place, name in enumerate(FORWARD):
        profile.op(name, 100 * place, 90).op("aten::empty", 100 * place + 10, 5)
    profile.op("Optimizer.step", 1400, 100, cat="user_annotation")
    profile.op("aten::old", 10, 20, tid=BACKWARD)
    names = ("MseLossBackward0", "MmBackward0", "ReluBackward0", "MmBackward0")
    for place, name in enumerate(names):
        at = 700 + 100 * place
        engine = f"autograd::engine::evaluate_function: {name}"
        profile.op(engine, at, 80, tid=BACKWARD).op(name, at + 5, 70, tid=BACKWARD)
        profile.op("aten::mm", at + 10, 20, tid=BACKWARD)
    if third is not None:
        profile.op("aten::other", 500, 195, tid=BACKWARD + 1)
    return profile


def pairs(profile: Profile, path: Path) -> list[tuple[str, int, str]]:
    """The name and start of each forward operation, in us, and who follows it."""
    device = read_device(profile.write(path / "device.json"))
    table = collect(None, device, None)
    source, target = pairs_by_name(table, device, None)
    name = [device.names.in_order[code] for code in device.name[table.record].tolist()]
    starts = (table.start_ns - Profile.base_ns) // 1000
    return [(name[s], int(starts[s]), name[t]) for s, t in zip(source, target, strict=True)]


def test_what_came_last_is_followed_first(tmp_path: Path) -> None:
    assert pairs(training(), tmp_path) == [
        ("aten::mse_loss", 300, "MseLossBackward0"),
        ("aten::mm", 200, "MmBackward0"),
        ("aten::relu", 100, "ReluBackward0"),
        ("aten::mm", 0, "MmBackward0"),
    ]


def test_the_backward_thread_waited_for_the_forward_one(tmp_path: Path) -> None:
    """Though another thread had ended something later: that time alone would believe."""
    result = converted(None, training(third=("aten::other", 500)).write(tmp_path / "device.json"))
    engine = "autograd::engine::evaluate_function: MseLossBackward0"
    into = edges_into(result, engine)
    assert [how for _, kind, how in into if kind == "thread"] == [NAMES]
    assert not any(source == "aten::other" for source, *_ in into)
    assert replay(result.trace).figures[0].span_error == 0


def test_sequence_numbers_are_believed_before_names(tmp_path: Path) -> None:
    profile = training()
    for event in profile.events:
        if event["name"] == "aten::relu":
            event["args"]["Sequence number"] = 5
        if event["name"] == "MseLossBackward0":
            event["args"] |= {"Sequence number": 5, "Fwd thread id": 1}
    result = converted(None, profile.write(tmp_path / "device.json"))
    assert Evidence.THREAD_NAMES not in result.report.evidence


def test_names_of_several_threads_tell_nothing(tmp_path: Path) -> None:
    profile = training()
    next(e for e in profile.events if e["name"] == "aten::mm")["tid"] = MAIN + 7
    assert {follower for *_, follower in pairs(profile, tmp_path)} == {
        "MseLossBackward0",
        "ReluBackward0",
    }


def test_shapes_tell_one_of_several_from_the_others(tmp_path: Path) -> None:
    """A product without gradient comes between: its result has another shape."""
    host, profile = HostRecording(), Profile()
    shape = {"wanted": [4, 8], "other": [2, 2]}
    for number, kind in ((11, "wanted"), (12, "other")):
        made = ([[number, number, 0, 32, 4, "cpu"]], [shape[kind]], ["Tensor(float)"])
        host.op(number, "aten::mm", rf_id=number, outputs=made)
        profile.op("aten::mm", 100 * number, 50, rf_id=number)
    given = ([[20, 20, 0, 32, 4, "cpu"]], [shape["wanted"]], ["Tensor(float)"])
    host.op(13, "MmBackward0", rf_id=13, inputs=given)
    profile.op("MmBackward0", 2000, 50, rf_id=13, tid=BACKWARD)
    trace = host.write(tmp_path / "host.json")
    recording, device = read_host(trace), read_device(profile.write(tmp_path / "device.json"))
    table = collect(recording, device, join_host(recording, device).record)
    for known, number in ((recording, 11), (None, 12)):
        source, _ = pairs_by_name(table, device, known)
        assert device.rf_id[table.record[source]].tolist() == [number]


TRUE = {"resnet_rfid": (486, 0.99), "torch213/mlp_1step": (10, 1.0), "dlrm8": (34, 0.9)}


@pytest.mark.parametrize("name", TRUE)
def test_names_and_shapes_find_what_flows_and_numbers_tell(data: Path, name: str) -> None:
    folder = data / name
    rank = "" if (folder / "host.json.gz").is_file() else ".0"
    host = read_host(folder / f"host{rank}.json.gz")
    device = read_device(folder / f"device{rank}.json.gz")
    table = collect(host, device, join_host(host, device).record)
    told = find_forward_backward(table, device)
    source, target = pairs_by_name(table, device, host)
    count, share = TRUE[name]
    assert len(target) == count
    assert np.array_equal(table.lane[source], table.lane[told.forward[target]])
    assert np.mean(told.forward[target] == source) >= share


def test_an_exporter_without_numbers_and_flows(data: Path) -> None:
    """Five steps: each backward pass is handed over, and its thread does not sleep before it."""
    result = convert(None, data / "kineto" / "gpu_annotations.json.gz")
    assert result.report.evidence[Evidence.THREAD_NAMES] == 5
    assert replay(result.trace).figures[0].span_error == 0


def test_calls_within_calls_of_one_name_are_found_in_one_pass() -> None:
    """A chain of 50,000 calls: to walk up from each of them would take minutes."""
    count = 50_000
    inner = {NO_ROW: [0], **{row: [row + 1] for row in range(count - 1)}}
    keys: list[str | None] = ["mm" if row % 2 == 0 else None for row in range(count)]
    assert _within_same(inner, keys) == set(range(2, count, 2))
    assert _within_same({NO_ROW: [0, 1]}, ["mm", "mm"]) == set()
    # Rows around each other, as damaged times may tell, hang below no other.
    assert _within_same({NO_ROW: [], 0: [1], 1: [0]}, ["mm", "mm"]) == set()
