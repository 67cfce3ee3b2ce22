"""Pipeline schedules: laws that all keep, and the idle share that each leaves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.model import TraceSet
from chakra_et.replay import AlphaBeta, replay
from chakra_et.workloads import Model, Operator, Plan, Schedule, generate
from chakra_et.workloads.memory import in_flight
from chakra_et.workloads.schedule import Kind, Pass, schedule

MODEL = Model(name="m", layers=8, hidden=64, heads=8, ffn=96, vocabulary=128)
plans = st.builds(
    lambda pp, m, schedule_chunks: Plan(
        model=MODEL, pp=pp, global_batch=m * pp, schedule=schedule_chunks[0],
        chunks=schedule_chunks[1], sequence=8,
    ),
    pp=st.sampled_from([2, 4]),
    m=st.integers(1, 3),
    schedule_chunks=st.sampled_from([(s, 2 if s is Schedule.INTERLEAVED else 1) for s in Schedule]),
)  # fmt: skip


@given(plans)
def test_each_micro_batch_goes_forward_once_and_back_once(plan: Plan) -> None:
    for stage in range(plan.pp):
        passes = schedule(plan, stage)
        assert len(set(passes)) == len(passes)
        for chunk in range(plan.chunks):
            for number in range(plan.micro_batches):
                mine = [p.kind for p in passes if (p.micro_batch, p.chunk) == (number, chunk)]
                if plan.schedule is Schedule.ZERO_BUBBLE:
                    assert mine == [Kind.FORWARD, Kind.INPUT_GRADIENT, Kind.WEIGHT_GRADIENT]
                else:
                    assert mine == [Kind.FORWARD, Kind.BACKWARD]


def test_1f1b_on_four_stages() -> None:
    plan = Plan(model=MODEL, pp=4, global_batch=4, sequence=8)
    words = {Kind.FORWARD: "F", Kind.BACKWARD: "B"}
    told = ["".join(words[p.kind] + str(p.micro_batch) for p in schedule(plan, i)) for i in (0, 2)]
    assert told == ["F0F1F2F3B0B1B2B3", "F0F1B0F2B1F3B2B3"]


def test_interleaved_stages_take_groups_of_micro_batches_through_their_chunks() -> None:
    plan = Plan(
        model=MODEL, pp=2, chunks=2, global_batch=4, schedule=Schedule.INTERLEAVED, sequence=8
    )
    forward = [p for p in schedule(plan, 0) if p.kind is Kind.FORWARD]
    assert [(p.micro_batch, p.chunk) for p in forward] == [
        (0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0), (2, 1), (3, 1),
    ]  # fmt: skip
    back = [p for p in schedule(plan, 0) if p.kind is Kind.BACKWARD]
    assert [(p.micro_batch, p.chunk) for p in back[:4]] == [(0, 1), (1, 1), (0, 0), (1, 0)]


@given(st.integers(1, 8), st.integers(1, 16))
def test_1f1b_keeps_no_more_micro_batches_than_stages_are_left(stages: int, m: int) -> None:
    model = Model(name="m", layers=8, hidden=8, heads=1, ffn=8, vocabulary=8)
    plan = Plan(model=model, pp=stages, global_batch=m, sequence=8)
    for stage in range(stages):
        assert in_flight(schedule(plan, stage)) == min(stages - stage, m)


def test_in_flight_counts_what_has_not_come_back() -> None:
    passes = [Pass(Kind.FORWARD, 0), Pass(Kind.FORWARD, 1), Pass(Kind.BACKWARD, 0)]
    assert in_flight(passes) == 2


def idle_share(traces: TraceSet) -> float:
    """The share of the step in which a stage does not compute, with communication for free."""
    done = replay(traces, network=AlphaBeta(0, 1e30))
    starts, ends, busy = [], [], []
    for before, after in zip(traces.values(), done.traces.values(), strict=True):
        work = before.nodes.duration_ns > 0
        start = after.nodes.start_ns[work]
        starts.append(start.min())
        ends.append((start + after.nodes.duration_ns[work]).max())
        busy.append(before.nodes.duration_ns.sum())
    return float(1 - np.mean(busy) / (max(ends) - min(starts)))


def only_layers(operator: Operator) -> int:
    """Stages of equal length: a product takes its FLOP in ns, the ends of the model nothing."""
    ends = ("embedding", "head", "loss", "norm", "optimizer")
    return 0 if operator.name.startswith(ends) else operator.flops


@pytest.mark.parametrize("m", [4, 8, 16])
@pytest.mark.parametrize("kind", [Schedule.ONE_F_ONE_B, Schedule.GPIPE])
def test_idle_share_of_a_pipeline(kind: Schedule, m: int) -> None:
    plan = Plan(model=MODEL, pp=4, global_batch=m, schedule=kind, sequence=8)
    share = idle_share(generate(plan, only_layers))
    assert share == pytest.approx(3 / (m + 3), rel=0.02)


def test_idle_share_of_an_interleaved_pipeline() -> None:
    plan = Plan(
        model=MODEL, pp=4, chunks=2, global_batch=8, schedule=Schedule.INTERLEAVED, sequence=8
    )
    assert idle_share(generate(plan, only_layers)) == pytest.approx(3 / (2 * 8 + 3), rel=0.02)


def test_idle_share_of_zero_bubble() -> None:
    # With passes of equal length the idle time is (p - 1) passes of the three that a step has of
    # each micro-batch: attention, whose backward pass is one pass of twice the work, is small here.
    plan = Plan(model=MODEL, pp=4, global_batch=8, schedule=Schedule.ZERO_BUBBLE, sequence=8)
    share = idle_share(generate(plan, only_layers))
    assert share == pytest.approx(3 / (3 * 8 + 3), rel=0.1)
