"""Record runs with the PyTorch at hand, convert them, and compare with what is known of the run."""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import chakra_et
from chakra_et.definitions import CollectiveType, NodeType

pytest.importorskip("torch.profiler")  # plain "torch" could be the folder of this file
pytestmark = pytest.mark.torch

# The ranks that the recorder starts import it by its name, so it has to lie on the path.
sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
record_pairs = importlib.import_module("record_pairs")

RANKS = [("mlp", 0), ("transformer", 0), ("ddp", 0), ("ddp", 1)]


@dataclass
class Run:
    """One rank of a recorded run: the files as PyTorch wrote them, and what became of them."""

    host_nodes: list[dict[str, Any]]
    events: list[dict[str, Any]]
    trace: Any
    report: dict[str, Any]

    @property
    def seen(self) -> dict[int, dict[str, Any]]:
        """The profiler's events by record-function id."""
        return {e["args"]["Record function id"]: e for e in self.events}

    @property
    def by_rf_id(self) -> dict[int, Any]:
        """The nodes of the trace by record-function id."""
        return {node.rf_id: node for node in self.trace.nodes if node.rf_id}

    @property
    def communication(self) -> list[Any]:
        return [node for node in self.trace.nodes if node.comm_type is not None]


def _run(pair: Any, directory: Path, rank: int) -> Run:
    output = directory / f"trace.{rank}.et"
    result = chakra_et.convert(host=pair.host, device=pair.device, output=output)
    assert output.stat().st_size
    events = json.loads(pair.device.read_bytes())["traceEvents"]
    return Run(
        host_nodes=json.loads(pair.host.read_bytes())["nodes"],
        events=[e for e in events if e.get("cat") in ("cpu_op", "user_annotation")],
        trace=result.trace,
        report=result.report.as_dict(),
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Run]:
    found = {}
    for kind, recorder in record_pairs.RECORDERS.items():
        directory = tmp_path_factory.mktemp(kind)
        for rank, pair in enumerate(recorder(directory)):
            found[kind, rank] = _run(pair, directory, rank)
    assert sorted(found) == sorted(RANKS)
    return found


@pytest.fixture(params=RANKS, ids=lambda key: f"{key[0]}-{key[1]}")
def run(request: pytest.FixtureRequest, runs: dict[tuple[str, int], Run]) -> Run:
    return runs[request.param]


@pytest.fixture(params=[0, 1])
def ddp(request: pytest.FixtureRequest, runs: dict[tuple[str, int], Run]) -> Run:
    return runs["ddp", request.param]


def test_every_operator_that_kineto_saw_is_joined_by_record_function_id(run: Run) -> None:
    assert len(run.seen) == len(run.events) > 100
    (join,) = [j for j in run.report["joins"] if j["by"] == "record-function id"]
    assert (join["matched"], join["of"]) == (len(run.seen), len(run.seen))
    assert run.seen.keys() <= run.by_rf_id.keys()


def test_names_and_threads_are_those_of_kineto(run: Run) -> None:
    nodes = run.by_rf_id
    expected = {rf_id: (event["name"], event["tid"]) for rf_id, event in run.seen.items()}
    assert {i: (nodes[i].name, nodes[i].thread) for i in run.seen} == expected


def test_report_adds_up(run: Run) -> None:
    host = run.report["host_nodes"]
    left_out = sum(entry["count"] for entry in host["left_out"])
    assert host["total"] == len(run.host_nodes) == host["kept"] + host["merged"] + left_out
    edges = run.report["edges"].values()
    assert all(0 <= edge["inferred"] <= edge["count"] for edge in edges)
    assert sum(edge["count"] for edge in edges) == sum(len(n.edges) for n in run.trace.nodes)


@pytest.mark.parametrize("kind", ["mlp", "transformer"])
def test_one_process_alone_communicates_with_nobody(
    runs: dict[tuple[str, int], Run], kind: str
) -> None:
    assert not runs[kind, 0].communication
    assert {node.type for node in runs[kind, 0].trace.nodes} <= {NodeType.COMP, NodeType.METADATA}


def test_mlp_has_the_operators_of_its_layers(runs: dict[tuple[str, int], Run]) -> None:
    names = Counter(node.name for node in runs["mlp", 0].trace.nodes)
    steps = record_pairs.MLP_STEPS
    assert names["aten::addmm"] == 3 * steps
    assert names["aten::relu"] == 2 * steps
    # Backward: a weight's gradient for each layer, an input's gradient for all but the first.
    assert names["aten::mm"] == (3 + 2) * steps


def test_transformer_has_the_operators_of_its_blocks(runs: dict[tuple[str, int], Run]) -> None:
    names = Counter(node.name for node in runs["transformer", 0].trace.nodes)
    steps = record_pairs.TRANSFORMER_STEPS
    assert names["aten::scaled_dot_product_attention"] == 2 * steps
    assert names["aten::native_layer_norm"] == 2 * 2 * steps
    assert names["aten::embedding"] == steps


def test_ddp_reduces_each_layer_once_a_step(ddp: Run) -> None:
    layers = [p.numel() * p.element_size() for p in record_pairs.ddp_model().parameters()]
    assert len(set(layers)) == 3
    found = Counter((n.type, n.comm_type, n.comm_size, n.pg_name) for n in ddp.communication)
    assert found == Counter(
        {
            (NodeType.COMM_COLL, CollectiveType.ALL_REDUCE, size, "0"): record_pairs.DDP_STEPS
            for size in layers
        }
    )


def test_ddp_reduces_all_parameters_in_every_step(ddp: Run) -> None:
    parameters = sum(p.numel() * p.element_size() for p in record_pairs.ddp_model().parameters())
    steps = [event for event in ddp.events if event["name"].startswith("ProfilerStep#")]
    assert len(steps) == record_pairs.DDP_STEPS
    for step in steps:
        sizes = [
            node.comm_size
            for node in ddp.communication
            if 0 <= ddp.seen[node.rf_id]["ts"] - step["ts"] <= step["dur"]
        ]
        assert sum(sizes) == parameters


def test_ddp_collectives_run_on_the_threads_of_gloo(ddp: Run) -> None:
    (main,) = {e["tid"] for e in ddp.events if e["name"].startswith("ProfilerStep#")}
    expected = {e["tid"] for e in ddp.events if e["name"] == "gloo:all_reduce"}
    threads = {node.thread for node in ddp.communication}
    assert threads == expected
    assert main not in threads
    assert all(node.duration_ns > 0 for node in ddp.communication)


def test_ddp_knows_its_ranks_and_group(runs: dict[tuple[str, int], Run]) -> None:
    for rank in range(record_pairs.DDP_RANKS):
        trace = runs["ddp", rank].trace
        assert (trace.rank, trace.world_size) == (rank, record_pairs.DDP_RANKS)
        (group,) = trace.groups
        assert (group.name, group.ranks) == ("0", (0, 1))
