"""Small cases: each holds what it is named for, and runs where it says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import chakra_et
from chakra_et import CollectiveType, NodeType
from chakra_et.cli.generate import generate_command
from chakra_et.definitions import ATTRIBUTES, EdgeKind, Kind
from chakra_et.passes import cure
from chakra_et.validators import Severity
from chakra_et.workloads.micro import CASES, case


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("name", CASES)
def test_cases_are_sound_and_run_in_astra_sim_or_are_cured(name: str, ranks: int) -> None:
    chosen = CASES[name]
    traces = chosen.workload(ranks).traces(chosen.program(1 << 16, 5000))
    assert not chakra_et.validate(traces).count(Severity.ERROR)
    found = chakra_et.validate(traces, "astra-sim")
    assert bool(found.outcomes) is not chosen.native
    assert not cure(traces, "astra-sim").left.count(Severity.ERROR)


def test_every_type_of_node_that_does_something() -> None:
    traces = case("node-types").workload(2).traces(case("node-types").program(64, 1000))
    assert {node.type for node in traces[0].nodes} == set(NodeType) - {NodeType.INVALID}


def test_every_collective_has_a_case() -> None:
    for type in CollectiveType:
        chosen = case(type.name.lower().replace("_", "-"))
        (node,) = (
            chosen.workload(2)
            .traces(chosen.program(64, 1000))[0]
            .nodes.where(type=NodeType.COMM_COLL)
        )
        assert node.comm_type == type


def test_every_attribute_and_every_kind_of_value() -> None:
    chosen = case("attributes")
    table = chosen.workload(1).traces(chosen.program(64, 1000))[0].nodes.attributes
    names = {column.key.name for column in table.columns}
    told_by_others = {
        "duration_ns", "start_time_ns", "edge_kinds", "edge_evidence", "same_kernel",
        "own_start_ns", "inputs", "outputs",
    }  # fmt: skip
    assert set(ATTRIBUTES) - names == told_by_others
    assert {column.key.kind for column in table.columns} == set(Kind)


def test_edges_of_several_kinds() -> None:
    chosen = case("edge-kinds")
    trace = chosen.workload(1).traces(chosen.program(64, 1000))[0]
    assert set(trace.edges.counts()) == {EdgeKind.CALL, EdgeKind.STREAM, EdgeKind.DATA}


def test_messages_go_where_the_pattern_says() -> None:
    def pairs(name: str, ranks: int) -> set[tuple[int, int]]:
        traces = case(name).workload(ranks).traces(case(name).program(64, 1000))
        return {
            (rank, node.comm_dst)
            for rank, trace in traces.items()
            for node in trace.nodes.where(type=NodeType.COMM_SEND)
        }

    assert pairs("ring", 3) == {(0, 1), (1, 2), (2, 0)}
    assert pairs("chain", 3) == {(0, 1), (1, 2)}
    assert pairs("tree", 6) == {(1, 0), (2, 0), (3, 1), (4, 1), (5, 2)}
    assert pairs("pairs", 3) == {(a, b) for a in range(3) for b in range(3) if a != b}
    assert pairs("halo", 4) == {(a, (a + d) % 4) for a in range(4) for d in (1, 3)}


def test_on_the_command_line(tmp_path: Path) -> None:
    def run(*words: str) -> None:
        result = CliRunner().invoke(generate_command, ["micro", *words], catch_exceptions=False)
        assert result.exit_code == 0, result.output

    run("all", "--ranks", "2", "--for", "astra-sim", "-o", str(tmp_path / "all"))
    assert {path.name for path in (tmp_path / "all").iterdir()} == set(CASES)
    assert (tmp_path / "all" / "tree" / "comm_groups.json").exists()
    run("halo", "--ranks", "3", "--size", "99", "-o", str(tmp_path / "halo"))
    nodes = chakra_et.read(tmp_path / "halo" / "trace.2.et").nodes
    assert {n.comm_size for n in nodes.where(type=NodeType.COMM_RECV)} == {99}
    with pytest.raises(chakra_et.ChakraError, match="no case 'macro'"):
        run("macro", "-o", str(tmp_path / "x"))
