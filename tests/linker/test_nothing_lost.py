"""Cases A8: schemas, units, and what a conversion must not lose; files of old schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from accounts import converted, names, write
from recordings import HostRecording, Profile

import chakra_et
from chakra_et import ChakraError
from chakra_et.converters.et.wire import field_bytes, tag, varint
from chakra_et.definitions import Kind, NodeType
from chakra_et.model import EdgeKind


def test_94_nodes_without_edges_are_kept(tmp_path: Path) -> None:
    host = HostRecording().op(3, "nccl:broadcast", parent=99, tid=7)
    result = converted(host.write(tmp_path / "h.json"))
    assert "nccl:broadcast" in names(result)


@pytest.mark.parametrize("root_first", [False, True])
def test_95_every_edge_leads_from_a_node(tmp_path: Path, root_first: bool) -> None:
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


def test_96_communication_says_that_it_is_not_on_the_cpu(tmp_path: Path) -> None:
    args = {"Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float"}
    profile = Profile().op("op", 0, 9).call("launch", 1, 1, 3).kernel("ncclK", 9, 1, 3, **args)
    result = converted(device=profile.write(tmp_path / "d.json"))
    assert [node.attributes["is_cpu_op"] for node in result.trace.nodes] == [True, True, False]


def test_97_each_edge_has_a_kind(tmp_path: Path) -> None:
    profile = Profile().op("op", 0, 9).call("launch", 1, 1, 3).kernel("k", 5, 1, 3)
    result = converted(device=profile.write(tmp_path / "d.json"))
    kinds = {kind for node in result.trace.nodes for _, kind, _ in node.edges}
    assert kinds == {EdgeKind.CALL, EdgeKind.PROGRAM, EdgeKind.LAUNCH}


# 98 and 99: copies are device work with its bytes, not memory nodes; [memory] instants are left out
# and counted (docs/inputs.md).


def test_98_copies_keep_their_bytes(tmp_path: Path) -> None:
    profile = Profile().kernel("Memcpy HtoD", 1, 1, 3, cat="gpu_memcpy", bytes=4096)
    (node,) = converted(device=profile.write(tmp_path / "d.json")).trace.nodes
    assert node.attributes["tensor_size"] == 4096


def fields(*pairs: tuple[int, Any]) -> bytes:
    """A message of varints, texts and messages."""
    return b"".join(
        field_bytes(number, value) if isinstance(value, bytes) else tag(number, 0) + varint(value)
        for number, value in pairs
    )


def framed(*messages: bytes) -> bytes:
    return b"".join(varint(len(message)) + message for message in messages)


FLOAT_HALF = b"\x00\x00\x00\x3f"


def attribute(name: bytes, place: int, value: Any) -> bytes:
    """An attribute of 0.0.2 or 0.0.3: its type is the place of the value's field."""
    if value == FLOAT_HALF:
        return fields((1, name), (2, place)) + tag(4 + place, 5) + value
    return fields((1, name), (2, place), (4 + place, value))


