"""What carries a collective on a device, and its size: counted once, by what the files tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recordings import MAIN, HostRecording, Profile

from chakra_et import CollectiveType, Conversion, NodeType, convert
from chakra_et.model import Node, TraceSet
from chakra_et.recording.libraries import element_bytes
from chakra_et.replay import replay
from chakra_et.validators import validate

RECORD = "record_param_comms"
NESTED: Any = [8]
for _ in range(700):
    NESTED = [NESTED]
OWN_KERNEL = "void aiter::cross_device_reduce_2stage<__hip_bfloat16, 2>(aiter::RankData*, int)"
INFO = {"backend": "nccl", "rank": 0, "world_size": 2}


def told(name: str, elements: int = 4096, dtype: str = "BFloat16", **more: Any) -> dict[str, Any]:
    """Arguments of a record, or of a kernel, of a collective."""
    return {
        "Collective name": name, "In msg nelems": elements, "dtype": dtype, "Group size": 2,
        "Process Group Name": "0", "Process Group Ranks": "[0, 1]", **more,
    }  # fmt: skip


def recorded(profile: Profile, name: str = "allreduce", **more: Any) -> Profile:
    """A record of a collective from 0 to 100 us."""
    return profile.op(RECORD, 0, 100, **told(name, **more))


def launched(profile: Profile, at: float, name: str, start: float, dur: float, **more: Any) -> None:
    """Device work and the call that launched it."""
    correlation = len(profile.events) + 1
    profile.call("cudaLaunchKernel", at, 2, correlation)
    profile.kernel(name, start, dur, correlation, **more)


def converted(profile: Profile, folder: Path, rank: int = 0) -> Conversion:
    return convert(device=profile.write(folder / f"device.{rank}.json"))


def communication(result: Conversion) -> list[Node]:
    kinds = (NodeType.COMM_COLL, NodeType.COMM_SEND, NodeType.COMM_RECV)
    return [node for node in result.trace.nodes if node.type in kinds]


def only(result: Conversion) -> Node:
    (node,) = communication(result)
    return node


def span_us(node: Node) -> tuple[float, float]:
    """Start and end, from the first start on the profile's clock."""
    base = 1_700_000_000_000_000_000
    return (node.start_ns - base) / 1000, (node.start_ns + node.duration_ns - base) / 1000


def copy(profile: Profile, at: float, start: float, dur: float, **more: Any) -> None:
    name = "Memcpy PtoP (Device -> Device)"
    launched(profile, at, name, start, dur, cat="gpu_memcpy", bytes=2048, **more)


@pytest.mark.parametrize(
    "kernel", [OWN_KERNEL, "oneccl_allreduce_large", "some_library::exchange<float>()"]
)
@pytest.mark.parametrize("inside", [None, "aten::_foreach_mul_"])
def test_what_a_record_launched_carries_its_collective(
    tmp_path: Path, kernel: str, inside: str | None
) -> None:
    profile = recorded(Profile(info=INFO))
    if inside:
        profile.op(inside, 8, 10)
    launched(profile, 10, kernel, 20, 30)
    profile.op("aten::mm", 110, 20)
    launched(profile, 115, "gemm", 130, 10)
    result = converted(profile, tmp_path)
    node = only(result)
    assert (node.name, node.comm_type, node.comm_size) == (kernel, CollectiveType.ALL_REDUCE, 8192)
    assert (node.pg_name, node.is_cpu_op, span_us(node)) == ("0", False, (20, 50))
    (record,) = result.trace.nodes.where(name=RECORD)
    assert (record.type, record.is_cpu_op) == (NodeType.COMP, True)
    assert result.report.warnings == []


@pytest.mark.parametrize(
    "span", ["xccl:allreduce", "xccl::allreduce", "nccl:all_reduce", "hccl:all_reduce"]
)
def test_what_the_range_of_a_process_group_launched_carries_it(tmp_path: Path, span: str) -> None:
    shapes = {"Input Dims": [[25557032]], "Input type": ["float"]}
    profile = Profile(info=INFO).op(span, 0, 30, cat="user_annotation", **shapes)
    launched(profile, 5, "kernel_of_a_library", 15, 100)
    node = only(converted(profile, tmp_path))
    assert (node.comm_type, node.comm_size) == (CollectiveType.ALL_REDUCE, 102_228_128)


