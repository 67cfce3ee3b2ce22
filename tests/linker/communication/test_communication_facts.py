"""What a trace says of communication: type, group, size and peers, from every source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from accounts import converted
from recordings import HostRecording, Profile

from chakra_et.conversion import Conversion, trace_set
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.directory import convert_directory
from chakra_et.linker.output.report import RESTS
from chakra_et.model import EdgeKind
from chakra_et.passes import cure
from chakra_et.recording.libraries import OPERATIONS, operation
from chakra_et.replay import replay
from chakra_et.validators import Severity


def communication(result: Conversion) -> list[tuple[str, Any, Any, Any]]:
    """Name, type of collective, bytes and group of each communication node."""
    return [
        (node.name, node.attributes.get("comm_type"), node.attributes.get("comm_size"),
         node.attributes.get("pg_name"))
        for node in result.trace.nodes
        if node.type in (NodeType.COMM_COLL, NodeType.COMM_SEND, NodeType.COMM_RECV)
    ]  # fmt: skip


def facts(name: str, **more: Any) -> dict[str, Any]:
    known = {"Collective name": name, "In msg nelems": 1024, "Out msg nelems": 1024,
             "dtype": "Half", "Process Group Name": "1", "Group size": 2}  # fmt: skip
    return {**known, **{key.replace("_", " "): value for key, value in more.items()}}


def one_kernel(name: str, **args: Any) -> Profile:
    profile = Profile().op("op", 0, 10).call("launch", 1, 1, 9)
    return profile.kernel(name, 5, 5, 9, **args)


def test_groups_tell_collectives_apart(tmp_path: Path) -> None:
    profile = one_kernel("ncclDevKernel_AllReduce_Sum_f16_RING_LL", **facts("allreduce"))
    other = {**facts("allreduce"), "Process Group Name": "2", "Process Group Ranks": "[0, 2]"}
    profile.call("launch", 12, 1, 10).kernel("ncclDevKernel_AllReduce", 15, 5, 10, **other)
    profile.info = {"rank": 0, "world_size": 4, "pg_config": [{"pg_name": "1", "ranks": [0, 1]}]}
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert [group for *_, group in communication(result)] == ["1", "2"]
    assert {g.name: g.ranks for g in result.trace.groups} == {"1": (0, 1), "2": (0, 2)}


def test_a_bare_kernel_takes_the_facts_of_the_host_node(tmp_path: Path) -> None:
    host = HostRecording().op(3, "record_param_comms", rf_id=7, collective_name="allreduce",
                              dtype="Float", in_msg_nelems=100, pg_name="3", pg_size=4)  # fmt: skip
    profile = Profile().op("record_param_comms", 0, 10, rf_id=7).call("launch", 1, 1, 9)
    profile.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 5, 5, 9)
    result = converted(host.write(tmp_path / "h.json"), profile.write(tmp_path / "d.json"))
    assert [fact[1:] for fact in communication(result)] == [(CollectiveType.ALL_REDUCE, 400, "3")]
    assert "host attributes" in result.report.communication[0]["facts_from"]


def records(profile: Profile, *names: str, peers: bool = False) -> Profile:
    for place, name in enumerate(names):
        more = {"Dst Rank" if name == "send" else "Src Rank": 1} if peers else {}
        profile.op("record_param_comms", 10 * place, 5, **facts(name), **more)
    return profile


def test_coalesced_collectives_share_a_kernel(tmp_path: Path) -> None:
    profile = records(Profile(), *["_allgather_base"] * 3)
    profile.op("nccl:coalesced", 40, 10, cat="user_annotation").call("launch", 41, 1, 9)
    profile.kernel("ncclDevKernel_AllGather_RING_LL(ncclDevComm*)", 50, 5, 9)
    profile.events[-1]["name"] = "ncclDevKernel_Generic"
    result = converted(device=profile.write(tmp_path / "d.json"))
    found = communication(result)
    assert found == [("ncclDevKernel_Generic", CollectiveType.ALL_GATHER, 3 * 2048, "1")]


def collective(profile: Profile, at: float, name: str, **more: Any) -> Profile:
    args = {**facts(name), **{key.replace("_", " "): value for key, value in more.items()}}
    return profile.op("record_param_comms", at, 5, **args)


def test_collectives_of_several_kinds_and_groups_in_one_kernel(tmp_path: Path) -> None:
    profile = collective(Profile(), 0, "_allgather_base")
    collective(profile, 10, "_reduce_scatter_base")
    collective(profile, 20, "_allgather_base")
    collective(profile, 30, "_allgather_base", Process_Group_Name="2")
    profile.op("nccl:coalesced", 40, 10, cat="user_annotation").call("launch", 41, 1, 9)
    profile.kernel("ncclDevKernel_Generic", 50, 5, 9)
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert [fact[1:] for fact in communication(result)] == [
        (CollectiveType.ALL_GATHER, 2 * 2048, "1"),
        (CollectiveType.REDUCE_SCATTER, 2048, "1"),
        (CollectiveType.ALL_GATHER, 2048, "2"),
    ]


def test_records_of_another_collective_than_the_kernels_stay_alone(tmp_path: Path) -> None:
    profile = collective(Profile(), 0, "allreduce")
    profile.op("nccl:coalesced", 40, 10, cat="user_annotation").call("launch", 41, 1, 9)
    profile.kernel("ncclDevKernel_AllGather_RING_LL", 50, 5, 9)
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert [fact[:2] for fact in communication(result)] == [
        ("record_param_comms", CollectiveType.ALL_REDUCE),
        ("ncclDevKernel_AllGather_RING_LL", CollectiveType.ALL_GATHER),
    ]


def batches(rank: int, count: int = 1) -> Profile:
    """Batches of a send to the other of two ranks and a receive from it, then a kernel."""
    profile = Profile(info={"rank": rank, "world_size": 2,
                            "pg_config": [{"pg_name": "1", "ranks": [0, 1]}]})  # fmt: skip
    profile.op("step", 0, 100 * count + 5)
    for at in range(0, 100 * count, 100):
        collective(profile, at + 1, "send", Dst_Rank=1 - rank)
        collective(profile, at + 10, "recv", Src_Rank=1 - rank)
        profile.op("nccl:coalesced", at + 40, 10, cat="user_annotation")
        profile.call("launch", at + 41, 1, at + 1)
        profile.kernel("ncclDevKernel_SendRecv(ncclDevComm*)", at + 50, 5, at + 1)
    last = 100 * count
    profile.call("launch", last + 1, 1, 999).kernel("gemm", last + 2, 3, 999)
    return profile


def test_each_message_of_a_batch_is_a_node(tmp_path: Path) -> None:
    result = converted(device=batches(0).write(tmp_path / "d.json"))
    send, recv = result.trace.nodes.where(name="ncclDevKernel_SendRecv(ncclDevComm*)")
    assert (send.type, recv.type) == (NodeType.COMM_SEND, NodeType.COMM_RECV)
    assert (send.comm_dst, recv.comm_src) == (1, 1)
    for node in (send, recv):
        found = [node.attributes[key] for key in ("comm_size", "comm_tag", "pg_name", "stream")]
        assert found == [2048, 0, "1", 7]
        assert node.attributes["is_cpu_op"] is False
    calls = result.trace.nodes.where(name="record_param_comms")
    assert [(node.type, node.attributes["is_cpu_op"]) for node in calls] == 2 * [
        (NodeType.COMP, True)
    ]
    assert result.report.added == {"further communications of a kernel": 1, RESTS: 1}
    assert result.report.nodes == {"COMP": 8, "COMM_SEND": 1, "COMM_RECV": 1}


@pytest.mark.parametrize("kernel", ["send", "recv", "allreduce"])
def test_a_kernel_that_names_one_operation_of_its_batch(tmp_path: Path, kernel: str) -> None:
    profile = collective(Profile(info={"rank": 0}), 0, "send", Dst_Rank=1)
    collective(profile, 10, "recv", Src_Rank=1)
    collective(profile, 20, "allreduce")
    if kernel != "allreduce":
        profile.events.pop()
    profile.op("nccl:coalesced", 40, 10, cat="user_annotation").call("launch", 41, 1, 9)
    profile.kernel("ncclDevKernel_Generic", 50, 5, 9, **facts(kernel))
    result = converted(device=profile.write(tmp_path / "d.json"))
    found = [node.type for node in result.trace.nodes if "comm_size" in node.attributes]
    assert sorted(found) == [NodeType.COMM_SEND, NodeType.COMM_RECV] + (
        [NodeType.COMM_COLL] if kernel == "allreduce" else []
    )


def test_peers_of_positional_inputs_are_places_in_the_group(tmp_path: Path) -> None:
    groups = '[{"pg_name": "5", "ranks": [1, 3], "group_size": 2}]'
    host = HostRecording()
    host.op(9, "## process_group:init ##", inputs=([groups], [[]], ["String"]))
    profile = Profile(info={"rank": 1, "world_size": 4})
    for number, name in ((1, "send"), (2, "recv")):
        tensors = [[number, number, 0, 100 * number, 4, "cuda:0"]]
        values = [tensors, [number, True], ["5", "pp"], 1, name, [], [], 1, 2, 2]
        host.op(9 + number, "record_param_comms", rf_id=number, inputs=(values, [], []))
        profile.op("record_param_comms", 10 * number, 5, rf_id=number)
    profile.call("launch", 41, 1, 9).kernel("ncclDevKernel_SendRecv", 50, 5, 9)
    result = converted(host.write(tmp_path / "h.json"), profile.write(tmp_path / "d.json"))
    send, recv = result.trace.nodes.where(name="ncclDevKernel_SendRecv")
    assert (send.comm_dst, send.comm_size, send.comm_src) == (3, 400, 1)
    assert (recv.comm_src, recv.comm_size, recv.comm_dst) == (3, 800, 1)


def test_messages_of_a_batch_share_its_kernels_time_and_edges(tmp_path: Path) -> None:
    result = converted(device=batches(0, count=2).write(tmp_path / "d.json"))
    found = result.trace.nodes.where(name="ncclDevKernel_SendRecv(ncclDevComm*)")
    first, second = found[:2], found[2:]
    assert [node.duration_ns for node in found] == 4 * [5000]
    assert first[0].start_ns == first[1].start_ns
    assert [node.same_kernel for node in found] == [None, first[0].id, None, second[0].id]
    assert first[0].edges == first[1].edges
    earlier = {node.id for node in first}
    for node in (*second, *result.trace.nodes.where(name="gemm")):
        before = {source for source, kind, _ in node.edges if kind is EdgeKind.STREAM}
        assert before == ({node.id for node in second} if node.name == "gemm" else earlier)


@pytest.mark.parametrize("count", [1, 3])
def test_two_ranks_exchange_their_batches(tmp_path: Path, count: int) -> None:
    for rank in range(2):
        batches(rank, count).write(tmp_path / f"device.{rank}.json")
    conversions = convert_directory(tmp_path, None)
    cured = cure(trace_set(conversions), "astra-sim")
    assert cured.left.count(Severity.ERROR) == 0
    kinds = [[node.type for node in trace.nodes] for trace in cured.traces.values()]
    assert [k.count(NodeType.COMM_SEND) for k in kinds] == [count, count]
    assert [k.count(NodeType.COMM_RECV) for k in kinds] == [count, count]
    replayed = replay(trace_set(conversions))
    assert (replayed.matched, replayed.unmatched) == (4 * count, {})
    for figures in replayed.figures.values():
        assert abs(figures.span_error) < 0.01
        assert figures.replayed.exposed_comm_ns == figures.recorded.exposed_comm_ns


def test_work_without_a_launch_has_the_facts_of_the_operation_that_it_names(
    tmp_path: Path,
) -> None:
    profile = collective(Profile(), 0, "allreduce", External_id=5)
    profile.kernel("ncclDevKernel_Generic", 50, 5, 77, **{"External id": 5})
    result = converted(device=profile.write(tmp_path / "d.json"))
    found = communication(result)
    assert found == [("ncclDevKernel_Generic", CollectiveType.ALL_REDUCE, 2048, "1")]


def test_a_record_that_closed_before_the_launch(tmp_path: Path) -> None:
    profile = Profile().op("c10d::allreduce_", 0, 30)
    profile.op("record_param_comms", 2, 5, **facts("allreduce")).call("launch", 10, 1, 9)
    profile.kernel("ncclDevKernel_Generic", 50, 5, 9)
    result = converted(device=profile.write(tmp_path / "d.json"))
    found = communication(result)
    assert found == [("ncclDevKernel_Generic", CollectiveType.ALL_REDUCE, 2048, "1")]


@pytest.mark.parametrize(
    ("name", "collective", "type_"),
    [
        ("ncclDevKernel_SendRecv(ncclDevComm*)", "send", NodeType.COMM_SEND),
        ("ncclDevKernel_SendRecv(ncclDevComm*)", "recv", NodeType.COMM_RECV),
        ("ncclDevKernel_SendRecv(ncclDevComm*)", "all_to_allv", CollectiveType.ALL_TO_ALL),
        ("ncclDevKernel_SendRecv(ncclDevComm*)", "gather", CollectiveType.GATHER),
        ("ncclDevKernel_Generic", "_reduce_oop", CollectiveType.REDUCE),
        ("anything at all", "reduce_scatter_tensor_coalesced", CollectiveType.REDUCE_SCATTER),
    ],
)
def test_the_collective_name_tells(tmp_path: Path, name: str, collective: str, type_: Any) -> None:
    profile = one_kernel(name, **facts(collective))
    (node,) = converted(device=profile.write(tmp_path / "d.json")).trace.nodes.where(name=name)
    if isinstance(type_, NodeType):
        assert node.type is type_
    else:
        assert (node.type, node.attributes["comm_type"]) == (NodeType.COMM_COLL, type_)


def test_a_kernel_of_unknown_kind_is_no_error(tmp_path: Path) -> None:
    report = converted(device=one_kernel("ncclDevKernel_SendRecv").write(tmp_path / "d")).report
    assert any(" no type" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("kernel", "collective"),
    [
        ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", CollectiveType.ALL_REDUCE),
        ("ncclKernel_Reduce_RING_LL_Sum_float(ncclWorkElem)", CollectiveType.REDUCE),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t", CollectiveType.ALL_GATHER),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", CollectiveType.REDUCE_SCATTER),
        ("ncclDevKernel_Broadcast_RING_LL", CollectiveType.BROADCAST),
        ("ncclDevKernel_AllGatherV_RING_LL", CollectiveType.ALL_GATHER),
        ("ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_f32", CollectiveType.ALL_REDUCE),
        ("ncclSymkDevKernel_AllGather_LL", CollectiveType.ALL_GATHER),
        ("rcclDevKernel_AllReduce", CollectiveType.ALL_REDUCE),
    ],
)
def test_names_of_every_generation(tmp_path: Path, kernel: str, collective: CollectiveType) -> None:
    result = converted(device=one_kernel(kernel).write(tmp_path / "d.json"))
    assert [fact[1] for fact in communication(result)] == [collective]


def test_every_type_of_the_enum_has_a_name() -> None:
    named = {kind for kind in OPERATIONS.values() if isinstance(kind, CollectiveType)}
    # REDUCE_SCATTER_BLOCK is a word of MPI.
    assert set(CollectiveType) - named <= {CollectiveType.REDUCE_SCATTER_BLOCK}
    assert operation("reduce_scatter_block") is CollectiveType.REDUCE_SCATTER_BLOCK


@pytest.mark.parametrize("kernel", ["void cross_device_reduce_1stage<c10::Half, 2>",
                                    "deep_ep::internode::dispatch"])  # fmt: skip
def test_kernels_that_communicate_by_themselves_are_suspects(tmp_path: Path, kernel: str) -> None:
    result = converted(device=one_kernel(kernel).write(tmp_path / "d.json"))
    assert communication(result) == []
    assert any("without a collective library" in w for w in result.report.warnings)


@pytest.mark.parametrize("with_host", [False, True])
def test_split_lists_that_were_cut(tmp_path: Path, with_host: bool) -> None:
    args = facts("all_to_allv", In_split_size="[11,12,13,...]")
    profile = Profile().op("record_param_comms", 0, 10, rf_id=7).call("launch", 1, 1, 9)
    profile.kernel("ncclDevKernel_SendRecv", 5, 5, 9, **args)
    host = HostRecording().op(3, "record_param_comms", rf_id=7, collective_name="all_to_allv",
                              in_split_size="[11, 12, 13, 14]")  # fmt: skip
    result = converted(
        host.write(tmp_path / "h.json") if with_host else None, profile.write(tmp_path / "d.json")
    )
    assert communication(result)[0][1:3] == (CollectiveType.ALL_TO_ALL, 2048)
    assert any("that the profiler cut" in w for w in result.report.warnings) is not with_host


def test_members_of_groups_that_were_cut(tmp_path: Path) -> None:
    entries = [{"pg_name": "0", "ranks": [], "group_size": 8},
               {"pg_name": "1", "ranks": list(range(200)), "group_size": 200}]  # fmt: skip
    text = json.dumps(entries)[:300]
    host = HostRecording()
    host.op(3, "## process_group:init ##", inputs=([text], [[]], ["String"]))
    host.op(4, "record_param_comms", collective_name="allreduce", pg_name="1",
            inputs=([[[[1, 1, 0, 4, 4, "cpu"]]], 5, ["1", ""], 3, "allreduce", [], [], 0, 1, 200],
                    [], []))  # fmt: skip
    result = converted(host.write(tmp_path / "h.json"))
    groups = {group.name: group for group in result.trace.groups}
    assert groups["0"].ranks == tuple(range(8))
    assert groups["1"].ranks == ()
    assert any("cuts the members of process group '1'" in w for w in result.report.warnings)


def test_a_list_cut_in_the_profile_is_rebuilt_from_its_stride(tmp_path: Path) -> None:
    args = facts("allreduce", Process_Group_Ranks="[0, 8, ..., 248]", Global_rank_start=0,
                 Global_rank_stride=8)  # fmt: skip
    profile = one_kernel("ncclDevKernel_AllReduce", **{**args, "Group size": 32})
    (group,) = converted(device=profile.write(tmp_path / "d.json")).trace.groups
    assert group.ranks == tuple(range(0, 256, 8))


@pytest.mark.parametrize("ranks", ["[0, 1]", [0, 1], {"0": 0, "1": 1}])
def test_ranks_as_text_list_or_table(tmp_path: Path, ranks: Any) -> None:
    info = {"rank": 0, "world_size": 4, "pg_config": [{"pg_name": "5", "ranks": ranks}]}
    profile = Profile(info=info).op("a", 1, 1)
    (group,) = converted(device=profile.write(tmp_path / "d.json")).trace.groups
    assert group.ranks == (0, 1)


def test_group_0_need_not_be_all_ranks(tmp_path: Path) -> None:
    info = {"rank": 0, "world_size": 8, "pg_config": [{"pg_name": "0", "ranks": [0, 1, 2, 3]}]}
    profile = Profile(info=info).op("a", 1, 1)
    (group,) = converted(device=profile.write(tmp_path / "d.json")).trace.groups
    assert (group.name, group.ranks) == ("0", (0, 1, 2, 3))


def test_names_of_groups_are_any_text(tmp_path: Path) -> None:
    profile = one_kernel("ncclDevKernel_AllReduce", **facts("allreduce"))
    profile.events[-1]["args"]["Process Group Name"] = "a3f9c1"
    assert communication(converted(device=profile.write(tmp_path / "d.json")))[0][3] == "a3f9c1"


@pytest.mark.parametrize("span", ["nccl:all_to_all", "c10d::alltoall_base_"])
def test_a_span_around_the_launch_tells_the_collective(tmp_path: Path, span: str) -> None:
    profile = Profile().op(span, 0, 10).call("launch", 1, 1, 9)
    profile.kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", 5, 5, 9)
    found = communication(converted(device=profile.write(tmp_path / "d.json")))
    assert [fact[1] for fact in found] == [CollectiveType.ALL_TO_ALL]


# 70 (matching one collective across ranks): chakra_et/replay/matching.py, tests/test_replay.py.


@pytest.mark.parametrize(
    ("dtype", "width"), [("Half", 2), ("BFloat16", 2), ("Float", 4), ("Long", 8)]
)
def test_sizes_are_bytes(tmp_path: Path, dtype: str, width: int) -> None:
    profile = one_kernel("ncclDevKernel_AllReduce", **{**facts("allreduce"), "dtype": dtype})
    assert communication(converted(device=profile.write(tmp_path / "d.json")))[0][2] == 1024 * width


def test_the_rank_is_told_by_the_place_in_a_group(tmp_path: Path) -> None:
    args = facts("allreduce", Process_Group_Ranks="[3, 7]", Rank=1)
    path = one_kernel("ncclDevKernel_AllReduce", **args).write(tmp_path / "rank5.json")
    assert converted(device=path).report.rank == 7
    bare = Profile().op("a", 1, 1).write(tmp_path / "rank5.json")
    assert converted(device=bare).report.rank == 5
    assert converted(device=bare, rank=2).report.rank == 2


@pytest.mark.parametrize("nelems", [None, "many", -5, 1.5, 2**62])
def test_a_size_that_cannot_be_is_none(tmp_path: Path, nelems: Any) -> None:
    profile = one_kernel("ncclDevKernel_AllReduce", **{**facts("allreduce"), "dtype": "Double"})
    profile.events[-1]["args"]["In msg nelems"] = nelems
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert communication(result)[0][2] is None
    said = "1 communication node has no size, as no input states it: 1 ALL_REDUCE"
    assert said in result.report.warnings


def test_spans_that_only_the_profile_saw_have_no_size(tmp_path: Path) -> None:
    host = HostRecording().op(3, "step", rf_id=1)
    profile = Profile().op("step", 0, 10, rf_id=1)
    profile.op("gloo:all_reduce", 12, 5, cat="user_annotation").op("gloo:barrier", 20, 5)
    result = converted(host.write(tmp_path / "h.json"), profile.write(tmp_path / "d.json"))
    assert [fact[:3] for fact in communication(result)] == [
        ("gloo:all_reduce", CollectiveType.ALL_REDUCE, None),
        ("gloo:barrier", CollectiveType.BARRIER, 0),
    ]
    assert (
        "1 communication node has no size, as no input states it (1 of them is an operation that "
        "only the profile saw): 1 ALL_REDUCE"
    ) in result.report.warnings


@pytest.mark.parametrize("size", [10**12, -3])
def test_a_group_larger_than_can_be(tmp_path: Path, size: int) -> None:
    info = {"rank": 0, "pg_config": [{"pg_name": "0", "ranks": [], "pg_size": size}]}
    result = converted(device=Profile(info=info).op("a", 1, 1).write(tmp_path / "d.json"))
    (group,) = result.trace.groups
    assert (group.ranks, group.size, result.report.world_size) == ((), 0, None)
    assert any("which is impossible" in warning for warning in result.report.warnings)


@pytest.mark.parametrize("peer", [2**31, -1, "x", None])
def test_a_peer_that_cannot_be_is_none(tmp_path: Path, peer: Any) -> None:
    profile = one_kernel("ncclDevKernel_SendRecv", **facts("send"), **{"Dst Rank": peer})
    result = converted(device=profile.write(tmp_path / "d.json"))
    (node,) = result.trace.nodes.where(type=NodeType.COMM_SEND)
    assert node.comm_dst is None


# 72: test_a8.py. 73 (sizes of 0) and 74 (sends and receives that do not match): rules of
# `chakra validate`, tests/validators/test_rules.py and test_across_ranks.py. 75 (order within a
# process group): chakra_et/linker/edges/group.py, tests/test_link.py.
