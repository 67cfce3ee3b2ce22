"""Ranks as processes: they all end, whatever happens, and the first cause is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chakra_et.benchmark import launcher
from chakra_et.benchmark.launcher import RankError, launch
from chakra_et.errors import ChakraError

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setattr(launcher, "GRACE_S", 0.3)


def lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # One that nobody has waited for yet has ended, too.
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def processes(folder: Path, count: int) -> list[int]:
    """The processes of the ranks, once all have begun."""
    paths = [folder / f"{rank}.pid" for rank in range(count)]
    deadline = time.monotonic() + 30
    while not all(path.exists() and path.read_text() for path in paths):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return [int(path.read_text()) for path in paths]


def expect_gone(numbers: list[int]) -> None:
    deadline = time.monotonic() + 10
    while any(map(lives, numbers)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def fail(tmp_path: Path, *fates: str) -> ChakraError:
    with pytest.raises(ChakraError) as raised:
        launch("launched", "fate", [(one, str(tmp_path)) for one in fates])
    started = [int(path.read_text()) for path in tmp_path.glob("*.pid")]
    expect_gone(started)
    return raised.value


def test_each_rank_has_its_seat_and_its_arguments(capfd: pytest.CaptureFixture[str]) -> None:
    assert launch("launched", "seat", [(10,), (11,)]) == [(0, "2", "0", 10), (1, "2", "1", 11)]
    assert capfd.readouterr().out == ""


def test_an_error_of_one_rank_ends_the_others(tmp_path: Path) -> None:
    error = fail(tmp_path, "never", "error")
    assert str(error) == "rank 1: its own error. Mend it."


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("killed", "rank 1 was ended by SIGKILL, as machines do that run out of memory"),
        ("exit", "rank 1 ended with exit code 7"),
        ("bug", "rank 1 ended with exit code 1"),
    ],
)
def test_a_rank_that_ends_without_a_word_is_named(tmp_path: Path, how: str, told: str) -> None:
    error = fail(tmp_path, "never", how)
    assert isinstance(error, RankError)
    assert told in str(error)


def test_the_cause_is_told_not_what_followed(tmp_path: Path) -> None:
    """A rank that lost another one may be the first to say so."""
    assert "rank 1 was ended by SIGKILL" in str(fail(tmp_path, "follows", "killed"))
    assert "its own error" in str(fail(tmp_path, "follows", "error"))


def test_a_rank_that_is_deaf_to_sigterm_is_killed(tmp_path: Path) -> None:
    assert "its own error" in str(fail(tmp_path, "deaf", "error"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_ranks_end_with_the_process_that_started_them(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take away what it has left, too."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    code = (
        "import signal, sys\n"
        "from chakra_et.benchmark.launcher import launch\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        # A shell starts what runs in the background deaf to it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"launch('launched', 'fate', [('never', {str(tmp_path)!r})] * 2)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    started = processes(tmp_path, 2)
    process.send_signal(number)
    process.wait(timeout=30)
    expect_gone(started)
    assert list(tmp_path.glob("chakra-run-*")) == []
