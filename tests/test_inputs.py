"""Kinds of files are told by content."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from recordings import HostRecording, Profile

import chakra_et
from chakra_et import ChakraError, convert, convert_directory, validate
from chakra_et.converters.et.format import FORMAT as ET
from chakra_et.converters.et.format import JSON_FORMAT as ET_JSON
from chakra_et.converters.foreign import FORMATS as FOREIGN
from chakra_et.converters.kineto.format import FORMAT as KINETO
from chakra_et.converters.linked.format import FORMAT as LINKED
from chakra_et.converters.pytorch.format import FORMAT as PYTORCH
from chakra_et.inputs import open_input

JSONIZER = (
    '{"version": "0.0.4"}{"id": "1", "name": "a", "type": "COMP_NODE", "durationMicros": "5"}'
    '{"id": "2", "name": "b", "type": "COMP_NODE", "dataDeps": ["1"], '
    '"attr": [{"name": "num_ops", "int64Val": "7"}]}'
)
LINKED_TRACE = {
    "schema": "1.0.2-chakra.0.0.4",
    "nodes": [{"id": 1, "name": "a", "ctrl_deps": 0, "inclusive_dur": 5, "ts": 7}],
}
KINDS = {
    '{"schema": "1.0.1", "pid": 1, "nodes": [': PYTORCH,
    '{"pid": 1, "nodes": [{"id": 1': PYTORCH,
    '{"traceEvents": [': KINETO,
    '{"schemaVersion": 1, "deviceProperties": [{"id": 0}]': KINETO,
    '{"displayTimeUnit": "ms", "traceEvents": []}': KINETO,
    '[{"name": "a", "ph": "X", "ts": 1}]': KINETO,
    '\ufeff{"schema": "1.0.1", "nodes": [': PYTORCH,
    '{"workload_graph": [': ET_JSON,
    '{"format": "chakra-et", "nodes": []}': ET_JSON,
    JSONIZER: ET_JSON,
    json.dumps(LINKED_TRACE): LINKED,
    "MICRO\n1\nconv1 -1 5 NONE 0 5 NONE 0 5 ALLREDUCE 8 2\n": FOREIGN[0],
    "HYBRID_TRANSFORMER model_parallel_NPU_group: 4\n2\n": FOREIGN[0],
    "COLOCATED\t\tmodel_parallel_NPU_group: 1\n2\n": FOREIGN[1],
}


@pytest.mark.parametrize("text", KINDS, ids=[text[:20] for text in KINDS])
def test_each_kind_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a file.pt.trace.json"
    path.write_text(text)
    assert open_input(path).format is KINDS[text]


def test_objects_one_behind_another_are_an_et(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(JSONIZER)
    trace = chakra_et.read(tmp_path / "t.json")
    assert [node.name for node in trace.nodes] == ["a", "b"]
    assert trace.nodes[1].data_deps == [1]


def test_a_workload_text_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "workload.txt"
    path.write_text("MICRO\n1\nconv1 -1 5 NONE 0 5 NONE 0 5 ALLREDUCE 8 2\n")
    refused = pytest.raises(
        ChakraError, match=r"workload text.*chakra generate text FILE --ranks N"
    )
    with refused:
        convert(path)
    with refused:
        convert_directory(path, None)
    with refused:
        chakra_et.read(path)
    (told,) = validate([path]).unreadable
    assert "chakra generate text FILE --ranks N" in str(told)


def test_written_traces_are_told(tmp_path: Path) -> None:
    host = HostRecording().op(3, "a").write(tmp_path / "h.json")
    for name, kind in (("t.et", ET), ("t.json", ET_JSON)):
        convert(host, output=tmp_path / name)
        assert open_input(tmp_path / name).format is kind
    assert open_input(Profile().op("a", 1, 1).write(tmp_path / "d.json.gz")).format is KINETO


def test_an_et_whose_first_length_looks_like_a_pickle_is_an_et(tmp_path: Path) -> None:
    (tmp_path / "t.et").write_bytes(b"\x80\x02\x0a\x05" + b"1.0.0" + bytes(249))
    assert open_input(tmp_path / "t.et").format is ET


@pytest.mark.parametrize("size", [*range(1, 300), 1000, 20_000])
def test_an_et_is_told_whatever_its_first_byte(tmp_path: Path, size: int) -> None:
    version = b"\x0a" + varint(size) + b"1" * size
    node = b"\x08\x01\x12\x01n\x18\x04"
    path = tmp_path / "t.et"
    path.write_bytes(varint(len(version)) + version + varint(len(node)) + node)
    assert len(chakra_et.read(path).nodes) == 1


def varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80]) + varint(number >> 7) if number > 0x7F else bytes([number])


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """A protobuf message of numbers and bytes."""
    return b"".join(
        varint(number << 3) + varint(value)
        if isinstance(value, int)
        else varint(number << 3 | 2) + varint(len(value)) + value
        for number, value in fields
    )


OID = b"0" * 64
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 123456789\n" % OID
DESCRIPTOR = message((8, 0), (10, 1), (60, message((1, 111), (3, message((1, 100), (6, b"py"))))))
EVENT = message((8, 123456789), (10, 1), (11, message((9, 1), (11, 111), (22, b"cat"))))
PERFETTO = message((1, DESCRIPTOR), *[(1, EVENT)] * 9000)
PLANE = message((1, 3), (2, b"/device:GPU:0"), (3, message((1, 5), (2, b"Stream #1"))))
XPLANE = message((1, PLANE), (1, message((2, b"/host:CPU"))), (4, b"worker-0"))
OTHERS = {
    "pointer.json": (POINTER, r"Git LFS pointer.*\(123456789 bytes\) is not here.*git lfs pull"),
    "pointer.et": (POINTER, r"Git LFS pointer.*git lfs pull"),
    "pointer.json.gz": (POINTER.replace(b"git-lfs.github", b"hawser.github"), "Git LFS pointer"),
    "annex.json": (b"/annex/objects/SHA256E-s5--%s.json\n" % (b"0" * 64), "git-annex pointer"),
    "t.pftrace": (PERFETTO, r"a Perfetto trace \(protobuf\).*json"),
    "perfetto.et": (message((1, EVENT)), "a Perfetto trace"),
    "vm.xplane.pb": (XPLANE, r"an XLA profile \(xplane\).*PyTorch's profiler"),
    "r.nsys-rep": (bytes(range(256)), r"a report of Nsight Systems.*nsys export --type sqlite"),
    "r.qdrep": (b"\x0a\x12" + bytes(256), "a report of Nsight Systems"),
    "r.ncu-rep": (bytes(range(256)), r"a report of Nsight Compute.*PyTorch's profiler"),
    "report": (b"NVR\x00" + bytes(256), "a report of Nsight Compute"),
    "r.sqlite": (b"SQLite format 3\x00" + bytes(256), "an SQLite database, but not one of Nsight"),
    "notes.txt": (b"\nnotes about the run\n", "neither JSON nor an ET in protobuf"),
    "world_size": (b"8\n", "neither JSON nor an ET in protobuf"),
    "t.lz4": (b"\x04\x22\x4d\x18" + bytes(256), r"compressed with lz4.*Unpack it"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_handed_over_by_mistake_is_named_with_what_to_do(tmp_path: Path, name: str) -> None:
    content, told = OTHERS[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ChakraError, match=told):
        convert(device=path)
    (unreadable,) = validate([path]).unreadable
    assert re.search(told, str(unreadable))
