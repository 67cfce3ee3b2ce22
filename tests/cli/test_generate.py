"""`chakra generate llm` and `unpack`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import chakra_et
from chakra_et.cli.generate import generate_command
from chakra_et.workloads import Plan, Roofline, device, generate, load_model

TINY = 'name="tiny"\nlayers=2\nhidden=64\nheads=4\nffn=128\nvocabulary=128\n'


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return str(path)


def run(*words: str) -> str:
    result = CliRunner().invoke(generate_command, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_set_has_a_trace_of_each_rank_and_no_findings(model: str, tmp_path: Path) -> None:
    out = tmp_path / "set"
    told = run("llm", "--model", model, "--tp", "2", "--dp", "2", "--seq", "64", "-o", str(out))
    assert "tiny: 98,624 parameters, 4 ranks, 1 micro-batch," in told
    plan = Plan(model=load_model(model), tp=2, dp=2, sequence=64)
    traces = generate(plan, Roofline(device("a100")))
    assert {rank: chakra_et.read(out / f"trace.{rank}.et") for rank in traces} == dict(traces)
    assert not chakra_et.validate(out, "astra-sim").outcomes
    workload = json.loads(traces[3].metadata.get("workload"))
    assert (workload["kind"], workload["tp"], workload["model"]["name"]) == ("llm", 2, "tiny")
    assert traces[3].metadata.get("coordinates") == '{"tp":1,"cp":0,"dp":1,"pp":0}'


@pytest.mark.parametrize(
    "options",
    [
        "--dp 2 --zero 3 --gbs 4",
        "--dp 2 --zero 0 --overlap --bucket 10000",
        "--tp 2 --sp --pp 2 --schedule zero-bubble --gbs 4",
        "--tp 2 --pp 2 --schedule gpipe --recompute full --overlap --dp 2",
        "--cp 2 --tp 2 --recompute selective",
        "--cp 2 --cp-exchange all-gather",
        "--pp 2 --phase prefill --gbs 2",
        "--tp 2 --pp 2 --phase decode --tokens 2 --gbs 2",
        "--tp 2 --pp 2 --phase serve --tokens 2 --gbs 2",
        "--order pp-dp-tp-cp-ep --tp 2 --pp 2 --dp 2",
    ],
)
def test_sets_of_all_kinds_have_no_findings(options: str, model: str, tmp_path: Path) -> None:
    run("llm", "--model", model, "--seq", "64", *options.split(), "-o", str(tmp_path / "set"))
    result = chakra_et.validate(tmp_path / "set", "astra-sim")
    assert not result.outcomes


@pytest.mark.parametrize("name", ["mixtral-8x7b", "deepseek-v3"])
def test_models_with_experts_have_no_findings(name: str, tmp_path: Path) -> None:
    out = str(tmp_path / "set")
    run("llm", "--model", name, "--ep", "2", "--dp", "4", "--tp", "2", "--sp", "-o", out)
    assert not chakra_et.validate(out, "astra-sim").outcomes


def test_for_a_roofline_all_work_is_counted(model: str, tmp_path: Path) -> None:
    out = str(tmp_path / "set")
    words = ("llm", "--model", model, "--seq", "64", "--dp", "2", "--device", "none", "-o", out)
    run(*words, "--all-flops")
    # ET303: nothing has a duration, as was asked for.
    assert [o.rule.id for o in chakra_et.validate(out, "astra-sim-roofline").outcomes] == ["ET303"]
    run(*words)
    assert len(chakra_et.validate(out, "astra-sim-roofline").outcomes) > 1


def test_figures_as_json(model: str) -> None:
    told = json.loads(run("llm", "--model", model, "--pp", "2", "--seq", "64", "--json"))
    assert told["parameters"] == 98_624
    assert [program["ranks"] for program in told["programs"]] == [[0], [1]]
    assert told["flops"]["backward"] == 2 * told["flops"]["forward"]


def test_memory_from_tensors_beside_the_closed_form(model: str) -> None:
    told = json.loads(run("llm", "--model", model, "--seq", "64", "--tensors", "--json"))
    (memory,) = [program["memory_bytes"] for program in told["programs"]]
    assert memory["tensors"] == pytest.approx(memory["total"], rel=0.1)


def test_durations_come_from_a_table_before_the_device(model: str, tmp_path: Path) -> None:
    table = tmp_path / "durations.csv"
    table.write_text("operator,duration_ns\nattention.qkv,12345\n")
    out = tmp_path / "set"
    run("llm", "--model", model, "--seq", "64", "--durations", str(table), "-o", str(out))
    nodes = chakra_et.read(out / "trace.0.et").nodes
    assert {n.duration_ns for n in nodes.where(name="attention.qkv")} == {12345}
    (head,) = nodes.where(name="head")
    # Its bytes, (64 x 64 + 128 x 64 + 64 x 128) x 2, take 20 ns: less than any kernel.
    assert head.duration_ns == 1000
    table.write_text("attention.qkv,soon\n")
    with pytest.raises(chakra_et.FormatError, match="line 1: not a duration"):
        run("llm", "--model", model, "--durations", str(table))


def test_a_packed_set_is_unpacked(model: str, tmp_path: Path) -> None:
    words = ("llm", "--model", model, "--tp", "2", "--pp", "2", "--seq", "64", "-o")
    run(*words, str(tmp_path / "plain"))
    run(*words, str(tmp_path / "packed"), "--pack")
    run("unpack", str(tmp_path / "packed"), "--ranks", "1-2", "-o", str(tmp_path / "some"))
    for rank in (1, 2):
        name = f"trace.{rank}.et"
        assert (tmp_path / "some" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
    assert not (tmp_path / "some" / "trace.0.et").exists()
    with pytest.raises(chakra_et.ChakraError, match="'1;2' is not a list of ranks"):
        run("unpack", str(tmp_path / "packed"), "--ranks", "1;2", "-o", str(tmp_path / "x"))
    with pytest.raises(chakra_et.ChakraError, match="'2-1' is not a list of ranks"):
        run("unpack", str(tmp_path / "packed"), "--ranks", "2-1", "-o", str(tmp_path / "x"))


def test_a_model_that_does_not_fit_into_the_device_is_told() -> None:
    assert "warning: a100 has 80 GB" in run("llm", "--model", "llama2-70b")
    assert "warning" not in run("llm", "--model", "llama2-7b", "--dp", "8", "--zero", "3")


def test_devices_and_their_limits() -> None:
    with pytest.raises(chakra_et.ChakraError, match="no device 'abacus'"):
        run("llm", "--model", "llama2-7b", "--device", "abacus")
    with pytest.raises(chakra_et.ChakraError, match="V100 SXM2 32 GB has no rate for bf16"):
        run("llm", "--model", "llama2-7b", "--device", "v100")
    with pytest.raises(chakra_et.ChakraError, match="--pack and --compress"):
        run("llm", "--model", "llama2-7b", "--pack", "--compress", "-o", "x")
