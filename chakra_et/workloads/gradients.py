"""Gradients over data-parallel ranks: buckets, ZeRO, and the optimizer's step.

Up to ZeRO-1 as Megatron has it: gradients are summed once per step, all in one or in buckets while
the last micro-batch's backward pass goes on. ZeRO-2 and 3 as DeepSpeed has it: ranks keep but their
part of the gradients, so these are summed for every micro-batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from chakra_et.build import Tensor
from chakra_et.definitions import CollectiveType
from chakra_et.workloads.model import Split
from chakra_et.workloads.operators import adam
from chakra_et.workloads.parameters import Unit
from chakra_et.workloads.plan import Plan
from chakra_et.workloads.worker import Stream, Worker

PERSISTENT_ELEMENTS = 100_000
"""Smaller weights stay whole on every rank under ZeRO-3 (stage3_param_persistence_threshold)."""
_IN_PLACE = ""
"""A tensor without a name is a view: it takes no memory of its own."""
GATHER_ELEMENTS = 1_000_000_000
"""Most elements that ZeRO-2 gathers at once (allgather_bucket_size)."""


def buckets(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Places of gradients, in the order in which they are ready, parted into buckets.

    A bucket is closed when the next gradient would make it larger than `most` (0: never), which is
    DeepSpeed's rule.
    """
    parted: list[list[int]] = []
    filled = 0
    for place, size in enumerate(sizes):
        if not parted or (most and filled + size > most):
            parted.append([])
            filled = 0
        parted[-1].append(place)
        filled += size
    return parted


@dataclass
class _Queue:
    """The gradients that are summed over one family of groups."""

    family: str
    replicas: int
    expert: bool
    of_bucket: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    unit_of: list[Unit] = field(default_factory=list)
    waiting: dict[Unit, list[int]] = field(default_factory=dict)


