"""Real pairs convert with the values that are known of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from accounts import assert_sums_add_up
from places import names_in

import chakra_et
from chakra_et import CollectiveType, Conversion, LinkError, NodeType, Trace
from chakra_et.model import UNKNOWN_NS

PAIRS = {
    "simple_add": ("simple_add/host", "simple_add/device"),
    "resnet_rfid": ("resnet_rfid/host", "resnet_rfid/device"),
    "mlp": ("torch213/mlp_1step/host.0", "torch213/mlp_1step/device.0"),
    "transformer": ("torch213/transformer_5steps/host.0", "torch213/transformer_5steps/device.0"),
    **{f"dlrm8 rank {r}": (f"dlrm8/host.{r}", f"dlrm8/device.{r}") for r in range(8)},
    **{
        f"{run} rank {r}": (f"torch213/{run}/host.{r}", f"torch213/{run}/device.{r}")
        for run in ("ddp_2rank", "tp_2rank")
        for r in range(2)
    },
}
_DONE: dict[str, Conversion] = {}


def converted(data: Path, name: str, directory: Path | None = None) -> Conversion:
    """The conversion of a pair, made once."""
    if name not in _DONE:
        host, device = (data / f"{part}.json.gz" for part in PAIRS[name])
        _DONE[name] = chakra_et.convert(host=host, device=device)
    return _DONE[name]


def assert_sound(trace: Trace) -> None:
    """Unique ids; no dangling or self edge; every edge leads to a later node, so no cycle."""
    assert len(np.unique(trace.nodes.id)) == len(trace.nodes)
    sources, targets = trace.source_rows(), trace.edges.target
    assert (sources >= 0).all()
    assert (sources < targets).all()


@pytest.mark.parametrize("name", PAIRS)
def test_every_trace_is_sound_and_every_record_accounted_for(data: Path, name: str) -> None:
    result = converted(data, name)
    assert_sound(result.trace)
    assert_sums_add_up(result.report.as_dict())
    assert result.report.host_nodes.kept == result.report.host_nodes.total


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_written_reads_back_equal(data: Path, tmp_path: Path, name: str) -> None:
    trace = converted(data, name).trace
    small = len(trace.nodes) < 3000
    for file in ("trace.et.zst", "trace.json.gz") if small else ("trace.et",):
        chakra_et.write(trace, tmp_path / file)
        assert chakra_et.read(tmp_path / file) == trace


@pytest.mark.parametrize("name", ["simple_add", "dlrm8 rank 3", "ddp_2rank rank 0"])
def test_microseconds_and_exact_nanoseconds_agree(data: Path, tmp_path: Path, name: str) -> None:
    et_def_pb2 = pytest.importorskip("chakra_et.proto.et_def_pb2")
    trace = converted(data, name).trace
    path = tmp_path / "trace.et"
    chakra_et.write(trace, path)
    content, at = path.read_bytes(), 0
    messages = []
    while at < len(content):
        length = shift = 0
        while True:
            byte = content[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        messages.append(content[at : at + length])
        at += length
    for node, message in zip(trace.nodes, messages[1:], strict=True):
        read = et_def_pb2.Node.FromString(message)
        exact = {a.name: a.int64_val for a in read.attr if a.name.endswith(("time_ns", "ation_ns"))}
        assert (read.id, read.name) == (node.id, node.name)
        if node.start_ns is not None:
            assert exact["start_time_ns"] == node.start_ns
            assert exact["duration_ns"] == node.duration_ns
            assert abs(read.start_time_micros * 1000 - node.start_ns) <= 500
        assert abs(read.duration_micros * 1000 - node.duration_ns) <= 500


def test_simple_add_joins_whole(data: Path) -> None:
    result = converted(data, "simple_add")
    assert (result.report.joins[0].matched, result.report.joins[0].of) == (36, 36)
    trace = result.trace
    kernels = trace.nodes.where(category="kernel")
    launchers = [trace.node(kernel.ctrl_deps[0]).name for kernel in kernels]
    assert launchers == ["aten::uniform_", "aten::uniform_", "aten::add", "aten::add"]


# Kernels, copies and memsets of each rank, and how many of them were launched before the window.
DLRM = {0: (261, 0), 1: (326, 64), 2: (261, 0), 3: (337, 64), 4: (266, 0), 5: (261, 0),
        6: (261, 0), 7: (261, 0)}  # fmt: skip


@pytest.mark.parametrize("rank", range(8))
def test_dlrm_keeps_every_device_event_and_its_collectives(data: Path, rank: int) -> None:
    result = converted(data, f"dlrm8 rank {rank}")
    tally = result.report.device_events
    assert tally.total == tally.kept
    work = [n for n in result.trace.nodes if n.category in ("kernel", "gpu_memcpy", "gpu_memset")]
    assert len(work) == tally.total
    launched = sum(join.matched for join in result.report.joins if "launching calls" in join.what)
    assert 261 <= tally.total <= 337
    assert tally.total - launched == (64 if rank in (1, 3) else 0)
    found = result.trace.nodes.where(type=NodeType.COMM_COLL)
    assert Counter(node.comm_type for node in found) == {
        CollectiveType.ALL_TO_ALL: 5,
        CollectiveType.ALL_REDUCE: 3,
    }
    assert {node.pg_name for node in found} == {"0"}
    assert all(node.comm_size > 0 for node in found)
    assert result.trace.groups[0].ranks == tuple(range(8))
    assert result.trace.rank == rank


def test_dlrm_sizes_are_those_of_the_tensors(data: Path) -> None:
    found = converted(data, "dlrm8 rank 0").trace.nodes.where(type=NodeType.COMM_COLL)
    assert [node.comm_size for node in found] == [
        6144 * 4, 24 * 8, 384 * 4, 3392 * 4, 394241 * 4, 6144 * 4, 112 * 4, 226960 * 4,
    ]  # fmt: skip


def test_resnet_joins_every_record_function_id(data: Path) -> None:
    join = converted(data, "resnet_rfid").report.joins[0]
    assert (join.by, join.matched, join.of) == ("record-function id", 14388, 14388)


def test_files_of_two_runs_are_refused_with_the_reason(data: Path, tmp_path: Path) -> None:
    with pytest.raises(LinkError, match="do not belong together") as raised:
        chakra_et.convert(
            data / "host_et/resnet_rank1_1.1.0.json.gz",
            data / "resnet_rfid/device.json.gz",
            tmp_path / "out.et",
        )
    assert "14388 record-function ids occur in both" in str(raised.value)
    assert list(tmp_path.iterdir()) == []


MODERN = {"mlp": 181, "transformer": 8410, "ddp_2rank rank 0": 6504, "ddp_2rank rank 1": 6504,
          "tp_2rank rank 0": 6642, "tp_2rank rank 1": 6642}  # fmt: skip


@pytest.mark.parametrize("name", MODERN)
def test_modern_pairs_join_every_profiled_operation(data: Path, name: str) -> None:
    report = converted(data, name).report
    operations = [report.records[c] for c in ("cpu_op", "user_annotation")]
    assert sum(tally.merged for tally in operations) == MODERN[name]
    assert sum(tally.total for tally in operations) == MODERN[name]


@pytest.mark.parametrize(("run", "count"), [("ddp_2rank", 12), ("tp_2rank", 24)])
@pytest.mark.parametrize("rank", [0, 1])
def test_gloo_collectives_are_communication_nodes(
    data: Path, run: str, count: int, rank: int
) -> None:
    trace = converted(data, f"{run} rank {rank}").trace
    found = trace.nodes.where(type=NodeType.COMM_COLL)
    assert len(found) == count
    assert {node.comm_type for node in found} == {CollectiveType.ALL_REDUCE}
    assert {node.pg_name for node in found} == {"0"}
    assert all(node.comm_size > 0 and node.is_cpu_op is False for node in found)
    main = {node.thread for node in trace.nodes.where(name=lambda n: n.startswith("aten::"))}
    assert len(main) == 1
    assert not main & {node.thread for node in found}, "gloo works on threads of its own"


def test_ddp_sends_the_same_bytes_on_both_ranks(data: Path) -> None:
    sizes = [
        sorted(
            node.comm_size
            for node in converted(data, f"ddp_2rank rank {rank}").trace.nodes.where(
                type=NodeType.COMM_COLL
            )
        )
        for rank in (0, 1)
    ]
    assert sizes[0] == sizes[1]
    # Three steps, each of all the gradients in four buckets.
    assert sum(sizes[0]) == 3 * 4 * (277736 + 313728 + 264320 + 194560)


def test_a_host_trace_alone_takes_collectives_from_its_records(data: Path) -> None:
    result = chakra_et.convert(host=data / "host_et/allgather_1.0.2.json.gz")
    found = result.trace.nodes.where(type=NodeType.COMM_COLL)
    assert len(found) == 10
    assert {(n.comm_type, n.comm_size, n.pg_name) for n in found} == {
        (CollectiveType.ALL_GATHER, 4, "0")
    }
    assert (result.trace.nodes.start_ns == UNKNOWN_NS).all()


def test_a_directory_of_ranks_converts_to_one_file_each(data: Path, tmp_path: Path) -> None:
    conversions = chakra_et.convert_directory(data / "dlrm8", tmp_path / "out")
    assert [c.load().rank for c in conversions] == list(range(8))
    assert names_in(tmp_path / "out") == [f"trace.{rank}.et" for rank in range(8)]
