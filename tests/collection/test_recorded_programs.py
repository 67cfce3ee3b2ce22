"""Recordings of real runs (`tools/record_pairs.py`, PyTorch 2.13 over gloo), as collect wrote them.

Sharded training (FSDP2), tensor parallelism and a pipeline of two stages with its messages; beside
each stands what the program said that it communicates, and PyTorch's own table of times.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from recording import truth

from chakra_et import Feeder, validate
from chakra_et.conversion import Conversion, trace_set
from chakra_et.directory import convert_directory
from chakra_et.doctor import examine
from chakra_et.passes import cure
from chakra_et.replay import replay
from chakra_et.validators import Severity

DATA = Path(__file__).parent / "data"
PROGRAMS = ("sharded", "tensor_parallel", "two_stages")


@pytest.fixture(scope="module", params=PROGRAMS)
def run(request: pytest.FixtureRequest) -> tuple[Path, list[Conversion]]:
    """The folder of a recording, and the conversion of each rank."""
    folder = DATA / request.param
    return folder, list(convert_directory(folder, None))


def test_nothing_is_lacking(run: tuple[Path, list[Conversion]]) -> None:
    assert examine(run[0]).exit_code == 0


def test_all_operations_are_joined(run: tuple[Path, list[Conversion]]) -> None:
    for conversion in run[1]:
        (join,) = [join for join in conversion.report.joins if join.by == "record-function id"]
        assert join.matched == join.of > 0


def test_groups_and_peers_are_those_of_the_program(run: tuple[Path, list[Conversion]]) -> None:
    folder, conversions = run
    for rank, conversion in enumerate(conversions):
        said, told = truth.read_truth(folder, rank), truth.told(conversion.load())
        assert truth.right(said, told) == len(said) == len(told) > 0


def test_times_by_operator_are_those_of_key_averages(run: tuple[Path, list[Conversion]]) -> None:
    folder, conversions = run
    for rank, conversion in enumerate(conversions):
        table = truth.read_averages(folder, rank)
        assert len(table) > 10
        assert truth.unlike(table, truth.averages(conversion.load()), within=0.01) == []


def test_ranks_are_sound_together_and_ready_for_a_simulator(
    run: tuple[Path, list[Conversion]],
) -> None:
    traces = trace_set(run[1])
    assert validate(traces).count(Severity.ERROR) == 0
    assert cure(traces, "astra-sim").left.count(Severity.ERROR) == 0


def test_replay_gives_the_recording(run: tuple[Path, list[Conversion]]) -> None:
    figures = replay(trace_set(run[1])).figures
    assert len(figures) == 2
    assert all(abs(figure.span_error) < 0.001 for figure in figures.values())


def test_every_node_is_fed(run: tuple[Path, list[Conversion]], tmp_path: Path) -> None:
    for conversion in run[1]:
        trace = conversion.load()
        conversion.write(tmp_path / "trace.et")
        fed = [node.id for node in Feeder(tmp_path / "trace.et")]
        assert sorted(fed) == sorted(trace.nodes.id.tolist())
