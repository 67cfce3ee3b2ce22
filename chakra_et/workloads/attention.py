"""Attention: plain, over context-parallel ranks, and with latent keys and values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from chakra_et.build import Tensor
from chakra_et.build.operation import DTYPES
from chakra_et.workloads.operators import (
    Heads,
    Operator,
    attention,
    attention_gradient,
    input_gradient,
    linear,
    pointwise,
    weight_gradient,
)
from chakra_et.workloads.plan import Exchange, Plan, Recompute
from chakra_et.workloads.steps import Chain, Column, Plain, Row, Site, Step, Whole
from chakra_et.workloads.worker import Stream


def heads_of(plan: Plan, queries: int, keys: int) -> Heads:
    """What a rank's attention works on."""
    model = plan.model
    kv = model.heads if model.latent else model.kv
    return Heads(
        plan.micro_batch, queries, keys,
        query_heads=model.heads // plan.tp, kv_heads=max(kv // plan.tp, 1),
        score_width=model.head + model.rope_size, value_width=model.head,
    )  # fmt: skip


def kv_bytes(plan: Plan, tokens: int) -> int:
    """Bytes of a rank's keys and values of some tokens of each sequence, for one layer."""
    heads = heads_of(plan, tokens, tokens)
    width = heads.score_width + heads.value_width
    return heads.batch * tokens * heads.kv_heads * width * plan.element


@dataclass(frozen=True)
class Core:
    """Scores and context. Each context-parallel rank has a part of the tokens.

    Ring: the keys and values of every part go round in c - 1 steps, while the part that is there is
    worked on; going backward their gradients go round too, and one step further, home.
    """

    plan: Plan
    operator: Operator

    def forward(self, site: Site, x: Tensor) -> tuple[Tensor, Any]:
        return self._attend(site, x), x

    def _attend(self, site: Site, x: Tensor) -> Tensor:
        plan, worker = self.plan, site.worker
        if plan.cp == 1:
            return worker.run(self.operator, x)
        local = kv_bytes(plan, plan.tokens_of_rank)
        if plan.exchange is Exchange.ALL_GATHER:
            kv = worker.all_gather("cp", _bytes(site, local, "kv", x), "kv.all_gather", Stream.CP)
            return worker.run(self.operator, x, kv)
        out = worker.tensor(self.operator.name, self.operator.outputs[0])
        kv = _bytes(site, local, "kv", x)
        for step in range(plan.cp):
            following = self._pass_on(site, kv, "kv") if step < plan.cp - 1 else kv
            worker.run_into(self.operator, (x, kv), [out])
            kv = following
        return out

    def backward(self, site: Site, saved: Any, dy: Tensor) -> Tensor:
        plan, worker = self.plan, site.worker
        if plan.recompute is Recompute.SELECTIVE:
            with worker.rank.on(phase="recompute"):
                self._attend(site, saved)
        back = attention_gradient(self.operator)
        dx = worker.tensor(f"{self.operator.name}.gradient", saved.shape)
        if plan.cp == 1:
            worker.run_into(back, (dy, saved), [dx])
            return dx
        local = kv_bytes(plan, plan.tokens_of_rank)
        if plan.exchange is Exchange.ALL_GATHER:
            part = _bytes(site, local, "kv", saved)
            kv = worker.all_gather("cp", part, "kv.all_gather", Stream.CP)
            whole = _bytes(site, local * plan.cp, "kv.gradient")
            worker.run_into(back, (dy, saved, kv), [dx, whole])
            summed = worker.reduce_scatter("cp", whole, "kv.gradient.reduce_scatter", Stream.CP)
            dx.writers = (*dx.writers, *summed.writers)
            return dx
        kv, gradient = _bytes(site, local, "kv", saved), None
        for step in range(plan.cp):
            following = self._pass_on(site, kv, "kv") if step < plan.cp - 1 else kv
            extra = () if gradient is None else (gradient,)
            moving = _bytes(site, local, "kv.gradient")
            worker.run_into(back, (dy, saved, kv, *extra), [dx, moving])
            gradient = self._pass_on(site, moving, "kv.gradient")
            kv = following
        dx.writers = (*dx.writers, *(() if gradient is None else gradient.writers))
        return dx

    def _pass_on(self, site: Site, kv: Tensor, name: str) -> Tensor:
        """Send to the next rank, and receive from the one before."""
        rank = site.worker.rank
        received = _bytes(site, kv.size_bytes, name)
        # Sends and receives of a step run at the same time.
        with rank.on(stream=Stream.CP):
            rank.send(rank.peer(cp=1), kv.size_bytes, name=f"{name}.send", inputs=[kv])
        with rank.on(stream=Stream.CP_IN):
            rank.receive(
                rank.peer(cp=-1), kv.size_bytes, name=f"{name}.receive", outputs=[received]
            )
        return received


