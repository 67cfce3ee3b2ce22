"""FLOP and bytes of every collective by closed forms, for all combinations of parallelism.

The forms are those of the papers (Shoeybi et al. 2019, Narayanan et al. 2021, Korthikanti et al.
2022, Rajbhandari et al. 2020), written here on their own: nothing of the generator is used.
"""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_plans import DENSE, FE, KV, MOE, POWERS, TOP, A, E, F, H, L, V, interleaved, plans

from chakra_et.workloads import Exchange, Model, Phase, Plan, Recompute, count


def kv_width(plan: Plan) -> int:
    """Width of all keys (or values); as many heads as ranks at least."""
    return max(plan.model.kv_heads or A, plan.tp) * H // A


def layer_forward(plan: Plan) -> int:
    """FLOP of a layer over all ranks of one replica, for one micro-batch."""
    b, s, f = plan.micro_batch, 64, F
    matrices = 3 if plan.model.gated else 2
    attention = 4 * b * s * s * H // (2 if plan.causal else 1)
    return 2 * b * s * H * (H + 2 * kv_width(plan)) + attention + 2 * b * s * H * (H + matrices * f)


def step_flops(plan: Plan) -> int:
    """FLOP of a step over all ranks."""
    b, s = plan.micro_batch, 64
    passes = 4 if plan.recompute is Recompute.FULL else 3
    layers = L * passes * layer_forward(plan)
    if plan.recompute is Recompute.SELECTIVE:
        layers += L * 4 * b * s * s * H // (2 if plan.causal else 1)
    head = 3 * 2 * b * s * H * V
    return (layers + head) * plan.global_batch // plan.micro_batch


@given(plans | interleaved)
def test_a_training_step(plan: Plan) -> None:
    told = count(plan)
    assert told["flops"]["total"] == step_flops(plan)
    found = collectives(told)
    assert {k: v for k, v in found.items() if k[1] == "tp"} == tensor_parallel(plan)
    if plan.chunks == 1 and plan.zero < 3:
        assert {k: v for k, v in found.items() if k[1] in ("dp", "dp_cp")} == data_parallel(plan)
    elif plan.chunks == 1:
        check_zero_3(plan, found)
    sent, received = messages(told)
    assert sent == received == between_stages(plan)


def collectives(told: dict[str, Any]) -> Counter[tuple[str, str]]:
    """Bytes that all ranks hand to collectives, by type and kind of group."""
    total: Counter[tuple[str, str]] = Counter()
    for program in told["programs"]:
        for one in program["collectives"]:
            size = one["bytes"] * one["count"] * len(program["ranks"])
            total[one["type"], one["group"]] += size
    return total


def tensor_parallel(plan: Plan) -> Counter[tuple[str, str]]:
    """Two sums of activations in each layer and pass; sequence parallelism cuts them in halves."""
    t, world = plan.tp, plan.tp * plan.cp * plan.dp * plan.pp
    b, s, e, m = plan.micro_batch, 64 // plan.cp, 2, plan.micro_batches
    again = 2 if plan.recompute is Recompute.FULL else 1
    groups_of_stage = world // plan.pp
    whole, fp32 = b * s * H * e, b * s * 4
    expected: Counter[tuple[str, str]] = Counter()
    if t > 1:
        # Of one micro-batch: layers, then embedding and head; summed over stages they are L and 1.
        forward, backward = 2 * L * again, 2 * L
        expected["ALL_REDUCE", "tp"] += 3 * fp32 * m * groups_of_stage
        if plan.sequence_parallel:
            part = whole // t
            # Backward, a layer gathers inputs and outputs' gradients again, and so do both ends.
            gathers = forward + 2 * backward + 1 + 2
            expected["ALL_GATHER", "tp"] += part * gathers * m * groups_of_stage
            scatters = forward + backward + 1 + (0 if plan.model.positions else 1)
            expected["REDUCE_SCATTER", "tp"] += whole * scatters * m * groups_of_stage
            if plan.model.positions:
                expected["ALL_REDUCE", "tp"] += whole * m * groups_of_stage
            norms = L * 2 * H + H
            if plan.model.norm_bias:
                norms = 2 * norms + L * 2 * H  # biases of norms, and behind layers split by inputs
            width = 4 if plan.zero <= 1 else e
            expected["ALL_REDUCE", "tp"] += norms * width * groups_of_stage
        else:
            expected["ALL_REDUCE", "tp"] += whole * (forward + backward + 2) * m * groups_of_stage
        if plan.pp == 1 and plan.zero <= 1:
            expected["ALL_REDUCE", "tp"] += 4 * world
    return expected