@pytest.mark.parametrize("name", ["allreduce", "wait"])
def test_a_kernel_launched_after_its_record_had_closed_carries_it(
    tmp_path: Path, name: str
) -> None:
    """As with XCCL: the operation of the framework around both launches it."""
    profile = Profile(info=INFO).op("c10d::allreduce_", 0, 60).op(RECORD, 2, 5, **told(name))
    launched(profile, 20, "kernel_of_a_library", 50, 5)
    found = communication(converted(profile, tmp_path))
    assert [(n.name, n.comm_size) for n in found] == (
        [("kernel_of_a_library", 8192)] if name == "allreduce" else []
    )


def test_copies_carry_a_collective_together(tmp_path: Path) -> None:
    profile = recorded(Profile(info=INFO), "_allgather_base", elements=1024)
    copy(profile, 5, 20, 30)
    copy(profile, 15, 50, 30)
    result = converted(profile, tmp_path)
    node = only(result)
    assert (node.comm_type, node.comm_size) == (CollectiveType.ALL_GATHER, 2048)
    assert (span_us(node), node.device_pieces) == ((20, 80), 2)
    tally = result.report.device_events
    assert (tally.total, tally.kept, tally.merged) == (2, 1, 1)


def test_a_kernel_of_the_library_stands_before_what_prepares_and_unpacks(tmp_path: Path) -> None:
    profile = recorded(Profile(info=INFO), "allgather", elements=1024)
    copy(profile, 5, 20, 10)
    launched(profile, 15, "ncclDevKernel_AllGather_RING_LL()", 40, 30, stream=20)
    profile.op("aten::copy_", 30, 10)
    launched(profile, 32, "elementwise_copy", 80, 5)
    result = converted(profile, tmp_path)
    assert (only(result).stream, span_us(only(result))) == (20, (40, 70))
    assert only(result).device_pieces is None
    names = [node.name for node in result.trace.nodes if node.is_cpu_op is False]
    assert len(names) == 3


def alltoall(kernels: int, rank: int = 0, **more: Any) -> Profile:
    """An all-to-all of one MiB in so many kernels."""
    profile = Profile(info={**INFO, "rank": rank})
    facts = told("all_to_allv", elements=262_144, dtype="Float", Rank=rank)
    profile.op(RECORD, 0, 80, **facts)
    for i in range(kernels):
        name = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
        launched(profile, 5 + 10 * i, name, 20 + 12 * i, 10, stream=20, **facts, **more)
    return profile


@pytest.mark.parametrize("kernels", [1, 2, 4])
def test_one_collective_of_several_kernels_is_one(tmp_path: Path, kernels: int) -> None:
    result = converted(alltoall(kernels), tmp_path)
    node = only(result)
    assert (node.comm_type, node.comm_size) == (CollectiveType.ALL_TO_ALL, 1 << 20)
    assert span_us(node) == (20, 30 + 12 * (kernels - 1))
    assert result.report.communication[0]["bytes"] == 1 << 20
    assert sum(tally.total for tally in result.report.records.values()) == 2 * kernels + 1


def test_ranks_match_though_one_took_more_kernels(tmp_path: Path) -> None:
    pair = [converted(alltoall(n, rank), tmp_path, rank) for rank, n in enumerate((4, 1))]
    traces = TraceSet({rank: result.trace for rank, result in enumerate(pair)})
    assert validate(traces).rules == set()


