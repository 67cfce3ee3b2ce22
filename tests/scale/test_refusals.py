"""What cannot be scaled is refused, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command import chakra
from llm_plans import DENSE, MOE
from traces import COLL, coll, node, send, trace

from chakra_et.build import Rank, Workload, write_workload
from chakra_et.definitions import CollectiveType, Kind
from chakra_et.errors import ChakraError
from chakra_et.files import read, read_set, write
from chakra_et.scale import Degree, parse_degree, plan_scale
from chakra_et.workloads import Plan
from chakra_et.workloads.generate import program

SMALL, EXPERTS = (msgspec.structs.replace(model, layers=2) for model in (DENSE, MOE))


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Two replicas that sum gradients."""
    return made(tmp_path / "pair", Workload(dp=2), lambda rank: _sum(rank))


def _sum(rank: Rank) -> None:
    rank.all_reduce("dp", 4096)


def made(place: Path, workload: Workload, what: Callable[[Rank], Any]) -> Path:
    def once(rank: Rank) -> None:
        what(rank)

    write_workload(workload, once, place)
    return place


def generated(place: Path, **told: Any) -> Path:
    plan = Plan(sequence=64, **told)
    write_workload(plan.workload(), program(plan), place)
    return place


def problem_of(place: Path, **degrees: int) -> str:
    with pytest.raises(ChakraError) as error:
        plan_scale(place, {axis: Degree(new) for axis, new in degrees.items()})
    return str(error.value)


# ---------------------------------------------------------------------------------------------
# Degrees


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ("2->1", "dp is 2 already, and 1 are wanted: a set can only grow"),
        ("2->2", "a set can only grow"),
        ("4->8", "--dp 4->8, but dp is 2 in this set"),
        ("2-", "--dp '2-' is no degree. Write 512, or '4->512' in quotes"),
        ("0", "is no degree"),
        ("-4", "is no degree"),
        ("many", "is no degree"),
        ("2->2000000", "that would be 2,000,000 ranks"),
    ],
)
def test_degrees(pair: Path, tmp_path: Path, asked: str, problem: str) -> None:
    done = chakra("scale", pair, "-o", tmp_path / "out", f"--dp={asked}")
    assert (done.code, done.output) == (2, "")
    assert problem in done.errors
    assert not (tmp_path / "out").exists()


def test_one_rank_tells_nothing_of_more(tmp_path: Path) -> None:
    """A model that was never run on several replicas has no gradients to be summed."""
    place = generated(tmp_path / "set", model=SMALL, tp=2, dp=1)
    assert "dp is 1: nothing in the set tells what more ranks" in problem_of(place, dp=8)


def test_an_axis_that_is_not_there(pair: Path) -> None:
    assert (
        "no axis of this set is known to be tp: its ranks lie as dp2 (dp: metadata)"
        in problem_of(pair, tp=4)
    )


def test_a_set_of_one_rank(tmp_path: Path) -> None:
    assert "this is a set of one rank" in problem_of(
        made(tmp_path / "set", Workload(dp=1), lambda rank: rank.compute("mm", flops=1)), dp=2
    )


def test_experts_lie_within_replicas(tmp_path: Path) -> None:
    place = generated(tmp_path / "set", model=EXPERTS, dp=4, ep=2)
    assert "dp 7 is no multiple of the 2 expert-parallel ranks" in problem_of(place, dp=7)
    place = generated(tmp_path / "whole", model=EXPERTS, dp=4, ep=4)
    assert "dp is 4, all of it expert-parallel (ep 4): nothing" in problem_of(place, dp=8)


def test_nothing_to_grow(pair: Path, tmp_path: Path) -> None:
    done = chakra("scale", pair, "-o", tmp_path / "out")
    assert done.code == 2
    assert "nothing is to grow. Say what: --dp '4->512'" in done.errors


# ---------------------------------------------------------------------------------------------
# Patterns


def test_stages_are_no_copies(tmp_path: Path) -> None:
    place = generated(tmp_path / "set", model=SMALL, pp=2, dp=2)
    assert "axis pp cannot grow: stages differ in their layers" in problem_of(place, pp=4)


def test_sequence_parallel_ranks_work_on_parts(tmp_path: Path) -> None:
    place = generated(tmp_path / "set", model=SMALL, tp=2, sequence_parallel=True)
    assert "axis tp cannot grow: 'tp' runs ALL_GATHER" in problem_of(place, tp=4)


def test_messages_along_the_axis(tmp_path: Path) -> None:
    def ring(rank: Rank) -> None:
        rank.send(rank.peer(dp=1), 64)
        rank.receive(rank.peer(dp=-1), 64)

    place = made(tmp_path / "set", Workload(dp=4), ring)
    assert "messages go along axis dp" in problem_of(place, dp=8)


@pytest.mark.parametrize("type", [CollectiveType.GATHER, CollectiveType.SCATTER])
def test_collectives_of_unknown_effect(tmp_path: Path, type: CollectiveType) -> None:
    place = made(tmp_path / "set", Workload(dp=2), lambda rank: rank.collective(type, "dp", 64))
    assert f"axis dp cannot grow: 'dp' runs {type.name}" in problem_of(place, dp=8)


