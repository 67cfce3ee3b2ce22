"""Nsight Systems' export: what a small database of each kind of record becomes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accounts import assert_adds_up, callers, converted, edges_into, names
from command import chakra
from nsight import EPOCH_NS, PID, TID, Export, global_id

from chakra_et import Conversion, convert_directory
from chakra_et.converters.nsight.calls import plain_name
from chakra_et.converters.nsight.ranges import read_text
from chakra_et.converters.nsight.reader import read_device
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.recording import Kind, Role

SYNC, EVENT = "SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT"


def traced(export: Export, folder: Path) -> Conversion:
    return converted(None, export.write(folder / "report.sqlite"))


def without_calls(edges: set[tuple[str, str, str | None]], *kinds: str) -> set[tuple[str, str]]:
    return {(source, kind) for source, kind, _ in edges if kind in kinds}


def left_out(result: Conversion, name: str) -> dict[str, int]:
    return dict(result.report.records[name].left_out)


def test_times_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    export = Export().launched("gemm<float>", 101, 157, 1003, 1, streamId=9, deviceId=3)
    (launch, kernel) = traced(export, tmp_path).trace.nodes
    assert (launch.name, launch.start_ns, launch.duration_ns) == (
        "cudaLaunchKernel", EPOCH_NS + 101, 10,
    )  # fmt: skip
    assert (kernel.name, kernel.start_ns, kernel.duration_ns) == (
        "gemm<float>",
        EPOCH_NS + 157,
        846,
    )
    device = read_device(tmp_path / "report.sqlite")
    assert (device.device[1], device.stream[1], device.process[1]) == (3, 9, PID)
    assert (device.pid[0], device.tid[0], device.role[0]) == (PID, TID, Role.CALL)


def test_work_is_tied_to_its_call_and_its_stream(tmp_path: Path) -> None:
    export = Export()
    export.launched("a", 100, 150, 1000, 1).launched("b", 200, 1000, 1500, 2)
    export.launched("c", 300, 400, 700, 3, streamId=9)
    result = traced(export, tmp_path)
    assert without_calls(edges_into(result, "b"), "launch", "stream") == {
        ("cudaLaunchKernel", "launch"), ("a", "stream"),
    }  # fmt: skip
    assert without_calls(edges_into(result, "c"), "launch", "stream") == {
        ("cudaLaunchKernel", "launch")
    }


def event_wait(sync_type: int, *, told: dict[str, list[int]] | None = None) -> Export:
    """Event 5 is recorded behind `a`, waited for, and recorded again behind `late`."""
    export = Export()
    ids = (told or {}).get("records", [None, None])
    export.launched("a", 100, 150, 1000, 1)
    export.call("cudaEventRecord_v3020", 200, 220, 2)
    waiting = {"streamId": 9, "syncType": sync_type, "eventId": 5}
    if told:
        export.more = {EVENT: "eventSyncId", f"CUPTI_ACTIVITY_KIND_{SYNC}": "eventSyncId"}
        waiting["eventSyncId"] = told["wait"][0]
    for stream, call, number in ((7, 2, ids[0]), (11, 9, ids[1])):
        own = {"streamId": stream, "correlationId": call, "eventId": 5, "eventSyncId": number}
        export.row(EVENT, deviceId=0, contextId=1, globalPid=global_id(PID), **own)
    if sync_type == 2:
        export.call("cudaStreamWaitEvent_v3020", 230, 240, 3).work(SYNC, 230, 240, 3, **waiting)
        export.launched("b", 300, 1010, 1200, 4, streamId=9)
    else:
        export.call("cudaEventSynchronize_v3020", 230, 1010, 3).work(SYNC, 230, 1010, 3, **waiting)
    export.launched("late", 2000, 2050, 2100, 8, streamId=11)
    return export.call("cudaEventRecord_v3020", 2200, 2220, 9)


NONE = (1 << 32) - 1


@pytest.mark.parametrize(
    "told",
    [
        None,
        {"records": [70, 71], "wait": [70]},
        {"records": [0, 0], "wait": [0]},
        {"records": [NONE, NONE], "wait": [NONE]},
    ],
)
@pytest.mark.parametrize(
    ("sync_type", "waits", "kind", "by"),
    [
        (2, "b", "event", "record of the wait with the event's call"),
        (1, "cudaEventSynchronize", "sync", "record of the wait"),
    ],
)
def test_an_event_stands_for_the_work_before_its_last_record(
    tmp_path: Path, told: Any, sync_type: int, waits: str, kind: str, by: str
) -> None:
    export = event_wait(sync_type, told=told)
    assert ("a", kind, by) in edges_into(traced(export, tmp_path), waits)
    device = read_device(tmp_path / "report.sqlite")
    assert device.waits.awaited.tolist() == [7]
    assert device.waits.recorded_by.tolist() == [2]


def test_the_number_of_a_record_decides_before_the_order_of_calls(tmp_path: Path) -> None:
    path = event_wait(2, told={"records": [70, 71], "wait": [71]}).write(tmp_path / "r.sqlite")
    device = read_device(path)
    assert (device.waits.awaited.tolist(), device.waits.recorded_by.tolist()) == ([11], [9])


@pytest.mark.parametrize("no_stream", [-1, (1 << 32) - 1])
def test_the_host_waits_for_one_stream_or_for_the_device(tmp_path: Path, no_stream: int) -> None:
    export = Export().launched("a", 100, 150, 900, 1)
    export.launched("b", 200, 250, 800, 2, streamId=9)
    export.call("cudaStreamSynchronize_v3020", 300, 820, 3)
    export.work(SYNC, 300, 820, 3, streamId=9, syncType=3, eventId=0)
    export.call("cudaDeviceSynchronize_v3020", 830, 910, 4)
    export.work(SYNC, 830, 910, 4, streamId=no_stream, syncType=4, eventId=0)
    export.call("odd", 920, 930, 5).work(SYNC, 920, 930, 5, syncType=77, eventId=0)
    result = traced(export, tmp_path)
    by = "record of the wait"
    assert ("b", "sync", by) in edges_into(result, "cudaStreamSynchronize")
    assert not any(source == "a" for source, *_ in edges_into(result, "cudaStreamSynchronize"))
    assert ("a", "sync", by) in edges_into(result, "cudaDeviceSynchronize")
    assert left_out(result, "cuda_sync") == {"record of a wait: evidence, not work": 3}


COPIES = [
    # kind, source, target, name, whether its call waits for it although it is called Async
    (1, 1, 2, "Memcpy HtoD (Pinned -> Device)", False),
    (2, 2, 0, "Memcpy DtoH (Device -> Pageable)", True),
    (2, 2, 1, "Memcpy DtoH (Device -> Pinned)", False),
    (8, 2, 2, "Memcpy DtoD (Device -> Device)", False),
    (10, 2, 2, "Memcpy PtoP (Device -> Device)", False),
    (99, None, None, "Memcpy Unknown (Unknown -> Unknown)", False),
]


@pytest.mark.parametrize(("kind", "source", "target", "name", "waits"), COPIES)
def test_copies_are_named_and_sized(
    tmp_path: Path, kind: int, source: int | None, target: int | None, name: str, waits: bool
) -> None:
    export = Export().call("cudaMemcpyAsync_v3020", 100, 900, 1)
    memories = {"srcKind": source, "dstKind": target}
    export.work("MEMCPY", 150, 800, 1, bytes=4096, copyKind=kind, **memories)
    device = read_device(export.write(tmp_path / "report.sqlite"))
    (row,) = device.rows(Role.WORK).tolist()
    assert device.names.in_order[device.name[row]] == name
    assert (device.kind[row], device.size_bytes[row]) == (Kind.COPY, 4096)
    assert (bool(device.blocks[row]), bool(device.blocks[0])) == (waits, False)
    assert device.categories.in_order[device.category[row]] == "gpu_memcpy"


def test_names_of_the_export_decide_what_memories_are_called(tmp_path: Path) -> None:
    export = Export().call("cudaMemcpyAsync_v3020", 100, 900, 1)
    export.work("MEMCPY", 150, 800, 1, bytes=8, copyKind=2, srcKind=2, dstKind=5)
    export.call("cudaMemset_v3020", 1000, 1010, 2)
    export.work("MEMSET", 1020, 1030, 2, bytes=64, value=0, memKind=6)
    export.row("ENUM_CUDA_MEM_KIND", id=5, name="X", label="Pageable")
    export.row("ENUM_CUDA_MEM_KIND", id=6, name="Y", label="Managed static")
    export.row("ENUM_CUDA_MEMCPY_OPER", id=2, name="CUDA_MEMCPY_KIND_HTOA", label="?")
    result = traced(export, tmp_path)
    assert names(result) == [
        "cudaMemcpyAsync",
        "Memcpy HtoA (Device -> Pageable)",
        "cudaMemset",
        "Memset (Managed static)",
    ]
    sizes = read_device(tmp_path / "report.sqlite").size_bytes
    assert sizes[sizes > 0].tolist() == [8, 64]


def test_a_graph_is_launched_by_one_call_node_by_node_or_as_a_whole(tmp_path: Path) -> None:
    export = Export().call("cudaGraphLaunch_v10000", 100, 120, 1)
    export.kernel("a", 150, 200, 1, graphNodeId=71).kernel("b", 210, 300, 1, graphNodeId=72)
    export.call("cudaGraphLaunch_v10000", 400, 420, 2)
    export.work("GRAPH_TRACE", 450, 900, 2, graphId=3, graphExecId=4)
    result = traced(export, tmp_path)
    launch = ("cudaGraphLaunch", "launch", "correlation id")
    for name in ("a", "b", "CUDA graph 3"):
        assert launch in edges_into(result, name)
    assert ("a", "stream") in without_calls(edges_into(result, "b"), "stream")


def test_a_kernel_carries_how_it_was_launched(tmp_path: Path) -> None:
    export = Export().launched("a", 0, 150, 200, 1, gridX=8, graphNodeId=71)
    export.launched("b", 20, 210, 300, 2, gridX=8, gridY=2, gridZ=1)
    export.more = {"CUPTI_ACTIVITY_KIND_KERNEL": "gridY gridZ"}
    nodes = traced(export, tmp_path).trace.nodes
    told = {node.name: node.attributes["device_args"] for node in nodes if not node.is_cpu_op}
    assert told == {"a": '{"graph node id":71}', "b": '{"grid":[8,2,1]}'}


def test_ranges_enclose_what_they_hold_on_their_thread(tmp_path: Path) -> None:
    export = Export().nvtx("step", 0, 5000).nvtx("forward", 50, 400)
    export.nvtx(None, 90, 300, textId=export.text("aten::mm, seq = 12, op_id = 7"))
    export.launched("gemm", 100, 150, 250, 1)
    export.nvtx("elsewhere", 0, 5000, tid=TID + 1)
    result = traced(export, tmp_path)
    assert callers(result, "forward") == {"step"}
    assert callers(result, "aten::mm") == {"forward"}
    assert callers(result, "cudaLaunchKernel") == {"aten::mm"}
    device = read_device(tmp_path / "report.sqlite")
    kinds = {device.names.in_order[n]: k for n, k in zip(device.name, device.kind, strict=True)}
    assert kinds["step"] == kinds["forward"] == Kind.ANNOTATION
    assert kinds["aten::mm"] == Kind.OTHER
    assert device.sequence[device.name == device.names["aten::mm"]].tolist() == [12]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("step 3", ("step 3", False, -1, b"")),
        ("aten::add_", ("aten::add_", True, -1, b"")),
        ("a, seq = x", ("a", True, -1, b"")),
        ("aten::mm, op_id = 7", ("aten::mm", True, -1, b"")),
        (
            "aten::mm, seq = 3, op_id = 7, sizes = [[2, 3], [3]], input_op_ids = [(1,0)]",
            ("aten::mm", True, 3, b"[[2, 3], [3]]"),
        ),
        ("load, seq. 3", ("load, seq. 3", False, -1, b"")),
    ],
)
def test_texts_of_emit_nvtx_are_operations(text: str, parts: tuple[Any, ...]) -> None:
    found = read_text(text)
    assert (found.name, found.is_operation, found.sequence, found.shapes) == parts


def test_ranges_that_are_no_spans_of_one_thread_are_counted(tmp_path: Path) -> None:
    export = Export().launched("a", 100, 150, 1000, 1).nvtx("kept", 0, 9, eventType=60)
    export.nvtx("open", 5, None).nvtx("odd end", 5, "later")
    export.nvtx("across", 5, 9, eventType=60, endGlobalTid=global_id(PID, 99))
    export.nvtx("mark", 5, None, eventType=34).nvtx("domain", 0, None, eventType=75)
    export.nvtx("new", 5, 9, eventType=4321)
    result = traced(export, tmp_path)
    assert left_out(result, "NVTX_EVENTS") == {
        "range without an end": 2,
        "range that begins on one thread and ends on another": 1,
        "mark: an instant without duration": 1,
        "name of a domain, category or thread": 1,
        "kind of NVTX event not known to this version": 1,
    }
    assert result.report.records["user_annotation"].kept == 1


def test_other_tables_of_events_are_counted_and_tables_without_events_are_not(
    tmp_path: Path,
) -> None:
    export = Export().launched("a", 100, 150, 1000, 1)
    export.row("CUBLAS_EVENTS", start=90, end=120, globalTid=global_id(PID, TID),
               nameId=export.text("cublasSgemm_v2"))  # fmt: skip
    for _ in range(3):
        export.row("OSRT_API", start=1, end=2, globalTid=global_id(PID), nameId=1)
    export.row("SCHED_EVENTS", start=1, cpu=0, isSchedIn=1, globalTid=global_id(PID))
    export.row("FUTURE_EVENTS", rawTimestamp=1).row("FUTURE_NAMES", id=1)
    result = traced(export, tmp_path)
    assert callers(result, "cudaLaunchKernel") == {"cublasSgemm_v2"}
    records = result.report.records
    assert {name: tally.left_out.total() for name, tally in records.items()} == {
        "OSRT_API": 3, "SCHED_EVENTS": 1, "FUTURE_EVENTS": 1, "cuda_runtime": 0, "kernel": 0,
        "cpu_op": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync"),
        ("cuMemFree_v2", "cuMemFree"),
        ("cuLaunchKernel", "cuLaunchKernel"),
    ],
)
def test_calls_are_named_as_programs_write_them(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_calls_of_the_driver_have_a_category_of_their_own(tmp_path: Path) -> None:
    export = Export().call("cuLaunchKernel", 100, 110, 1).kernel("triton_mm", 120, 130, 1)
    result = traced(export.call("cudaSetDevice_v3020", 0, 9, 2), tmp_path)
    assert {n: t.kept for n, t in result.report.records.items()} == {
        "cuda_driver": 1, "cuda_runtime": 1, "kernel": 1,
    }  # fmt: skip


def test_two_devices_keep_their_streams_apart(tmp_path: Path) -> None:
    export = Export().launched("a", 100, 150, 1000, 1)
    export.launched("b", 200, 250, 800, 2, deviceId=1).launched("c", 300, 900, 950, 3, deviceId=1)
    result = traced(export, tmp_path)
    assert without_calls(edges_into(result, "b"), "stream") == set()
    assert without_calls(edges_into(result, "c"), "stream") == {("b", "stream")}


COMM = "9876543210987654321"


def collective(
    export: Export, name: str, *, pid: int = PID, at: int = 1000, id_: int = 50, **payload: Any
) -> Export:
    told = {"NCCL communicator ID": int(COMM), **payload}
    export.nvtx(name, at, at + 100, pid=pid, domainId=3, payload=told)
    kernel = f"ncclDevKernel_{name.removeprefix('nccl')}_Sum_f32_RING_LL(x)"
    return export.launched(kernel, at + 20, at + 60, at + 600, id_, pid=pid, streamId=20)


def member(export: Export, pid: int, rank: int, ranks: int) -> Export:
    export.nvtx("NCCL", 0, None, eventType=75, domainId=3, pid=pid)
    told = {"NCCL communicator ID": int(COMM), "No. of ranks": ranks, "Rank": rank}
    return export.nvtx("ncclCommInitRank", 10, 20, pid=pid, domainId=3, payload=told)


@pytest.mark.parametrize(
    ("name", "kind", "told", "bytes_"),
    [
        ("ncclAllReduce", CollectiveType.ALL_REDUCE, 4096, 4096),
        ("ncclAllGather", CollectiveType.ALL_GATHER, 4096, 4096),
        ("ncclBroadcast", CollectiveType.BROADCAST, 512, 512),
        ("ncclReduceScatter", CollectiveType.REDUCE_SCATTER, 4096, 4 * 4096),
    ],
)
def test_ranges_of_nccl_tell_the_size_of_collectives(
    tmp_path: Path, name: str, kind: CollectiveType, told: int, bytes_: int
) -> None:
    export = member(Export(), PID, 1, 4)
    result = traced(collective(export, name, **{"Message size [bytes]": told}), tmp_path)
    (node,) = result.trace.nodes.where(type=NodeType.COMM_COLL)
    assert (node.comm_type, node.comm_size) == (kind, bytes_)
    device = read_device(tmp_path / "report.sqlite")
    assert [(g.name, g.size) for g in device.groups] == [(COMM, 4)]


def test_a_kernel_of_a_group_carries_the_messages_before_it(tmp_path: Path) -> None:
    export = member(Export(), PID, 0, 2)
    for name, at, size in (("ncclSend", 1010, 64), ("ncclRecv", 1030, 96)):
        told = {"NCCL communicator ID": int(COMM), "Message size [bytes]": size, "Peer rank": 1}
        export.nvtx(name, at, at + 10, domainId=3, payload=told)
    export.nvtx("ncclGroupEnd", 1050, 1200, domainId=3)
    export.launched("ncclDevKernel_SendRecv(x)", 1100, 1150, 1900, 50, streamId=20)
    nodes = traced(export, tmp_path).trace.nodes
    assert [node.comm_size for node in nodes.where(type=NodeType.COMM_SEND)] == [64]
    assert [node.comm_size for node in nodes.where(type=NodeType.COMM_RECV)] == [96]


def test_a_range_of_that_name_in_another_domain_is_not_of_nccl(tmp_path: Path) -> None:
    export = member(Export(), PID, 0, 2).nvtx("ncclAllReduce", 100, 200, domainId=0)
    device = read_device(export.launched("a", 110, 120, 130, 1).write(tmp_path / "r.sqlite"))
    assert len(device.collectives) == 0


@pytest.mark.parametrize(
    "payload",
    ["{", "[1]", '{"Message size [bytes]": []}', '{"Message size [bytes]": -3}', "[" * 9999],
)
def test_payloads_that_cannot_be_read_tell_nothing(tmp_path: Path, payload: str) -> None:
    export = Export().launched("a", 110, 120, 130, 1)
    export.nvtx("ncclAllReduce", 100, 200, jsonText=payload)
    device = read_device(export.write(tmp_path / "r.sqlite"))
    ((_, facts),) = device.collectives.items()
    assert (facts.name, facts.size_bytes, facts.group) == ("allreduce", None, None)


def two_processes(*, ranges: bool) -> Export:
    """Two ranks with the same ids, devices' numbers and times."""
    export = Export()
    for place, pid in enumerate((PID, PID + 50)):
        if ranges:
            member(export, pid, 1 - place, 2)
            collective(export, "ncclSend" if place else "ncclRecv", pid=pid,
                       **{"Message size [bytes]": 64, "Peer rank": place})  # fmt: skip
        for step in range(3):
            at = 3000 + 1000 * step
            export.launched(f"gemm_{pid}", at, at + 50, at + 800, 1 + step, pid=pid)
    export.nvtx("load", 0, 90, pid=PID + 99)
    return export.row("PROCESSES", globalPid=global_id(PID), pid=PID, name="python3")