def test_what_comes_after_on_the_stream_waits_for_all_pieces(tmp_path: Path) -> None:
    profile = alltoall(3)
    launched(profile, 90, "ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 100, 5, stream=20)
    trace = converted(profile, tmp_path).trace
    (last,) = trace.nodes.where(name="ncclDevKernel_AllReduce_Sum_f32_RING_LL()")
    before = {trace.node(source).comm_size for source, *_ in last.edges}
    assert 1 << 20 in before


def test_pieces_on_several_streams_are_one_that_both_streams_wait_for(tmp_path: Path) -> None:
    profile = Profile(info=INFO)
    for stream, start in ((20, 8), (21, 9)):
        launched(profile, 1, f"before_{stream}", start, 5, stream=stream)
    profile.op(RECORD, 10, 40, **told("_allgather_base", 1024))
    copy(profile, 15, 20, 30, stream=20)
    copy(profile, 25, 24, 40, stream=21)
    for stream, start in ((20, 55), (21, 70)):
        launched(profile, 60, f"after_{stream}", start + 10, 5, stream=stream)
    result = converted(profile, tmp_path)
    trace, node = result.trace, only(result)
    assert (span_us(node), node.stream, node.device_pieces) == ((20, 64), 20, 2)
    before = {trace.node(source).name for source, kind, _ in node.edges if kind.label == "stream"}
    assert before == {"before_20", "before_21"}
    for name in ("after_20", "after_21"):
        (after,) = trace.nodes.where(name=name)
        assert node.id in {source for source, kind, _ in after.edges if kind.label == "stream"}
    assert replay(TraceSet({0: trace})).figures[0].span_error == 0


def test_what_began_on_another_stream_before_the_last_piece_ended_waits_for_none(
    tmp_path: Path,
) -> None:
    profile = Profile(info=INFO).op(RECORD, 0, 40, **told("_allgather_base", 1024))
    copy(profile, 5, 20, 60, stream=20)
    copy(profile, 15, 22, 10, stream=21)
    launched(profile, 45, "early", 60, 10, stream=21)
    result = converted(profile, tmp_path)
    (early,) = result.trace.nodes.where(name="early")
    assert span_us(only(result)) == (20, 80)
    assert only(result).id not in {source for source, *_ in early.edges}
    assert not any("contradict" in warning for warning in result.report.warnings)


def test_what_a_record_runs_between_pieces_is_a_piece_too(tmp_path: Path) -> None:
    profile = recorded(Profile(info=INFO), "_allgather_base", elements=1024)
    launched(profile, 5, "barrier_kernel", 20, 2, stream=20)
    copy(profile, 15, 22, 30, stream=21)
    launched(profile, 25, "barrier_kernel", 60, 2, stream=20)
    result = converted(profile, tmp_path)
    assert (span_us(only(result)), only(result).device_pieces) == ((20, 62), 3)


@pytest.mark.parametrize("differ", ["device", "facts", "number"])
def test_pieces_on_two_devices_or_of_other_facts_stay_apart(tmp_path: Path, differ: str) -> None:
    profile = recorded(Profile(info=INFO))
    for i in range(2):
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL()"
        elements = 4096 * (1 + i * (differ == "facts"))
        numbered = told("allreduce", elements, Seq=7 + i * (differ == "number"))
        launched(profile, 10 + 10 * i, name, 20 + 40 * i, 30, **numbered)
        profile.events[-1]["args"]["device"] = i * (differ == "device")
    sizes = [node.comm_size for node in communication(converted(profile, tmp_path))]
    assert sizes == [8192, 8192 * (1 + (differ == "facts"))]


def test_pieces_without_arguments_are_of_the_collective_that_others_name(tmp_path: Path) -> None:
    profile = recorded(Profile(info=INFO))
    for i, args in enumerate(({}, told("allreduce"), {})):
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL()"
        launched(profile, 10 + 10 * i, name, 20 + 20 * i, 10, **args)
    node = only(converted(profile, tmp_path))
    assert (node.comm_size, node.device_pieces, span_us(node)) == (8192, 3, (20, 70))


@pytest.mark.parametrize("name", ["wait", "coalesced"])
def test_a_record_of_no_collective_carries_nothing(tmp_path: Path, name: str) -> None:
    profile = Profile(info=INFO).op(RECORD, 0, 100, **told(name))
    launched(profile, 10, "fill", 20, 5)
    assert communication(converted(profile, tmp_path)) == []


def test_a_memset_sends_nothing(tmp_path: Path) -> None:
    profile = recorded(Profile(info=INFO))
    launched(profile, 10, "Memset (Device)", 20, 5, cat="gpu_memset")
    result = converted(profile, tmp_path)
    assert only(result).name == RECORD
    assert any("host records stand for them" in warning for warning in result.report.warnings)


CUSTOM = {"Input Dims": [[], [8, 4096], [8, 4096]],
          "Input type": ["Scalar", "c10::BFloat16", "c10::BFloat16"]}  # fmt: skip


@pytest.mark.parametrize(
    "operation", ["_C_custom_ar::all_reduce", "sgl_kernel::all_reduce_unreg", "aiter::allreduce_"]
)
def test_the_shapes_of_the_operation_around_tell_the_size(tmp_path: Path, operation: str) -> None:
    profile = Profile(info=INFO).op(operation, 5, 20, **CUSTOM)
    kernel = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, int)"
    launched(profile, 10, kernel, 20, 30)
    node = only(converted(profile, tmp_path))
    assert (node.comm_type, node.comm_size, node.pg_name) == (CollectiveType.ALL_REDUCE, 65536, "0")


