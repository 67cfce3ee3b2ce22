"""Tables against PyTorch's own accounts: times by shape, and floating-point operations."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

import chakra_et
from chakra_et.tables import latency_table, operator_table

profiler = pytest.importorskip("torch.profiler")
pytestmark = pytest.mark.torch


def step() -> None:
    """A forward and backward pass with products, a convolution and attention."""
    import torch
    from torch.nn import functional

    image = torch.randn(2, 3, 32, 32)
    weight = torch.randn(8, 3, 3, 3, requires_grad=True)
    features = functional.conv2d(image, weight, padding=1).flatten(1)
    layer = torch.nn.Linear(features.shape[1], 64)
    query = layer(features).reshape(2, 1, 8, 8)
    attended = functional.scaled_dot_product_attention(query, query, query)
    (attended.flatten(1) @ torch.randn(64, 16)).sum().backward()
    torch.bmm(torch.randn(4, 8, 16), torch.randn(4, 16, 8))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The trace of a step, and the profiler that recorded it."""
    folder = tmp_path_factory.mktemp("run")
    observer = profiler.ExecutionTraceObserver()
    observer.register_callback(str(folder / "host.json"))
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        record_shapes=True,
        execution_trace_observer=observer,
    ) as found:
        step()
    found.export_chrome_trace(str(folder / "device.json"))
    observer.unregister_callback()
    trace = chakra_et.convert(host=folder / "host.json", device=folder / "device.json").trace
    return trace, found


def test_operators_are_those_of_key_averages(recorded: tuple[Any, Any]) -> None:
    trace, found = recorded
    ours = {row["name"]: row for row in operator_table({0: trace}).as_dicts()}
    table = found.key_averages()
    assert len(table) > 20
    # The observer may see an operator that the profiler does not: it has no time.
    unseen = Counter(node.name for node in trace.nodes if node.start_ns is None)
    for row in table:
        mine = ours[row.key]
        assert mine["calls"] - unseen[row.key] == row.count
        slack = 0.002 * row.count
        own = (mine["self_ns"] + mine["wait_ns"]) / 1000
        assert own == pytest.approx(row.self_cpu_time_total, rel=0.001, abs=slack), row.key
        assert mine["total_ns"] / 1000 == pytest.approx(row.cpu_time_total, rel=0.001, abs=slack)


def test_latencies_by_shape_are_those_of_key_averages(recorded: tuple[Any, Any]) -> None:
    trace, found = recorded
    # The profiler knows no types: rows of one shape and several types are one row there.
    ours: dict[tuple[str, str], list[float]] = {}
    for row in latency_table({0: trace}).as_dicts():
        shapes = json.loads(row["shapes"])
        key = row["operator"], json.dumps([s if _is_shape(s) else [] for s in shapes])
        sums = ours.setdefault(key, [0, 0.0])
        sums[0] += row["count"]
        sums[1] += row["total_ns"] / 1000
    compared = 0
    for row in found.key_averages(group_by_input_shape=True):
        key = row.key, json.dumps(row.input_shapes)
        if key in ours and row.key in ("aten::mm", "aten::addmm", "aten::bmm", "aten::conv2d"):
            count, total = ours[key]
            assert count == row.count
            assert total == pytest.approx(row.cpu_time_total, rel=0.001, abs=0.002 * row.count)
            compared += 1
    assert compared >= 4


def _is_shape(item: Any) -> bool:
    return isinstance(item, list) and all(isinstance(length, int) for length in item)


def test_operations_are_those_of_the_flop_counter(recorded: tuple[Any, Any]) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        step()
    theirs: Counter[str] = Counter()
    for operator, flops in counter.get_flop_counts()["Global"].items():
        theirs[_family(str(operator))] += flops
    ours: Counter[str] = Counter()
    for row in latency_table({0: recorded[0]}).as_dicts():
        if row["flops"] is not None:
            ours[_family(row["operator"])] += int(row["flops"]) * row["count"]
    # PyTorch's counter has no formula for attention on the CPU, and ours are held elsewhere.
    assert {family: ours[family] for family in theirs} == theirs
    assert len(theirs) >= 5


def _family(operator: str) -> str:
    """One name for what a framework's operator and the library behind it do."""
    name = operator.removeprefix("aten::").removeprefix("aten.")
    for part, family in (
        ("attention", "attention backward" if "backward" in name else "attention"),
        ("conv", "convolution backward" if "backward" in name else "convolution"),
    ):
        if part in name:
            return family
    return name
