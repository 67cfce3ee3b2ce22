"""Profiles of several processes in one file: each kernel goes to the process that launched it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accounts import assert_adds_up
from recordings import write_json

from chakra_et import Conversion, convert_directory
from chakra_et.converters.kineto import read_device, split_processes
from chakra_et.definitions import NodeType
from chakra_et.recording import Role

STEPS = 4
Event = dict[str, Any]


def facts(rank: int, world: int) -> dict[str, Any]:
    """What the profiler says of a collective."""
    return {
        "Collective name": "allreduce",
        "In msg nelems": 1024,
        "dtype": "BFloat16",
        "Group size": world,
        "Process Group Name": "tp:0",
        "Process Group Ranks": str(list(range(world))),
        "Rank": rank,
    }


def profile(
    rank: int,
    *,
    pid: Any,
    device: Any,
    collective: dict[str, Any] | None,
    first_id: int = 1,
    skew: float = 0,
    kernels: bool = True,
    label: str = "",
) -> list[Event]:
    """Steps of a product and an all-reduce, as the profile of one rank has them."""
    told = collective or {}
    name = "aten::mul" if collective is None else "record_param_comms"
    kernel = "scale" if collective is None else "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)"
    number = device if isinstance(device, int) else 0
    events: list[Event] = []
    for step in range(STEPS):
        ids = first_id + 2 * step, first_id + 2 * step + 1
        work = {"device": number, "stream": 7}
        for cat, what, ts, dur, args in (
            ("cpu_op", "aten::mm", 0, 20, {"External id": step + 1}),
            ("cuda_runtime", "cudaLaunchKernel", 5, 5, {"correlation": ids[0]}),
            ("kernel", f"gemm_r{rank}", 15, 30, {**work, "correlation": ids[0]}),
            ("cpu_op", name, 40, 20, told),
            ("cuda_runtime", "cudaLaunchKernelExC", 45, 5, {"correlation": ids[1]}),
            ("kernel", kernel, 55, 20, {**work, "stream": 20, "correlation": ids[1], **told}),
        ):
            if cat == "kernel" and not kernels:
                continue
            row = (device, args["stream"]) if cat == "kernel" else (pid, pid)
            times = {"ts": 100 * step + ts + skew, "dur": dur}
            event = {"ph": "X", "cat": cat, "name": what, "args": args, **times}
            events.append({**event, "pid": row[0], "tid": row[1]})
    for of in (pid, device) if label else ():
        named = {"ph": "M", "name": "process_labels", "pid": of, "args": {"labels": label}}
        events.append(named)
    return events


def converted(folder: Path, events: list[Event], name: str = "merged.json") -> list[Conversion]:
    folder.mkdir(exist_ok=True)
    found = convert_directory(write_json(folder / name, {"traceEvents": events}), folder / "out")
    for conversion in found:
        assert_adds_up(conversion.report)
    return found


def assert_each_has_its_own(found: list[Conversion], world: int) -> None:
    assert [conversion.report.rank for conversion in found] == list(range(world))
    for rank, conversion in enumerate(found):
        nodes = conversion.load().nodes
        own = [node.name for node in nodes if node.name.startswith("gemm")]
        assert own == [f"gemm_r{rank}"] * STEPS
        assert conversion.report.device_events.total == 2 * STEPS
        assert all(len(node.edges) >= 1 for node in nodes if not node.is_cpu_op)


def by_time(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda event: float(event.get("ts", 0.0)))


RANK_ORDERS = [(0, 1), (1, 0), (2, 0, 3, 1)]


@pytest.mark.parametrize("order", RANK_ORDERS, ids=str)
@pytest.mark.parametrize("mixed", [False, True], ids=["one behind another", "by time"])
@pytest.mark.parametrize("alike", [True, False], ids=["same ids", "own ids"])
@pytest.mark.parametrize("name", ["merged.json", "merged.json.gz"])
def test_what_kernels_say_of_their_rank_decides(
    tmp_path: Path, order: tuple[int, ...], mixed: bool, alike: bool, name: str
) -> None:
    # Processes in any order of rank, devices in another, clocks that are 3 us apart.
    world = len(order)
    events: list[Event] = []
    for place, rank in enumerate(order):
        own = facts(rank, world)
        ids = 1 if alike else 1 + 1000 * place
        device = (place + 1) % world
        events += profile(
            rank, pid=5001 + place, device=device, collective=own, first_id=ids, skew=3 * place
        )
    found = converted(tmp_path, by_time(events) if mixed else events, name)
    assert_each_has_its_own(found, world)
    for conversion in found:
        collectives = conversion.load().nodes.where(type=NodeType.COMM_COLL)
        assert [node.comm_size for node in collectives] == [2048] * STEPS


@pytest.mark.parametrize("mixed", [False, True], ids=["one behind another", "by time"])
@pytest.mark.parametrize(
    ("pids", "devices", "labels"),
    [
        ((5001, 5002), (4, 3), ("Rank 1", "Rank 0")),
        ((5001, 5002), (0, 1), ("node3/rank_1 trainer", "node3/rank_0 trainer")),
        (("[TP01] 5001", "[TP00] 5001"), ("[TP01] 0", "[TP00] 0"), ("", "")),
        (("1_5001", "0_5002"), ("1_0", "0_0"), ("", "")),
    ],
)
def test_labels_of_processes_decide(
    tmp_path: Path, pids: Any, devices: Any, labels: Any, mixed: bool
) -> None:
    events: list[Event] = []
    for place, rank in enumerate((1, 0)):
        events += profile(
            rank, pid=pids[place], device=devices[place], collective=None, skew=3 * place,
            label=labels[place],
        )  # fmt: skip
    found = converted(tmp_path, by_time(events) if mixed else events)
    assert_each_has_its_own(found, 2)


def test_the_place_in_the_file_decides_where_devices_have_one_number(tmp_path: Path) -> None:
    events: list[Event] = []
    for rank in (0, 1):
        events += profile(rank, pid=5001 + rank, device=0, collective=None, skew=3 * rank)
    assert_each_has_its_own(converted(tmp_path, events), 2)


def test_ids_decide_where_devices_have_one_number(tmp_path: Path) -> None:
    events: list[Event] = []
    for rank in (0, 1):
        own = 1 + 1000 * rank
        events += profile(rank, pid=5001 + rank, device=0, collective=None, first_id=own)
    assert_each_has_its_own(converted(tmp_path, by_time(events)), 2)


@pytest.mark.parametrize("order", RANK_ORDERS, ids=str)
def test_what_kernels_say_decides_where_devices_have_one_number(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    # Each process sees its device as number 0; the ids are the same, and so are the rows.
    events: list[Event] = []
    for place, rank in enumerate(order):
        own = facts(rank, len(order))
        events += profile(rank, pid=5001 + place, device=0, collective=own, skew=3 * place)
    assert_each_has_its_own(converted(tmp_path, by_time(events)), len(order))


@pytest.mark.parametrize("order", RANK_ORDERS, ids=str)
def test_turns_decide_where_nothing_else_tells_devices_of_one_number_apart(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    events: list[Event] = []
    for place, rank in enumerate(order):
        events += profile(rank, pid=5001 + place, device=0, collective=None, skew=3 * place)
        told = {"ph": "M", "name": "process_labels", "pid": 5001 + place}
        events.append({**told, "args": {"labels": f"rank {rank}"}})
    found = converted(tmp_path, by_time(events))
    assert_each_has_its_own(found, len(order))
    warnings = [warning for conversion in found for warning in conversion.report.warnings]
    assert any("to several in turn" in warning for warning in warnings)


def test_each_process_has_a_device_where_nothing_else_tells(tmp_path: Path) -> None:
    events: list[Event] = []
    for rank in (0, 1, 2):
        events += profile(rank, pid=5001 + rank, device=rank, collective=None, skew=3 * rank)
    found = converted(tmp_path, by_time(events))
    assert_each_has_its_own(found, 3)
    assert any("the processes of devices 0, 1, 2" in w for w in found[0].report.warnings)


@pytest.mark.parametrize(
    "devices", [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 1, 2), (3, 4, 5))], ids=str
)
def test_devices_of_a_process_have_no_ids_in_common(
    tmp_path: Path, devices: tuple[tuple[int, ...], ...]
) -> None:
    """Two processes that gave the same ids, and of several devices each: nothing else tells."""
    events: list[Event] = []
    for rank, own in enumerate(devices):
        for place, device in enumerate(own):
            events += profile(
                rank, pid=5001 + rank, device=device, collective=None,
                first_id=1 + 100 * place, skew=3 * rank + 1000 * place,
            )  # fmt: skip
    found = converted(tmp_path, by_time(events))
    for rank, conversion in enumerate(found):
        names = [node.name for node in conversion.load().nodes if node.name.startswith("gemm")]
        assert names == [f"gemm_r{rank}"] * STEPS * len(devices[rank])
    assert any("are uncertain" in warning for warning in found[0].report.warnings)


@pytest.mark.parametrize(
    ("label", "told"),
    [("Rank {}", "labels name ranks 0, 1"), ("", "8 of 8 correlation ids of its calls")],
)
def test_processes_of_one_number_are_told(tmp_path: Path, label: str, told: str) -> None:
    events: list[Event] = []
    for rank in (0, 1):
        events += profile(
            rank, pid=5001, device=rank, collective=None, label=label.format(rank), skew=3 * rank
        )
    (conversion,) = converted(tmp_path, events)
    assert any(told in warning for warning in conversion.report.warnings)
    alone = profile(0, pid=5001, device=0, collective=None, label=label.format(0))
    (conversion,) = converted(tmp_path / "alone", alone)
    assert not any("one process number" in warning for warning in conversion.report.warnings)


@pytest.mark.parametrize("without", [0, 1])
@pytest.mark.parametrize("alike", [True, False], ids=["same ids", "own ids"])
def test_a_process_may_have_no_device_work(tmp_path: Path, without: int, alike: bool) -> None:
    events: list[Event] = []
    for rank in (0, 1):
        events += profile(
            rank, pid=5001 + rank, device=rank, collective=facts(rank, 2), skew=3 * rank,
            first_id=1 if alike else 1 + 1000 * rank, kernels=rank != without,
        )  # fmt: skip
    found = converted(tmp_path, events)
    works = [conversion.report.device_events.total for conversion in found]
    assert works == ([0, 8] if without == 0 else [8, 0])
    assert len(found[without].load().nodes) == 4 * STEPS


@pytest.mark.parametrize("mixed", [False, True], ids=["one behind another", "by time"])
@pytest.mark.parametrize("labelled", [False, True])
def test_real_profiles_come_out_as_they_went_in(
    data: Path, tmp_path: Path, mixed: bool, labelled: bool
) -> None:
    # Four ranks whose correlation ids are nearly the same; much work was launched before them.
    events: list[Event] = []
    wanted = {}
    for rank in (3, 0, 2, 1):
        file = data / "torchrec4" / f"device.{rank}.json.gz"
        single = read_device(file)
        wanted[rank] = np.sort(single.start_ns[single.role == Role.WORK]).tolist()
        for event in json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]:
            pid = event["pid"]
            events.append({**event, "pid": f"[TP{rank:02}] {pid}" if labelled else pid})
    document = {"traceEvents": by_time(events) if mixed else events}
    parts = split_processes(read_device(write_json(tmp_path / "merged.json", document)))
    found = {
        part.rank: np.sort(part.start_ns[part.role == Role.WORK]).tolist()
        for part in parts.values()
    }
    assert found == wanted


def test_the_rank_in_the_metadata_of_one_file_is_not_that_of_all(tmp_path: Path) -> None:
    events: list[Event] = []
    for rank in (0, 1):
        events += profile(rank, pid=5001 + rank, device=rank, collective=None)
    document = {"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": events}
    found = convert_directory(write_json(tmp_path / "m.json", document), tmp_path / "out")
    assert [conversion.report.rank for conversion in found] == [0, 1]


def test_the_process_of_each_record_counts_where_the_recorder_tells_it(tmp_path: Path) -> None:
    # Nothing else tells them apart, and the second one has no operations.
    events = [event for pid in (5001, 5002) for event in
              profile(0, pid=pid, device=0, collective=None)]  # fmt: skip
    device = read_device(write_json(tmp_path / "m.json", {"traceEvents": events}))
    device.process = np.where(np.arange(len(device)) % 3 < 2, 5001, 5002)
    device.role[device.process == 5002] = Role.CALL
    device.labels = {5001: {"rank 1"}, 5002: {"rank 0"}}
    parts = split_processes(device)
    assert {pid: part.rank for pid, part in parts.items()} == {5002: 0, 5001: 1}
    for pid, part in parts.items():
        assert part.process.tolist() == [pid] * int(np.count_nonzero(device.process == pid))
    assert sum(sum(part.totals.values()) for part in parts.values()) == len(device)