def test_a_kernel_made_for_a_number_of_ranks_tells_its_group(tmp_path: Path) -> None:
    config = [{"pg_name": str(i), "ranks": ranks, "pg_size": len(ranks)}
              for i, ranks in enumerate(([0, 1, 2, 3], [0, 2], [1, 3]))]  # fmt: skip
    profile = Profile(info={"rank": 0, "world_size": 4, "pg_config": config})
    profile.op("vllm::all_reduce", 5, 20, **CUSTOM)
    launched(profile, 10, "cross_device_reduce_1stage<__nv_bfloat16, 2>(int)", 20, 30)
    assert only(converted(profile, tmp_path)).pg_name == "1"


@pytest.mark.parametrize("members", [[[0, 1], [0]], [[0, 1], [0, 1]], [[0, 1], [1]]])
def test_a_collective_that_no_file_gives_a_group_is_of_one_of_this_ranks(
    tmp_path: Path, members: list[list[int]]
) -> None:
    config = [{"pg_name": str(i), "ranks": r, "pg_size": len(r)} for i, r in enumerate(members)]
    profile = Profile(info={**INFO, "pg_config": config})
    launched(profile, 10, "ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 20, 30)
    result = converted(profile, tmp_path)
    open_ = [0] in members
    assert only(result).pg_name == ("0" if [1] in members else None)
    assert only(result).pg_candidates == ('["0","1"]' if open_ else None)
    assert any("process groups 0, 1" in w for w in result.report.warnings) is open_


BF16 = "c10::BFloat16"


@pytest.mark.parametrize(
    ("operation", "dims", "size"),
    [
        ("sglang::reg_all_gather_into_tensor", [[16, 64], [8, 64], []], 1024),
        ("aiter::all_gather_reg", [[], [8, 64], [16, 64]], 1024),
        ("sglang::reg_reduce_scatter_tensor", [[8, 64], [16, 64], []], 2048),
        ("aiter::reduce_scatter", [[], [16, 64], [8, 64], []], 2048),
        ("symm_mem::multimem_all_gather_out", [[8, 64], [], [16, 64]], 1024),
        ("trtllm::allreduce", [[8, 64], [8, 64], [64], []], 1024),
    ],
)
def test_operations_of_engines_tell_their_input_in_either_order(
    tmp_path: Path, operation: str, dims: list[list[int]], size: int
) -> None:
    types = [BF16 if shape else "Scalar" for shape in dims]
    profile = Profile(info=INFO).op(operation, 5, 20, **{"Input Dims": dims, "Input type": types})
    launched(profile, 10, "multimem_kernel", 20, 30)
    assert only(converted(profile, tmp_path)).comm_size == size


def test_a_handle_before_the_tensors_is_no_input(tmp_path: Path) -> None:
    shapes = {"Input Dims": [[1], [4, 64], [4, 64]], "Input type": ["long int", BF16, BF16]}
    profile = Profile(info=INFO).op("aiter::fused_allreduce_rmsnorm", 5, 20, **shapes)
    launched(profile, 10, "void aiter::allreduce_fusion_kernel<x>", 20, 30)
    assert only(converted(profile, tmp_path)).comm_size == 512


def test_an_operation_that_also_multiplies_is_no_collective(tmp_path: Path) -> None:
    profile = Profile(info=INFO).op("symm_mem::fused_matmul_reduce_scatter", 5, 20, **CUSTOM)
    launched(profile, 10, "multimem_reduce", 20, 30)
    result = converted(profile, tmp_path)
    assert communication(result) == []
    assert any("compute, as far as the files tell" in warning for warning in result.report.warnings)


@pytest.mark.parametrize(
    ("operation", "dims", "types", "size"),
    [
        ("c10d::alltoall_base_", [[6], [8]], ["float", "float"], 32),
        ("c10d::_reduce_scatter_base_", [[2], [4]], ["c10::Half", "c10::Half"], 8),
        ("c10d::_allgather_base_", [[4], [2]], ["long int", "long int"], 16),
        ("c10d::broadcast_", [[[3], [5]]], ["GenericList[Tensor(double)]"], 64),
        ("_c10d_functional::all_to_all_single", [[8], []], ["float", "ScalarList"], 32),
        ("_c10d_functional::broadcast_", [[8], [], []], ["float", "Scalar", ""], 32),
        ("_c10d_functional_autograd::all_to_all_single", [[8], []], ["Half", ""], 16),
        ("c10d::allreduce_", [[[7]]], ["TensorList"], None),
        ("c10d::allreduce_", [[]], ["TensorList"], None),
        ("c10d::alltoall_base_", [[6], "x"], ["float", "float"], None),
        ("c10d::alltoall_base_", [[6], [-8]], ["float", "float"], None),
        ("c10d::alltoall_base_", None, None, None),
        ("c10d::alltoall_base_", [[6], [8]], [7, "float"], 32),
        ("c10d::alltoall_base_", [[6], [1 << 40, 1 << 40, 2]], ["float", "float"], None),
        ("c10d::allreduce_", [NESTED], ["float"], None),
    ],
)
def test_operations_of_the_framework_tell_their_input(
    tmp_path: Path, operation: str, dims: Any, types: Any, size: int | None
) -> None:
    profile = Profile(info=INFO).op(operation, 0, 50, **{"Input Dims": dims, "Input type": types})
    launched(profile, 10, "ncclDevKernel_SendRecv()", 20, 30)
    assert only(converted(profile, tmp_path)).comm_size == size


@pytest.mark.parametrize(
    "kernel",
    [
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_AllReduce_Sum_u32_TREE_LL()",
    ],
)
def test_the_kernel_names_the_type_that_a_list_of_tensors_does_not(
    tmp_path: Path, kernel: str
) -> None:
    shapes = {"Input Dims": [[[7], [3, 2]]], "Input type": ["TensorList"]}
    profile = Profile(info=INFO).op("c10d::allreduce_", 0, 50, **shapes)
    launched(profile, 10, kernel, 20, 30)
    assert only(converted(profile, tmp_path)).comm_size == 4 * (7 + 6)


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("all_gather_single", CollectiveType.ALL_GATHER),
        ("all_gather_single_coalesced", CollectiveType.ALL_GATHER),
        ("reduce_scatter_single", CollectiveType.REDUCE_SCATTER),
        ("reduce_scatter_single_coalesced", CollectiveType.REDUCE_SCATTER),
        ("reduce_scatter_block", CollectiveType.REDUCE_SCATTER_BLOCK),
        ("gather_single", CollectiveType.GATHER),
        ("scatter_single", CollectiveType.SCATTER),
        ("all_to_all_single", CollectiveType.ALL_TO_ALL),
        ("all_to_all_v_single", CollectiveType.ALL_TO_ALL),
        ("all_gather_v", CollectiveType.ALL_GATHER),
        ("allreduce_sparse", CollectiveType.ALL_REDUCE),
    ],
)
def test_every_form_of_a_collective_is_that_collective(
    tmp_path: Path, name: str, collective: CollectiveType
) -> None:
    profile = recorded(Profile(info=INFO), name)
    launched(profile, 10, "ncclDevKernel_Generic_1()", 20, 30, **told(name))
    result = converted(profile, tmp_path)
    assert (only(result).comm_type, only(result).comm_size) == (collective, 8192)
    assert not validate(result.trace).rules


