"""Host traces as they are found: damaged, cut, of every version, or something else."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from accounts import callers, converted, names, repair_kinds, write
from recordings import HostRecording, Profile

import chakra_et
from chakra_et import ChakraError, NodeType, convert, operator_times
from chakra_et.converters.format import View
from chakra_et.converters.pytorch import read_host, unrecorded
from chakra_et.inputs import open_input
from chakra_et.io import mend, mended_array


def recording(label: str = "label") -> HostRecording:
    host = HostRecording()
    host.op(3, label, rf_id=1)
    host.op(4, "aten::mm", rf_id=2, parent=3)
    return host


@pytest.mark.parametrize(
    ("escaped", "raw", "kind", "name"),
    [
        (r"\"q\"", '"q"', mend.QUOTE, 'lab "q" x'),
        (r"\"q", '"q', mend.QUOTE, 'lab "q x'),
        (r"\t", "\t", mend.CONTROL, "lab \t x"),
        (r"\r\n", "\r\n", mend.CONTROL, "lab \r\n x"),
        (r"\u0001", "\x01", mend.CONTROL, "lab  x"),
        (r"\\c", "\\c", mend.ESCAPE, "lab \\c x"),
    ],
)
def test_names_that_are_not_escaped(
    tmp_path: Path, escaped: str, raw: str, kind: str, name: str
) -> None:
    path = recording("lab MARK x").write(tmp_path / "host.json")
    write(path, path.read_text().replace("MARK", raw))
    result = converted(path)
    assert name in names(result)
    assert result.report.host_nodes.kept == 4
    assert kind in repair_kinds(result.report)
    assert result.report.repairs[0]["offset"] >= path.read_bytes().index(b"lab ")
    assert escaped != raw
    with pytest.raises(ChakraError):
        convert(path, strict=True)


def test_a_half_written_node_is_left_out_alone(tmp_path: Path) -> None:
    path = recording().write(tmp_path / "host.json")
    text = path.read_text()
    half = '{"id": 77, "name": "half", "ctrl_deps": 2, "inputs": {"val'
    at = text.index('{\n   "id": 4')
    write(path, text[:at] + half + text[at:])
    report = converted(path).report
    assert (report.host_nodes.total, report.host_nodes.kept) == (5, 4)
    assert report.repairs[0]["offset"] == at


def test_missing_commas_between_nodes(tmp_path: Path) -> None:
    path = recording().write(tmp_path / "host.json")
    write(path, path.read_text().replace("},\n  {", "}\n  {"))
    report = converted(path).report
    assert report.host_nodes.kept == 4
    assert repair_kinds(report) == {mend.COMMA: 3}


def test_a_second_recording_in_the_same_file(tmp_path: Path) -> None:
    whole = recording().write(tmp_path / "host.json").read_text()
    cut = whole[: whole.index("aten::mm") + 6]
    report = converted(write(tmp_path / "host.json", cut + whole)).report
    assert report.host_nodes.kept == 2
    assert mended_array.SECOND in repair_kinds(report)
    assert report.host_nodes.left_out[unrecorded.REPEATED] == 4
    assert any("path of its own" in warning for warning in report.warnings)


def test_several_cycles_that_count_on_are_all_kept(tmp_path: Path) -> None:
    first = recording().write(tmp_path / "host.json").read_text()
    later = HostRecording()
    later.nodes.clear()
    later.op(1, "[pytorch|profiler|execution_trace|process]", parent=1, tid=0)
    later.op(20, "[pytorch|profiler|execution_trace|thread]", parent=1)
    later.op(21, "aten::add", parent=20)
    text = first + later.write(tmp_path / "second.json").read_text()
    result = converted(write(tmp_path / "host.json", text))
    assert result.report.host_nodes.kept == 7
    assert {"aten::mm", "aten::add"} <= set(names(result))


@pytest.mark.parametrize("cut", [3, 30, 60])
def test_a_file_that_does_not_end(tmp_path: Path, cut: int) -> None:
    path = recording().write(tmp_path / "host.json")
    write(path, path.read_text()[:-cut])
    result = converted(path)
    assert "aten::mm" in names(result)
    assert result.report.repairs


def test_a_cut_gzip_member(tmp_path: Path) -> None:
    host = HostRecording()
    for number in range(3, 3000):
        host.op(number, f"op {number * 7919 % 1000}")
    path = host.write(tmp_path / "host.json.gz")
    write(path, path.read_bytes()[:-20])
    report = converted(path).report
    assert report.host_nodes.kept > 2000
    assert "the gzip data ends too early" in repair_kinds(report)


def test_callers_that_had_not_returned(tmp_path: Path) -> None:
    host = HostRecording()
    host.op(9, "DDP.forward", parent=4)
    host.op(438, "c10d::broadcast_", parent=9)
    host.op(439, "record_param_comms", parent=438)
    result = converted(host.write(tmp_path / "host.json"))
    assert result.report.added == {"unrecorded parents": 1}
    assert result.report.host_nodes.kept == 5
    assert callers(result, "DDP.forward") == {"<unrecorded parent 4>"}
    root = {"[pytorch|profiler|execution_trace|thread]"}
    assert callers(result, "<unrecorded parent 4>") == root
    (stand_in,) = result.trace.nodes.where(name="<unrecorded parent 4>")
    assert stand_in.type == NodeType.METADATA
    assert all("unrecorded" not in item.name for item in operator_times(result.trace) if item.name)
    (warning,) = result.report.warnings
    assert "an exception ended them, or they had not ended" in warning


def test_threads_without_their_root(tmp_path: Path) -> None:
    host = HostRecording()
    for thread in range(2, 6):
        host.op(100 * thread, f"op {thread}", parent=100 * thread - 1, tid=thread)
    result = converted(host.write(tmp_path / "host.json"))
    assert result.report.added == {"unrecorded parents": 4}
    assert result.report.host_nodes.kept == 6


@pytest.mark.parametrize(
    "schema", ["1.0.0", "1.0.1", "1.0.2-chakra.0.0.4", "1.0.4-chakra.0.0.4", "1.1.1-chakra.1.0.0",
               "1.2.0-chakra.0.0.5"],
)  # fmt: skip
@pytest.mark.parametrize("flat", [True, False])
def test_every_version_is_read_by_its_keys(tmp_path: Path, schema: str, flat: bool) -> None:
    host = HostRecording(flat=flat).op(3, "aten::mm", rf_id=5)
    path = host.write(tmp_path / "host.json")
    text = path.read_text().replace("1.1.1-chakra.0.0.4", schema).replace('"1.0.1"', f'"{schema}"')
    read = read_host(write(path, text))
    assert (read.schema, len(read), int(read.rf_id[1])) == (schema, 3, 5)


def test_unknown_attributes_are_kept(tmp_path: Path) -> None:
    host = HostRecording().op(3, "aten::mm", tensor_range='{"0":[1,2]}', brand_new="x")
    result = converted(host.write(tmp_path / "host.json"))
    (node,) = result.trace.nodes.where(name="aten::mm")
    assert node.attributes["tensor_range"] == '{"0":[1,2]}'
    assert node.attributes["brand_new"] == "x"


@pytest.mark.parametrize(
    ("attribute", "kind"),
    [
        ({"name": "op_schema", "type": "string", "value": 5}, "op_schema that is not a string"),
        ({"name": "op_schema", "type": "string", "value": [5]}, "op_schema that is not a string"),
        ({"name": "x", "type": "string", "value": "b"}, "x that a node has twice"),
    ],
)
def test_attributes_that_are_not_as_declared(
    tmp_path: Path, attribute: dict[str, Any], kind: str
) -> None:
    host = HostRecording().op(3, "aten::mm", x="a")
    host.nodes[-1]["attrs"].append(attribute)
    result = converted(host.write(tmp_path / "host.json"), output=tmp_path / "t.et")
    assert repair_kinds(result.report) == {kind: 1}
    assert chakra_et.read(tmp_path / "t.et") == result.trace
    assert result.trace.nodes.where(name="aten::mm")[0].attributes["x"] == "a"


def test_a_profile_in_place_of_a_host_trace(tmp_path: Path) -> None:
    path = Profile().op("aten::mm", 1, 1).write(tmp_path / "host.pt.trace.json")
    with pytest.raises(ChakraError, match=r"host trace, got a Kineto profile.*--device"):
        convert(path)


def test_a_host_trace_in_place_of_a_profile(tmp_path: Path) -> None:
    path = recording().write(tmp_path / "trace.json")
    with pytest.raises(ChakraError, match=r"profile, got a PyTorch host trace.*--host"):
        convert(device=path)


def test_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(ChakraError, match=r"the file is empty\. The recording did not finish"):
        convert(write(tmp_path / "host.json", b""))


# 10 (how to record both files): docs/recording.md, tests/torch/test_recording_guide.py;
# what a recording lacks: validators/rules/capture.py, tests/validators/test_rules.py.


def test_python_frames_are_left_out_and_counted(tmp_path: Path) -> None:
    profile = Profile().op("aten::mm", 1, 5)
    for number in range(1000):
        profile.op(f"f{number}", 1, 5, cat="python_function")
    report = converted(device=profile.write(tmp_path / "device.json")).report
    assert report.records["python_function"].total == 1000
    assert report.records["python_function"].left_out.total() == 1000


# 12 (one host trace over several windows): tests/test_windows.py.


def test_generated_kernels_keep_their_source(tmp_path: Path) -> None:
    host = HostRecording()
    host.op(3, "triton_poi_fused_add_0", kernel_backend="triton", kernel_file="cabc.py")
    (node,) = converted(host.write(tmp_path / "host.json")).trace.nodes.where(
        name="triton_poi_fused_add_0"
    )
    assert node.attributes["kernel_backend"] == "triton"
    assert node.attributes["kernel_file"] == "cabc.py"


@pytest.mark.parametrize("value", ["nan", "-inf", "<None>"])
def test_scalars_that_are_no_numbers(tmp_path: Path, value: str) -> None:
    inputs = ([[5, 6, 0, 2, 4, "cpu"], value], [[2], []], ["Tensor(float)", "Double"])
    host = HostRecording().op(3, "aten::clamp", inputs=inputs)
    result = converted(host.write(tmp_path / "host.json"))
    (node,) = result.trace.nodes.where(name="aten::clamp")
    assert value in str(node.inputs)


def test_bare_words_that_are_no_numbers(tmp_path: Path) -> None:
    host = HostRecording().op(3, "aten::clamp", inputs=(["MARK", 2], [[], []], ["Double", "Int"]))
    path = host.write(tmp_path / "host.json")
    write(path, path.read_text().replace('"MARK"', "-Infinity"))
    result = converted(path)
    assert repair_kinds(result.report) == {mend.NUMBER: 1}
    assert "-inf" in str(result.trace.nodes.where(name="aten::clamp")[0].inputs)


def test_roots_zero_ids_and_children_before_parents(tmp_path: Path) -> None:
    host = HostRecording(flat=True)
    host.op(50, "child", parent=60, rf_id=0)
    host.op(60, "caller", parent=2, rf_id=0)
    path = host.write(tmp_path / "host.json")
    write(path, path.read_text().replace("execution_trace|", "execution_graph|"))
    result = converted(path)
    found = names(result)
    assert len(found) == 4
    assert found.index("caller") < found.index("child")
    assert result.report.added == {}
    for node in result.trace.nodes:
        assert node.id not in [source for source, _, _ in node.edges]


def test_a_host_trace_by_any_name(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.pt.trace.json",
        gzip.compress(recording().write(tmp_path / "host.json").read_bytes()),
    )
    assert open_input(path).view is View.HOST
    assert json.loads(gzip.decompress(path.read_bytes()))["nodes"]
