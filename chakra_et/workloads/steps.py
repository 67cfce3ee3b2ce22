"""The steps of a layer, each with its forward and its backward pass.

`forward` returns the output and what the backward pass will need; `backward` takes the gradient of
the output and returns that of the input. Gradients of weights are run at once, or put off: they
hold nobody up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from chakra_et.build import Tensor
from chakra_et.workloads.operators import (
    Operator,
    gradient,
    input_gradient,
    weight_gradient,
)
from chakra_et.workloads.parameters import Unit
from chakra_et.workloads.worker import Worker


class Site(Protocol):
    """Where a step runs: the worker, the layer's units, and what becomes of weights' gradients."""

    worker: Worker

    def unit(self, name: str) -> Unit:
        """The weights of an operator."""

    def put_off(self, operator: Operator, inputs: tuple[Tensor, ...], unit: Unit) -> None:
        """Run the gradient of a weight now or later."""

    def ready(self, unit: Unit) -> None:
        """Say that the gradients of a unit are complete."""


class Step(Protocol):
    """One step of a layer."""

    def forward(self, site: Site, x: Tensor) -> tuple[Tensor, Any]:
        """The output, and what `backward` needs."""

    def backward(self, site: Site, saved: Any, dy: Tensor) -> Tensor:
        """The gradient of the input."""


@dataclass(frozen=True)
class Plain:
    """An operator without a weight, or with one whose gradient comes with the input's (a norm)."""

    operator: Operator
    back: Operator
    weighted: bool = False

    @classmethod
    def of(cls, operator: Operator, *, weighted: bool = False) -> Plain:
        """A step of an operator that works element by element."""
        return cls(operator, gradient(operator), weighted)

    def forward(self, site: Site, x: Tensor) -> tuple[Tensor, Any]:
        weight = (site.unit(self.operator.name).weight,) if self.weighted else ()
        return site.worker.run(self.operator, x, *weight), x

    def backward(self, site: Site, saved: Any, dy: Tensor) -> Tensor:
        if not self.weighted:
            return site.worker.run(self.back, dy, saved)
        unit = site.unit(self.operator.name)
        dx = site.worker.run(self.back, dy, saved, unit.weight)
        unit.gradient.writers = dx.writers
        site.ready(unit)
        return dx


@dataclass(frozen=True)
class Column:
    """A linear layer split by outputs: every rank needs all of the input."""

    operator: Operator

    def forward(self, site: Site, x: Tensor) -> tuple[Tensor, Any]:
        name = self.operator.name
        whole = site.worker.enter(x, name)
        return site.worker.run(self.operator, whole, site.unit(name).weight), x

    def backward(self, site: Site, saved: Any, dy: Tensor) -> Tensor:
        name = self.operator.name
        unit = site.unit(name)
        # With sequence parallelism only the own part was kept.
        whole = site.worker.enter(saved, f"{name}.input")
        dx = site.worker.run(input_gradient(self.operator), dy, unit.weight)
        dx = site.worker.enter_gradient(dx, name)
        site.put_off(weight_gradient(self.operator), (dy, whole), unit)
        return dx


@dataclass(frozen=True)
class Row:
    """A linear layer split by inputs: the outputs of all ranks are summed."""

    operator: Operator

    def forward(self, site: Site, x: Tensor) -> tuple[Tensor, Any]:
        name = self.operator.name
        y = site.worker.run(self.operator, x, site.unit(name).weight)
        return site.worker.leave(y, name), x

    def backward(self, site: Site, saved: Any, dy: Tensor) -> Tensor:
        unit = site.unit(self.operator.name)
        dy = site.worker.leave_gradient(dy, self.operator.name)
        dx = site.worker.run(input_gradient(self.operator), dy, unit.weight)
        site.put_off(weight_gradient(self.operator), (dy, saved), unit)
        return dx


@dataclass(frozen=True)
class Whole:
    """A linear layer that every rank has whole."""

    operator: Operator

    def forward(self, site: Site, x: Tensor) -> tuple[Tensor, Any]:
        return site.worker.run(self.operator, x, site.unit(self.operator.name).weight), x

    def backward(self, site: Site, saved: Any, dy: Tensor) -> Tensor:
        unit = site.unit(self.operator.name)
        dx = site.worker.run(input_gradient(self.operator), dy, unit.weight)
        site.put_off(weight_gradient(self.operator), (dy, saved), unit)
        return dx


@dataclass(frozen=True)
class Chain:
    """Steps one after the other."""

    steps: tuple[Step, ...]

    def forward(self, site: Site, x: Tensor) -> tuple[Tensor, Any]:
        kept = []
        for step in self.steps:
            x, saved = step.forward(site, x)
            kept.append(saved)
        return x, kept

    def backward(self, site: Site, saved: Sequence[Any], dy: Tensor) -> Tensor:
        for step, kept in zip(reversed(self.steps), reversed(saved), strict=True):
            dy = step.backward(site, kept, dy)
        return dy