def test_all_gathers_of_unknown_purpose(tmp_path: Path) -> None:
    """The user may say what they gather: each way has another size."""
    place = made(tmp_path / "set", Workload(dp=2), lambda rank: rank.all_gather("dp", 64))
    assert "nothing tells what the all-gathers of 'dp' gather" in problem_of(place, dp=8)
    for told, size in (("whole", 16), ("part", 64)):
        done = chakra("scale", place, "-o", tmp_path / told, "--dp", 8, "--gathered", told, "-q")
        assert (done.code, done.output) == (0, "")
        assert read(tmp_path / told / "trace.7.et").nodes[0].comm_size == size


# ---------------------------------------------------------------------------------------------
# Sets


def test_a_rank_is_missing(pair: Path) -> None:
    (pair / "trace.1.et").unlink()
    assert "1 of 2 ranks are here, rank 1 missing" in problem_of(pair, dp=4)


def test_two_files_of_one_rank(pair: Path) -> None:
    (pair / "trace.1.et").write_bytes((pair / "trace.0.et").read_bytes())
    assert "this is rank 0, of 2 files with another one" in problem_of(pair, dp=4)


def test_a_world_that_no_memory_holds(pair: Path) -> None:
    trace = read(pair / "trace.0.et")
    trace.metadata.set("world_size", Kind.INT64, 1 << 50)
    write(trace, pair / "trace.0.et")
    assert f"2 of {1 << 50} ranks are here, rank 2, 3, 4, 5, 6, … missing" in problem_of(pair, dp=4)


def test_one_file_of_a_set(pair: Path) -> None:
    assert "1 of 2 ranks are here" in problem_of(pair / "trace.0.et", dp=4)


def test_ranks_that_do_not_begin_at_0(tmp_path: Path) -> None:
    for rank in (1, 2):
        write(trace(coll(1)), tmp_path / f"trace.{rank}.et")
    assert "this is rank 2, of 2 files" in problem_of(tmp_path, dp=4)
    for rank in (1, 2):
        write(trace(coll(1), rank=rank, world=3), tmp_path / f"trace.{rank}.et")
    assert "2 of 3 ranks are here, rank 0 missing" in problem_of(tmp_path, dp=4)


def test_ranks_that_do_not_fit_together(pair: Path) -> None:
    trace = read(pair / "trace.1.et")
    for column in trace.nodes.attributes.named("comm_size"):
        column.values[:] = 99
    write(trace, pair / "trace.1.et")
    assert "the set does not fit together as it is: collective 0 of group 'dp'" in (
        problem_of(pair, dp=4)
    )


def test_a_group_that_a_member_does_not_know(pair: Path) -> None:
    trace = read(pair / "trace.1.et")
    trace.groups = [msgspec.structs.replace(g, name="7") for g in trace.groups]
    write(trace, pair / "trace.1.et")
    assert "collective of group '1', which no table explains" in problem_of(pair, dp=4)


@pytest.mark.parametrize(
    ("one", "problem"),
    [
        (coll(1, pg_name="x"), "a collective of group 'x', which no table"),
        (coll(1, pg_candidates='["1","2"]'), "the trace does not tell which group"),
        (node(1, COLL, comm_size=8), "a collective of no known type"),
        (send(1, 9), "a message between rank 0 and rank 9"),
        (send(1, 0), "a message between rank 0 and rank 0"),
    ],
)
def test_communication_that_is_not_told(tmp_path: Path, one: Any, problem: str) -> None:
    for rank in (0, 1):
        write(trace(one, rank=rank, world=2), tmp_path / f"trace.{rank}.et")
    assert f"trace.0.et: node 1: {problem}" in problem_of(tmp_path, dp=4)


# ---------------------------------------------------------------------------------------------
# Outputs


def test_the_output_is_the_input(pair: Path) -> None:
    before = {path.name: path.read_bytes() for path in pair.iterdir()}
    done = chakra("scale", pair, "-o", pair, "--dp", "4")
    assert done.code == 2
    assert "the output would overwrite this input" in done.errors
    assert {path.name: path.read_bytes() for path in pair.iterdir()} == before


def test_another_run_is_in_the_way(pair: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert chakra("scale", pair, "-o", out, "--dp", "8").code == 0
    done = chakra("scale", pair, "-o", out, "--dp", "4")
    assert done.code == 2
    assert "files of another run are here (trace.4.et" in done.errors
    assert chakra("scale", pair, "-o", out, "--dp", "4", "--force").code == 0
    assert len(read_set(out)) == 4


def test_several_ranks_do_not_fit_one_file(pair: Path, tmp_path: Path) -> None:
    done = chakra("scale", pair, "-o", tmp_path / "out.et", "--dp", "4")
    assert done.code == 2
    assert "expected a directory for one file of each rank" in done.errors


def test_no_set_at_all(tmp_path: Path) -> None:
    assert "no ET in this directory" in problem_of(tmp_path, dp=4)
    with pytest.raises(ChakraError, match="no degree"):
        parse_degree("dp", "")
