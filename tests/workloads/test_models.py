"""Models: their parameters are those that were published."""

from __future__ import annotations

from pathlib import Path

import pytest

from chakra_et import ChakraError
from chakra_et.workloads import Plan, count, load_model, model_names

PUBLISHED = {
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3-405b": 405_853_388_800,
    "mixtral-8x7b": 46_702_792_704,
    "gpt3-175b": 174_604_259_328,
    # With the correction biases of its routers, as in the published checkpoint.
    "deepseek-v3": 671_026_419_200,
    # 40 (12 h^2 + 13 h) + V h + 2048 h + 2 h, with h 5120 and V 50257.
    "gpt3-13b": 12_853_386_240,
}


@pytest.mark.parametrize("name", model_names())
def test_parameters(name: str) -> None:
    assert load_model(name).parameters == PUBLISHED[name]


@pytest.mark.parametrize("name", ["llama2-7b", "mixtral-8x7b", "deepseek-v3"])
def test_ranks_have_all_parameters_together(name: str) -> None:
    # Ranks of tp, pp and ep; what is on every rank of tp is counted once.
    one = count(Plan(model=load_model(name)))
    assert sum(p["parameters"] for p in one["programs"]) == PUBLISHED[name]
    staged = count(Plan(model=load_model(name), pp=4))
    assert sum(p["parameters"] for p in staged["programs"]) == PUBLISHED[name]


TINY = 'name="t"\nlayers=2\nhidden=64\nheads=4\nffn=128\nvocabulary=100\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("layers", "not a model: Expected '=' after a key"),
        ('name="t"\n', "not a model: Object missing required field"),
        (TINY + "width=3\n", "not a model: Object contains unknown field `width`"),
        (TINY.replace("layers=2", "layers=0"), "layers is below 1"),
        (TINY.replace("heads=4", "heads=5"), "hidden 64 is not a multiple of 5 heads"),
        (TINY + "experts=-1\n", "experts is negative"),
        (TINY + "kv_heads=3\n", "4 heads are not a multiple of 3 kv_heads"),
        (TINY + "experts=4\n", "0 experts_per_token of 4 experts"),
        (TINY + "experts=4\nexperts_per_token=1\n", "experts without expert_ffn"),
        (TINY + "kv_rank=4\n", "kv_rank without q_rank, head_size and rope_size"),
    ],
)
def test_a_file_that_is_no_model_is_refused(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    path.write_text(text)
    with pytest.raises(ChakraError, match=says):
        load_model(path)


def test_a_model_that_is_not_there() -> None:
    with pytest.raises(ChakraError, match=r"no model 'llama9'\. It is one of deepseek-v3"):
        load_model("llama9")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tp": 3}, "tp 3 does not divide the number of heads, 32"),
        ({"pp": 0}, "pp is 0"),
        ({"global_batch": -2}, "global_batch is -2"),
        ({"vocabulary_multiple": 0}, "vocabulary_multiple is 0"),
        ({"pp": 40}, "40 stages for 32 layers"),
        ({"cp": 3}, "cp 3 does not divide the sequence of 2048"),
        ({"ep": 2, "dp": 2}, "Llama-2-7B has no experts"),
        ({"dp": 2, "global_batch": 3}, "micro-batch x dp 2 does not divide global batch 3"),
        ({"chunks": 2}, "2 chunks, but the schedule is 1f1b"),
        ({"zero": 4}, "ZeRO stage 4"),
        ({"dtype": "int3"}, "no type 'int3'"),
        ({"order": "tp-dp"}, "order 'tp-dp', which is not an order of tp-cp-ep-dp-pp"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(options: dict[str, int], says: str) -> None:
    with pytest.raises(ChakraError, match=says):
        Plan(model=load_model("llama2-7b"), **options)  # type: ignore[arg-type]