def test_a_kernel_tells_what_a_name_that_is_not_known_does_not(tmp_path: Path) -> None:
    profile = recorded(Profile(info=INFO), "all_gather_of_the_future_in_two_halves")
    launched(profile, 10, "ncclDevKernel_AllGather_RING_LL()", 20, 30)
    assert only(converted(profile, tmp_path)).comm_type == CollectiveType.ALL_GATHER
    profile = recorded(Profile(info=INFO), "gossip")
    launched(profile, 10, "ncclDevKernel_Generic()", 20, 30)
    result = converted(profile, tmp_path)
    assert only(result).comm_type is None
    assert any("called gossip" in warning for warning in result.report.warnings)


def test_a_range_of_gloo_that_only_the_profile_has_tells_its_size(tmp_path: Path) -> None:
    profile = Profile(info=INFO).op("aten::add", 0, 500, tid=MAIN)
    for i, (name, dims) in enumerate((("all_reduce", [[2112]]), ("all_gather", [[3], [5]]))):
        shapes = {"Input Dims": dims, "Input type": ["float"] * len(dims)}
        profile.op(f"gloo:{name}", 100 * i, 50, tid=7, cat="user_annotation", **shapes)
    sizes = [node.comm_size for node in communication(converted(profile, tmp_path))]
    assert sizes == [8448, 32]