@pytest.mark.parametrize("ranges", [False, True])
def test_each_process_is_a_trace_with_its_own_work(tmp_path: Path, ranges: bool) -> None:
    path = two_processes(ranges=ranges).write(tmp_path / "report.sqlite")
    found = convert_directory(path, tmp_path / "out")
    # Ranks are those in the communicator, else the order of the processes.
    assert [conversion.report.rank for conversion in found] == [0, 1]
    for rank, conversion in enumerate(found):
        assert_adds_up(conversion.report)
        pid = PID + 50 * ((1 - rank) if ranges else rank)
        kernels = [name for name in names(conversion) if name.startswith("gemm")]
        assert kernels == [f"gemm_{pid}"] * 3
        for node in conversion.load().nodes.where(type=NodeType.COMM_SEND):
            assert (node.comm_dst, node.comm_size) == (1, 64)
    lost = [left_out(conversion, "user_annotation") for conversion in found
            if "user_annotation" in conversion.report.records]  # fmt: skip
    assert lost == [{"of a process that uses no device, beside others that do": 1}]


def test_one_trace_of_two_processes_is_refused(tmp_path: Path) -> None:
    path = two_processes(ranges=False).write(tmp_path / "report.sqlite")
    done = chakra("convert", path, "-o", tmp_path / "t.et")
    assert (done.code, "-o DIR" in done.errors) == (2, True)