class Gradients:
    """Sums gradients, and takes the optimizer's step, for all parts that a rank has."""

    def __init__(self, worker: Worker, units: Sequence[Unit]) -> None:
        self._worker = worker
        self._plan = plan = worker.plan
        self._queues = [
            queue
            for expert in (False, True)
            if (queue := _queue(plan, [u for u in units if u.expert is expert], expert)).sizes
        ]
        self._of_unit = {unit: queue for queue in self._queues for unit in queue.waiting}
        self._left: dict[tuple[bool, int], list[int]] = {}
        self._scattered: list[Tensor] = []

    def ready(self, unit: Unit, micro_batch: int) -> None:
        """Sum the buckets that a unit's gradients of a micro-batch complete."""
        plan = self._plan
        last = micro_batch == plan.micro_batches - 1
        if plan.zero < 2 and not (last and plan.overlap):
            return
        queue = self._of_unit[unit]
        key = (queue.expert, micro_batch)
        if key not in self._left:
            self._left[key] = np.bincount(queue.of_bucket).tolist()
        left = self._left[key]
        for place in queue.waiting[unit]:
            bucket = queue.of_bucket[place]
            left[bucket] -= 1
            if left[bucket] == 0:
                self._sum(queue, bucket)

    def finish(self) -> None:
        """What is left of the step: sums, the optimizer, and the new weights."""
        plan = self._plan
        self._sum_over_tokens()
        if plan.zero < 2 and not plan.overlap:
            for queue in self._queues:
                for bucket in range(max(queue.of_bucket) + 1):
                    self._sum(queue, bucket)
        self._agree()
        for queue in self._queues:
            self._step(queue)

    # -----------------------------------------------------------------------------------------

    def _sum(self, queue: _Queue, bucket: int) -> None:
        """Sum the gradients of a bucket over the replicas."""
        plan = self._plan
        places = [p for p, b in enumerate(queue.of_bucket) if b == bucket]
        sizes = [queue.sizes[place] for place in places]
        size = sum(sizes)
        units = list(dict.fromkeys(queue.unit_of[place] for place in places))
        inputs = [unit.gradient for unit in units]
        if plan.zero in (1, 3):
            type, word = CollectiveType.REDUCE_SCATTER, "reduce_scatter"
            # DeepSpeed cuts each gradient, Megatron all of them as one.
            parts = sizes if plan.zero == 3 else [size]
            size = sum(_shares(parts, queue.replicas)) * queue.replicas
        else:
            type, word = CollectiveType.ALL_REDUCE, "all_reduce"
        # ZeRO-2 and 3 keep the own part of the sum, and add to it; else it stays where it is.
        kept = plan.zero >= 2 and queue.replicas > 1
        name = f"gradients.{queue.family}.{bucket}" if kept else _IN_PLACE
        done = Tensor(name, (size // queue.replicas if kept else size,), inputs[0].dtype)
        if kept:
            inputs.append(done)
        with self._worker.rank.on(phase="gradients"):
            self._worker.collective(
                type, queue.family, size * plan.gradient_element, f"gradients.{word}", Stream.DP,
                inputs, [done],
            )  # fmt: skip
        done.writers = done.writers or tuple(w for t in inputs for w in t.writers)
        self._scattered.append(done)

    def _sum_over_tokens(self) -> None:
        """With sequence parallelism, whole weights saw other tokens on each rank: sum gradients.

        These are norms, biases behind layers split by inputs, routers. Positions saw all tokens.
        """
        plan, worker = self._plan, self._worker
        if not plan.sequence_parallel or plan.tp == 1:
            return
        units = [u for q in self._queues for u in q.waiting]
        seen = [
            (unit, size)
            for unit in units
            for weight, size in zip(unit.weights, unit.sizes, strict=True)
            if weight.split is Split.WHOLE and weight.name != "positions"
        ]
        total = sum(size for _, size in seen)
        tensors = list(dict.fromkeys(unit.gradient for unit, _ in seen))
        with worker.rank.on(phase="gradients"):
            worker.collective(
                CollectiveType.ALL_REDUCE, "tp", total * plan.gradient_element,
                "whole_gradients.all_reduce", Stream.TP, tensors, tensors,
            )  # fmt: skip

    def _agree(self) -> None:
        """Find the norm of all gradients (Megatron), or whether one overflowed (DeepSpeed).

        With ZeRO-3, DeepSpeed sums the norms of the ranks' parts as well, in fp64.
        """
        plan, worker = self._plan, self._worker
        family = plan.gradient_family(expert=False) if plan.zero >= 2 else plan.model_family
        told = [(1, "overflow")] if plan.zero >= 2 else [(4, "gradient_norm")]
        if plan.zero == 3:
            told.append((8, "gradient_norm"))
        for size, name in told if family is not None else ():
            flag = Tensor(name, (size,), "uint8")
            with worker.rank.on(phase="optimizer"):
                worker.collective(
                    CollectiveType.ALL_REDUCE, family or "", size, f"{name}.all_reduce", Stream.DP,
                    self._scattered, [flag],
                )  # fmt: skip
            self._scattered.append(flag)

    def _step(self, queue: _Queue) -> None:
        """Update the rank's share, and gather the weights that others updated."""
        plan, worker = self._plan, self._worker
        total = sum(queue.sizes)
        share = -(-total // queue.replicas) if plan.zero >= 1 else total
        operator = adam(share, plan.gradient_element, plan.element)
        new = Tensor(_IN_PLACE, (share,), plan.dtype)
        with worker.rank.on(phase="optimizer"):
            states = Tensor(f"optimizer.{queue.family}", (3 * share,), "fp32")
            worker.run_into(operator, (*self._scattered, states), [new])
            for size in gathers(plan, queue.sizes, queue.replicas):
                whole = Tensor(_IN_PLACE, (size * queue.replicas,), plan.dtype)
                worker.collective(
                    CollectiveType.ALL_GATHER, queue.family, size * plan.element,
                    "weights.all_gather", Stream.DP, [new], [whole],
                )  # fmt: skip


def gathers(plan: Plan, sizes: Sequence[int], replicas: int) -> list[int]:
    """The elements that each rank gives to each all-gather behind the optimizer's step.

    ZeRO-1: its share at once. ZeRO-2: in as many pieces as DeepSpeed makes of its share (which are
    equal here; DeepSpeed rounds down to even, and the last piece has the rest). ZeRO-3: the weights
    that stay whole.
    """
    total = sum(sizes)
    if plan.zero == 0 or replicas == 1:
        return []
    if plan.zero == 3:
        small = _shares([size for size in sizes if size < PERSISTENT_ELEMENTS], replicas)
        return [sum(small)] if small else []
    share = -(-total // replicas)
    if plan.zero == 1:
        return [share]
    share = -(-total // (2 * replicas)) * 2
    pieces = max(1, share * replicas // GATHER_ELEMENTS)
    return [-(-share // pieces)] * pieces


def _shares(sizes: Sequence[int], replicas: int) -> list[int]:
    """Each replica's part of some weights, the last one filled up."""
    return [-(-size // replicas) for size in sizes]


def _queue(plan: Plan, units: Sequence[Unit], expert: bool) -> _Queue:
    """The gradients of units in the order in which a backward pass makes them."""
    family = plan.gradient_family(expert=expert)
    replicas = plan.cp * (plan.dp // plan.ep if expert else plan.dp)
    queue = _Queue(family, replicas, expert)
    for unit in reversed(units):
        for size in reversed(unit.sizes):
            queue.waiting.setdefault(unit, []).append(len(queue.sizes))
            queue.sizes.append(size)
            queue.unit_of.append(unit)
    parted = buckets(queue.sizes, plan.bucket_elements)
    queue.of_bucket = [number for number, places in enumerate(parted) for _ in places]
    return queue
