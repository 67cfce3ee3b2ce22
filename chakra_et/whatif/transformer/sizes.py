"""Which weights a model has beyond its matrices, told by how many there are in all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from chakra_et.errors import ChakraError
from chakra_et.whatif.transformer.stages import Stage
from chakra_et.workloads.model import Model
from chakra_et.workloads.parameters import Part
from chakra_et.workloads.plan import Plan


def weights_of(stages: list[Stage], model: Model, fields: dict[str, Any]) -> Iterator[Model]:
    """Models of the same shapes whose weights add up to those that the optimizer updates.

    Where a table of positions may be shorter and biases more, the rounder table comes first.
    """
    fitting = _fitting(stages, model, fields)
    yield from sorted(fitting, key=lambda found: -(found.positions & -found.positions))


def _fitting(stages: list[Stage], model: Model, fields: dict[str, Any]) -> Iterator[Model]:
    learned = stages[0].first("rope", "forward") is None
    shares = [_share(stage) for stage in stages]
    for bias, norm_bias, tied in product((False, True), repeat=3):
        made = {name: getattr(model, name) for name in model.__struct_fields__}
        made |= {"bias": bias, "norm_bias": norm_bias, "tied": tied}
        found = Model(**made)
        if learned:
            positions = _positions(found, fields, shares[0])
            if positions is None:
                continue
            found = Model(**(made | {"positions": positions}))
        try:
            plan = Plan(model=found, **fields)
        except ChakraError:
            continue
        if [_expected(plan, stage) for stage in range(plan.pp)] == shares:
            yield found


def _share(stage: Stage) -> int:
    """How many elements a rank of a stage updates."""
    step = stage.first("optimizer", "optimizer")
    return step.inputs[0][0] if step is not None and step.inputs else 0


def _elements(plan: Plan, stage: int) -> int:
    parts = [Part(plan, stage + plan.pp * chunk) for chunk in range(plan.chunks)]
    return sum(unit.size for part in parts for unit in part.all())


def _expected(plan: Plan, stage: int) -> int:
    """How many elements a rank of a stage would update."""
    elements, replicas = _elements(plan, stage), plan.dp * plan.cp
    share = -(-elements // replicas) if plan.zero >= 1 else elements
    return share


def _positions(model: Model, fields: dict[str, Any], share: int) -> int | None:
    """How many positions the model learned: what is left of the weights of the first stage."""
    made = {name: getattr(model, name) for name in model.__struct_fields__}
    one = fields["sequence"]
    try:
        plan = Plan(model=Model(**(made | {"positions": one})), **fields)
    except ChakraError:
        return None
    replicas = plan.dp * plan.cp if plan.zero >= 1 else 1
    left = share * replicas - _elements(plan, 0)
    # A share is rounded up, by less than one element for each replica.
    positions = one + left // model.hidden
    return positions if positions >= one and left % model.hidden < replicas else None
