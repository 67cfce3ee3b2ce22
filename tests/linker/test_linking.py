"""Linking small pairs: joins, edges, host time and communication, each with known values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from accounts import assert_sums_add_up
from recordings import BACKWARD, MAIN, HostRecording, Profile, write_json

import chakra_et
from chakra_et import CollectiveType, Conversion, EdgeKind, LinkError, NodeType
from chakra_et.model import Node


def convert(tmp_path: Path, host: HostRecording | None, profile: Profile | None) -> Conversion:
    return chakra_et.convert(
        host=None if host is None else host.write(tmp_path / "host.json"),
        device=None if profile is None else profile.write(tmp_path / "device.json"),
    )


def named(result: Conversion, name: str) -> Node:
    (node,) = result.trace.nodes.where(name=name)
    assert isinstance(node, Node)
    return node


def waits_for(result: Conversion, name: str) -> set[tuple[str, EdgeKind, bool]]:
    """Source names, kinds and inferred flags of the edges into a node."""
    trace = result.trace
    return {(trace.node(s).name, kind, guess) for s, kind, guess in named(result, name).edges}


def one_launch() -> tuple[HostRecording, Profile]:
    host = HostRecording().op(3, "aten::mm", rf_id=1).op(4, "aten::add", rf_id=2)
    profile = Profile().op("aten::mm", 10, 20, rf_id=1).op("aten::add", 40, 5, rf_id=2)
    profile.call("cudaLaunchKernel", 15, 5, 7).kernel("gemm", 25, 30, 7)
    return host, profile


def test_operations_join_by_record_function_id(tmp_path: Path) -> None:
    result = convert(tmp_path, *one_launch())
    join = result.report.joins[0]
    assert (join.by, join.matched, join.of) == ("record-function id", 2, 2)
    mm = named(result, "aten::mm")
    assert (mm.host_id, mm.rf_id, mm.category, mm.thread) == (3, 1, "cpu_op", MAIN)
    assert (mm.start_ns, mm.inclusive_ns) == (1_700_000_000_000_010_000, 20_000)


def test_a_kernel_waits_for_its_launch_and_knows_its_operation(tmp_path: Path) -> None:
    result = convert(tmp_path, *one_launch())
    assert waits_for(result, "gemm") == {
        ("cudaLaunchKernel", EdgeKind.LAUNCH, False),
        ("aten::mm", EdgeKind.CALL, False),
    }
    gemm = named(result, "gemm")
    assert (gemm.type, gemm.is_cpu_op, gemm.stream, gemm.device) == (NodeType.COMP, False, 7, 0)
    assert gemm.duration_ns == 30_000


def test_any_call_with_the_correlation_is_a_launch(tmp_path: Path) -> None:
    profile = Profile().call("someNewSubmit", 1, 2, 5).kernel("copy", 4, 1, 5, cat="gpu_memset")
    result = convert(tmp_path, None, profile)
    assert ("someNewSubmit", EdgeKind.LAUNCH, False) in waits_for(result, "copy")


def test_the_innermost_of_two_calls_with_one_correlation_is_the_launch(tmp_path: Path) -> None:
    profile = Profile().call("runtime", 1, 10, 5).call("driver", 2, 3, 5).kernel("k", 6, 1, 5)
    result = convert(tmp_path, None, profile)
    assert waits_for(result, "k") >= {("driver", EdgeKind.LAUNCH, False)}
    assert len(waits_for(result, "k")) <= 2


def test_the_time_of_a_thread_is_covered_by_its_nodes(tmp_path: Path) -> None:
    host = HostRecording().op(3, "outer", rf_id=1).op(4, "inner", rf_id=2, parent=3)
    host.op(5, "next", rf_id=3)
    profile = Profile().op("outer", 0, 100, rf_id=1).op("inner", 10, 20, rf_id=2)
    profile.op("next", 150, 50, rf_id=3)
    result = convert(tmp_path, host, profile)
    own = {name: named(result, name).duration_ns for name in ("outer", "inner", "next")}
    assert own == {"outer": 10_000, "inner": 140_000, "next": 50_000}
    outer = named(result, "outer")
    assert (outer.inclusive_ns, outer.exclusive_ns) == (100_000, 80_000)
    assert waits_for(result, "inner") == {
        ("outer", EdgeKind.CALL, False),
        ("outer", EdgeKind.PROGRAM, False),
    }


def test_a_wait_for_another_thread_is_an_edge_and_nobodys_time(tmp_path: Path) -> None:
    host = HostRecording().op(3, "forward", rf_id=1).op(4, "step", rf_id=2)
    host.op(5, "MmBackward", rf_id=3, tid=2)
    profile = Profile().op("forward", 0, 100, rf_id=1, **{"Sequence number": 5, "Fwd thread id": 0})
    profile.op("MmBackward", 150, 1000, rf_id=3, tid=BACKWARD, **{
        "Sequence number": 5, "Fwd thread id": 1,
    })  # fmt: skip
    profile.op("step", 1170, 30, rf_id=2)
    result = convert(tmp_path, host, profile)
    assert waits_for(result, "MmBackward") >= {("forward", EdgeKind.THREAD, False)}
    assert waits_for(result, "step") >= {("MmBackward", EdgeKind.THREAD, True)}
    # forward: from its start to when backward began; MmBackward: until step could go on.
    assert named(result, "forward").duration_ns == 150_000
    assert named(result, "MmBackward").duration_ns == 1_020_000


def test_work_on_a_stream_waits_for_the_work_before(tmp_path: Path) -> None:
    profile = Profile()
    for i, stream in enumerate((7, 20, 7)):
        profile.call(f"launch{i}", 10 * i, 2, i + 1)
        profile.kernel(f"k{i}", 100 + 10 * i, 5, i + 1, stream=stream)
    result = convert(tmp_path, None, profile)
    assert ("k0", EdgeKind.STREAM, False) in waits_for(result, "k2")
    assert all(kind is not EdgeKind.STREAM for _, kind, _ in waits_for(result, "k1"))


def test_work_that_overlaps_on_a_stream_does_not_wait_for_what_it_overlaps(tmp_path: Path) -> None:
    profile = Profile()
    for i, (start, length) in enumerate(((100, 10), (110, 20), (125, 10), (140, 5))):
        profile.call(f"launch{i}", 10 * i, 2, i + 1)
        profile.kernel(f"k{i}", start, length, i + 1)
    result = convert(tmp_path, None, profile)
    assert ("k0", EdgeKind.STREAM, False) in waits_for(result, "k2")
    assert ("k1", EdgeKind.STREAM, False) not in waits_for(result, "k2")
    assert waits_for(result, "k3") >= {
        ("k1", EdgeKind.STREAM, False),
        ("k2", EdgeKind.STREAM, False),
    }
    assert any("1 device activity starts before" in w for w in result.report.warnings)


def test_work_launched_before_the_window_is_kept(tmp_path: Path) -> None:
    profile = Profile().kernel("early", 1, 5, 3).call("launch", 8, 1, 9).kernel("late", 10, 5, 9)
    result = convert(tmp_path, None, profile)
    assert named(result, "early").edges == []
    assert ("early", EdgeKind.STREAM, False) in waits_for(result, "late")
    tally = result.report.device_events
    assert (tally.total, tally.kept) == (2, 2)
    (launches,) = [j for j in result.report.joins if j.what.startswith("device events")]
    assert (launches.matched, launches.of) == (1, 2)


def test_a_kernel_before_its_launch_keeps_edges_forward(tmp_path: Path) -> None:
    host = HostRecording().op(3, "op", rf_id=1)
    profile = Profile().op("op", 10, 30, rf_id=1).call("launch", 20, 5, 1).kernel("k", 12, 3, 1)
    result = convert(tmp_path, host, profile)
    rows = result.trace.source_rows()
    assert (rows < result.trace.edges.target).all()
    assert ("launch", EdgeKind.LAUNCH, False) in waits_for(result, "k")


def test_external_ids_are_believed_where_names_agree(tmp_path: Path) -> None:
    host = HostRecording(flat=True)
    profile = Profile()
    for i in range(10):
        host.op(3 + i, f"op{i % 3}", rf_id=i + 1)
        profile.op(f"op{i % 3}", 10 * i, 5, **{"External id": i + 1})
    join = convert(tmp_path, host, profile).report.joins[0]
    assert (join.by, join.matched, join.of) == ("External id", 10, 10)


def test_without_common_ids_the_order_of_each_thread_joins(tmp_path: Path) -> None:
    host = HostRecording(flat=True)
    profile = Profile().op("ProfilerStep#1", 0, 900, cat="user_annotation", **{"External id": 40})
    for i in range(10):
        host.op(3 + i, f"op{i % 3}", rf_id=i + 1)
        profile.op(f"op{i % 3}", 10 * i + 1, 5, **{"External id": 41 + i})
    result = convert(tmp_path, host, profile)
    join = result.report.joins[0]
    assert (join.by, join.matched, join.of) == ("order within each thread", 10, 10)
    assert result.report.records["user_annotation"].kept == 1


def test_all_zero_record_function_ids_are_none(tmp_path: Path) -> None:
    host, profile = HostRecording(), Profile()
    for i in range(4):
        host.op(3 + i, f"op{i}", rf_id=i + 1)
        profile.op(f"op{i}", 10 * i, 5, rf_id=0)
    join = convert(tmp_path, host, profile).report.joins[0]
    assert join.by == "order within each thread"
    assert join.matched == 4


def test_ids_that_overlap_while_names_disagree_are_refused(tmp_path: Path) -> None:
    host, profile = HostRecording(), Profile()
    for i in range(10):
        host.op(3 + i, f"op{i}", rf_id=i + 1)
        profile.op(f"op{i + 1}", 10 * i, 5, rf_id=i + 1)
    with pytest.raises(LinkError, match=r"do not belong together: 10 record-function ids"):
        convert(tmp_path, host, profile)


def test_unrelated_files_without_ids_are_refused(tmp_path: Path) -> None:
    host, profile = HostRecording(), Profile()
    for i in range(10):
        host.op(3 + i, f"op{i}", rf_id=i + 1)
        profile.op(f"other{i}", 10 * i, 5)
    with pytest.raises(LinkError, match="only 0 of 10 host operations"):
        convert(tmp_path, host, profile)


def test_other_process_ids_are_a_warning(tmp_path: Path) -> None:
    host, profile = one_launch()
    host.pid = 5
    result = convert(tmp_path, host, profile)
    assert any("process ids differ" in warning for warning in result.report.warnings)


def test_a_host_trace_alone_has_order_and_callers_without_times(tmp_path: Path) -> None:
    host = HostRecording().op(3, "outer", rf_id=1).op(4, "inner", rf_id=2, parent=3)
    result = convert(tmp_path, host, None)
    inner = named(result, "inner")
    assert (inner.start_ns, inner.duration_ns) == (None, 0)
    assert waits_for(result, "inner") == {
        ("outer", EdgeKind.CALL, False),
        ("outer", EdgeKind.PROGRAM, False),
    }


DEFAULT = ["0", "default_pg"]
TENSORS = [[5, 6, 0, 1000, 4, "cuda:0"]]
ERAS: dict[str, list[Any]] = {
    "number": [TENSORS, 12, 777, 0, "allreduce", [], []],
    "number and size": [TENSORS, 12, 777, 0, "allreduce", [], [], 2],
    "names": [TENSORS, 12, ["0", "default_pg"], 0, "allreduce", [], [], 0, 1, 2],
    "sequence and p2p": [TENSORS, [12, False], DEFAULT, 0, "allreduce", [], [], 0, 1, 2],
    "asynchronous": [TENSORS, [12, False], ["0", ""], 0, "allreduce", [], [], 0, 1, 2, True],
}


@pytest.mark.parametrize("era", ERAS)
def test_a_collective_takes_its_facts_from_positional_inputs_of_every_era(
    tmp_path: Path, era: str
) -> None:
    values = ERAS[era]
    host = HostRecording().op(3, "c10d::allreduce_", rf_id=1)
    host.op(4, "record_param_comms", rf_id=2, parent=3, inputs=(values, [[]], ["x"]))
    profile = Profile(info={"backend": "nccl", "rank": 1, "world_size": 2})
    profile.op("c10d::allreduce_", 0, 50, rf_id=1).op("record_param_comms", 5, 30, rf_id=2)
    profile.call("cudaLaunchKernel", 10, 5, 3)
    profile.kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", 20, 40, 3)
    result = convert(tmp_path, host, profile)
    (node,) = result.trace.nodes.where(type=NodeType.COMM_COLL)
    assert node.comm_type == CollectiveType.ALL_REDUCE
    assert node.comm_size == 4000
    assert node.is_cpu_op is False
    # An older trace calls the group by a number; only a size tells that it is that of all ranks.
    assert node.pg_name == ("777" if era == "number" else "0")
    assert result.trace.rank == 1


def test_a_send_knows_its_peer_by_global_rank(tmp_path: Path) -> None:
    config = [{"pg_name": "5", "pg_desc": "pp", "pg_size": 2, "ranks": [4, 6]}]
    info = {"rank": 4, "world_size": 8, "pg_count": 1, "pg_config": config}
    values = [[[1, 2, 0, 10, 2, "cuda:0"]], [7, True], ["5", "pp"], 1, "send", [], [], 4, 2, 2]
    host = HostRecording().op(3, "record_param_comms", rf_id=1, inputs=(values, [[]], ["x"]))
    profile = Profile(info=info).op("record_param_comms", 5, 30, rf_id=1)
    profile.call("cudaLaunchKernel", 10, 5, 3).kernel("ncclDevKernel_SendRecv(ncclArgs)", 20, 4, 3)
    result = convert(tmp_path, host, profile)
    (node,) = result.trace.nodes.where(type=NodeType.COMM_SEND)
    assert (node.comm_src, node.comm_dst, node.comm_tag, node.comm_size) == (4, 6, 0, 20)
    assert node.pg_name == "5"
    assert [(g.name, g.ranks) for g in result.trace.groups] == [("5", (4, 6))]


@pytest.mark.parametrize(
    ("operation", "numbers", "groups", "told"),
    [
        ("c10d::send", [1, 9], {"5": [4, 6]}, (4, 6, 9)),
        ("c10d::recv_", [1, 9], {"5": [4, 6]}, (6, 4, 9)),
        ("c10d::recv_any_source_", [9], {"5": [4, 6, 7]}, (None, 4, 9)),
        ("c10d::recv_any_source_", [9], {"5": [4, 6]}, (6, 4, 9)),
        # The span does not name its group; those of this rank may agree on the other side, or not.
        ("c10d::send", [1, 9], {"5": [4, 6], "6": [4, 6, 7], "7": [0, 1]}, (4, 6, 9)),
        ("c10d::send", [1, 9], {"5": [4, 6], "6": [4, 7]}, (4, None, 9)),
        ("c10d::send", [1 << 40, -1], {"5": [4, 6, 7]}, (4, None, 0)),
    ],
)
def test_a_message_over_gloo_takes_its_peer_and_tag_from_the_operation_around_it(
    tmp_path: Path,
    operation: str,
    numbers: list[int],
    groups: dict[str, list[int]],
    told: tuple[int | None, int | None, int],
) -> None:
    config = [{"pg_name": name, "pg_size": len(r), "ranks": r} for name, r in groups.items()]
    tensor = [1, 2, 0, 10, 2, "cpu"]
    inputs = ([[tensor], "<Object>", *numbers], [[]], ["x"])
    host = HostRecording().op(3, operation, rf_id=1, inputs=inputs)
    span = "gloo:send" if operation == "c10d::send" else "gloo:recv"
    host.op(4, span, rf_id=2, parent=3, inputs=([tensor], [[]], ["x"]))
    profile = Profile(info={"rank": 4, "world_size": 8, "pg_config": config})
    profile.op(operation, 0, 50, rf_id=1).op(span, 5, 30, rf_id=2, cat="user_annotation")
    (node,) = convert(tmp_path, host, profile).trace.nodes.where(name=span)
    assert (node.comm_src, node.comm_dst, node.comm_tag) == told


def test_facts_in_kernel_arguments_come_first(tmp_path: Path) -> None:
    facts = {
        "Collective name": "_allgather_base", "In msg nelems": 10, "Out msg nelems": 20,
        "dtype": "BFloat16", "Group size": 2, "Process Group Name": "3",
        "Process Group Ranks": "[2, 5]",
    }  # fmt: skip
    profile = Profile().call("launch", 1, 1, 3).kernel("ncclDevKernel_Generic()", 4, 4, 3, **facts)
    result = convert(tmp_path, None, profile)
    (node,) = result.trace.nodes.where(type=NodeType.COMM_COLL)
    assert (node.comm_type, node.comm_size, node.pg_name) == (CollectiveType.ALL_GATHER, 20, "3")
    assert result.trace.groups[0].ranks == (2, 5)


def test_a_communication_kernel_without_any_facts_is_reported(tmp_path: Path) -> None:
    profile = Profile().call("launch", 1, 1, 3).kernel("ncclDevKernel_Generic()", 4, 4, 3)
    result = convert(tmp_path, None, profile)
    (node,) = result.trace.nodes.where(type=NodeType.COMM_COLL)
    assert node.comm_type is None
    assert any(" no type" in warning for warning in result.report.warnings)


def test_the_process_group_node_names_groups_and_an_empty_list_is_all_ranks(tmp_path: Path) -> None:
    text = (
        '[{"pg_name": "0", "pg_desc": "default_pg", "ranks": [], "group_size": 4}, '
        '{"pg_name": "a1f", "ranks": [1, 3], "group_size": 2}]'
    )
    host = HostRecording().op(3, "## process_group:init ##", inputs=([text], [[]], ["String"]))
    result = convert(tmp_path, host, None)
    groups = [(group.name, group.ranks) for group in result.trace.groups]
    assert groups == [("0", (0, 1, 2, 3)), ("a1f", (1, 3))]
    assert named(result, "## process_group:init ##").type is NodeType.METADATA


def test_every_record_is_accounted_for(tmp_path: Path) -> None:
    host, profile = one_launch()
    profile.events += [
        {"ph": "s", "cat": "ac2g", "id": 7, "pid": 1, "tid": 1, "ts": 1},
        {"ph": "X", "cat": "python_function", "name": "f", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
        {"ph": "X", "cat": "cuda_sync", "name": "Sync", "pid": 0, "tid": 7, "ts": 1, "dur": 1},
        {"ph": "X", "cat": "news", "name": "?", "pid": 0, "tid": 7, "ts": 1, "dur": 1},
        {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 9},
    ]
    report = convert(tmp_path, host, profile).report.as_dict()
    assert sum(tally["total"] for tally in report["records"].values()) == len(profile.events)
    assert_sums_add_up(report)
    assert report["records"]["cpu_op"]["merged"] == 2
    (left_out,) = report["records"]["news"]["left_out"]
    assert left_out["count"] == 1


def test_a_bare_list_of_events_is_a_profile(tmp_path: Path) -> None:
    profile = Profile().op("a", 1, 2)
    path = write_json(tmp_path / "device.json", profile.events)
    assert len(chakra_et.convert(device=path).trace.nodes) == 1
