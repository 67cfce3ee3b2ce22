"""Record programs with the PyTorch at hand, convert them, and compare with what is known."""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from chakra_et import Feeder, validate
from chakra_et.collection.release import switches
from chakra_et.conversion import Conversion, trace_set
from chakra_et.definitions import NodeType
from chakra_et.directory import convert_directory
from chakra_et.doctor import examine
from chakra_et.model import Node
from chakra_et.passes import cure
from chakra_et.replay import replay
from chakra_et.validators import Severity

pytest.importorskip("torch.profiler")  # plain "torch" could be the folder of this file
pytestmark = pytest.mark.torch

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
programs = importlib.import_module("record_pairs")
single = importlib.import_module("recording.single")
training = importlib.import_module("recording.training")
truth = importlib.import_module("recording.truth")

NAMES = programs.available()
MESSAGES = (NodeType.COMM_SEND, NodeType.COMM_RECV)


@dataclass
class Run:
    """One rank of a recorded program: the files as PyTorch wrote them, and what became of them."""

    directory: Path
    rank: int
    conversion: Conversion

    def _content(self, view: str) -> bytes:
        return gzip.decompress((self.directory / f"{view}.{self.rank}.json.gz").read_bytes())

    @property
    def trace(self) -> Any:
        return self.conversion.trace

    @cached_property
    def report(self) -> dict[str, Any]:
        return self.conversion.report.as_dict()

    @cached_property
    def host_nodes(self) -> int:
        """How many nodes the host trace has; not all releases write sound JSON."""
        return self._content("host").count(b'"ctrl_deps":')

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        content = json.loads(self._content("device"))
        kinds = ("cpu_op", "user_annotation")
        return [e for e in content["traceEvents"] if e.get("cat") in kinds]

    @cached_property
    def seen(self) -> dict[int, dict[str, Any]]:
        """The profiler's events by record-function id."""
        return {e["args"]["Record function id"]: e for e in self.events}

    @cached_property
    def by_rf_id(self) -> dict[int, Node]:
        """The nodes of the trace by record-function id."""
        return {node.rf_id: node for node in self.trace.nodes if node.rf_id}

    @cached_property
    def communication(self) -> list[Node]:
        found: list[Node] = truth.communication(self.trace)
        return found

    def names(self) -> Counter[str]:
        return Counter(node.name for node in self.trace.nodes)


@pytest.fixture(scope="session")
def runs(recordings: Path) -> dict[str, list[Run]]:
    """The ranks of each program."""
    found = {}
    for name in NAMES:
        conversions = convert_directory(recordings / name, None)
        assert [c.trace.rank or 0 for c in conversions] == list(range(len(conversions)))
        found[name] = [Run(recordings / name, r, c) for r, c in enumerate(conversions)]
        assert len(conversions) == programs.PROGRAMS[name].ranks
    return found


@pytest.fixture(params=NAMES)
def program(request: pytest.FixtureRequest, runs: dict[str, list[Run]]) -> list[Run]:
    return runs[request.param]


def test_operators_that_kineto_saw_are_joined_by_record_function_id(program: list[Run]) -> None:
    for run in program:
        assert len(run.seen) == len(run.events) > 0
        (join,) = [j for j in run.report["joins"] if j["by"] == "record-function id"]
        assert (join["matched"], join["of"]) == (len(run.seen), len(run.seen))
        told = {i: (event["name"], event["tid"]) for i, event in run.seen.items()}
        nodes = run.by_rf_id
        assert {i: (nodes[i].name, nodes[i].thread) for i in run.seen} == told


def test_the_report_adds_up(program: list[Run]) -> None:
    for run in program:
        host = run.report["host_nodes"]
        left_out = sum(entry["count"] for entry in host["left_out"])
        assert host["total"] == run.host_nodes == host["kept"] + host["merged"] + left_out
        edges = run.report["edges"].values()
        assert sum(edge["count"] for edge in edges) == sum(len(n.edges) for n in run.trace.nodes)


def test_communication_is_what_the_program_said(program: list[Run]) -> None:
    """Type, bytes, group, and of messages the other side and the tag, in the order of the calls."""
    for run in program:
        said, told = truth.read_truth(run.directory, run.rank), truth.told(run.trace)
        assert truth.right(said, told) == len(said) == len(told), (said, told)


def test_communication_takes_as_long_as_its_range(program: list[Run]) -> None:
    """Or ends before, where what it brought was read before gloo closed the range."""
    for run in program:
        for node in run.communication:
            recorded_ns = round(run.seen[int(node.rf_id or 0)]["dur"] * 1000)
            assert 0 < node.duration_ns <= recorded_ns + 1
            if node.type in MESSAGES:
                assert abs(node.duration_ns - recorded_ns) <= 1


