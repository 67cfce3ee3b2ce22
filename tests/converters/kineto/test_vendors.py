"""Profiles of each vendor's devices."""

from __future__ import annotations

from pathlib import Path

import pytest
from accounts import callers, converted, names
from recordings import HostRecording, Profile

from chakra_et.converters.kineto.categories import ROLES
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.model import EdgeKind
from chakra_et.recording import Role


def test_stream_0_of_rocm_is_a_stream(tmp_path: Path) -> None:
    profile = Profile().op("op", 0, 10).call("hipLaunchKernel", 1, 1, 9)
    profile.kernel("k", 5, 5, 9, stream=0).kernel("l", 12, 5, 10, stream=0)
    result = converted(device=profile.write(tmp_path / "d.json"))
    (node,) = result.trace.nodes.where(name="l")
    assert node.attributes["stream"] == 0
    assert [kind for _, kind, _ in node.edges] == [EdgeKind.STREAM]


def test_rccl_kernels_with_correlation_0(tmp_path: Path) -> None:
    args = {"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float"}
    profile = Profile().op("record_param_comms", 0, 10, **args)
    profile.call("hipExtLaunchKernel", 1, 1, 0).kernel("ncclDevKernel_Generic", 5, 5, 0, **args)
    result = converted(device=profile.write(tmp_path / "d.json"))
    (node,) = result.trace.nodes.where(name="ncclDevKernel_Generic")
    assert node.type is NodeType.COMM_COLL
    assert node.attributes["comm_type"] == CollectiveType.ALL_REDUCE
    assert EdgeKind.LAUNCH not in [kind for _, kind, _ in node.edges]


def test_streams_of_64_bits_and_queues(tmp_path: Path) -> None:
    profile = Profile().op("op", 0, 10).call("hipLaunchKernel", 1, 1, 9)
    for number in range(3):
        profile.kernel(f"k{number}", 5 + 10 * number, 5, 9, stream=94123456789012, hsa_queue=3)
    result = converted(device=profile.write(tmp_path / "d.json"))
    (node,) = result.trace.nodes.where(name="k2")
    assert node.attributes["stream"] == 94123456789012
    assert "hsa_queue" in str(node.attributes["device_args"])
    assert callers(result, "k0") == callers(result, "k2") == {"op"}


def test_queues_of_xpu_are_streams(tmp_path: Path) -> None:
    profile = Profile()
    for number, queue in enumerate((64, 65, 64)):
        profile.kernel(f"k{number}", 5 + 10 * number, 5, 1023 + number)
        args = {"device": 0, "correlation": 1023 + number, "sycl queue": queue, "l0 queue": "0x1"}
        profile.events[-1] |= {"args": args, "tid": 7}
    result = converted(device=profile.write(tmp_path / "d.json"))
    nodes = {node.name: node for node in result.trace.nodes}
    assert [nodes[f"k{n}"].attributes["stream"] for n in range(3)] == [64, 65, 64]
    assert [source for source, _, _ in nodes["k2"].edges] == [nodes["k0"].id]


@pytest.mark.parametrize("correlation", [-1, None])
def test_device_work_of_mtia(tmp_path: Path, correlation: int | None) -> None:
    profile = Profile().op("op", 0, 10)
    profile.kernel("job", 5, 5, 1, cat="mtia_ccp_events", stream=2)
    profile.kernel("job 2", 15, 5, 1, cat="mtia_ccp_events")
    for event, stream in zip(profile.events[1:], (2, "2"), strict=True):
        event["pid"], event["tid"] = 17, 3500
        event["args"] = {"correlation": correlation, "stream": stream, "packet_ptr": "0x1"}
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert result.report.device_events.kept == 2
    (node,) = result.trace.nodes.where(name="job 2")
    assert [kind for _, kind, _ in node.edges] == [EdgeKind.STREAM]


def test_an_operation_with_a_stream_is_an_operation(tmp_path: Path) -> None:
    profile = Profile().op("triton_poi_fused", 0, 10, stream=0)
    (node,) = converted(device=profile.write(tmp_path / "d.json")).trace.nodes
    assert node.attributes["is_cpu_op"] is True


@pytest.mark.parametrize("vendor", ["privateuse1", "xpu", "cuda", "mtia", "hip"])
def test_calls_of_every_vendor_launch(tmp_path: Path, vendor: str) -> None:
    profile = Profile().op("op", 0, 10).call("launchSomething", 1, 1, 9).kernel("k", 5, 1, 9)
    profile.events[1]["cat"] = f"{vendor}_runtime"
    assert ROLES[f"{vendor}_runtime"] is Role.CALL
    assert callers(converted(device=profile.write(tmp_path / "d.json")), "k") == {"op"}


def test_only_the_device(tmp_path: Path) -> None:
    profile = Profile().call("launch", 1, 1, 9).kernel("k", 5, 1, 9).kernel("l", 8, 1, 10)
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert names(result) == ["launch", "k", "l"]
    assert result.report.rank is None


def test_only_the_host(tmp_path: Path) -> None:
    result = converted(device=Profile().op("a", 1, 5).op("b", 2, 1).write(tmp_path / "d.json"))
    assert callers(result, "b") == {"a"}
    host = HostRecording().op(3, "a").op(4, "b", parent=3)
    result = converted(host.write(tmp_path / "h.json"))
    assert callers(result, "b") == {"a"}
    assert all(node.start_ns is None for node in result.trace.nodes)


def test_gloo_communicates_on_the_host(tmp_path: Path) -> None:
    inputs = ([[5, 6, 0, 64, 4, "cpu"]], [[64]], ["Tensor(float)"])
    host = HostRecording().op(3, "gloo:all_reduce", rf_id=1, inputs=inputs)
    profile = Profile().op("gloo:all_reduce", 1, 5, rf_id=1, cat="user_annotation")
    result = converted(host.write(tmp_path / "h.json"), profile.write(tmp_path / "d.json"))
    (node,) = result.trace.nodes.where(name="gloo:all_reduce")
    assert (node.type, node.attributes["comm_size"]) == (NodeType.COMM_COLL, 256)
