"""Host traces of every layout become columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recordings import HostRecording, write_json

from chakra_et.converters.pytorch import read_host
from chakra_et.errors import FormatError

TENSOR = ([[5, 6, 0, 64, 4, "cuda:0"], 1.5, "<None>"], [[8, 8], [], []], ["Tensor(float)", "", ""])


@pytest.mark.parametrize("flat", [True, False])
def test_both_layouts_say_the_same(tmp_path: Path, flat: bool) -> None:
    recording = HostRecording(flat=flat)
    recording.op(3, "outer", rf_id=1, tid=2, schema="outer(Tensor a)", inputs=TENSOR)
    recording.op(4, "inner", rf_id=2, parent=3)
    host = read_host(recording.write(tmp_path / "host.json"))
    assert host.id.tolist() == [2, 3, 4, 1]
    assert host.parent.tolist() == [1, 2, 3, 1]
    assert host.rf_id.tolist() == [0, 1, 2, 0]
    assert host.thread.tolist() == [1, 2, 1, 0]
    assert host.seq_id.tolist() == [-1] * 4
    assert [host.names.in_order[code] for code in host.name] == [
        "[pytorch|profiler|execution_trace|thread]",
        "outer",
        "inner",
        "[pytorch|profiler|execution_trace|process]",
    ]
    assert host.op_schemas.in_order[host.op_schema[1]] == "outer(Tensor a)"
    values, shapes, types = host.texts.in_order[host.inputs[1]]
    assert [json.loads(text) for text in (values, shapes, types)] == list(TENSOR)
    assert (host.pid, host.finish_ts) == (4000, 20)
    assert host.warnings == []


def test_carried_text_is_not_rewritten(tmp_path: Path) -> None:
    recording = HostRecording().op(3, "op", inputs=([0.1], [[]], ["Double"]))
    path = recording.write(tmp_path / "host.json")
    path.write_bytes(path.read_bytes().replace(b"0.1", b"0.100000"))
    host = read_host(path)
    assert b"0.100000" in host.texts.in_order[host.inputs[1]][0]


def test_numbers_of_any_length_are_carried(tmp_path: Path) -> None:
    """Python refuses to convert one of thousands of digits, which nobody has to."""
    path = HostRecording().op(3, "op").write(tmp_path / "host.json")
    long = b"9" * 5_000
    path.write_bytes(path.read_bytes().replace(b'"values": []', b'"values": [%b]' % long, 1))
    host = read_host(path)
    assert host.texts.in_order[host.inputs[0]][0] == b"[%b]" % long


def test_attributes_of_some_nodes_are_kept_by_row(tmp_path: Path) -> None:
    recording = HostRecording()
    recording.op(3, "plain").op(4, "comms", collective_name="allreduce", in_msg_nelems=7)
    recording.op(5, "plain").op(6, "comms", collective_name="broadcast", new_in_2027="x")
    host = read_host(recording.write(tmp_path / "host.json"))
    assert host.attributes["collective_name"].rows == [2, 4]
    assert host.attributes["collective_name"].values == ["allreduce", "broadcast"]
    assert host.attributes["in_msg_nelems"].declared_type == "uint64"
    assert host.attributes["new_in_2027"].values == ["x"]


def test_an_empty_text_is_no_attribute(tmp_path: Path) -> None:
    host = read_host(HostRecording().op(3, "op", kernel_file="").write(tmp_path / "host.json"))
    assert host.attributes == {}


def test_an_unknown_schema_is_read_with_a_warning(tmp_path: Path) -> None:
    path = HostRecording().op(3, "op").write(tmp_path / "host.json")
    path.write_bytes(path.read_bytes().replace(b"1.1.1-chakra", b"9.9.9-chakra"))
    host = read_host(path)
    assert len(host) == 3
    assert "9.9.9-chakra.0.0.4" in host.warnings[0]


def test_keys_that_would_be_lost_are_named(tmp_path: Path) -> None:
    recording = HostRecording().op(3, "op")
    recording.nodes[1]["stack"] = "somewhere"
    host = read_host(recording.write(tmp_path / "host.json"))
    assert any("'stack'" in warning for warning in host.warnings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "seven"}, r"nodes\[1\].id: Expected `int`"),
        ({"id": -4}, "not sound: id that is not an unsigned 64-bit integer"),
        ({"name": None}, r"nodes\[1\].name: Expected `str`"),
        ({"inputs": 3}, r"nodes\[1\].inputs: Expected"),
    ],
)
def test_a_wrong_value_is_named_by_its_place(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    recording = HostRecording().op(3, "op")
    recording.nodes[2] |= change
    with pytest.raises(FormatError, match=message):
        read_host(recording.write(tmp_path / "host.json"), strict=True)
    host = read_host(tmp_path / "host.json")
    assert (len(host), host.repairs.left_out) == (2, 1)


def test_an_id_that_is_no_number_is_named_by_its_node(tmp_path: Path) -> None:
    recording = HostRecording().op(3, "op")
    recording.nodes[2]["attrs"][0]["value"] = "many"
    with pytest.raises(FormatError, match="rf_id that is not a 64-bit integer"):
        read_host(recording.write(tmp_path / "host.json"), strict=True)


def test_a_trace_without_an_end_says_what_is_missing(tmp_path: Path) -> None:
    path = HostRecording().op(3, "op").write(tmp_path / "host.json")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FormatError, match=r"host\.json: "):
        read_host(path, strict=True)


def test_a_document_without_nodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match='no array "nodes"'):
        read_host(write_json(tmp_path / "host.json", {"schema": "1.1.1"}))


REAL = {
    "simple_add/host.json.gz": ("1.0.1", 38),
    "dlrm8/host.0.json.gz": ("1.0.1", 1675),
    "host_et/allgather_1.0.2.json.gz": ("1.0.2-chakra.0.0.4", 263),
    "resnet_rfid/host.json.gz": ("1.0.3-chakra.0.0.4", 14391),
    "host_et/resnet_rank1_1.1.0.json.gz": ("1.1.0-chakra.0.0.4", 14392),
    "host_et/torch_compile_1.1.1.json.gz": ("1.1.1-chakra.0.0.4", 20),
    "torch213/ddp_2rank/host.0.json.gz": ("1.1.1-chakra.0.0.4", 6508),
}


@pytest.mark.parametrize("name", REAL)
def test_real_traces_of_every_schema_are_read_whole(data: Path, name: str) -> None:
    host = read_host(data / name)
    assert (host.schema, len(host)) == REAL[name]
    assert host.warnings == []


def test_a_trace_of_which_nothing_is_left_is_refused(tmp_path: Path) -> None:
    node = {"id": -1, "name": "aten::mm", "parent": 1}
    path = write_json(tmp_path / "h.json", {"schema": "1.0.1", "nodes": [node, node]})
    with pytest.raises(FormatError, match="nothing is left of 2 nodes: id that is not an unsigned"):
        read_host(path)
