"""How gradients are parted into buckets, told by what each sum of gradients carries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from chakra_et.build.grid import Grid
from chakra_et.definitions import NodeType
from chakra_et.whatif.transformer.stages import Stage, sums_early
from chakra_et.workloads.gradients import buckets
from chakra_et.workloads.parameters import Part
from chakra_et.workloads.plan import Plan


def bucketed(plan: Plan, stages: list[Stage], grid: Grid) -> Iterator[Plan]:
    """The plan with a size of buckets that makes the sums that all stages have.

    The framework's own size comes first; of others, all up to the next gradient make the same sums.
    """
    sums = [sorted(_sums(stage, grid, plan.gradient_element)) for stage in stages]
    if not any(sums):
        yield plan
        return
    # A bucket is as large as its sum, but for what fills it up for the replicas.
    filled = plan.dp * plan.cp if plan.zero in (1, 3) else 1
    whole = sorted({size for each in sums for size in each}, reverse=True)
    for most in (-1, *(size - less for size in whole for less in range(filled)), 1):
        if most < -1:
            continue
        tried = replace(plan, bucket=most)
        # ZeRO-2 and 3 sum the gradients of every micro-batch.
        times = tried.micro_batches if plan.zero >= 2 and plan.dp * plan.cp > 1 else 1
        if all(sorted(_expected(tried, place) * times) == each for place, each in enumerate(sums)):
            yield tried
            return


def told_sums(plan: Plan, stages: list[Stage], grid: Grid) -> str:
    """What the graph tells of how replicas share gradients and weights, for people."""
    if plan.dp * plan.cp == 1:
        return "ZeRO stage, overlap and bucket not told: there is one replica"
    sums = [size for stage in stages for size in _sums(stage, grid, plan.gradient_element)]
    when = "overlap not told"
    if plan.zero >= 2:
        when = "gradients summed for each micro-batch"
    elif any(sums_early(stage) for stage in stages):
        when = "gradients summed while the backward pass goes on"
    steps = plan.micro_batches if plan.zero >= 2 else 1
    size = f"buckets of up to {max(sums) * plan.gradient_element:,} bytes"
    one = len(sums) == len(stages) * steps
    return f"ZeRO {plan.zero}, {when}, {'bucket not told: one holds all' if one else size}"


def _sums(stage: Stage, grid: Grid, element: int) -> list[int]:
    """Elements of each sum of gradients over the replicas of a rank.

    A rank without replicas has none, but reads as many gradients for their norm.
    """
    axes = [axis for axis in ("cp", "dp") if axis in grid.axes]
    members = next(g for g in grid.groups(axes).tolist() if stage.rank in g)
    names = [group.name for group in stage.trace.groups if list(group.ranks) == members]
    if len(members) == 1 or not names:
        return _summed(stage)
    chosen = (
        (stage.trace.nodes.type == NodeType.COMM_COLL)
        & (stage.phases == "gradients")
        & np.isin(stage.view.texts("pg_name").astype(str), names)
    )
    return [int(size) // element for size in stage.view.integers("comm_size")[chosen]]


def _summed(stage: Stage) -> list[int]:
    """Elements of the gradients of which the norm is taken."""
    reads = (stage.trace.nodes.type == NodeType.COMM_COLL) & (stage.phases == "optimizer")
    for row in np.flatnonzero(reads).tolist():
        return [math.prod(shape) for shape in stage.call(row).inputs]
    return []


def _expected(plan: Plan, stage: int) -> list[int]:
    """Elements of each sum of a stage's gradients, of a step or of a micro-batch."""
    parts = [Part(plan, stage + plan.pp * chunk) for chunk in range(plan.chunks)]
    units = [unit for part in parts for unit in part.all()]
    sizes = [size for unit in reversed(units) for size in reversed(unit.sizes)]
    replicas = plan.dp * plan.cp
    found = []
    for places in buckets(sizes, plan.bucket_elements):
        some = [sizes[place] for place in places]
        pieces = some if plan.zero == 3 else [sum(some)]
        padded = sum(-(-piece // replicas) * replicas for piece in pieces)
        found.append(padded if plan.zero in (1, 3) else sum(some))
    return found
