"""A set that was scaled is the set that would have been generated, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st
from llm_plans import DENSE, GPT, MOE

from chakra_et.build import write_workload
from chakra_et.files import read_set
from chakra_et.scale import Degree, plan_scale, write_scaled
from chakra_et.workloads import Gather, Model, Plan, Recompute, Schedule
from chakra_et.workloads.generate import generate as generate_in_memory
from chakra_et.workloads.generate import program

SMALL, GPT_SMALL, MOE_SMALL = (
    msgspec.structs.replace(model, layers=4) for model in (DENSE, GPT, MOE)
)

options = st.fixed_dictionaries(
    {
        "model": st.sampled_from([SMALL, GPT_SMALL, MOE_SMALL]),
        "tp": st.sampled_from([1, 2]),
        "pp": st.sampled_from([1, 2]),
        "cp": st.sampled_from([1, 2]),
        "micro_batch": st.integers(1, 2),
        "zero": st.integers(0, 3),
        "sequence_parallel": st.booleans(),
        "recompute": st.sampled_from(Recompute),
        "schedule": st.sampled_from([s for s in Schedule if s is not Schedule.INTERLEAVED]),
        "gather": st.sampled_from(Gather),
        "overlap": st.booleans(),
        "bucket": st.sampled_from([-1, 0, 20_000]),
    }
)


def plan_of(dp: int, steps: int, told: Mapping[str, Any]) -> Plan:
    batch = dp * steps * told.get("micro_batch", 1)
    return Plan(dp=dp, global_batch=batch, sequence=64, **told)


def generate(plan: Plan, place: Path, *, tensors: bool = False) -> Path:
    write_workload(plan.workload(tensors=tensors), program(plan), place)
    return place


def scale(source: Path, place: Path, **degrees: int) -> Path:
    made = plan_scale(source, {axis: Degree(new) for axis, new in degrees.items()})
    write_scaled(made, place)
    return place


def differences(one: Path, other: Path) -> list[str]:
    """Names of the files that are not the same in both."""
    names = {p.name for place in (one, other) for p in place.iterdir() if p.suffix == ".et"}
    names.add("comm_groups.json")
    return sorted(
        name
        for name in names
        if not all((place / name).exists() for place in (one, other))
        or (one / name).read_bytes() != (other / name).read_bytes()
    )


def compare(few: Plan, many: Plan, *, tensors: bool = False, **degrees: int) -> list[str]:
    with TemporaryDirectory() as directory:
        place = Path(directory)
        generate(few, place / "few", tensors=tensors)
        generate(many, place / "many", tensors=tensors)
        return differences(scale(place / "few", place / "scaled", **degrees), place / "many")


@settings(max_examples=settings().max_examples // 8)
@given(told=options, old=st.sampled_from([2, 4]), times=st.sampled_from([2, 4]), tensors=...)
@example(told={"model": SMALL, "zero": 2, "bucket": 20_000}, old=2, times=2, tensors=False)
@example(told={"model": GPT_SMALL, "zero": 1, "bucket": 20_000}, old=2, times=2, tensors=False)
@example(told={"model": SMALL, "zero": 3, "tp": 2, "pp": 2}, old=4, times=8, tensors=False)
@example(told={"model": GPT_SMALL, "zero": 2, "cp": 2}, old=4, times=8, tensors=True)
@example(told={"model": MOE_SMALL, "zero": 1, "ep": 2}, old=4, times=8, tensors=False)
@example(told={"model": GPT_SMALL, "zero": 0, "tp": 2, "pp": 2}, old=4, times=8, tensors=False)
def test_more_replicas(told: dict[str, Any], old: int, times: int, tensors: bool) -> None:
    few, many = (plan_of(dp, 2 * told.get("pp", 1), told) for dp in (old, old * times))
    assert differences_of(few, many, tensors) == []


def differences_of(few: Plan, many: Plan, tensors: bool) -> list[str]:
    return compare(few, many, tensors=tensors, dp=many.dp)


def test_interleaved_schedules() -> None:
    told = {"model": SMALL, "pp": 2, "chunks": 2, "schedule": Schedule.INTERLEAVED}
    assert differences_of(plan_of(2, 4, told), plan_of(6, 4, told), tensors=False) == []


def wider(model: Model, times: int) -> Model:
    """A model of so many times as many heads, rows of each MLP, and words."""
    return msgspec.structs.replace(
        model,
        head_size=model.hidden // model.heads,
        heads=model.heads * times,
        kv_heads=model.kv * times,
        ffn=model.ffn * times,
        vocabulary=model.vocabulary * times,
    )


@settings(max_examples=settings().max_examples // 16)
@given(model=st.sampled_from([SMALL, GPT_SMALL]), pp=st.sampled_from([1, 2]), dp=st.integers(1, 2),
       zero=st.integers(0, 3))  # fmt: skip
def test_more_tensor_parallel_ranks_are_a_wider_model(
    model: Model, pp: int, dp: int, zero: int
) -> None:
    told = {"pp": pp, "zero": zero}
    few = plan_of(dp, pp, {"model": wider(model, 1), "tp": 2, **told})
    many = plan_of(dp, pp, {"model": wider(model, 2), "tp": 4, **told})
    with TemporaryDirectory() as directory:
        place = Path(directory)
        scaled = read_set(scale(generate(few, place / "few"), place / "scaled", tp=4))
    for rank, trace in generate_in_memory(many).items():
        assert trace.nodes.same(scaled[rank].nodes), rank
        assert trace.edges == scaled[rank].edges
        assert trace.groups == scaled[rank].groups
        assert scaled[rank].metadata.get("workload") is None


def test_both_axes_at_once() -> None:
    told = {"pp": 2, "zero": 3, "micro_batch": 1}
    few = plan_of(2, 2, {"model": wider(SMALL, 1), "tp": 2, **told})
    many = plan_of(4, 2, {"model": wider(SMALL, 2), "tp": 4, **told})
    with TemporaryDirectory() as directory:
        place = Path(directory)
        scaled = read_set(scale(generate(few, place / "few"), place / "scaled", dp=4, tp=4))
    wanted = generate_in_memory(many)
    assert list(scaled) == list(wanted)
    for rank, trace in wanted.items():
        assert trace.nodes.same(scaled[rank].nodes), rank
        assert trace.groups == scaled[rank].groups
