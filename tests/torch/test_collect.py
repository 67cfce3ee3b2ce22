"""Recording from within a script, whatever the script does."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import chakra_et
from chakra_et.benchmark.threads import recorded_threads
from chakra_et.collection import stage
from chakra_et.errors import OutputError

profiler = pytest.importorskip("torch.profiler")  # plain "torch" could be the folder of this file
pytestmark = pytest.mark.torch

FILES = {"host.0.json.gz", "device.0.json.gz", "manifest.0.json"}


@pytest.fixture
def train() -> Any:
    """A step of a training."""
    import torch

    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()

    return step


def record(
    train: Callable[[], object],
    directory: Path,
    steps_run: int,
    then: Callable[[], object] = lambda: None,
    **options: Any,
) -> Any:
    """Record so many steps of a training that does something else behind them."""
    with chakra_et.collect(directory, **options) as recording:
        for _ in range(steps_run):
            train()
            recording.step()
        then()
    return recording


def names(directory: Path) -> set[str]:
    """All files and folders, hidden ones too."""
    return {path.name for path in directory.iterdir()}


def test_the_window_has_the_steps_that_were_asked_for(train: Any, tmp_path: Path) -> None:
    recording = record(train, tmp_path / "run", 9, steps=2, warmup=3, convert=True)
    assert names(tmp_path / "run") == FILES | {"et"}
    manifest = json.loads((tmp_path / "run" / "manifest.0.json").read_text())
    assert manifest == {**recording.manifest, "final": True}
    assert manifest["steps"] == {"first": 4, "recorded": 2, "wanted": 2}
    assert (manifest["rank"], manifest["world_size"], manifest["ended"]) == (0, 1, "complete")
    sizes = {file["name"]: file["bytes"] for file in manifest["files"]}
    assert sizes == {n: (tmp_path / "run" / n).stat().st_size for n in FILES if "json.gz" in n}
    # Steps 1 and 2, and two behind the window, ran without the profiler.
    assert (manifest["times"]["recorded_steps"], manifest["times"]["plain_steps"]) == (2, 4)
    trace = chakra_et.read(tmp_path / "run" / "et" / "trace.0.et")
    steps = [node.name for node in trace.nodes if node.name.startswith("ProfilerStep#")]
    assert steps == ["ProfilerStep#4", "ProfilerStep#5"]
    assert recorded_threads(trace) == manifest["torch_threads"]["intra_op"] > 0
    called = [node.name for node in trace.nodes]
    assert called.count("aten::addmm") == called.count("Optimizer.step#SGD.step") == 2


def test_what_was_whole_when_an_error_came_is_kept(train: Any, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        record(train, tmp_path, 3, lambda: 1 / 0, warmup=0)
    assert names(tmp_path) == FILES
    manifest = json.loads((tmp_path / "manifest.0.json").read_text())
    assert manifest["steps"] == {"first": 1, "recorded": 2, "wanted": 3}
    assert "ended after 2 of 3 steps" in manifest["problems"][0]
    assert chakra_et.convert_directory(tmp_path, None)[0].report.repairs == []


def test_too_few_steps_are_told(train: Any, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"ran 3 steps, and recording takes 6"):
        record(train, tmp_path, 3)
    assert names(tmp_path) == set()
    # PyTorch has its profiler and its observer back.
    test_the_window_has_the_steps_that_were_asked_for(train, tmp_path)


def test_sigterm_leaves_whole_files(train: Any, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as end:
        record(train, tmp_path, 3, lambda: os.kill(os.getpid(), signal.SIGTERM), warmup=0)
    assert end.value.code == 128 + signal.SIGTERM
    assert names(tmp_path) == FILES
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_another_run_is_kept_unless_it_may_be_replaced(train: Any, tmp_path: Path) -> None:
    record(train, tmp_path, 3, steps=1, warmup=0)
    before = (tmp_path / "host.0.json.gz").read_bytes()
    with pytest.raises(OutputError, match="recordings of another run are here"):
        record(train, tmp_path, 3, steps=1, warmup=0)
    assert (tmp_path / "host.0.json.gz").read_bytes() == before
    record(train, tmp_path, 3, steps=1, warmup=0, force=True)
    assert (tmp_path / "host.0.json.gz").read_bytes() != before
    assert names(tmp_path) == FILES


def test_a_profiler_of_the_program_comes_first(train: Any, tmp_path: Path) -> None:
    done, own = count(), []

    def profiled() -> None:
        # When ours gets ready, and when ours records.
        if next(done) not in (1, 4):
            return train()
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as mine:
            train()
        own.append({row.key: row.count for row in mine.key_averages()}["aten::addmm"])

    recording = record(profiled, tmp_path, 9, steps=2, warmup=1)
    assert own == [1, 1]
    assert recording.manifest["steps"]["first"] > 4
    trace = chakra_et.convert_directory(tmp_path, None)[0].trace
    assert sum(node.name == "aten::addmm" for node in trace.nodes) == 2


def test_an_observer_of_the_program_is_left_alone(train: Any, tmp_path: Path) -> None:
    own = profiler.ExecutionTraceObserver()
    own.register_callback(str(tmp_path / "own.json"))
    own.start()
    with pytest.raises(chakra_et.ChakraError, match="another ExecutionTraceObserver"):
        record(train, tmp_path / "run", 3, warmup=0)
    train()
    own.unregister_callback()
    nodes = json.loads((tmp_path / "own.json").read_text())["nodes"]
    assert sum(node["name"] == "aten::addmm" for node in nodes) == 2
    assert names(tmp_path / "run") == set()


def test_a_full_disk_does_not_stop_the_training(
    train: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stage, "_compress", full)
    reached: list[bool] = []
    with pytest.raises(OutputError, match="No space left on device"):
        record(train, tmp_path, 5, lambda: reached.append(True), steps=1, warmup=0)
    assert reached
    assert names(tmp_path) == set()


@pytest.mark.parametrize(
    "place",
    [
        "torch.profiler._KinetoProfile.export_chrome_trace",
        "chakra_et.collection.stage.Stage.publish",
    ],
)
def test_an_interrupt_while_files_are_written_leaves_none_and_is_told(
    place: str,
    train: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, interrupted)
    with pytest.raises(KeyboardInterrupt):
        record(train, tmp_path / "run", 6)
    assert names(tmp_path / "run") == set()
    told = capsys.readouterr().err
    assert "the recording could not be written: the program was interrupted meanwhile" in told


def test_where_nothing_can_be_written_nothing_begins(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        record(lambda: pytest.fail("the block has begun"), tmp_path / "file" / "run", 1)
