"""What a conversion must not lose: nodes, edges, sizes, values, metadata and arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from accounts import converted, names, write
from recordings import HostRecording, Profile

import chakra_et
from chakra_et import ChakraError
from chakra_et.definitions import Kind
from chakra_et.model import EdgeKind


def test_nodes_without_edges_are_kept(tmp_path: Path) -> None:
    host = HostRecording().op(3, "nccl:broadcast", parent=99, tid=7)
    result = converted(host.write(tmp_path / "h.json"))
    assert "nccl:broadcast" in names(result)


@pytest.mark.parametrize("root_first", [False, True])
def test_every_edge_leads_from_a_node(tmp_path: Path, root_first: bool) -> None:
    host = HostRecording().op(3, "a").op(4, "b", parent=3)
    path = host.write(tmp_path / "h.json")
    if root_first:
        document = json.loads(path.read_text())
        document["nodes"] = host.nodes
        write(path, json.dumps(document))
    converted(path, output=tmp_path / "t.et")
    trace = chakra_et.read(tmp_path / "t.et")
    assert (trace.source_rows() >= 0).all()
    assert min(node.id for node in trace.nodes) > 0


def test_communication_says_that_it_is_not_on_the_cpu(tmp_path: Path) -> None:
    args = {"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float"}
    profile = Profile().op("op", 0, 9).call("launch", 1, 1, 3).kernel("ncclK", 9, 1, 3, **args)
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert [node.attributes["is_cpu_op"] for node in result.trace.nodes] == [True, True, False]


def test_each_edge_has_a_kind(tmp_path: Path) -> None:
    profile = Profile().op("op", 0, 9).call("launch", 1, 1, 3).kernel("k", 5, 1, 3)
    result = converted(device=profile.write(tmp_path / "d.json"))
    kinds = {kind for node in result.trace.nodes for _, kind, _ in node.edges}
    assert kinds == {EdgeKind.CALL, EdgeKind.PROGRAM, EdgeKind.LAUNCH}


def test_copies_keep_their_bytes(tmp_path: Path) -> None:
    profile = Profile().kernel("Memcpy HtoD", 1, 1, 3, cat="gpu_memcpy", bytes=4096)
    (node,) = converted(device=profile.write(tmp_path / "d.json")).trace.nodes
    assert node.attributes["tensor_size"] == 4096


def test_json_and_protobuf_say_the_same(tmp_path: Path) -> None:
    path = HostRecording().op(3, "a").op(4, "b", parent=3).write(tmp_path / "h.json")
    trace = converted(path, output=tmp_path / "t.et").trace
    converted(path, output=tmp_path / "t.json")
    assert chakra_et.read(tmp_path / "t.et") == chakra_et.read(tmp_path / "t.json") == trace


def test_values_are_json_not_the_text_of_python(tmp_path: Path) -> None:
    inputs = ([[5, 6, 0, 64, 4, "cuda:0"], True, "<None>"], [[8, 8], [], []], ["T", "Bool", "None"])
    host = HostRecording().op(3, "a", inputs=inputs)
    (node,) = converted(host.write(tmp_path / "h.json")).trace.nodes.where(name="a")
    assert json.loads(node.inputs.values) == inputs[0]


def test_metadata_is_carried(tmp_path: Path) -> None:
    host = HostRecording().op(3, "a", rf_id=1)
    profile = Profile(info={"rank": 3, "world_size": 8}).op("a", 1, 1, rf_id=1)
    result = converted(host.write(tmp_path / "h.json"), profile.write(tmp_path / "d.json"))
    metadata = result.trace.metadata
    found = [metadata.get(name) for name in ("schema", "pid", "rank", "world_size", "trace_name")]
    assert found == ["1.1.1-chakra.0.0.4", 4000, 3, 8, "trace.json"]


@pytest.mark.parametrize("value", [7, None, ["2026"], {"a": 1}, 1.5])
@pytest.mark.parametrize("key", ["time", "pid", "start_ts", "finish_ts", "schema", "extra"])
def test_metadata_of_any_type_do_no_harm(tmp_path: Path, key: str, value: Any) -> None:
    path = HostRecording().op(3, "a").write(tmp_path / "h.json")
    document = {**json.loads(path.read_text()), key: value}
    result = converted(write(path, json.dumps(document)), output=tmp_path / "t.et")
    assert chakra_et.read(tmp_path / "t.et") == result.trace
    if key == "extra" and value is not None:
        assert json.loads(str(result.trace.metadata.get("host_metadata"))) == {key: value}


def test_arguments_of_kernels_are_carried(tmp_path: Path) -> None:
    profile = Profile().kernel("k", 1, 1, 3, grid=[64, 2, 1])
    (node,) = converted(device=profile.write(tmp_path / "d.json")).trace.nodes
    assert json.loads(node.attributes["device_args"])["grid"] == [64, 2, 1]


def test_callers_are_kept_in_any_order_of_the_file(tmp_path: Path) -> None:
    host = HostRecording()
    for number in range(3, 50):
        host.op(number, f"op {number}", parent=number - 1)
    path = host.write(tmp_path / "h.json")
    document = json.loads(path.read_text())
    document["nodes"].reverse()
    result = converted(write(path, json.dumps(document)))
    assert result.report.edges["call"][0] == 48


def test_a_join_that_finds_nothing_is_refused(tmp_path: Path) -> None:
    host = HostRecording().op(3, "a", rf_id=1).op(4, "b", rf_id=2)
    profile = Profile().op("x", 1, 1).op("y", 3, 1).op("z", 5, 1)
    with pytest.raises(ChakraError, match="do not belong together"):
        converted(host.write(tmp_path / "h.json"), profile.write(tmp_path / "d.json"))


def test_the_report_says_which_kinds_of_edges_there_are(tmp_path: Path) -> None:
    profile = Profile().op("op", 0, 9).call("launch", 1, 1, 3).kernel("k", 9, 1, 3)
    report = converted(device=profile.write(tmp_path / "d.json")).report
    assert report.edges == {"call": (2, 0), "program": (1, 0), "launch": (1, 0)}


def test_any_kind_of_integer_is_a_size(tmp_path: Path) -> None:
    path = Profile().op("a", 1, 1).write(tmp_path / "d.json")
    trace = converted(device=path).trace
    trace.nodes.attributes.add("comm_size", Kind.UINT64, [4096])
    chakra_et.write(trace, tmp_path / "t.et")
    assert chakra_et.read(tmp_path / "t.et").nodes[0].attributes["comm_size"] == 4096
