"""What operators that become faster save, against the own times of PyTorch's own table."""

from __future__ import annotations

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


def recorded(run: Callable[[Callable[[], None]], None], folder: Path) -> tuple[Any, Any]:
    """The trace of a run, and PyTorch's table of it."""
    observer = profiler.ExecutionTraceObserver()
    observer.register_callback(str(folder / "host.json"))
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU], execution_trace_observer=observer
    ) as found:
        run(found.step)
    found.export_chrome_trace(str(folder / "device.json"))
    observer.unregister_callback()
    trace = chakra_et.convert(host=folder / "host.json", device=folder / "device.json").trace
    return trace, found.key_averages()


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
