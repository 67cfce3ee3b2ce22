"""Recording scripts that know nothing of it: `chakra collect -- python train.py`."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import chakra_et
from chakra_et.collection.launch import Outcome, launch
from chakra_et.collection.settings import Settings
from chakra_et.doctor import examine
from chakra_et.validators import Severity

pytest.importorskip("torch.profiler")  # plain "torch" could be the folder of this file
pytestmark = pytest.mark.torch

TRAINING = """
    import os, sys, time, torch
    torch.set_num_threads(1)
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def step(inputs=torch.ones(4, 8)):
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()
"""
DDP = """
    import os, sys, torch, torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(8):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        if step == 6 and os.environ.get("DIES") == os.environ["RANK"]:
            os._exit(7)
    dist.destroy_process_group()
"""
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


def run(script: Path, body: str, command: list[str] | None = None, steps: int = 3) -> Outcome:
    """Record a script into the folder `run` beside it."""
    script.write_text(textwrap.dedent(body))
    settings = Settings(str(script.parent / "run"), steps=steps, until_step="optimizer.step")
    return launch([*(command or [sys.executable]), str(script)], settings)


def then(body: str) -> str:
    """The training, and what the script does with it."""
    return textwrap.dedent(TRAINING) + textwrap.dedent(body)


def files(script: Path) -> set[str]:
    return {path.name for path in (script.parent / "run").iterdir()}


def of_ranks(*ranks: int) -> set[str]:
    kinds = ("host.{}.json.gz", "device.{}.json.gz", "manifest.{}.json")
    return {kind.format(rank) for kind in kinds for rank in ranks}


def test_all_ranks_below_torchrun_are_recorded(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    outcome = run(script, DDP, [*TORCHRUN, "2"])
    assert (outcome.exit_code, outcome.problems) == (0, [])
    assert files(script) == of_ranks(0, 1)
    for rank, manifest in enumerate(outcome.manifests):
        assert (manifest["rank"], manifest["world_size"]) == (rank, 2)
        assert [group["ranks"] for group in manifest["groups"]] == [[0, 1]]
        assert manifest["steps"] == {"first": 3, "recorded": 3, "wanted": 3}
    assert [lack for lack in examine(script.parent / "run").findings if lack.check != "cold"] == []
    done = chakra_et.convert_files(script.parent / "run", script.parent / "et")
    assert [conversion.load().groups[0].ranks for conversion in done] == [(0, 1), (0, 1)]
    assert chakra_et.validate(script.parent / "et").count(Severity.ERROR) == 0


def test_a_rank_that_dies_is_named_and_the_others_stay(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    monkeypatch.setenv("DIES", "2")
    outcome = run(script, DDP, [*TORCHRUN, "3"], steps=5)
    assert outcome.exit_code != 0
    assert 2 not in {manifest["rank"] for manifest in outcome.manifests}
    assert any("rank 2: ended without notice" in problem for problem in outcome.problems)
    assert files(script) == of_ranks(*(manifest["rank"] for manifest in outcome.manifests))
    for manifest in outcome.manifests:
        assert manifest["steps"]["recorded"] < 5
        assert "the program ended after" in manifest["problems"][0]


def test_the_exit_of_a_script_is_kept(script: Path) -> None:
    outcome = run(script, then("for _ in range(2): step()\nsys.exit(5)"))
    assert (outcome.exit_code, outcome.manifests, files(script)) == (5, [], set())
    (problem,) = outcome.problems
    assert "the program ran 2 steps, and recording takes 6" in problem


def test_sigterm_ends_the_program_and_leaves_whole_files(script: Path) -> None:
    script.write_text(then("for _ in range(5): step()\nprint('now', flush=True)\ntime.sleep(60)"))
    command = [sys.executable, "-m", "chakra_et.cli", "collect", "-o", "run", "--"]
    process = subprocess.Popen(
        [*command, sys.executable, script.name],
        cwd=script.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"now\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert files(script) == of_ranks(0)
    assert chakra_et.convert_directory(script.parent / "run", None)[0].report.repairs == []


def test_ranks_that_collect_themselves_are_converted_by_the_last_one(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    lines = textwrap.dedent(DDP).splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("for step"))
    block = ["import chakra_et", "with chakra_et.collect('run', convert=True) as recording:"]
    block += [f"    {line}" for line in lines[place:-1]] + ["        recording.step()"]
    script.write_text("\n".join([*lines[:place], *block, lines[-1]]))
    subprocess.run([*TORCHRUN, "2", script.name], cwd=script.parent, check=True, timeout=120)
    assert files(script) == of_ranks(0, 1) | {"et"}
    assert len(chakra_et.read_set(script.parent / "run" / "et")) == 2