def test_the_number_of_a_receive_is_not_the_own_rank(tmp_path: Path) -> None:
    """The enumerations of nodes and collectives overlap: 6 is a receive and an all-to-all."""
    tensor = [1, 2, 0, 10, 4, "cuda:0"]
    values = [[tensor], [7, True], ["5", "pp"], 1, "recv", [], [], 4, 2, 2]
    host = HostRecording().op(3, RECORD, rf_id=1, inputs=(values, [[]], ["x"]))
    result = convert(host=host.write(tmp_path / "host.json"))
    (node,) = result.trace.nodes.where(name=RECORD)
    assert (node.type, result.report.rank) == (NodeType.COMM_RECV, None)


def test_a_range_of_a_message_tells_the_place_of_the_other_side(tmp_path: Path) -> None:
    config = [{"pg_name": "5", "pg_size": 2, "ranks": [4, 6]}]
    for span, told_peer in (("nccl:send 0->1", (4, 6)), ("nccl:recv 0<-1", (6, 4))):
        profile = Profile(info={"rank": 4, "world_size": 8, "pg_config": config})
        shapes = {"Input Dims": [[16]], "Input type": ["c10::Half"]}
        profile.op(span, 0, 30, cat="user_annotation", **shapes)
        launched(profile, 5, "ncclDevKernel_SendRecv()", 15, 10)
        node = only(converted(profile, tmp_path))
        assert (node.comm_src, node.comm_dst, node.comm_size) == (*told_peer, 32)


def test_kernels_that_a_compiler_names_after_collectives_are_compute(tmp_path: Path) -> None:
    profile = Profile(info=INFO).op("aten::mul", 0, 30)
    launched(profile, 5, "triton_poi_fused_all_gather_into_tensor_mul_0", 15, 10)
    result = converted(profile, tmp_path)
    assert (communication(result), result.report.warnings) == ([], [])


@pytest.mark.parametrize("span", ["nccl:send 0->1", "nccl:recv 0<-1", "nccl:recvAnySource"])
def test_in_a_world_of_two_a_message_is_with_the_other_rank(tmp_path: Path, span: str) -> None:
    profile = Profile(info=INFO).op(span, 0, 30, cat="user_annotation")
    launched(profile, 5, "ncclDevKernel_SendRecv()", 15, 10)
    node = only(converted(profile, tmp_path))
    assert {node.comm_src, node.comm_dst} == {0, 1}


def test_a_message_whose_other_side_nothing_tells_is_warned_of(tmp_path: Path) -> None:
    profile = Profile(info={**INFO, "world_size": 4})
    profile.op("nccl:recvAnySource", 0, 30, cat="user_annotation")
    launched(profile, 5, "ncclDevKernel_SendRecv()", 15, 10)
    result = converted(profile, tmp_path)
    assert only(result).comm_src is None
    assert any("1 message has no known peer" in w for w in result.report.warnings)


