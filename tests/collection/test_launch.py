"""What `chakra collect` does around a program, whether that uses PyTorch or not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command import chakra

import chakra_et
from chakra_et.collection.launch import launch
from chakra_et.collection.settings import Settings
from chakra_et.errors import ChakraError, OutputError

HAS_TORCH = "torch" in sys.modules


def settings(tmp_path: Path, force: bool = False) -> Settings:
    return Settings(str(tmp_path / "run"), force=force)


def test_a_program_without_pytorch_runs_as_ever_and_that_is_told(tmp_path: Path) -> None:
    """Arguments, exit code and a `sitecustomize` of its own are the program's."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.hidden = 3\n")
    code = "import sys; assert sys.argv[1:] == ['--lr', '1']; sys.exit(sys.hidden)"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        outcome = launch([sys.executable, "-c", code, "--lr", "1"], settings(tmp_path))
    assert (outcome.exit_code, outcome.manifests) == (3, [])
    assert outcome.problems == ["nothing was recorded: the program has not imported torch.optim"]


def test_a_python_that_reads_no_environment_is_told(tmp_path: Path) -> None:
    outcome = launch([sys.executable, "-I", "-c", "pass"], settings(tmp_path))
    assert "without -I, -E and -S" in outcome.problems[0]


def test_nothing_runs_where_the_output_cannot_be_had(tmp_path: Path) -> None:
    touch = [sys.executable, "-c", f"open({str(tmp_path / 'ran')!r}, 'w')"]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "host.0.json.gz").write_bytes(b"of another run")
    with pytest.raises(OutputError, match="recordings of another run are here"):
        launch(touch, settings(tmp_path))
    with pytest.raises(OutputError, match="cannot be written"):
        launch(touch, Settings(str(tmp_path / "run" / "host.0.json.gz" / "below")))
    with pytest.raises(ChakraError, match="there is no program 'no-such-program'"):
        launch(["no-such-program"], Settings(str(tmp_path / "new")))
    assert not (tmp_path / "ran").exists()


def test_an_earlier_run_stays_where_the_new_one_records_nothing(tmp_path: Path) -> None:
    old = tmp_path / "run" / "host.0.json.gz"
    old.parent.mkdir()
    old.write_bytes(b"of another run")
    launch([sys.executable, "-c", "pass"], settings(tmp_path, force=True))
    assert old.read_bytes() == b"of another run"


def test_the_exit_code_says_that_nothing_was_recorded(tmp_path: Path) -> None:
    done = chakra("collect", "-o", tmp_path / "run", "--", sys.executable, "-c", "pass")
    assert done.code == 1
    assert "warning: nothing was recorded" in done.errors


def test_a_program_that_was_killed_is_told_by_its_exit_code(tmp_path: Path) -> None:
    code = "import os; os.kill(os.getpid(), 9)"
    assert launch([sys.executable, "-c", code], settings(tmp_path)).exit_code == 128 + 9


@pytest.mark.skipif(HAS_TORCH, reason="PyTorch is here")
def test_without_pytorch_the_remedy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ChakraError, match=r"pip install 'chakra-et\[torch\]'"):
        chakra_et.collect(tmp_path)


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"warmup": -1}, {"steps": "3"}])
def test_steps_are_numbers(wrong: dict[str, int]) -> None:
    with pytest.raises(ChakraError, match="Give a whole number from"):
        Settings("run", **wrong)
