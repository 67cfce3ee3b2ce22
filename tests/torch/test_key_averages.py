"""Times by operator against those of PyTorch's own table, on runs that are recorded here."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chakra_et
from chakra_et.replay import replay

profiler = pytest.importorskip("torch.profiler")
pytestmark = pytest.mark.torch


def mlp(steps: Callable[[], None]) -> None:
    import torch

    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        with profiler.record_function("forward"):
            loss = model(torch.randn(128, 256)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.002)
        steps()


def transformer(steps: Callable[[], None]) -> None:
    import torch

    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    for _ in range(3):
        layer(torch.randn(8, 64, 128)).sum().backward()
        steps()


def threads(steps: Callable[[], None]) -> None:
    import torch

    def work() -> None:
        for _ in range(5):
            torch.mm(torch.randn(200, 200), torch.randn(200, 200)).relu()

    running = [threading.Thread(target=work) for _ in range(2)]
    for thread in running:
        thread.start()
    work()
    for thread in running:
        thread.join()
    steps()


def recorded(run: Callable[[Callable[[], None]], None], folder: Path) -> tuple[Any, Any]:
    """The trace of a run, and PyTorch's table of it."""
    observer = profiler.ExecutionTraceObserver()
    observer.register_callback(str(folder / "host.json"))
    options = {}
    if run is threads:
        options["experimental_config"] = profiler._ExperimentalConfig(profile_all_threads=True)
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        execution_trace_observer=observer,
        **options,
    ) as found:
        run(found.step)
    found.export_chrome_trace(str(folder / "device.json"))
    observer.unregister_callback()
    trace = chakra_et.convert(host=folder / "host.json", device=folder / "device.json").trace
    return trace, found.key_averages()


@pytest.mark.parametrize("run", [mlp, transformer, threads])
def test_self_and_total_time_are_those_of_key_averages(
    run: Callable[[Callable[[], None]], None], tmp_path: Path
) -> None:
    trace, table = recorded(run, tmp_path)
    ours: dict[str, list[float]] = {}
    for item in chakra_et.operator_times(trace):
        if item.name is not None:
            name = re.sub(r"ProfilerStep#\d+", "ProfilerStep*", item.name)
            times = ours.setdefault(name, [0, 0.0, 0.0])
            times[0] += item.calls
            times[1] += (item.self_ns + item.wait_ns) / 1000
            times[2] += item.total_ns / 1000
    theirs = {row.key: [row.count, row.self_cpu_time_total, row.cpu_time_total] for row in table}
    assert len(theirs) > 5
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        assert ours[name] == pytest.approx(expected, rel=0.001, abs=0.002 * expected[0]), name


@pytest.mark.parametrize("run", [mlp, transformer])
def test_halving_any_operator_takes_away_half_of_its_self_time(
    run: Callable[[Callable[[], None]], None], tmp_path: Path
) -> None:
    trace, table = recorded(run, tmp_path)
    plain = replay(trace).figures[0]
    assert plain.span_error == 0
    for row in table:
        if row.key.startswith("ProfilerStep"):
            continue
        done = replay(trace, scale=[(f"name={row.key}", 0.5)])
        saved = (plain.span_ns - done.figures[0].span_ns) / 1000
        rounding = 0.002 * len(trace.nodes)
        assert saved == pytest.approx(row.self_cpu_time_total / 2, rel=0.001, abs=rounding), row.key
