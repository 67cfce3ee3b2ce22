"""What follows attention in a layer: an MLP, or experts behind a router."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chakra_et.build import Tensor
from chakra_et.definitions import CollectiveType
from chakra_et.workloads.operators import (
    Operator,
    input_gradient,
    linear,
    pointwise,
    weight_gradient,
)
from chakra_et.workloads.plan import Plan
from chakra_et.workloads.steps import Chain, Column, Plain, Row, Site, Step, Whole
from chakra_et.workloads.worker import Stream


def mlp_steps(plan: Plan, tokens: int, ffn: int, name: str = "mlp") -> Chain:
    """Up, activation, down; a gated MLP's two matrices up are one operator."""
    rows = (tokens, plan.micro_batch)
    hidden, width = plan.model.hidden, ffn // plan.tp
    up = width * (2 if plan.model.gated else 1)
    activation = pointwise(
        f"{name}.activation", "activation", ((*rows, up),), (*rows, width), plan.dtype, 4
    )
    return Chain(
        (
            Column(linear(f"{name}.up", (*rows, hidden), up, plan.dtype)),
            Plain.of(activation),
            Row(linear(f"{name}.down", (*rows, width), hidden, plan.dtype)),
        )
    )


def feed_forward_steps(plan: Plan, layer: int, tokens: int) -> Step:
    """The second half of a layer."""
    if not plan.model.is_expert_layer(layer):
        return mlp_steps(plan, tokens, plan.model.ffn)
    return Experts.of(plan, tokens)


@dataclass(frozen=True)
class Experts:
    """Router, exchange, experts and exchange back; shared experts see all tokens beside them.

    Every token goes to `experts_per_token` experts, evenly: it is sent as so many rows. Tensor
    parallelism splits the experts' own layers; with sequence parallelism its ranks gather each
    other's rows first.
    """

    plan: Plan
    router: Operator
    permute: Operator
    up: Operator
    activation: Operator
    down: Operator
    combine: Operator
    shared: Chain | None

    @classmethod
    def of(cls, plan: Plan, tokens: int) -> Experts:
        """The operators for a layer that sees `tokens` of each sequence."""
        model, dtype = plan.model, plan.dtype
        part = (tokens // plan.sharded, plan.micro_batch)
        sent = part[0] * part[1] * model.experts_per_token
        x = (*part, model.hidden)
        rows = (sent, model.hidden)
        seen = sent * plan.sharded
        width = model.expert_ffn // plan.tp
        double = width * (2 if model.gated else 1)
        local = model.experts // plan.ep
        shared = model.expert_ffn * model.shared_experts
        return cls(
            plan,
            linear("mlp.router", x, model.experts, dtype),
            pointwise("mlp.permute", "permute", (x,), rows, dtype),
            linear("mlp.expert.up", (seen, model.hidden), double, dtype, local),
            pointwise("mlp.expert.activation", "activation", ((seen, double),), (seen, width),
                      dtype, 4),
            linear("mlp.expert.down", (seen, width), model.hidden, dtype, local),
            pointwise("mlp.combine", "permute", (rows,), x, dtype, 2),
            mlp_steps(plan, tokens, shared, "mlp.shared") if shared else None,
        )  # fmt: skip

    def forward(self, site: Site, x: Tensor) -> tuple[Tensor, Any]:
        worker = site.worker
        scores = worker.run(self.router, x, site.unit("mlp.router").weight)
        rows = worker.run(self.permute, x, scores)
        rows = self._exchange(site, rows, "mlp.dispatch")
        seen = self._gathered(site, rows, "mlp.expert")
        up = worker.run(self.up, seen, site.unit("mlp.expert.up").weight)
        active = worker.run(self.activation, up)
        down = worker.run(self.down, active, site.unit("mlp.expert.down").weight)
        back = self._exchange(site, worker.leave(down, "mlp.expert"), "mlp.combine")
        y = worker.run(self.combine, back)
        kept = None
        if self.shared is not None:
            beside, kept = self.shared.forward(site, x)
            y.writers = (*y.writers, *beside.writers)
        return y, (x, rows, up, active, back, kept)

    def backward(self, site: Site, saved: Any, dy: Tensor) -> Tensor:
        x, rows, up, active, back, kept = saved
        worker = site.worker
        beside = None if self.shared is None else self.shared.backward(site, kept, dy)
        dback = worker.run(_turned(self.combine), dy, back)
        dback = self._exchange(site, dback, "mlp.combine.gradient")
        ddown = worker.leave_gradient(dback, "mlp.expert")
        dactive = self._linear_back(site, self.down, ddown, active)
        dup = worker.run(Plain.of(self.activation).back, dactive, up)
        dseen = self._linear_back(site, self.up, dup, self._gathered(site, rows, "mlp.input"))
        drows = worker.enter_gradient(dseen, "mlp.expert")
        drows = self._exchange(site, drows, "mlp.dispatch.gradient")
        dx = worker.run(_turned(self.permute), drows, x)
        dx = self._router_back(site, x, dx)
        if beside is not None:
            dx.writers = (*dx.writers, *beside.writers)
        return dx

    def _linear_back(self, site: Site, of: Operator, dy: Tensor, x: Tensor) -> Tensor:
        unit = site.unit(of.name)
        dx = site.worker.run(input_gradient(of), dy, unit.weight)
        site.put_off(weight_gradient(of), (dy, x), unit)
        return dx

    def _router_back(self, site: Site, x: Tensor, dx: Tensor) -> Tensor:
        return Whole(self.router).backward(site, x, dx)

    def _gathered(self, site: Site, rows: Tensor, name: str) -> Tensor:
        return site.worker.enter(rows, name)

    def _exchange(self, site: Site, rows: Tensor, name: str) -> Tensor:
        """Send every row to the rank of its expert, or back."""
        if self.plan.ep == 1:
            return rows
        received = site.worker.tensor(name, rows.shape)
        site.worker.collective(
            CollectiveType.ALL_TO_ALL, "ep", rows.size_bytes, f"{name}.all_to_all", Stream.EP,
            [rows], [received],
        )  # fmt: skip
        return received


def _turned(of: Operator) -> Operator:
    """The gradient of an operator that moves rows: it moves them back."""
    (x, *_), (y,) = of.inputs, of.outputs
    return pointwise(f"{of.name}.gradient", of.op_type, (y,), x, of.dtype)
