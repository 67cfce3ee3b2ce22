"""How the ranks of a set lie is found from groups, what they are called, and what they carry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from llm_plans import DENSE, MOE

from chakra_et.build import Grid, Rank, Workload, write_workload
from chakra_et.errors import ChakraError
from chakra_et.files import read_set, write
from chakra_et.model import ProcessGroup
from chakra_et.scale import Degree, Layout, parse_grid, plan_scale
from chakra_et.scale.families import find_kin
from chakra_et.scale.layout import find_layout
from chakra_et.scale.sources import read_sources
from chakra_et.workloads import Plan
from chakra_et.workloads.generate import program

SMALL, EXPERTS = (msgspec.structs.replace(model, layers=2) for model in (DENSE, MOE))
Told = Callable[[ProcessGroup], str]


def stripped(place: Path, called: Told) -> Path:
    """A set without its grid, and with groups called otherwise."""
    for rank, trace in read_set(place).items():
        for name in ("grid", "coordinates", "workload"):
            trace.metadata.set(name, None, None)  # type: ignore[arg-type]
        trace.groups = [
            msgspec.structs.replace(group, description=called(group)) for group in trace.groups
        ]
        write(trace, place / f"trace.{rank}.et")
    return place


def generated(place: Path, **told: Any) -> Path:
    plan = Plan(sequence=64, **told)
    write_workload(plan.workload(), program(plan), place)
    return place


def layout_of(place: Path, grid: Grid | None = None) -> Layout:
    sources = read_sources(place, lambda _done, _of: None)
    return find_layout(sources, find_kin(sources), grid)


LAYOUTS = [
    {"model": SMALL, "tp": 2, "dp": 2, "pp": 2},
    {"model": SMALL, "tp": 4, "dp": 2, "sequence_parallel": True, "zero": 3},
    {"model": SMALL, "dp": 4, "zero": 0},
    {"model": EXPERTS, "ep": 2, "dp": 4},
    {"model": SMALL, "tp": 2, "dp": 2, "pp": 2, "order": "pp-dp-tp-cp-ep"},
]


@pytest.mark.parametrize("told", LAYOUTS)
def test_by_what_groups_are_called(tmp_path: Path, told: dict[str, Any]) -> None:
    """Megatron's order or another one: names of groups tell the axes, members where they lie."""
    wanted = Plan(sequence=64, **told).axes
    place = stripped(generated(tmp_path / "set", **told), lambda group: group.description)
    found = layout_of(place)
    assert found.grid.axes == {axis: size for axis, size in wanted.items() if size > 1}
    assert all("groups called" in why for why in found.evidence.values())


@pytest.mark.parametrize("told", LAYOUTS[:3])
def test_by_what_groups_carry(tmp_path: Path, told: dict[str, Any]) -> None:
    """Without names: sums within layers are tp, of gradients dp, and messages go along pp."""
    wanted = Plan(sequence=64, **told).axes
    place = stripped(generated(tmp_path / "set", **told), lambda _group: "")
    found = layout_of(place)
    assert found.grid.axes == {axis: size for axis, size in wanted.items() if size > 1}


@pytest.mark.parametrize(
    ("called", "role"),
    [
        ("TENSOR_MODEL_PARALLEL_GROUP", "tp"),
        ("DATA_PARALLEL_GROUP", "dp"),
        ("mesh_dp", "dp"),
        ("PIPELINE_MODEL_PARALLEL_GROUP", "pp"),
        ("EXPERT_MODEL_PARALLEL_GROUP", "ep"),
        ("CONTEXT_PARALLEL_GROUP", "cp"),
        ("EXPERT_DATA_PARALLEL_GROUP", "edp"),
    ],
)
def test_names_that_frameworks_give(tmp_path: Path, called: str, role: str) -> None:
    place = stripped(summing(tmp_path / "set", Workload(rank=4), ["rank"]), lambda _group: called)
    assert layout_of(place).grid.axes == {role: 4}


def summing(place: Path, workload: Workload, families: list[str]) -> Path:
    """A set of which each rank sums once over each of its groups."""

    def program(rank: Rank) -> None:
        for family in families:
            rank.all_reduce(family, 1024)

    write_workload(workload, program, place)
    return place


def test_axes_that_other_makers_call_otherwise(tmp_path: Path) -> None:
    """A grid of `model` and `data`, as of a workload text, has tp and dp."""
    place = summing(tmp_path / "set", Workload(model=2, data=2), ["model", "data"])
    for asked, axis in (("dp", "data"), ("tp", "model")):
        made = plan_scale(place, {asked: Degree(6)})
        assert made.sizes == {axis: 6}
        assert made.widens == (asked == "tp")


def test_what_was_told_goes_before_what_is_found(tmp_path: Path) -> None:
    """Two axes in one group: nothing tells them apart, but the user may."""
    place = stripped(summing(tmp_path / "set", Workload(rank=8), ["rank"]), lambda _group: "")
    found = layout_of(place)
    assert found.grid.axes == {"a": 8}
    assert "do not tell" in found.evidence["a"]
    assert layout_of(place, parse_grid("tp2-dp4")).evidence == {"tp": "told", "dp": "told"}


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ("tp2-dp2", "--grid tp2-dp2 has 4 ranks, and the set has 8"),
        ("tp4-dp2", "do not lie evenly on --grid, tp4-dp2"),
        ("8", "--grid '8' is no grid"),
        ("tp2,dp4", "--grid 'tp2,dp4' is no grid"),
        ("tp2-tp4", "--grid 'tp2-tp4' is no grid"),
        ("tp0-dp8", "--grid 'tp0-dp8' is no grid"),
    ],
)
def test_a_grid_that_does_not_fit(tmp_path: Path, told: str, problem: str) -> None:
    place = summing(tmp_path / "set", Workload(tp=2, dp=4), ["tp", "dp"])
    with pytest.raises(ChakraError) as error:
        layout_of(place, parse_grid(told))
    assert problem in str(error.value)


FEW, MANY = [[0, 1], [2, 3], [4, 5]], [[0, 1, 2], [3, 4, 5]]
GAPS, UNEVEN = [[0, 2], [3, 5]], [[0, 3], [1, 2], [4, 5]]


@pytest.mark.parametrize(
    ("families", "problem"),
    [
        ([FEW, MANY], "the groups do not lie on one grid of 6 ranks"),
        ([UNEVEN], "do not lie evenly on --grid, dp6"),
        ([GAPS], "do not lie evenly on --grid, dp6"),
        ([FEW[:1]], "has some of axis dp, not all of it"),
    ],
)
def test_groups_that_make_no_grid(
    tmp_path: Path, families: list[list[list[int]]], problem: str
) -> None:
    """Only rectangular meshes grow by copying ranks."""
    workload = Workload(rank=6)
    for number, ranks in enumerate(families):
        workload.groups(f"f{number}", ranks=ranks)
    names = [f"f{number}" for number in range(len(families))]
    place = tmp_path / "set"
    write_workload(workload, lambda rank: sum_where(rank, names), place)
    without_world(stripped(place, lambda group: group.description))
    with pytest.raises(ChakraError) as error:
        plan_scale(place, {"dp": Degree(12)}, grid=None if len(families) > 1 else Grid({"dp": 6}))
    assert problem in str(error.value)


def sum_where(rank: Rank, families: list[str]) -> None:
    for family in families:
        if rank.in_group(family):
            rank.all_reduce(family, 1024)


def without_world(place: Path) -> None:
    for rank, trace in read_set(place).items():
        trace.groups = [group for group in trace.groups if group.description != "rank"]
        write(trace, place / f"trace.{rank}.et")
