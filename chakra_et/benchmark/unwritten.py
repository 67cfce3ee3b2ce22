"""Memory that no operation fills, but Python itself, as in `torch.tensor(1.0)`."""

from __future__ import annotations

import numpy as np

from chakra_et.benchmark.plan import Kind, Operation, Plan
from chakra_et.benchmark.views import refs
from chakra_et.converters.pytorch.operators import operators
from chakra_et.pool import Pool
from chakra_et.recording.operators import ARGUMENTS


def filled_outside(plan: Plan) -> dict[int, list[int]]:
    """For operations that hand out memory, the views of it that others read before one writes."""
    schemas: Pool[str] = Pool()
    texts = plan.trace.nodes.attributes.dense("op_schema", "", object)
    codes = [schemas[texts[operation.row]] for operation in plan.operations]
    known = operators(schemas.in_order)
    waiting: dict[int, tuple[int, int]] = {}
    found: dict[int, list[int]] = {}
    for number, (operation, code) in enumerate(zip(plan.operations, codes, strict=True)):
        taken = {plan.views[view].storage for view in refs(operation.inputs)}
        if known.allocates[code]:
            for view in refs(operation.outputs):
                if plan.views[view].storage not in taken:
                    waiting[plan.views[view].storage] = (number, view)
        elif not waiting.keys().isdisjoint(taken):
            for storage, reads in _used(plan, operation, known.writes[code]).items():
                allocated, view = waiting.pop(storage, (-1, -1))
                if reads and allocated >= 0:
                    found.setdefault(allocated, []).append(view)
    return found


def _used(plan: Plan, operation: Operation, writes: np.ndarray) -> dict[int, bool]:
    """The storages that an operation reads or writes: whether it reads them.

    One that it neither writes nor copies, but returns as another view, is not among them.
    """
    if operation.kind is not Kind.OPERATOR:
        return {plan.views[view].storage: False for view in refs(operation.inputs)}
    shown = {plan.views[view].storage for view in refs(operation.outputs)}
    used: dict[int, bool] = {}
    for place, value in enumerate(operation.inputs):
        written = bool(writes[min(place, ARGUMENTS - 1)])
        for view in refs(value):
            storage = plan.views[view].storage
            if written or storage not in shown:
                used[storage] = not written and used.get(storage, True)
    return used
