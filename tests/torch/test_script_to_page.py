"""From a training script to its report in a browser, by the commands of docs/recording.md."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import browsing
import pytest

pytest.importorskip("torch.profiler")  # plain "torch" could be the folder of this file
pytestmark = pytest.mark.torch

GUIDE = (Path(__file__).parents[2] / "docs" / "recording.md").read_text("utf-8")
TRAINING = """
    import time, torch, torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(8):
        optimizer.zero_grad()
        loss = model(torch.randn(16, 64)).sum()
        if dist.get_rank() == 1:
            time.sleep(0.1)
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()
"""


def commands() -> list[list[str]]:
    """The words of the first commands of the guide, without the one that installs."""
    block = re.findall(r"```console\n(.*?)```", GUIDE, re.DOTALL)[0]
    lines = [line.removeprefix("$ ").partition(" #")[0] for line in block.splitlines()]
    return [shlex.split(line) for line in lines if not line.startswith("pip ")]


def test_four_commands_lead_from_a_script_to_what_limits_it(tmp_path: Path) -> None:
    if (problem := browsing.missing()) is not None:
        pytest.skip(problem)
    (tmp_path / "train.py").write_text(textwrap.dedent(TRAINING))
    bin_ = Path(sys.executable).parent
    settings = {"PATH": f"{bin_}:{os.environ['PATH']}", "GLOO_SOCKET_IFNAME": "lo"}
    settings["PET_STANDALONE"] = "1"  # torchrun: a free port, for others may run beside
    steps = commands()
    assert [words[1] for words in steps] == ["collect", "convert", "validate", "report"]
    for words in steps:
        done = subprocess.run(
            words, cwd=tmp_path, env={**os.environ, **settings}, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    with browsing.chromium(tmp_path / "browser") as browser:
        browser.open(tmp_path / steps[-1][-1])
        verdict = browser.text("#verdict")
        assert verdict.startswith("Rank 1 limits this run: the others wait for it "), verdict
        assert "2 ranks" in browser.text("#overview")
        assert browser.errors() == []