def test_ranks_of_mpi_are_told(tmp_path: Path) -> None:
    export = Export().launched("a", 100, 150, 1000, 1)
    export.row("MPI_RANKS", globalTid=global_id(PID, TID), rank=6)
    assert traced(export, tmp_path).report.rank == 6


def test_work_without_a_process_goes_to_the_one_that_launched_it(tmp_path: Path) -> None:
    export = Export().call("cudaLaunchKernel_v7000", 0, 9, 4, pid=PID + 50)
    export.call("cudaLaunchKernel_v7000", 0, 9, 3)
    export.kernel("a", 20, 30, 4, globalPid=None).kernel("b", 40, 50, 77, globalPid=None)
    device = read_device(export.write(tmp_path / "r.sqlite"))
    assert device.process[device.role == Role.WORK].tolist() == [PID + 50, PID]


def test_a_replay_takes_as_long_as_the_recording(tmp_path: Path) -> None:
    path = event_wait(2).nvtx("step", 0, 2500).write(tmp_path / "report.sqlite")
    done = chakra("convert", path, "-o", tmp_path / "trace.et")
    assert (done.code, done.errors) == (0, "")
    done = chakra("replay", tmp_path / "trace.et")
    assert (done.code, "+0.00" in done.words) == (0, True), done.output


def test_commands_know_the_format(tmp_path: Path) -> None:
    path = Export().launched("a", 100, 150, 1000, 1).write(tmp_path / "report.sqlite")
    done = chakra("info", path)
    assert "database of Nsight Systems" in done.words
    assert "kernel: 1" in done.words or "kernel 1" in done.words
    assert "database of Nsight Systems" in chakra("formats").words
    packed = tmp_path / "report.sqlite.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for source, stdin in ((packed, b""), ("-", path.read_bytes())):
        out = tmp_path / f"{len(stdin)}.et"
        done = chakra("convert", source, "-o", out, stdin=stdin)
        assert (done.code, out.exists()) == (0, True), done.errors
    assert np.array_equal(read_device(packed).start_ns, read_device(path).start_ns)
    assert json.loads(chakra("info", path, "--json").output)
