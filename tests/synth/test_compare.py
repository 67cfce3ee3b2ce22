"""Comparing: right distances, the spread between units as the yardstick, the simulator's cycles."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import EXAMPLES
from traces import node, trace
from workloads_to_learn import trained

from chakra_et import ChakraError
from chakra_et.loading import load
from chakra_et.model import EdgeKind, Trace, TraceSet
from chakra_et.simulation import AstraLog
from chakra_et.synth import Sampler, compare_sets, fit
from chakra_et.synth.compare import SetComparison, total_variation, wasserstein

LISTS = st.lists(st.floats(0, 50), min_size=1, max_size=20)


def test_total_variation_is_half_of_the_differences() -> None:
    assert total_variation(Counter("aab"), Counter("abb")) == pytest.approx(1 / 3)
    assert total_variation(Counter("a"), Counter("b")) == 1
    assert total_variation(Counter("ab"), Counter("aabb")) == 0
    assert total_variation(Counter(), Counter()) == 0
    assert total_variation(Counter(), Counter("a")) == 1


@given(LISTS, LISTS)
def test_wasserstein_is_the_area_between_quantiles(x: list[float], y: list[float]) -> None:
    # The truth by repeating values until both have as many: then sorted pairs are the best match.
    a, b = (np.sort(np.array(v)) for v in (x, y))
    paired = np.abs(np.repeat(a, len(b)) - np.repeat(b, len(a))).mean()
    assert wasserstein(a, b) == pytest.approx(paired, abs=1e-9)


def two_steps(*times: int, name: str = "aten::mm") -> Trace:
    """Two steps of two operations on one thread, with these durations."""
    nodes, start = [], 0
    for i, took in enumerate(times):
        label = f"ProfilerStep#{i // 2}" if i % 2 == 0 else name
        nodes.append(node(1 + i, name=label, start=start, took=took, is_cpu_op=True, thread=1,
                          deps=(i,) if i else (), kind=EdgeKind.PROGRAM))  # fmt: skip
        start += took
    return trace(*nodes, rank=0)


def measure(found: SetComparison, name: str) -> tuple[float, float | None, float | None]:
    m = next(m for m in found.measures if m.name == name)
    return m.value, m.spread, m.ratio


def test_steps_are_the_yardstick() -> None:
    a = TraceSet({0: two_steps(1000, 1000, 2000, 2000)})
    b = TraceSet({0: two_steps(4000, 4000, 4000, 4000)})
    found = compare_sets(a, b)
    assert (found.by, found.units) == ("step of a rank", (2, 2))
    # Steps of a last 2 and 4 us, those of b 8 us: apart by ln 4 and ln 2, among each other by ln 2.
    value, spread, ratio = measure(found, "replayed span")
    assert value == pytest.approx(1.5 * math.log(2), abs=0.01)
    assert spread == pytest.approx(math.log(2), abs=0.01)
    assert ratio == pytest.approx(1.5, abs=0.02)
    assert not found.unlike


def test_other_operations_are_unlike() -> None:
    a = TraceSet({0: two_steps(1000, 1000, 2000, 2000)})
    b = TraceSet({0: two_steps(1000, 1000, 2000, 2000, name="aten::view")})
    found = compare_sets(a, b)
    assert measure(found, "operator families")[0] == 0.5
    assert [m.name for m in found.unlike] == ["operator families", "held-out likelihood"]


def test_one_unit_has_no_yardstick() -> None:
    alone = TraceSet({0: trace(node(1, took=5, start=0), rank=0)})
    found = compare_sets(alone, alone)
    assert {m.alike for m in found.measures} == {None}
    assert all(m.value == 0 for m in found.measures if m.name != "held-out likelihood")


def test_a_set_is_like_itself() -> None:
    found = compare_sets(trained(), trained())
    assert found.by == "rank"
    assert not found.unlike
    groups = {m.group for m in found.measures}
    assert groups == {"types", "sizes", "durations", "sequences", "graph", "system"}


def test_cycles_of_the_simulator_count() -> None:
    logs = AstraLog(finish_ns={0: 100, 1: 200}), AstraLog(finish_ns={0: 100, 1: 100})
    value, spread, _ = measure(compare_sets(trained(), trained(), logs), "simulated cycles")
    assert spread == pytest.approx(math.log(2))
    assert value == pytest.approx(math.log(2) / 2)


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(ChakraError, match="no node"):
        compare_sets(trained(), TraceSet({0: trace(rank=0)}))


@pytest.fixture(scope="module")
def recorded() -> TraceSet:
    """Three steps of two ranks, recorded."""
    return load(EXAMPLES / "ddp_2rank")


def test_samples_of_a_recording_lie_within_twice_the_spread(recorded: TraceSet) -> None:
    model = fit([recorded])
    bits = model.model.parts[0].evidence
    assert bits.chosen < bits.nothing / 10
    sample = Sampler(model.model, 2, 3, seed=1).traces()
    found = compare_sets(recorded, sample)
    assert found.by == "step of a rank"
    assert not [m.name for m in found.unlike]


def test_shuffled_sequences_do_not(recorded: TraceSet, tmp_path: Path) -> None:
    """The measures tell a set in which every order is lost."""
    random = np.random.default_rng(0)
    changed = {}
    for rank, whole in recorded.items():
        nodes = whole.nodes.take(np.arange(len(whole.nodes)))
        rest = np.flatnonzero(nodes.attributes.dense("thread", 0, np.int64) > 0)
        nodes.name_code[rest] = random.permutation(nodes.name_code[rest])
        changed[rank] = Trace(nodes, whole.edges, whole.metadata)
    names = {m.name for m in compare_sets(recorded, TraceSet(changed)).unlike}
    assert {"3-grams", "held-out likelihood"} <= names
