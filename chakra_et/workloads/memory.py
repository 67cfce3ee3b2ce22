"""Memory of a rank: by closed form, and from the tensors that a trace names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

import numpy as np

from chakra_et.model import Trace
from chakra_et.workloads.attention import kv_bytes
from chakra_et.workloads.parameters import Part
from chakra_et.workloads.plan import Phase, Plan, Recompute
from chakra_et.workloads.schedule import Kind, Pass, schedule

_OPTIMIZER_BYTES = 12
"""Of a parameter: a master copy and two moments in fp32 (Rajbhandari et al., 2020)."""


@dataclass(frozen=True)
class Memory:
    """Bytes of a rank at the peak of a step."""

    parameters: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.parameters + self.gradients + self.optimizer + self.activations

    def as_dict(self) -> dict[str, int]:
        """For JSON."""
        return {**asdict(self), "total": self.total}


def memory(plan: Plan, stage: int) -> Memory:
    """The memory of a pipeline rank by closed form.

    Parameters in 16 bit, gradients as they are communicated, 12 bytes of optimizer state; ZeRO
    divides the last by the replicas, at stage 2 also gradients, at stage 3 also parameters.
    Activations are those of `layer_activations`, for the micro-batches in flight. Inference keeps
    parameters, and the cache in place of activations.
    """
    parts = [Part(plan, stage + plan.pp * chunk) for chunk in range(plan.chunks)]
    sizes: dict[int, int] = {}
    for part in parts:
        for unit in part.all():
            replicas = plan.replicas(unit.weights[0])
            sizes[replicas] = sizes.get(replicas, 0) + unit.size

    def bytes_of(each: int, divided: bool) -> int:
        return sum(each * -(-size // (d if divided else 1)) for d, size in sizes.items())

    parameters = bytes_of(plan.element, plan.zero >= 3 and plan.phase is Phase.TRAIN)
    if plan.phase is not Phase.TRAIN:
        return Memory(parameters, 0, 0, _cache(plan, sum(len(part.layers) for part in parts)))
    gradients = bytes_of(plan.gradient_element, plan.zero >= 2)
    optimizer = bytes_of(_OPTIMIZER_BYTES, plan.zero >= 1)
    return Memory(parameters, gradients, optimizer, _activations(plan, stage, parts))


def layer_activations(plan: Plan, layer: int, *, fused: bool = True) -> int:
    """Bytes that one layer keeps of one micro-batch for its backward pass.

    For a GPT layer of s·b tokens this is the s·b·h·(34 + 5·a·s/h) of Korthikanti et al. (2022);
    `fused` attention saves the second term. Tensor parallelism divides what lies inside split
    layers, and sequence parallelism the rest.
    """
    model, h = plan.model, plan.model.hidden
    tokens = plan.tokens_of_rank * plan.micro_batch
    # Elements of a token: inputs of norms and of layers split by outputs; what these make.
    outside = 4 * h
    width = model.head + model.rope_size
    kv = max(model.heads if model.latent else model.kv, plan.tp)
    inside = model.heads * (width + model.head) + kv * (width + model.head)
    if model.latent:
        outside += 2 * (model.q_rank + model.kv_rank + model.rope_size)
    ffn = model.ffn
    if model.is_expert_layer(layer):
        ffn = model.expert_ffn * (model.experts_per_token + model.shared_experts)
        outside += 2 * h * model.experts_per_token
    inside += (3 if model.gated else 2) * ffn
    # A mask of one byte behind attention and behind the MLP.
    masks = 2 * h if model.dropout else 0
    kept = (outside * plan.element + masks) // plan.sharded + inside * plan.element // plan.tp
    scores = 0 if fused else 5 * model.heads * plan.sequence // plan.tp
    return tokens * (kept + scores)


def in_flight(passes: Iterable[Pass]) -> int:
    """The most micro-batches, counted by chunk, that have gone forward and not yet back."""
    now = most = 0
    for one in passes:
        now += {Kind.FORWARD: 1, Kind.BACKWARD: -1, Kind.INPUT_GRADIENT: -1}.get(one.kind, 0)
        most = max(most, now)
    return most


def _activations(plan: Plan, stage: int, parts: list[Part]) -> int:
    """What the micro-batches in flight keep."""
    tokens = plan.tokens_of_rank * plan.micro_batch
    boundary = tokens * plan.model.hidden * plan.element // plan.sharded
    each = 0
    for part in parts:
        for layer in part.layers:
            full = plan.recompute is Recompute.FULL
            each += boundary if full else layer_activations(plan, layer)
    total = each * in_flight(schedule(plan, stage)) // len(parts)
    if plan.recompute is Recompute.FULL:
        total += max(layer_activations(plan, layer) for part in parts for layer in part.layers)
    if parts[-1].last:
        # The head's inputs and its logits; a last stage has one micro-batch in flight at its end.
        total += 2 * boundary + tokens * plan.padded_vocabulary // plan.tp * plan.element
    return total


def _cache(plan: Plan, layers: int) -> int:
    """Keys and values of all requests of a rank at the end."""
    past = plan.context if plan.phase is Phase.DECODE else plan.sequence
    made = 0 if plan.phase is Phase.PREFILL else plan.tokens
    return layers * kv_bytes(plan, past // plan.cp + made) * plan.micro_batches


def peak_of_tensors(trace: Trace) -> int:
    """The most bytes that the tensors of a trace hold at once, in the order of its nodes.

    A tensor lives from the node that writes it to the last one that reads what it wrote; one that
    is read before it is written lives from the start. 0 for a trace that names no tensors.
    """
    events: dict[str, list[tuple[int, bool]]] = {}
    sizes: dict[str, int] = {}
    for name, writes in (("inputs", False), ("outputs", True)):
        for column in trace.nodes.attributes.named(name):
            for row, told in zip(column.rows.tolist(), column.values, strict=True):
                for tensor, size in zip(told[::2], told[1::2], strict=True):
                    events.setdefault(tensor, []).append((row, writes))
                    sizes[tensor] = max(sizes.get(tensor, 0), int(size))
    changes = np.zeros(len(trace.nodes) + 1, np.int64)
    for tensor, uses in events.items():
        for first, last in _lives(sorted(uses)):
            changes[first] += sizes[tensor]
            changes[last + 1] -= sizes[tensor]
    return int(np.cumsum(changes).max(initial=0))


def _lives(uses: list[tuple[int, bool]]) -> Iterator[tuple[int, int]]:
    """The rows from and to which a tensor is needed: each time that it is written anew."""
    first, last = (0 if not uses[0][1] else uses[0][0]), uses[0][0]
    for row, writes in uses[1:]:
        if writes and row != last:
            yield first, last
            first = row
        last = row
    yield first, last
