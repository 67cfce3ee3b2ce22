"""Memory by closed form, against the papers' forms and against the tensors of the traces."""

from __future__ import annotations

import pytest

from chakra_et.workloads import (
    Model,
    Phase,
    Plan,
    Recompute,
    Schedule,
    generate,
    load_model,
    memory,
    peak_of_tensors,
)
from chakra_et.workloads.memory import layer_activations

H, A, S, B = 12288, 96, 2048, 2


@pytest.mark.parametrize("tp", [1, 8])
def test_activations_of_a_gpt_layer(tp: int) -> None:
    # Korthikanti et al., table 2.
    gpt = load_model("gpt3-175b")
    plain = Plan(model=gpt, tp=tp, micro_batch=B)
    assert layer_activations(plain, 0) == S * B * H * (10 + 24 // tp)
    assert layer_activations(plain, 0, fused=False) == S * B * (
        H * (10 + 24 // tp) + 5 * A * S // tp
    )
    cut = Plan(model=gpt, tp=tp, micro_batch=B, sequence_parallel=True)
    assert layer_activations(cut, 0) == S * B * H * 34 // tp


def test_model_states_by_zero_stage() -> None:
    # Rajbhandari et al.: 2 + 2 + 12 bytes of a parameter, of which stages divide more and more.
    model = Model(name="m", layers=2, hidden=64, heads=4, ffn=128, vocabulary=64)
    p, d = model.parameters, 4
    for zero, parameters, gradients, optimizer in (
        (0, 2 * p, 4 * p, 12 * p),
        (1, 2 * p, 4 * p, 12 * p // d),
        (2, 2 * p, 2 * p // d, 12 * p // d),
        (3, 2 * p // d, 2 * p // d, 12 * p // d),
    ):
        found = memory(Plan(model=model, dp=d, zero=zero, sequence=8), 0)
        assert (found.parameters, found.gradients, found.optimizer) == (
            parameters, gradients, optimizer,
        )  # fmt: skip
        assert found.total == parameters + gradients + optimizer + found.activations


def test_early_stages_keep_more_micro_batches() -> None:
    plan = Plan(model=load_model("gpt3-13b"), pp=4, tp=8, global_batch=16, sequence_parallel=True)
    layer = layer_activations(plan, 0)
    assert [memory(plan, stage).activations // (10 * layer) for stage in range(4)] == [4, 3, 2, 1]
    full = Plan(model=plan.model, pp=4, tp=8, global_batch=16, recompute=Recompute.FULL)
    # 2 s b h of each layer, and all of the one that is computed again.
    kept = 2 * 2048 * 5120
    assert memory(full, 0).activations == 4 * 10 * kept + layer_activations(full, 0)


def test_a_cache_of_keys_and_values() -> None:
    llama = load_model("llama3-8b")
    plan = Plan(model=llama, phase=Phase.DECODE, context=1000, tokens=24, micro_batch=4)
    assert memory(plan, 0).activations == 32 * 2 * 1024 * 1024 * 2 * 4
    assert memory(plan, 0).parameters == 2 * llama.parameters


@pytest.mark.parametrize("kind", [Schedule.ONE_F_ONE_B, Schedule.GPIPE])
@pytest.mark.parametrize("recompute", [Recompute.NONE, Recompute.FULL])
def test_tensors_of_the_trace_peak_where_the_closed_form_says(
    kind: Schedule, recompute: Recompute
) -> None:
    model = Model(name="m", layers=8, hidden=256, heads=4, ffn=1024, vocabulary=256)
    plan = Plan(
        model=model, pp=2, tp=2, global_batch=6, sequence=128, schedule=kind, recompute=recompute
    )
    traces = generate(plan, tensors=True)
    for rank in (0, 2):
        closed = memory(plan, rank // 2).total
        assert peak_of_tensors(traces[rank]) == pytest.approx(closed, rel=0.08)


def test_a_trace_without_tensors_has_no_peak() -> None:
    model = Model(name="m", layers=1, hidden=8, heads=1, ffn=8, vocabulary=8)
    assert peak_of_tensors(generate(Plan(model=model, sequence=8))[0]) == 0
