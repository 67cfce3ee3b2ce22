"""From a plan to traces: the program that fits the phase, in memory or in files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chakra_et.build import Rank
from chakra_et.model import TraceSet
from chakra_et.workloads.durations import Durations, unknown
from chakra_et.workloads.inference import infer
from chakra_et.workloads.plan import Phase, Plan
from chakra_et.workloads.stage import train
from chakra_et.workloads.summary import Summary


def program(
    plan: Plan, durations: Durations = unknown, *, count_pointwise: bool = False
) -> Callable[[Rank], None]:
    """What each rank of a plan does.

    With `count_pointwise`, `num_ops` is there for every operator and counts more than products.
    """
    make = train if plan.phase is Phase.TRAIN else infer
    return make(plan, durations, count_pointwise=count_pointwise)


def generate(plan: Plan, durations: Durations = unknown, *, tensors: bool = False) -> TraceSet:
    """The traces of all ranks of a plan, in memory."""
    return plan.workload(tensors=tensors).traces(program(plan, durations))


def count(plan: Plan) -> dict[str, Any]:
    """What the traces of a plan hold, without making them: see `Summary.as_dict`."""
    workload = plan.workload()
    summary = Summary(plan, workload)
    for _ in workload.programs(program(plan), summary.add):
        pass
    return summary.as_dict()