def test_traces_are_sound_and_ready_for_a_simulator(program: list[Run]) -> None:
    traces = trace_set([run.conversion for run in program])
    assert validate(traces).count(Severity.ERROR) == 0
    if program[0].communication:
        assert cure(traces, "astra-sim").left.count(Severity.ERROR) == 0


def test_replay_gives_the_recording(program: list[Run]) -> None:
    for figures in replay(trace_set([run.conversion for run in program])).figures.values():
        assert abs(figures.span_error) < 0.001


def test_times_by_operator_are_those_of_key_averages(program: list[Run]) -> None:
    """Calls, own time and time in all, as PyTorch's own table has them."""
    for run in program:
        table = truth.read_averages(run.directory, run.rank)
        late_us = truth.closed_late_us(run.conversion.report.warnings)
        assert truth.unlike(table, truth.averages(run.trace), 0.01, late_us) == []


def test_every_node_is_fed(program: list[Run], tmp_path: Path) -> None:
    for run in program:
        run.conversion.write(tmp_path / f"trace.{run.rank}.et")
        fed = [node.id for node in Feeder(tmp_path / f"trace.{run.rank}.et")]
        assert sorted(fed) == sorted(run.trace.nodes.id.tolist())


def test_a_doctor_finds_nothing_lacking(program: list[Run]) -> None:
    """But what depends on how busy the machine is: groups that share no rank drift apart."""
    found = {lack.check for lack in examine(program[0].directory).findings}
    assert found <= {"cold", "windows-apart"}


def test_models_have_the_operators_of_their_layers(runs: dict[str, list[Run]]) -> None:
    (mlp,), (transformer,) = runs["mlp"], runs["transformer"]
    names = mlp.names()
    assert (names["aten::addmm"], names["aten::relu"]) == (3, 2)
    # Backward: a weight's gradient for each layer, an input's gradient for all but the first.
    assert names["aten::mm"] == 3 + 2
    names, steps = transformer.names(), programs.PROGRAMS["transformer"].steps
    assert names["aten::scaled_dot_product_attention"] == 2 * steps
    assert names["aten::native_layer_norm"] == 2 * 2 * steps
    assert names["aten::embedding"] == steps


def test_a_compiled_model_has_the_products_of_its_layers(runs: dict[str, list[Run]]) -> None:
    names = runs["compiled"][0].names()
    assert (names["aten::addmm"], names["aten::mm"]) == (3, 3 + 2)


def test_ddp_communicates_on_the_threads_of_gloo(runs: dict[str, list[Run]]) -> None:
    for run in runs["ddp"]:
        (main,) = {e["tid"] for e in run.events if e["name"].startswith("ProfilerStep#")}
        threads = {node.thread for node in run.communication}
        assert threads == {e["tid"] for e in run.events if e["name"] == "gloo:all_reduce"}
        assert main not in threads
        assert (run.trace.rank, run.trace.world_size) == (run.rank, 2)
        assert [(group.name, group.ranks) for group in run.trace.groups] == [("0", (0, 1))]


def test_ddp_reduces_all_parameters_in_every_step(runs: dict[str, list[Run]]) -> None:
    parameters = sum(p.numel() * p.element_size() for p in training.ddp_model().parameters())
    for run in runs["ddp"]:
        steps = [event for event in run.events if event["name"].startswith("ProfilerStep#")]
        assert len(steps) == programs.PROGRAMS["ddp"].steps
        for step in steps:
            sizes = [
                int(node.comm_size or 0)
                for node in run.communication
                if 0 <= run.seen[int(node.rf_id or 0)]["ts"] - step["ts"] <= step["dur"]
            ]
            assert sum(sizes) == parameters


def test_forked_workers_of_a_loader_stay_out_of_the_recording(runs: dict[str, list[Run]]) -> None:
    (run,) = runs["loader"]
    assert run.report["host_nodes"]["left_out"] == []
    names = run.names()
    assert names["aten::addmm"] == single.BATCHES
    # The workers compute each item.
    assert names["aten::mul"] == 0


def test_all_threads_have_times_where_the_profiler_can_follow_them(
    runs: dict[str, list[Run]],
) -> None:
    (run,) = runs["threads"]
    products = [node for node in run.trace.nodes if node.name == "aten::mm"]
    assert len(products) == single.THREADS * single.THREAD_PRODUCTS
    followed = "profile_all_threads" in switches()
    assert all((node.start_ns is not None) is followed for node in products)
    assert ("ET607" in validate(run.trace, "replay").rules) is not followed
    assert not followed or len({node.thread for node in products}) == single.THREADS