@pytest.mark.parametrize(
    ("size", "names"),
    [
        (1, ["Byte", "unsigned char", "int8_t", "torch.uint8", "Float8_e4m3fn", "f8e5m2",
             "c10::Float4_e2m1fn_x2", "QUInt4x2", "Bool", "fp8_e4m3", "c10::qint8"]),
        (2, ["Half", "c10::BFloat16", "__nv_bfloat16", "hip_bfloat16", "bf16", "torch.float16",
             "short unsigned int", "uint16_t", "Int16", "__half", "FP16", "ncclBfloat16"]),
        (4, ["Float", "int", "unsigned int", "unsigned", "float32", "torch.int32", "ComplexHalf",
             "c10::complex<c10::Half>", "Tensor(float)", "u32"]),
        (8, ["Long", "long int", "long unsigned int", "unsigned long long", "long long int",
             "double", "complex64", "c10::complex<float>", "INT64", "int64_t"]),
        (16, ["complex128", "ComplexDouble"]),
        (None, ["", "Scalar", "TensorList", "nullptr (uninitialized)", "int3", "float31", "blob"]),
    ],
)  # fmt: skip
def test_types_have_a_width_whatever_a_producer_calls_them(
    size: int | None, names: list[str]
) -> None:
    assert {name: element_bytes(name) for name in names} == dict.fromkeys(names, size)


@pytest.mark.parametrize(("rank", "size"), [(0, 8192), (1, 4096)])
def test_a_rank_that_is_not_the_root_of_a_scatter_brings_its_buffer(
    tmp_path: Path, rank: int, size: int
) -> None:
    profile = Profile(info={**INFO, "rank": rank})
    recorded(profile, "scatter", **{"Out msg nelems": 2048, "Rank": 0})
    launched(profile, 10, "ncclDevKernel_SendRecv()", 20, 30)
    assert only(converted(profile, tmp_path, rank)).comm_size == size


