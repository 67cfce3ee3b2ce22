"""Profiles of Ascend: without categories and correlation ids, times as text, tied by arrows."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from accounts import callers, converted, launches

from chakra_et import Conversion
from chakra_et.definitions import CollectiveType, NodeType

BASE_US = 1704161511420000
PYTHON, HARDWARE, MAIN, QUEUE = 4711, 800, 4711, 4790
CANN = PYTHON * 100 + 2
Event = dict[str, Any]
Place = tuple[int, int, float]
"""Process, thread and time of an end."""


def time(ts: float) -> str:
    return f"{BASE_US + ts:.3f}"


def row(name: str, pid: int, tid: int, ts: float, dur: float, **more: Any) -> Event:
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": time(ts), "dur": dur, **more}


def arrow(
    cat: str, number: Any, source: tuple[int, int, float], *targets: tuple[int, int, float]
) -> list[Event]:
    name = {"HostToDevice": "HostToDevice", "async_npu": "torch_to_npu"}[cat]
    ends = [("s", source), *(("f", target) for target in targets)]
    return [
        {"ph": ph, "cat": cat, "name": name, "id": number, "pid": pid, "tid": tid, "ts": time(ts),
         **({"bp": "e"} if ph == "f" else {})}
        for ph, (pid, tid, ts) in ends
    ]  # fmt: skip


def named(**processes: int) -> list[Event]:
    return [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0,
         "args": {"name": name.replace("_", " ")}}
        for name, pid in processes.items()
    ]  # fmt: skip


PROCESSES = named(Python=PYTHON, CANN=CANN, Ascend_Hardware=HARDWARE)


def step(
    place: int,
    *,
    thread: int,
    flow: Callable[[int], Any] = str,
    inside: float = 1.5,
    tasks: int = 1,
    to_device: bool = True,
    to_npu: bool = True,
) -> list[Event]:
    """An operation of 20 us, the launch of CANN in it or on the queue's thread, and its tasks."""
    start = 100 * place
    op = row(f"aten::op{place}", PYTHON, MAIN, start, 20, cat="cpu_op", args={"Sequence number": 1})
    acl = row("AscendCL@aclnnOp", CANN, thread, start + 4, 12, args={"level": "acl"})
    call = row(f"Node@launch{place}", CANN, thread, start + 6, 8, args={"connection_id": place})
    works = [
        row(f"Task{place}.{k}", HARDWARE, 3, start + 30 + 10 * k, 9.5, args={"Stream Id": 3})
        for k in range(tasks)
    ]
    ends = [(HARDWARE, 3, start + 30 + 10 * k) for k in range(tasks)]
    events = [op, acl, call, *works]
    if to_device:
        events += arrow("HostToDevice", flow(place), (CANN, thread, start + 6 + inside), *ends)
    if to_npu:
        events += arrow("async_npu", flow(place), (PYTHON, MAIN, start), *ends)
    return events


def convert(folder: Path, events: list[Event], name: str = "trace_view.json") -> Conversion:
    text = json.dumps(PROCESSES + events).encode()
    path = folder / name
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    return converted(device=path)


def joins(result: Conversion, by: str = "arrow to the work") -> dict[str, tuple[int, int]]:
    return {j.what: (j.matched, j.of) for j in result.report.joins if j.by == by}


@pytest.mark.parametrize("inside", [0, 0.001, 4, 8], ids="{} us into the call".format)
@pytest.mark.parametrize("flow", [str, int, lambda n: f"{n << 33}", lambda n: f"5_{n}_0"])
@pytest.mark.parametrize("name", ["trace_view.json", "trace_view.json.gz"])
def test_an_arrow_begins_anywhere_inside_its_call(
    tmp_path: Path, inside: float, flow: Callable[[int], Any], name: str
) -> None:
    events = [
        event
        for place in range(1, 5)
        for event in step(place, thread=MAIN, flow=flow, inside=inside, to_npu=False)
    ]
    result = convert(tmp_path, events, name)
    assert launches(result) == {f"Task{n}.0": f"Node@launch{n}" for n in range(1, 5)}
    assert callers(result, "Task3.0") == {"AscendCL@aclnnOp"}
    assert joins(result)["device events to launching calls"] == (4, 4)
    assert joins(result, "correlation id")["device events to launching calls"] == (0, 4)
    tally = result.report.device_events
    assert (tally.total, tally.kept) == (4, 4)


