"""The breakdown of steps: known answers, and the sums that a replay has."""

from __future__ import annotations

from itertools import pairwise

import pytest
from places import EXAMPLES
from runs import MS, built, host, kernels, straggler

from chakra_et.conversion import trace_set
from chakra_et.directory import convert_files
from chakra_et.pages.arrivals import arrivals
from chakra_et.pages.ranks import Run, make_run
from chakra_et.pages.steps import PARTS, Step, steps_of


def steps(run: Run) -> list[Step]:
    waits = arrivals(run).waits
    return [step for rank, times in run.ranks.items() for step in steps_of(times, waits[rank])]


def told(step: Step) -> dict[str, float]:
    return {part: ns / MS for part, ns in step.ns.items() if ns}


def test_without_annotations_there_is_one_step() -> None:
    (first, second) = steps(make_run(built(kernels)))
    assert first.name == "all"
    assert told(first) == told(second) == {"compute": 9, "transfer": 1}


def test_waiting_for_other_ranks_is_no_transfer() -> None:
    first, late, *_ = steps(make_run(built(straggler, 4)))
    assert told(first) == {"compute": 2, "waiting": 6, "transfer": 2}
    assert told(late) == {"compute": 8, "transfer": 2}


def test_host_work_counts_while_the_device_has_nothing_to_do() -> None:
    assert told(steps(make_run(built(host, 1)))[0]) == {"host": 8, "compute": 2}


@pytest.fixture(scope="module")
def recorded() -> Run:
    return make_run(trace_set(convert_files(EXAMPLES / "ddp_2rank", None)))


def test_steps_are_those_of_the_profiler(recorded: Run) -> None:
    found = steps(recorded)
    names = [step.name for step in found if step.rank == 0 and step.name != "before"]
    assert names
    assert all(name.startswith("ProfilerStep#") for name in names)
    for one, after in pairwise(found):
        assert one.rank != after.rank or one.end_ns == after.start_ns


def test_all_time_is_told_once(recorded: Run) -> None:
    for step in steps(recorded):
        assert set(step.ns) == set(PARTS)
        assert sum(step.ns.values()) == step.length_ns
        assert min(step.ns.values()) >= 0


def test_sums_are_those_of_the_replay(recorded: Run) -> None:
    assert recorded.done is not None
    for rank, figures in recorded.done.figures.items():
        mine = [step.ns for step in steps(recorded) if step.rank == rank]
        sums = {part: sum(ns[part] for ns in mine) for part in PARTS}
        assert sums["compute"] == figures.recorded.exposed_compute_ns
        assert sums["overlap"] == figures.recorded.overlap_ns
        assert sums["transfer"] + sums["waiting"] == figures.recorded.exposed_comm_ns
