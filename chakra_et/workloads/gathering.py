"""ZeRO-3: the weights of a layer are gathered before they are used, and dropped behind."""

from __future__ import annotations

from collections.abc import Sequence

from chakra_et.build import Tensor
from chakra_et.definitions import CollectiveType
from chakra_et.workloads.gradients import PERSISTENT_ELEMENTS
from chakra_et.workloads.parameters import Unit
from chakra_et.workloads.plan import Gather, Plan
from chakra_et.workloads.worker import Stream, Worker


def gather(worker: Worker, units: Sequence[Unit], *, since: Tensor | None) -> None:
    """Gather what the units need. It may begin when `since` is there, and so take little memory."""
    for expert in (False, True):
        some = [unit for unit in units if unit.expert is expert]
        family = worker.plan.gradient_family(expert=expert)
        for size, of in _calls(worker.plan, some):
            share = -(-size // worker.rank.size(family))
            inputs = [] if since is None else [since]
            with worker.rank.on(phase="gather"):
                worker.collective(
                    CollectiveType.ALL_GATHER, family, share * worker.plan.element,
                    "weights.all_gather", Stream.DP, inputs, [unit.weight for unit in of],
                )  # fmt: skip


def _calls(plan: Plan, units: Sequence[Unit]) -> list[tuple[int, list[Unit]]]:
    """Elements of each all-gather, and the units that they belong to."""
    if plan.gather is Gather.LAYER:
        total = sum(unit.size for unit in units)
        return [(total, list(units))] if total else []
    # DeepSpeed gathers module by module, and keeps small weights everywhere.
    return [(size, [unit]) for unit in units for size in unit.sizes if size >= PERSISTENT_ELEMENTS]
