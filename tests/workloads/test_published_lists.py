"""Communication of a training step as AICB lists it for Megatron and DeepSpeed, world 128.

The lists are `L7B-M1-C04`, `G13B-M1-C01` and `L7B-D1-C01` of aliyun/aicb (Apache-2.0), counted by
type, group, ranks and bytes. They give what an all-gather leaves; an ET gives a rank's input. Left
out of them, as no part of the model's step: the broadcasts of the input batch over tp (data
loading), and an all-reduce of 0 bytes (gradients of norms without sequence parallelism).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from chakra_et.workloads import Model, Plan, count, load_model

Listed = dict[tuple[str, str, int, int], int]


def listed(plan: Plan) -> Listed:
    """Collectives of a rank by type, group, ranks and bytes, as AICB lists them."""
    (program,) = count(plan)["programs"]
    found: Counter[tuple[str, str, int, int]] = Counter()
    for one in program["collectives"]:
        times = one["ranks"] if one["type"] == "ALL_GATHER" else 1
        found[one["type"], one["group"], one["ranks"], one["bytes"] * times] += one["count"]
    return dict(found)


def like_gpt(**shapes: Any) -> Model:
    """AICB's stand-in for Megatron models: biases, layer norms, learned positions, a tied head,
    an MLP of two matrices and a vocabulary of 32000, whatever the model's name."""
    return Model(
        vocabulary=32000, gated=False, bias=True, norm_bias=True, tied=True, positions=2048,
        **shapes,
    )  # fmt: skip


def test_gpt_13b_megatron_tp8() -> None:
    model = like_gpt(name="GPT-13B", layers=40, hidden=5120, heads=40, ffn=20480)
    plan = Plan(model=model, tp=8, dp=16, global_batch=16, vocabulary_multiple=128)
    assert listed(plan) == {
        ("ALL_REDUCE", "tp", 8, 20_971_520): 81 + 81,
        ("ALL_REDUCE", "tp", 8, 8_192): 3,
        ("ALL_REDUCE", "dp", 16, 4): 1,
        ("REDUCE_SCATTER", "dp", 16, 6_422_958_080): 1,
        ("ALL_GATHER", "dp", 16, 3_211_479_040): 1,
        ("ALL_REDUCE", "tp", 8, 4): 1,
    }


def test_llama_7b_megatron_tp2() -> None:
    model = like_gpt(name="Llama-7B", layers=32, hidden=4096, heads=32, ffn=11008)
    # 32 (4 h^2 + 2 h f + 3 h + f + h + h + 4 h) + V h + 2048 h + 2 h: the MLP is not gated. Two
    # ranks have 5,183,348,736 together, as each has all norms, positions and half of the biases.
    assert model.parameters == 5_174_165_504
    plan = Plan(model=model, tp=2, dp=64, global_batch=64, vocabulary_multiple=128)
    assert listed(plan) == {
        ("ALL_REDUCE", "tp", 2, 16_777_216): 65 + 65,
        ("ALL_REDUCE", "tp", 2, 8_192): 3,
        ("ALL_REDUCE", "dp", 64, 4): 1,
        ("REDUCE_SCATTER", "dp", 64, 10_366_697_472): 1,
        ("ALL_GATHER", "dp", 64, 5_183_348_736): 1,
        ("ALL_REDUCE", "tp", 2, 4): 1,
    }


def test_llama_7b_zero_3_by_modules() -> None:
    # No published list: DeepSpeed's rules for the model of ZeRO-2's list. Weights of 4096 x 4096,
    # 11008 x 4096 and 32000 x 4096 are gathered before each pass, the embedding's too; norms stay
    # whole, and are gathered together when the optimizer has changed them.
    plan = Plan(model=load_model("llama2-7b"), dp=128, global_batch=128, zero=3)
    found = listed(plan)
    assert {key[3]: n for key, n in found.items() if key[0] == "ALL_GATHER"} == {
        33_554_432: 2 * 4 * 32,
        90_177_536: 2 * 3 * 32,
        262_144_000: 2 * 2,
        65 * 4096 * 2: 1,
    }
    assert {key[3]: n for key, n in found.items() if key[0] == "ALL_REDUCE"} == {1: 1, 8: 1}
    assert sum(key[3] * n for key, n in found.items() if key[0] == "REDUCE_SCATTER") == (
        2 * plan.model.parameters
    )


def test_llama_7b_zero_2() -> None:
    plan = Plan(model=load_model("llama2-7b"), dp=128, global_batch=128, zero=2)
    assert listed(plan) == {
        ("ALL_REDUCE", "dp", 128, 1_971_396_608): 1,
        ("ALL_REDUCE", "dp", 128, 1_933_656_064): 1,
        ("ALL_REDUCE", "dp", 128, 1_990_270_976): 1,
        ("ALL_REDUCE", "dp", 128, 1_990_279_168): 3,
        ("ALL_REDUCE", "dp", 128, 1_610_670_080): 1,
        ("ALL_REDUCE", "dp", 128, 1): 1,
        ("ALL_GATHER", "dp", 128, 2_246_138_624): 6,
    }