def test_calls_are_on_the_threads_of_their_process(tmp_path: Path) -> None:
    result = convert(tmp_path, step(1, thread=MAIN))
    assert callers(result, "AscendCL@aclnnOp") == {"aten::op1"}
    (call,) = result.trace.nodes.where(name="Node@launch1")
    assert call.thread == MAIN
    assert not any("their meaning is unknown" in w for w in result.report.warnings)


def test_one_call_may_launch_several_tasks(tmp_path: Path) -> None:
    result = convert(tmp_path, step(1, thread=MAIN, tasks=3))
    assert launches(result) == {f"Task1.{k}": "Node@launch1" for k in range(3)}


def test_a_launch_on_the_thread_of_the_queue_does_not_wait_for_the_operation(
    tmp_path: Path,
) -> None:
    events = [event for place in (1, 2) for event in step(place, thread=QUEUE)]
    result = convert(tmp_path, events)
    assert launches(result) == {"Task1.0": "Node@launch1", "Task2.0": "Node@launch2"}
    assert callers(result, "Node@launch2") == {"AscendCL@aclnnOp"}
    assert callers(result, "AscendCL@aclnnOp") == set()
    assert joins(result)["device events to launching calls"] == (2, 2)


def test_without_calls_the_operation_at_the_arrow_is_the_caller(tmp_path: Path) -> None:
    events = [e for e in step(1, thread=MAIN, to_device=False) if e.get("pid") != CANN]
    result = convert(tmp_path, events)
    assert callers(result, "Task1.0") == {"aten::op1"}
    assert launches(result) == {}
    (task,) = result.trace.nodes.where(name="Task1.0")
    assert (task.is_cpu_op, task.stream, task.category) == (False, 3, "Ascend Hardware")
    assert task.type == NodeType.COMP
    assert joins(result)["work without a launching call to operations"] == (1, 1)


def test_evidence_of_an_arrow_is_told(tmp_path: Path) -> None:
    result = convert(tmp_path, step(1, thread=MAIN))
    (entry,) = result.report.as_dict()["edges"]["launch"]["evidence"]
    assert entry == {"by": "arrow to the work", "count": 1}


def test_an_arrow_of_which_an_end_is_missing_joins_nothing(tmp_path: Path) -> None:
    events = [e for e in step(1, thread=MAIN, to_npu=False) if e["ph"] != "s"]
    result = convert(tmp_path, events)
    assert launches(result) == {}
    assert any(" no launching call" in warning for warning in result.report.warnings)


def test_arrows_never_lead_back_in_time(tmp_path: Path) -> None:
    events = step(1, thread=MAIN, to_npu=False)
    events[3]["ts"] = events[-1]["ts"] = time(50)
    result = convert(tmp_path, events)
    assert launches(result) == {}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("hcom_allReduce__520_0_1", CollectiveType.ALL_REDUCE),
        ("hcom_allGather__520_1_1", CollectiveType.ALL_GATHER),
        ("hcom_reduceScatter__077_3_1", CollectiveType.REDUCE_SCATTER),
        ("hcom_broadcast__077_3_1", CollectiveType.BROADCAST),
        ("hcom_alltoallv__077_3_1", CollectiveType.ALL_TO_ALL),
        ("hcom_batchSendRecv__077_3_1", None),
    ],
)
def test_tasks_of_hccl_communicate(tmp_path: Path, name: str, kind: CollectiveType | None) -> None:
    events = step(1, thread=MAIN)
    for event in events:
        event["name"] = event["name"].replace("Task1.0", name)
    result = convert(tmp_path, events)
    (task,) = result.trace.nodes.where(name=name)
    assert (task.type, task.comm_type) == (NodeType.COMM_COLL, kind)
    assert not [text for text in result.report.warnings if "compute, as far as" in text]
    assert [text for text in result.report.warnings if "size" in text]
