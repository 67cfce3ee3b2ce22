"""The weights and gradients of one part of the model on one rank."""

from __future__ import annotations

from chakra_et.build import Tensor
from chakra_et.workloads.model import Weight
from chakra_et.workloads.plan import Plan


class Unit:
    """The weights that one operator uses; they are gathered, and their gradients ready, together.

    `weight` is the tensor that operators read, `gradient` the one that they add to.
    """

    def __init__(self, plan: Plan, name: str, layer: int | None, weights: list[Weight]) -> None:
        self.name = name
        self.layer = layer
        self.weights = weights
        self.sizes = [plan.elements(weight) for weight in weights]
        self.expert = any(weight.expert for weight in weights)
        self.size = sum(self.sizes)
        self.label = name if layer is None else f"layer {layer}.{name}"
        element = "fp32" if plan.gradient_element == 4 else plan.dtype
        self.weight = Tensor(f"{self.label}.weight", (self.size,), plan.dtype)
        self.gradient = Tensor(f"{self.label}.gradient", (self.size,), element)

    def __repr__(self) -> str:
        return f"<Unit {self.label}: {self.size}>"


class Part:
    """All units of one part of the model (a stage's chunk) in the order of its modules."""

    def __init__(self, plan: Plan, number: int) -> None:
        model = plan.model
        self.number = number
        self.layers = plan.layers_of[number]
        self.units: dict[tuple[int | None, str], Unit] = {}
        self.first = number == 0
        self.last = number == plan.stages - 1
        if self.first:
            self._add(plan, None, "embedding", model.embedding())
        for layer in self.layers:
            for name, weights in model.layer(layer).items():
                self._add(plan, layer, name, weights)
        if self.last:
            self._add(plan, None, "norm", model.norm("norm"))
            head = plan.head_of_last()
            if head:
                self._add(plan, None, "head", head)
            else:
                self.units[None, "head"] = self.units[None, "embedding"]

    def _add(self, plan: Plan, layer: int | None, name: str, weights: list[Weight]) -> None:
        self.units[layer, name] = Unit(plan, name, layer, weights)

    def unit(self, layer: int | None, name: str) -> Unit:
        """The unit of an operator."""
        return self.units[layer, name]

    def used_at(self, place: int | str) -> list[Unit]:
        """The units that a layer, the embedding or the head uses."""
        if isinstance(place, int):
            return [unit for (layer, _), unit in self.units.items() if layer == place]
        return [
            self.units[None, name] for name in (["norm", place] if place == "head" else [place])
        ]

    def all(self) -> list[Unit]:
        """Every unit once, in the order of modules."""
        return list(dict.fromkeys(self.units.values()))