@pytest.mark.parametrize("kernel", [True, False])
def test_a_record_inside_another_one_is_the_same_collective(tmp_path: Path, kernel: bool) -> None:
    profile = recorded(Profile(info=INFO), "allreduce_coalesced")
    profile.op(RECORD, 5, 50, **told("allreduce"))
    if kernel:
        launched(profile, 10, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL()", 120, 30)
    result = converted(profile, tmp_path)
    node = only(result)
    assert (node.comm_size, node.name == RECORD) == (8192, not kernel)
    assert not any("no kernel" in warning for warning in result.report.warnings)


OLD_TYPES = ["GenericList[Tensor(float)]", "Int", "Int", "Int", "String", "", "", "Int"]


@pytest.mark.parametrize("kernel", ["ncclKernel_AllReduce_RING_LL_Sum_float()", "exchange()"])
@pytest.mark.parametrize("name", ["allreduce", '"allreduce"'])
def test_records_of_older_releases_tell_name_and_size_by_their_inputs(
    tmp_path: Path, kernel: str, name: str
) -> None:
    shapes = {"Input Dims": [[[1000], [24]], *[[]] * 7], "Input type": OLD_TYPES}
    inputs = {"Concrete Inputs": ["", "5", "1396", "0", name, "[]", "[]", "2"]}
    profile = Profile(info=INFO).op(RECORD, 0, 100, **shapes, **inputs)
    launched(profile, 10, kernel, 20, 30)
    node = only(converted(profile, tmp_path))
    assert (node.comm_type, node.comm_size) == (CollectiveType.ALL_REDUCE, 4096)


@pytest.mark.parametrize(
    "more", [{}, {"Collective name": "allreduce", "In msg nelems": 1024, "dtype": "Mystery"}]
)
def test_the_tensors_of_a_record_tell_the_size_that_its_other_arguments_do_not(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    shapes = {"Input Dims": [[1024], [], []], "Input type": ["float", "", ""]}
    profile = Profile(info=INFO).op(RECORD, 0, 100, **shapes, **more)
    launched(profile, 10, "ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 20, 30)
    node = only(converted(profile, tmp_path))
    assert (node.comm_type, node.comm_size) == (CollectiveType.ALL_REDUCE, 4096)


def test_counts_of_elements_may_be_floats_and_texts(tmp_path: Path) -> None:
    profile = Profile(info=INFO)
    for place, count in enumerate((1024.0, "1024")):
        at = 200 * place
        profile.op(RECORD, at, 100, **told("allreduce", 4, **{"In msg nelems": count}))
        launched(profile, at + 10, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL()", at + 20, 30)
    assert [n.comm_size for n in communication(converted(profile, tmp_path))] == [2048, 2048]


@pytest.mark.parametrize("second", [0, 1])
def test_collectives_of_two_ranks_in_one_process_are_warned_of(tmp_path: Path, second: int) -> None:
    profile = Profile(info=INFO)
    for place in (0, second):
        recorded(profile, Rank=place)
        at = 10 + 200 * (len(profile.events) > 1)
        launched(profile, at, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL()", at + 20, 30)
        profile.events[-3]["ts"] = at - 10
    warnings = converted(profile, tmp_path).report.warnings
    assert any("those of ranks 0, 1" in warning for warning in warnings) is (second == 1)


@pytest.mark.parametrize(
    ("operation", "carries"),
    [("trtllm::alltoall", True), ("engine::all_reduce_", True), ("fsdp::all_gather_copy_in", False),
     ("engine::allreduce_rmsnorm", False), ("c10d::allreduce_", False),
     ("aten::gather", False), ("aten::scatter_", False), ("aten::broadcast_tensors", False)],
)  # fmt: skip
def test_what_an_operation_that_is_a_collective_launches_itself_carries_it(
    tmp_path: Path, operation: str, carries: bool
) -> None:
    shapes = {"Input Dims": [[8, 4096]], "Input type": [BF16]}
    profile = Profile(info=INFO).op(operation, 0, 50, **shapes).op("aten::copy_", 5, 10)
    launched(profile, 7, "vectorized_elementwise_kernel", 60, 10)
    launched(profile, 30, "exchangeKernel", 80, 30)
    found = [(n.name, n.comm_size) for n in communication(converted(profile, tmp_path))]
    assert found == [("exchangeKernel", 65536)] * carries


def test_a_kernel_tells_the_type_that_shapes_are_without(tmp_path: Path) -> None:
    profile = Profile(info=INFO)
    profile.op("_C_custom_ar::all_reduce", 0, 50, **{"Input Dims": [[], [8, 64], [8, 64]]})
    launched(profile, 10, "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(x)", 60, 10)
    assert only(converted(profile, tmp_path)).comm_size == 1024


def test_templates_of_a_library_are_its_kernels(tmp_path: Path) -> None:
    profile = recorded(Profile(info=INFO))
    launched(profile, 10, "void ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 60, 10)
    launched(profile, 150, "void ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 160, 10)
    assert len(communication(converted(profile, tmp_path))) == 2


@pytest.mark.parametrize("launch", ["another thread", "not recorded"])
@pytest.mark.parametrize("arguments", [True, False])
def test_a_kernel_that_was_launched_elsewhere_carries_its_record(
    tmp_path: Path, launch: str, arguments: bool
) -> None:
    profile = Profile(info=INFO)
    for i in range(2):
        known = told("allreduce", 4096 * (1 + i), Seq=i)
        profile.op(RECORD, 200 * i, 20, **known)
        if launch == "another thread":
            profile.call("cudaLaunchKernel", 200 * i + 30, 2, 50 + i, tid=MAIN + 7)
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL()"
        profile.kernel(name, 200 * i + 40, 30, 50 + i, **(known if arguments else {}))
    result = converted(profile, tmp_path)
    found = [(n.name[:4], n.comm_size) for n in communication(result)]
    assert found == [("nccl", 8192), ("nccl", 16384)]
    assert not any("host records stand for them" in warning for warning in result.report.warnings)


def test_kernels_fewer_than_records_of_other_threads_take_none(tmp_path: Path) -> None:
    profile = Profile(info=INFO)
    for i in range(2):
        profile.op(RECORD, 200 * i, 20, **told("allreduce"))
    profile.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL()", 5, 10, 50)
    sizes = [node.comm_size for node in communication(converted(profile, tmp_path))]
    assert sorted(sizes, key=str) == [8192, 8192, None]