def _bytes(site: Site, size: int, name: str, view_of: Tensor | None = None) -> Tensor:
    """A tensor of so many bytes; a view is there when the whole is."""
    element = DTYPES[site.worker.plan.dtype][0]
    if view_of is None:
        return site.worker.tensor(name, (size // element,))
    view = Tensor("", (size // element,), site.worker.plan.dtype)
    view.writers = view_of.writers
    return view


@dataclass(frozen=True)
class LatentUp:
    """Queries, keys and values from their latents: two layers split by outputs, as one operator."""

    operator: Operator
    units: tuple[str, str]

    def forward(self, site: Site, x: Tensor) -> tuple[Tensor, Any]:
        whole = site.worker.enter(x, self.operator.name)
        weights = [site.unit(name).weight for name in self.units]
        return site.worker.run(self.operator, whole, *weights), x

    def backward(self, site: Site, saved: Any, dy: Tensor) -> Tensor:
        name = self.operator.name
        units = [site.unit(unit) for unit in self.units]
        whole = site.worker.enter(saved, f"{name}.input")
        back = input_gradient(self.operator)
        dx = site.worker.run(back, dy, *(unit.weight for unit in units))
        dx = site.worker.enter_gradient(dx, name)
        site.put_off(weight_gradient(self.operator), (dy, whole), units[0])
        units[1].gradient.writers = units[0].gradient.writers
        site.ready(units[1])
        return dx


def attention_steps(plan: Plan, queries: int, keys: int) -> Chain:
    """From the normed input to the projected output of a layer's attention."""
    model, dtype = plan.model, plan.dtype
    heads = heads_of(plan, queries, keys)
    tokens = (queries, plan.micro_batch)
    context = heads.query_heads * heads.value_width
    qkv = heads.query_heads * heads.score_width + heads.kv_heads * (
        heads.score_width + heads.value_width
    )
    steps: list[Step] = []
    if model.latent:
        steps += _latent(plan, tokens, qkv)
    else:
        steps.append(Column(linear("attention.qkv", (*tokens, model.hidden), qkv, dtype)))
    if not model.positions:
        shape = (*tokens, qkv)
        steps.append(Plain.of(pointwise("attention.rope", "rope", (shape,), shape, dtype, 3)))
    ring = plan.cp > 1 and plan.exchange is Exchange.RING
    seen = keys // plan.cp if ring else keys
    core = attention("attention.core", heads_of(plan, queries, seen), dtype, causal=plan.causal)
    steps.append(Core(plan, core))
    steps.append(Row(linear("attention.projection", (*tokens, context), model.hidden, dtype)))
    return Chain(tuple(steps))


def _latent(plan: Plan, tokens: tuple[int, int], qkv: int) -> list[Step]:
    """Down to the latents on every rank, then up to its own heads."""
    model, dtype = plan.model, plan.dtype
    part = (tokens[0] // plan.sharded, tokens[1])
    width = model.q_rank + model.kv_rank + model.rope_size
    down = linear("attention.down", (*part, model.hidden), width, dtype)
    latent = (*part, width)
    norm = pointwise("attention.down_norm", "norm", (latent, (width,)), latent, dtype, 4)
    heads = model.heads // plan.tp
    size = heads * (model.q_rank * (model.head + model.rope_size) + model.kv_rank * 2 * model.head)
    whole = (*tokens, width)
    up = Operator(
        "attention.up", "matmul", (whole, (size,)), ((*tokens, qkv),),
        flops=2 * math.prod(tokens) * size, dtype=dtype,
    )  # fmt: skip
    return [
        Whole(down),
        Plain.of(norm, weighted=True),
        LatentUp(up, ("attention.q_up", "attention.kv_up")),
    ]
