"""Pipeline schedules: the order in which a stage runs its passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from chakra_et.workloads.plan import Plan, Schedule


class Kind(Enum):
    """What a pass computes."""

    FORWARD = "forward"
    BACKWARD = "backward"
    INPUT_GRADIENT = "input gradient"
    WEIGHT_GRADIENT = "weight gradient"


@dataclass(frozen=True)
class Pass:
    """One pass of a micro-batch through one of the stage's chunks of layers."""

    kind: Kind
    micro_batch: int
    chunk: int = 0


def schedule(plan: Plan, stage: int) -> list[Pass]:
    """All passes of a stage (0 is the first) in the order in which it runs them."""
    rows = {
        Schedule.GPIPE: gpipe,
        Schedule.ONE_F_ONE_B: one_f_one_b,
        Schedule.ZERO_BUBBLE: zero_bubble,
    }
    if plan.schedule is Schedule.INTERLEAVED:
        return list(interleaved(plan.pp, stage, plan.micro_batches, plan.chunks))
    return list(rows[plan.schedule](plan.pp, stage, plan.micro_batches))


def gpipe(stages: int, stage: int, micro_batches: int) -> Iterator[Pass]:
    """All forward passes, then all backward passes (Huang et al., 2019)."""
    for kind in (Kind.FORWARD, Kind.BACKWARD):
        yield from (Pass(kind, number) for number in range(micro_batches))


def one_f_one_b(stages: int, stage: int, micro_batches: int) -> Iterator[Pass]:
    """As many forward passes as stages follow, then one backward for each (Narayanan et al.)."""
    ahead = min(stages - 1 - stage, micro_batches)
    yield from (Pass(Kind.FORWARD, number) for number in range(ahead))
    for number in range(micro_batches):
        if number + ahead < micro_batches:
            yield Pass(Kind.FORWARD, number + ahead)
        yield Pass(Kind.BACKWARD, number)


def zero_bubble(stages: int, stage: int, micro_batches: int) -> Iterator[Pass]:
    """ZB-H1 (Qi et al., 2023): 1F1B, with weights' gradients as many passes late as stages precede.

    Later stages get gradients sooner; what they put off fills the time at the end.
    """
    done = 0
    for one in one_f_one_b(stages, stage, micro_batches):
        if one.kind is Kind.FORWARD:
            yield one
            continue
        yield Pass(Kind.INPUT_GRADIENT, one.micro_batch)
        if one.micro_batch >= stage:
            yield Pass(Kind.WEIGHT_GRADIENT, done)
            done += 1
    yield from (Pass(Kind.WEIGHT_GRADIENT, number) for number in range(done, micro_batches))


def interleaved(stages: int, stage: int, micro_batches: int, chunks: int) -> Iterator[Pass]:
    """1F1B over chunks: groups of as many micro-batches as stages go through one chunk each."""
    total = micro_batches * chunks
    ahead = 2 * (stages - 1 - stage) + (chunks - 1) * stages
    ahead = total if micro_batches == stages else min(ahead, total)

    def at(kind: Kind, number: int) -> Pass:
        group, inside = divmod(number, stages * chunks)
        chunk, place = divmod(inside, stages)
        if kind is Kind.BACKWARD:
            chunk = chunks - 1 - chunk
        return Pass(kind, group * stages + place, chunk)

    yield from (at(Kind.FORWARD, number) for number in range(ahead))
    for number in range(total):
        if number + ahead < total:
            yield at(Kind.FORWARD, number + ahead)
        yield at(Kind.BACKWARD, number)