def stage_parameters(plan: Plan) -> list[list[int]]:
    """Elements on a rank of each stage, of each unit that ZeRO-3 gathers."""
    t, kv = plan.tp, kv_width(plan)
    bias = plan.model.bias
    matrices = 3 if plan.model.gated else 2
    layer = (H * (H + 2 * kv) + H * H + matrices * H * F) // t + (4 if bias else 2) * H
    if bias:
        layer += (H + 2 * kv + F) // t + 2 * H
    words, norm = V * H // t, (2 if bias else 1) * H
    stages = []
    for stage in range(plan.pp):
        units = [layer] * (L // plan.pp)
        if stage == 0:
            units.insert(0, words + plan.model.positions * H)
        if stage == plan.pp - 1:
            units.append(norm + (0 if plan.model.tied and plan.pp == 1 else words))
        stages.append(units)
    return stages


def data_parallel(plan: Plan) -> Counter[tuple[str, str]]:
    """Gradients, weights and the loss, below ZeRO-3."""
    d, m = plan.dp * plan.cp, plan.micro_batches
    family = "dp_cp" if plan.cp > 1 else "dp"
    ranks = plan.tp * plan.cp * plan.dp
    expected: Counter[tuple[str, str]] = Counter()
    for units in stage_parameters(plan) if d > 1 else []:
        n = sum(units)
        if plan.zero == 0:
            expected["ALL_REDUCE", family] += 4 * n * ranks
        elif plan.zero == 1:
            expected["REDUCE_SCATTER", family] += 4 * ceil(n / d) * d * ranks
            expected["ALL_GATHER", family] += 2 * ceil(n / d) * ranks
        elif plan.zero == 2:
            expected["ALL_REDUCE", family] += (2 * n * m + 1) * ranks
            expected["ALL_GATHER", family] += 2 * 2 * ceil(n / (2 * d)) * ranks
    if plan.zero <= 1 and d > 1:
        # The loss, on the last stage.
        expected["ALL_REDUCE", family] += 4 * m * ranks
    return expected


def check_zero_3(plan: Plan, all_found: Counter[tuple[str, str]]) -> None:
    """Each unit's weights are gathered before each pass, and gradients scattered behind."""
    d, m = plan.dp * plan.cp, plan.micro_batches
    ranks = plan.tp * plan.cp * plan.dp
    gathered = scattered = 0
    for stage, units in enumerate(stage_parameters(plan) if d > 1 else []):
        scattered += m * 2 * ceil(sum(units) / d) * d
        # Small weights stay whole, and are gathered when the optimizer has changed them.
        gathered += 2 * ceil(sum(units) / d)
        if plan.model.tied and plan.pp == 1:
            # The head is the embedding, and is gathered with the last norm.
            units[-1] += units[0]
        for place, n in enumerate(units):
            # The embedding is not needed to go backward.
            passes = 1 if stage == 0 and place == 0 else 2
            gathered += passes * m * 2 * ceil(n / d)
    found = {k[0]: v for k, v in all_found.items() if k[1] in ("dp", "dp_cp")}
    assert found.get("ALL_GATHER", 0) == gathered * ranks
    assert found.get("REDUCE_SCATTER", 0) == scattered * ranks


Messages = Counter[tuple[str, int]]


def messages(told: dict[str, Any]) -> tuple[Messages, Messages]:
    """How many messages are sent and received, by what they are for and bytes."""
    sent: Messages = Counter()
    received: Messages = Counter()
    for program in told["programs"]:
        for one in program["messages"]:
            kind = one["name"].rsplit(".", 1)[0]
            side = sent if one["type"] == "send" else received
            side[kind, one["bytes"]] += one["count"] * len(program["ranks"])
    return sent, received


def between_stages(plan: Plan) -> Messages:
    """One message each way over each boundary, and the rings of context parallelism."""
    c, t = plan.cp, plan.tp
    size = plan.micro_batch * (64 // c) * H * 2 // (t if plan.sequence_parallel else 1)
    boundaries = plan.pp * plan.chunks - 1
    number = boundaries * plan.micro_batches * t * c * plan.dp
    expected = Counter({("activations", size): number, ("gradients", size): number})
    if c > 1 and plan.exchange is Exchange.RING:
        again = {Recompute.NONE: 2, Recompute.SELECTIVE: 3, Recompute.FULL: 3}[plan.recompute]
        kv = 2 * plan.micro_batch * (64 // c) * kv_width(plan) // t * 2
        rings = L * plan.micro_batches * t * c * plan.dp
        expected["kv", kv] += again * (c - 1) * rings
        expected["kv.gradient", kv] += c * rings
    return +expected


@given(
    st.builds(
        lambda tp, ep, dp, sp, m: Plan(
            model=MOE, tp=tp, ep=ep, dp=ep * dp, sequence_parallel=sp, sequence=64,
            global_batch=ep * dp * m,
        ),
        tp=POWERS, ep=POWERS, dp=st.sampled_from([1, 2]), sp=st.booleans(), m=st.integers(1, 2),
    )
)  # fmt: skip
def test_experts(plan: Plan) -> None:
    t, s, m, world = plan.tp, 64, plan.micro_batches, plan.tp * plan.dp
    told = count(plan)
    found = collectives(told)
    tokens = s // (t if plan.sequence_parallel else 1)
    exchanged = 4 * L * tokens * TOP * H * 2 * m * world if plan.ep > 1 else 0
    assert found.get(("ALL_TO_ALL", "ep"), 0) == exchanged
    # Routers see all tokens on every rank of tp without sequence parallelism.
    routers = 2 * s * H * E * (1 if plan.sequence_parallel else t)
    attention = 2 * s * H * (H + 2 * max(KV, t) * H // A) + 4 * s * s * H + 2 * s * H * H
    experts = 6 * s * TOP * H * FE
    forward = L * (attention + routers + experts) + 2 * s * H * V
    assert told["flops"]["total"] == 3 * forward * plan.global_batch


def test_decoding() -> None:
    # s = 1 with a past of n: scores and context 2 b n h each; reads the cache and all weights.
    n, b = 100, 3
    plan = Plan(model=DENSE, phase=Phase.DECODE, context=n, micro_batch=b, global_batch=b)
    told = count(plan)
    layer = 2 * b * H * (H + 2 * KV * H // A) + 4 * b * n * H + 2 * b * H * H + 6 * b * H * F
    assert told["flops"]["decode"] == L * layer + 2 * b * H * V
    weights = DENSE.parameters - V * H
    cache = L * 2 * b * n * (KV * H // A) * 2
    moved = told["programs"][0]["moved_bytes"]["decode"]
    assert weights * 2 + cache < moved < (weights * 2 + cache) * 1.3


@pytest.mark.parametrize("pp", [1, 2])
@pytest.mark.parametrize("tp", [1, 2])
def test_keys_and_values_move_from_prefill_to_decode(tp: int, pp: int) -> None:
    plan = Plan(model=DENSE, phase=Phase.SERVE, tp=tp, pp=pp, sequence=64, global_batch=4)
    sent = sum(
        one["bytes"] * one["count"] * len(program["ranks"])
        for program in count(plan)["programs"]
        for one in program["messages"]
        if one["name"] == "kv.send"
    )
    assert sent == 4 * 2 * L * 64 * (KV * H // A) * 2


# MegaScale, table 2: batch, GPUs, then Megatron-LM's and MegaScale's s and MFU in %.
MEGASCALE = [
    (768, 256, 40.0, 53.0, 32.0, 65.3), (768, 512, 21.2, 49.9, 16.5, 63.5),
    (768, 768, 15.2, 46.7, 11.5, 61.3), (768, 1024, 11.9, 44.7, 8.9, 59.0),
    (6144, 3072, 29.02, 48.7, 23.66, 59.1), (6144, 6144, 14.78, 47.8, 12.21, 57.3),
    (6144, 8192, 12.24, 43.3, 9.56, 54.9), (6144, 12288, 8.57, 41.2, 6.34, 55.2),
]  # fmt: skip


def test_utilisation_of_megascale() -> None:
    model = Model(
        name="175B", layers=96, hidden=12288, heads=96, ffn=49152, vocabulary=64000, gated=False
    )
    of_one = count(Plan(model=model, sequence=2048))["flops"]["total"]
    for batch, gpus, *measured in MEGASCALE:
        for seconds, percent in (measured[:2], measured[2:]):
            # The table has one decimal.
            found = round(100 * of_one * batch / (seconds * gpus * 312e12), 1)
            assert round(abs(found - percent), 1) <= 1
