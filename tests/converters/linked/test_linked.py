"""Traces that mlc-chakra has linked: the README beside them says how they were made."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from accounts import callers, converted, names, repair_kinds, write
from command import chakra_process as chakra
from places import EXAMPLES, names_in

import chakra_et
from chakra_et import ChakraError, convert
from chakra_et.conversion import Conversion
from chakra_et.converters.linked import read_linked
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.directory import convert_directory
from chakra_et.linker.output.report import RESTS
from chakra_et.model import EdgeKind

HERE = Path(__file__).parent
SIMPLE_ADD, WAITS = HERE / "simple_add.json.gz", HERE / "waits.json"
US = 1000


def document(path: Path = WAITS) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def changed(tmp_path: Path, node: int, **keys: Any) -> Path:
    """The trace with waits, in which keys of one node differ."""
    content = document()
    content["nodes"][node] |= keys
    return write(tmp_path / "linked.json", json.dumps(content))


def work(result: Conversion) -> list[tuple[Any, ...]]:
    return sorted(
        (node.start_ns, node.duration_ns, node.name, node.attributes["stream"])
        for node in result.trace.nodes
        if node.attributes.get("category") == "kernel"
    )


def test_the_linked_trace_says_what_the_pair_says() -> None:
    linked = converted(SIMPLE_ADD)
    pair = EXAMPLES / "simple_add"
    made_of = converted(pair / "host.json.gz", pair / "device.json.gz")
    assert work(linked) == work(made_of)
    assert len(work(linked)) == 4
    for kernel in {name for _, _, name, _ in work(linked)}:
        assert callers(linked, kernel) == callers(made_of, kernel)
    times = {
        (node.name, node.start_ns, node.attributes["inclusive_ns"])
        for node in linked.trace.nodes
        if "inclusive_ns" in node.attributes
    }
    assert len(times) == 36
    assert times <= {
        (node.name, node.start_ns, node.attributes.get("inclusive_ns"))
        for node in made_of.trace.nodes
    }


def test_every_node_is_accounted_for() -> None:
    report = converted(SIMPLE_ADD).report
    assert (report.host_nodes.total, report.host_nodes.kept) == (38, 38)
    assert list(report.records) == ["kernel"]
    assert report.device_events.kept == report.device_events.total == 4
    joins = [(join.what, join.matched, join.of) for join in report.joins]
    assert joins == [
        ("host operations to profiled operations", 36, 38),
        ("device nodes to operations", 4, 4),
    ]


def test_old_layouts_have_their_callers_by_time() -> None:
    result = converted(SIMPLE_ADD)
    assert any("were renumbered" in warning for warning in result.report.warnings)
    assert list(result.report.added) == [RESTS]
    assert callers(result, "aten::uniform_") == {"aten::rand"}
    assert callers(result, "[param|cuda]") == {"[pytorch|profiler|execution_trace|process]"}


def test_newer_layouts_have_the_callers_of_the_file() -> None:
    result = converted(WAITS)
    assert callers(result, "aten::mm") == {"ProfilerStep#1"}
    assert callers(result, "gemm") == {"aten::mm"}
    assert work(result) == [
        (200 * US, 500 * US, "gemm", 7),
        (700 * US, 100 * US, "copyk", 7),
        (1200 * US, 50 * US, "addk", 7),
    ]
    (kernel,) = result.trace.nodes.where(name="copyk")
    assert kernel.attributes["is_cpu_op"] is False
    assert {"thread", "device", "correlation"}.isdisjoint(kernel.attributes)
    assert any("a base that the file does not tell" in w for w in result.report.warnings)


def syncs(result: Conversion) -> set[tuple[str, str]]:
    by_id = {node.id: node.name for node in result.trace.nodes}
    return {
        (by_id[source], node.name)
        for node in result.trace.nodes
        for source, kind, inferred in node.edges
        if kind is EdgeKind.SYNC and not inferred
    }


def test_waits_of_the_file_are_edges() -> None:
    assert syncs(converted(WAITS)) == {("copyk", "aten::add")}


@pytest.mark.parametrize("sync_dep", [[99], [3], ["6"], [9], [None]])
def test_waits_that_cannot_be_are_left_out_and_told(tmp_path: Path, sync_dep: list[Any]) -> None:
    result = converted(changed(tmp_path, 8, sync_dep=sync_dep))
    assert syncs(result) == set()
    assert any("1 sync_dep were left out" in warning for warning in result.report.warnings)


def test_hand_overs_of_the_file_are_left_out_and_told(tmp_path: Path) -> None:
    result = converted(changed(tmp_path, 8, inter_thread_dep=3))
    assert any("1 inter_thread_dep were left out" in w for w in result.report.warnings)


def test_device_work_of_an_operation_that_is_not_there(tmp_path: Path) -> None:
    result = converted(changed(tmp_path, 4, ctrl_deps=77))
    assert callers(result, "gemm") == set()
    assert result.report.joins[1].matched == 2


def test_device_work_without_a_category_is_counted_as_such(tmp_path: Path) -> None:
    report = converted(changed(tmp_path, 4, cat="")).report
    assert {name: tally.kept for name, tally in report.records.items()} == {
        "(empty)": 1,
        "kernel": 2,
    }


def test_callers_are_believed_where_the_roots_are_missing(tmp_path: Path) -> None:
    content = document()
    content["nodes"] = content["nodes"][2:]
    result = converted(write(tmp_path / "linked.json", json.dumps(content)))
    assert callers(result, "aten::mm") == {"ProfilerStep#1"}
    assert result.report.added == {"unrecorded parents": 1}


@pytest.mark.parametrize("ts", ["soon", "9" * 30, True])
def test_times_that_are_none(tmp_path: Path, ts: Any) -> None:
    report = converted(changed(tmp_path, 4, ts=ts)).report
    assert report.records["kernel"].left_out.total() == 1
    path = changed(tmp_path, 3, ts=ts)
    result = converted(path)
    assert result.trace.nodes.where(name="aten::mm")[0].start_ns is None
    assert repair_kinds(result.report) == {"time that is not a number": 1}
    with pytest.raises(ChakraError, match="time that is not a number"):
        convert(path, strict=True)


@pytest.mark.parametrize("stream", ["9" * 19, "9" * 5000, "²", "7.0", "", [7], {"a": 7}, True, 1.5])
def test_streams_that_are_none(tmp_path: Path, stream: Any) -> None:
    trace = converted(changed(tmp_path, 4, stream=stream)).trace
    gemm = next(node for node in trace.nodes if node.name == "gemm")
    assert gemm.attributes["stream"] == 0
    assert json.loads(gemm.attributes["device_args"]) == {"stream": stream}
    assert gemm.duration_ns == 500 * US


def test_collectives_have_their_facts_from_their_operation(tmp_path: Path) -> None:
    content = document()
    comm = {"collective_name": "allreduce", "dtype": "Half", "in_msg_nelems": 1024}
    for node in content["nodes"][5:7]:
        node["attrs"] += [{"name": k, "type": "string", "value": v} for k, v in comm.items()]
    content["nodes"][5]["name"] = "record_param_comms"
    content["nodes"][6] |= {"name": "ncclDevKernel_AllReduce_Sum_f16_RING_LL", "pg_name": "17"}
    result = converted(write(tmp_path / "linked.json", json.dumps(content)))
    (node,) = result.trace.nodes.where(type=NodeType.COMM_COLL)
    assert node.name.startswith("ncclDevKernel")
    found = [node.attributes[key] for key in ("comm_type", "comm_size", "pg_name", "is_cpu_op")]
    assert found == [CollectiveType.ALL_REDUCE, 2048, "17", False]


def test_a_wait_for_one_of_several_kernels_of_a_collective_is_one_for_it(tmp_path: Path) -> None:
    content = document()
    nodes = content["nodes"]
    comm = {"collective_name": "allreduce", "dtype": "Half", "in_msg_nelems": 1024}
    nodes[5]["attrs"] += [{"name": k, "type": "string", "value": v} for k, v in comm.items()]
    nodes[5]["name"] = "record_param_comms"
    nodes[6]["name"] = "ncclDevKernel_AllReduce_Sum_f16_RING_LL"
    nodes.insert(7, nodes[6] | {"id": 10, "ts": 850})
    nodes[9]["sync_dep"] = [10]
    result = converted(write(tmp_path / "linked.json", json.dumps(content)))
    (node,) = result.trace.nodes.where(type=NodeType.COMM_COLL)
    assert (node.comm_size, node.device_pieces) == (2048, 2)
    assert (node.start_ns, node.duration_ns) == (700 * US, 250 * US)
    assert syncs(result) == {(node.name, "aten::add")}


def test_a_damaged_file_is_mended(tmp_path: Path) -> None:
    text = WAITS.read_text()
    path = write(tmp_path / "linked.json", text[: text.index('"addk"')])
    result = converted(path)
    assert names(result).count("copyk") == 1
    assert result.report.repairs
    with pytest.raises(ChakraError, match="not valid JSON"):
        convert(path, strict=True)


def test_a_file_without_nodes(tmp_path: Path) -> None:
    path = write(tmp_path / "linked.json", '{"schema": "1.0.1", "nodes": [], "exclusive_dur": 0}')
    assert len(read_linked(path).host) == 0


def test_no_window_is_cut_out_of_it() -> None:
    with pytest.raises(ChakraError, match="no window can be cut"):
        convert(WAITS, steps="1")


def test_it_is_no_half_of_a_pair() -> None:
    with pytest.raises(ChakraError, match="It holds both views; give it alone"):
        convert(WAITS, EXAMPLES / "simple_add/device.json.gz")


def test_the_commands_take_it(tmp_path: Path) -> None:
    target = tmp_path / "trace.3.et"
    done = chakra("convert", WAITS, "-o", target, "--rank", "3")
    assert done.returncode == 0, done.stderr
    assert chakra_et.read(target).rank == 3
    shown = chakra("info", WAITS).stdout
    assert "host nodes 7 host nodes with a time 4 device nodes 3" in " ".join(shown.split())
    checked = chakra("validate", WAITS)
    assert checked.returncode == 0, checked.stdout
    assert "10 nodes" in checked.stdout


def test_a_directory_of_ranks(tmp_path: Path) -> None:
    for rank in range(2):
        packed = gzip.compress(WAITS.read_bytes())
        (tmp_path / f"linked_{rank}.json.gz").write_bytes(packed)
    conversions = convert_directory(tmp_path, tmp_path / "out")
    assert [c.load().rank for c in conversions] == [0, 1]
    assert names_in(tmp_path / "out") == ["trace.0.et", "trace.1.et"]
