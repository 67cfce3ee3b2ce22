"""Search finds what was planted, within its budget, and says what each edit is worth."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from command import chakra
from llm_plans import DENSE

from chakra_et import ChakraError
from chakra_et.files import write
from chakra_et.model import TraceSet
from chakra_et.replay import network_of, replay
from chakra_et.whatif import edit, parse_choice, parse_edit, search
from chakra_et.workloads import Model, Plan, Recompute, Roofline, Schedule, device, generate

SMALL = Model(**{name: getattr(DENSE, name) for name in DENSE.__struct_fields__} | {"layers": 4})
GOOD = Plan(model=SMALL, pp=2, dp=2, sequence=64, global_batch=8, overlap=True, bucket=0)
NETWORK = "network=20,50"
CHOICES = [parse_choice("bucket=2KiB|64KiB|all"), parse_choice("recompute=none|full")]


def made(plan: Plan) -> TraceSet:
    return generate(plan, Roofline(device("a100")))


def span(traces: TraceSet) -> int:
    done = replay(traces, network=network_of("20,50", "network"))
    return max(figures.span_ns for figures in done.figures.values())


def test_planted_recomputation_and_tiny_buckets_are_found() -> None:
    planted = made(replace(GOOD, recompute=Recompute.FULL, bucket=500))
    found = search(planted, [parse_edit(NETWORK)], CHOICES, budget=30)
    assert found.edits == ("bucket=all", "recompute=none")
    assert found.complete
    assert span(planted) > span(made(GOOD))
    assert min(t.span_ns for t in found.trials if t.span_ns is not None) == span(made(GOOD))
    # What it is compared with goes over the same network.
    assert max(f.span_ns for f in found.answer.before.figures.values()) == span(planted)
    assert all(ns > span(made(GOOD)) for ns in found.without_ns.values())


def test_a_planted_schedule_is_found() -> None:
    planted = made(replace(GOOD, schedule=Schedule.GPIPE, global_batch=16))
    choices = [parse_choice("schedule=1f1b|gpipe|interleaved:2")]
    found = search(planted, [parse_edit("network=1,500")], choices, budget=9)
    assert found.edits == ("schedule=interleaved:2",)


def test_it_is_the_best_of_all_combinations() -> None:
    traces = made(replace(GOOD, bucket=500))
    found = search(traces, [parse_edit(NETWORK)], CHOICES, budget=30)
    every = [
        span(edit(traces, [parse_edit(text) for text in texts if text]).traces)
        for texts in product(*[("", *choice) for choice in CHOICES])
    ]
    assert min(every) == min(t.span_ns for t in found.trials if t.span_ns is not None)


def test_what_helps_nobody_is_not_kept() -> None:
    found = search(made(GOOD), [parse_edit(NETWORK)], CHOICES, budget=30)
    assert found.edits == ()


@pytest.mark.parametrize("budget", [1, 2, 4])
def test_a_budget_is_kept_and_told(budget: int) -> None:
    planted = made(replace(GOOD, recompute=Recompute.FULL, bucket=500))
    found = search(planted, [parse_edit(NETWORK)], CHOICES, budget=budget)
    assert len(found.trials) == budget
    assert not found.complete


def test_what_cannot_be_made_is_told_and_passed_over() -> None:
    choices = [parse_choice("schedule=interleaved:8|gpipe")]
    found = search(made(GOOD), [parse_edit(NETWORK)], choices, budget=9)
    refused = [trial.refused for trial in found.trials if trial.span_ns is None]
    assert refused == ["schedule=interleaved:8: 16 stages for 4 layers"]


def test_the_command(tmp_path: Path) -> None:
    planted = made(replace(GOOD, bucket=500))
    for rank, trace in planted.items():
        write(trace, tmp_path / f"trace.{rank}.et")
    done = chakra("whatif", tmp_path, "--set", NETWORK, "--search", "9", "--try", "bucket=2KiB|all")
    assert done.code == 0, done.output
    assert "kept after 3 trials (nothing else is better): bucket=all" in done.words
    assert "without bucket=all it would take" in done.words
    for options, told in (
        ((), "no edit"),
        (("--set", NETWORK, "--try", "bucket=all"), "--try is for --search"),
        (("--search", "3", "--try", "colour=red|blue"), "invalid edit"),
    ):
        refused = chakra("whatif", tmp_path, *options)
        assert (refused.code, told in refused.errors) == (2, True), refused.errors


def test_a_choice_is_one_of_edits_that_are_understood() -> None:
    assert parse_choice("bucket=1MB|all") == ("bucket=1MB", "bucket=all")
    with pytest.raises(ChakraError):
        parse_choice("bucket")