OLD: dict[str, bytes] = {
    "0.0.1": framed(
        fields((1, 0), (2, b"COMP_NODE_a"), (3, 3), (7, 5), (6, 64), (12, 9)),
        fields((1, 1), (2, b"COMM_COLL_NODE_b"), (3, 6), (4, 0), (13, 2), (14, 1), (14, 0),
               (18, 4096)),
    ),
    "0.0.2": framed(
        fields((1, 0), (2, b"COMP_NODE_a"), (3, 3), (5, b"[1]"),
               (11, attribute(b"x", 0, FLOAT_HALF))),
        fields((1, 1), (2, b"COMM_COLL_NODE_b"), (3, 6), (4, 0),
               (11, attribute(b"comm_type", 1, 1)), (11, attribute(b"comm_size", 1, 4096)),
               (11, attribute(b"s", 2, b"text"))),
    ),
    "0.0.3": framed(
        fields((1, 0), (2, b"COMP_NODE_a"), (3, 4), (5, b"[1]"),
               (11, attribute(b"x", 1, FLOAT_HALF))),
        fields((1, 1), (2, b"COMM_COLL_NODE_b"), (3, 7), (4, 0),
               (11, attribute(b"comm_type", 2, 1)), (11, attribute(b"comm_size", 2, 4096)),
               (11, attribute(b"is_cpu_op", 0, 1)), (11, attribute(b"s", 3, b"text"))),
    ),
    "0.0.3 with unsigned values": framed(
        fields((1, attribute(b"schema", 4, b"1.0.1"))),
        fields((1, 0), (2, b"COMP_NODE_a"), (3, 4), (11, attribute(b"x", 1, FLOAT_HALF))),
        fields((1, 1), (2, b"COMM_COLL_NODE_b"), (3, 7), (4, 0),
               (11, attribute(b"comm_type", 3, 1)), (11, attribute(b"comm_size", 2, 4096)),
               (11, attribute(b"s", 4, b"text"))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("schema", OLD)
def test_100_files_of_old_schemas_are_read(tmp_path: Path, schema: str) -> None:
    trace = chakra_et.read(write(tmp_path / "old.et", OLD[schema]))
    assert trace.metadata.get("converted_from") == schema
    first, second = trace.nodes
    assert (first.name, first.type) == ("COMP_NODE_a", NodeType.COMP)
    assert (second.name, second.type) == ("COMM_COLL_NODE_b", NodeType.COMM_COLL)
    assert second.data_deps == [first.id]
    assert second.attributes["comm_type"] == 6
    assert second.attributes["comm_size"] == 4096
    if schema == "0.0.1":
        assert (first.duration_ns, first.attributes["tensor_size"]) == (5000, 64)
        assert list(second.attributes["involved_dim"]) == [True, False]
    else:
        assert first.attributes["x"] == 0.5
        assert second.attributes["s"] == "text"


def test_100_an_old_file_that_does_not_show_its_schema_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "old.et", framed(fields((1, 0), (2, b"plain"), (3, 3))))
    with pytest.raises(ChakraError, match="does not show which"):
        chakra_et.read(path)


@pytest.mark.parametrize("schema", OLD)
def test_101_the_name_of_a_file_does_not_matter(tmp_path: Path, schema: str) -> None:
    assert len(chakra_et.read(write(tmp_path / "old.eg", OLD[schema])).nodes) == 2


def test_a_fork_that_moves_types_is_told_by_the_names(tmp_path: Path) -> None:
    data = framed(
        fields((2, fields((1, b"schema")) + field_bytes(29, b"1.0.2-chakra.0.0.4"))),
        fields((1, 1), (2, b"COMP_NODE_layer"), (3, 5), (7, 1500)),
        fields((1, 2), (2, b"COMM_COLL_NODE_layer"), (3, 8), (5, b"\x01"), (7, 0)),
    )
    trace = chakra_et.read(write(tmp_path / "t.et", data))
    assert [node.type for node in trace.nodes] == [NodeType.COMP, NodeType.COMM_COLL]
    assert [node.duration_ns for node in trace.nodes] == [1500, 0]


def test_what_was_converted_from_a_fork_is_not_converted_again(tmp_path: Path) -> None:
    data = framed(
        fields((2, fields((1, b"schema")) + field_bytes(29, b"1.0.2-chakra.0.0.4"))),
        fields((1, 1), (2, b"COMP_NODE_layer"), (3, 5), (7, 1500)),
    )
    trace = chakra_et.read(write(tmp_path / "fork.et", data))
    trace.nodes.type[0] = NodeType.COMM_SEND
    chakra_et.write(trace, tmp_path / "t.et")
    assert chakra_et.read(tmp_path / "t.et") == trace


# 102 (one table of groups): chakra_et.model.TraceSet, tests/test_model.py.


def test_103_json_and_protobuf_say_the_same(tmp_path: Path) -> None:
    path = HostRecording().op(3, "a").op(4, "b", parent=3).write(tmp_path / "h.json")
    trace = converted(path, output=tmp_path / "t.et").trace
    converted(path, output=tmp_path / "t.json")
    assert chakra_et.read(tmp_path / "t.et") == chakra_et.read(tmp_path / "t.json") == trace


# 104 (absent attributes are not zeros): the feeder, tests/feeder/test_cpp.py.


def test_105_values_are_json_not_the_text_of_python(tmp_path: Path) -> None:
    inputs = ([[5, 6, 0, 64, 4, "cuda:0"], True, "<None>"], [[8, 8], [], []], ["T", "Bool", "None"])
    host = HostRecording().op(3, "a", inputs=inputs)
    (node,) = converted(host.write(tmp_path / "h.json")).trace.nodes.where(name="a")
    assert json.loads(node.inputs.values) == inputs[0]


def test_106_metadata_is_carried(tmp_path: Path) -> None:
    host = HostRecording().op(3, "a", rf_id=1)
    profile = Profile(info={"rank": 3, "world_size": 8}).op("a", 1, 1, rf_id=1)
    result = converted(host.write(tmp_path / "h.json"), profile.write(tmp_path / "d.json"))
    metadata = result.trace.metadata
    found = [metadata.get(name) for name in ("schema", "pid", "rank", "world_size", "trace_name")]
    assert found == ["1.1.1-chakra.0.0.4", 4000, 3, 8, "trace.json"]


@pytest.mark.parametrize("value", [7, None, ["2026"], {"a": 1}, 1.5])
@pytest.mark.parametrize("key", ["time", "pid", "start_ts", "finish_ts", "schema", "extra"])
def test_106_metadata_of_any_type_do_no_harm(tmp_path: Path, key: str, value: Any) -> None:
    path = HostRecording().op(3, "a").write(tmp_path / "h.json")
    document = {**json.loads(path.read_text()), key: value}
    result = converted(write(path, json.dumps(document)), output=tmp_path / "t.et")
    assert chakra_et.read(tmp_path / "t.et") == result.trace
    if key == "extra" and value is not None:
        assert json.loads(str(result.trace.metadata.get("host_metadata"))) == {key: value}


# 108 (units): schema/README.md, tests/test_schema.py. 107 (dimensions): what the profiler
# says of a kernel is carried whole.


def test_107_arguments_of_kernels_are_carried(tmp_path: Path) -> None:
    profile = Profile().kernel("k", 1, 1, 3, grid=[64, 2, 1])
    (node,) = converted(device=profile.write(tmp_path / "d.json")).trace.nodes
    assert json.loads(node.attributes["device_args"])["grid"] == [64, 2, 1]


def test_119_callers_are_kept_in_any_order_of_the_file(tmp_path: Path) -> None:
    host = HostRecording()
    for number in range(3, 50):
        host.op(number, f"op {number}", parent=number - 1)
    path = host.write(tmp_path / "h.json")
    document = json.loads(path.read_text())
    document["nodes"].reverse()
    result = converted(write(path, json.dumps(document)))
    assert result.report.edges["call"][0] == 48


def test_120_a_join_that_finds_nothing_is_refused(tmp_path: Path) -> None:
    host = HostRecording().op(3, "a", rf_id=1).op(4, "b", rf_id=2)
    profile = Profile().op("x", 1, 1).op("y", 3, 1).op("z", 5, 1)
    with pytest.raises(ChakraError, match="do not belong together"):
        converted(host.write(tmp_path / "h.json"), profile.write(tmp_path / "d.json"))


def test_121_the_report_says_which_kinds_of_edges_there_are(tmp_path: Path) -> None:
    profile = Profile().op("op", 0, 9).call("launch", 1, 1, 3).kernel("k", 9, 1, 3)
    report = converted(device=profile.write(tmp_path / "d.json")).report
    assert report.edges == {"call": (2, 0), "program": (1, 0), "launch": (1, 0)}


def test_72_any_kind_of_integer_is_a_size(tmp_path: Path) -> None:
    path = Profile().op("a", 1, 1).write(tmp_path / "d.json")
    trace = converted(device=path).trace
    trace.nodes.attributes.add("comm_size", Kind.UINT64, [4096])
    chakra_et.write(trace, tmp_path / "t.et")
    assert chakra_et.read(tmp_path / "t.et").nodes[0].attributes["comm_size"] == 4096


# 73 and 74 are rules of `chakra validate`, 75 is an edge of kind group: see test_a5.py.
