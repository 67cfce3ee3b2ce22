"""Kernel times: what was recorded comes back, powers lie on lines, and the rest says what it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_plans import DENSE
from traces import coll, node, trace

from chakra_et.errors import ChakraError, FormatError
from chakra_et.kerneltimes import (
    FEATURES,
    Features,
    KernelTimes,
    Key,
    Provenance,
    Samples,
    calls_of,
    samples_of,
)
from chakra_et.kerneltimes.between_points import Points
from chakra_et.kerneltimes.features import Texts, dtype_of, features_of_call
from chakra_et.kerneltimes.files import read_samples, write_samples
from chakra_et.model import TraceSet
from chakra_et.workloads import Plan
from chakra_et.workloads.generate import generate

NAN = float("nan")
MM = Key("aten::mm", "fp32", "host")
RELU = Key("aten::relu", "fp32", "host")


def product(m: int, n: int, k: int) -> list[float]:
    return [1, m, n, k, 2 * m * n * k, 4 * (m * k + k * n + m * n), NAN]


def pointwise(size: int) -> list[float]:
    return [NAN, NAN, NAN, NAN, NAN, size, NAN]


def samples(*rows: tuple[Key, list[float], int], model: str = "a", count: int = 1) -> Samples:
    ns = np.array([ns for *_, ns in rows], np.int64)
    features = np.array([told for _, told, _ in rows]).reshape(-1, len(FEATURES))
    number = np.full(len(rows), count, np.int64)
    return Samples([key for key, *_ in rows], features, [model] * len(rows), number, ns, ns * count)


def asked(table: KernelTimes, key: Key, told: list[float]) -> tuple[float, str]:
    times, provenance = table.times_ns([key], np.array([told]))
    return float(times[0]), Provenance(provenance[0]).label


GRID = KernelTimes(samples(
    *((MM, product(m, n, k), m * n * k // 1000) for m in (64, 256) for n in (64, 256)
      for k in (64, 256)),
    (RELU, pointwise(1 << 20), 100_000), (RELU, pointwise(1 << 24), 1_600_000),
))  # fmt: skip


def test_what_was_recorded_comes_back() -> None:
    times, provenance = GRID.times_ns(GRID.samples.keys, GRID.samples.features)
    assert times.tolist() == GRID.samples.median_ns.tolist()
    assert set(provenance.tolist()) == {Provenance.RECORDED}


@given(st.integers(64, 256), st.integers(64, 256), st.integers(64, 256))
def test_powers_of_lengths_lie_on_the_lines_between(m: int, n: int, k: int) -> None:
    took, source = asked(GRID, MM, product(m, n, k))
    assert source in ("interpolated", "recorded")
    assert took == pytest.approx(m * n * k / 1000, rel=0.01)


def test_outside_rates_carry_the_nearest_time_on() -> None:
    took, source = asked(GRID, RELU, pointwise(1 << 28))
    assert source == "extrapolated"
    assert took == pytest.approx(16 * 1_600_000, rel=0.1)
    took, source = asked(GRID, MM, product(512, 512, 512))
    assert source == "extrapolated"
    assert took == pytest.approx(512**3 / 1000, rel=0.3)


def test_an_operator_that_was_never_recorded_gets_rates_of_its_device() -> None:
    took, source = asked(GRID, Key("aten::gelu", "fp32", "host"), pointwise(1 << 22))
    assert source == "model"
    assert 50_000 < took < 5_000_000
    for unknown in (Key("aten::gelu", "bf16", "host"), Key("aten::gelu", "fp32", "A100")):
        took, source = asked(GRID, unknown, pointwise(1 << 22))
        assert (np.isnan(took), source) == (True, "unknown")


def test_a_product_by_another_name_takes_what_products_take() -> None:
    took, source = asked(GRID, Key("matmul", "fp32", "host"), product(128, 128, 128))
    assert source == "model"
    assert took == pytest.approx(asked(GRID, MM, product(128, 128, 128))[0])


def test_generated_operators_are_what_their_nodes_tell() -> None:
    made = generate(Plan(model=DENSE, global_batch=2, sequence=64, tp=2))[0]
    calls = calls_of(made)
    of_nodes = {node.name: calls.call_of[node.row] for node in made.nodes}
    key, row = (column[of_nodes["attention.qkv"]] for column in (calls.keys, calls.features))
    assert key == Key("matmul", "bf16", "device")
    node = made.nodes.where(name="attention.qkv")[0]
    assert row[4] == node.attributes["num_ops"] == 2 * row[1] * row[2] * row[3]
    assert row[5] == node.attributes["tensor_size"]
    assert (row[1], row[2]) == (64, 64)


def test_transfers_grow_with_bytes_and_ranks() -> None:
    key = Key("ALL_REDUCE", "", "links")
    rows = [(key, [NAN] * 5 + [size, ranks], 10_000 * (ranks - 1) + size * (ranks - 1) // ranks)
            for size in (1 << 10, 1 << 20, 1 << 24) for ranks in (2, 4)]  # fmt: skip
    table = KernelTimes(samples(*rows))
    took, source = asked(table, key, [NAN] * 5 + [1 << 22, 2])
    assert source == "interpolated"
    assert 1 << 19 < took < 1 << 23
    took, source = asked(table, key, [NAN] * 5 + [1 << 24, 64])
    assert source == "extrapolated"
    assert took > 1 << 23


def test_two_models_with_the_same_call_share_a_time() -> None:
    both = Samples.joined([
        samples((RELU, pointwise(64), 1000), model="a", count=3),
        samples((RELU, pointwise(64), 2000), model="b"),
    ])  # fmt: skip
    assert asked(KernelTimes(both), RELU, pointwise(64)) == (1250, "recorded")


@given(st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_a_linear_function_is_exact_between_points_and_nothing_is_outside(
    dimensions: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    places = random.uniform(0, 10, (12, dimensions))
    slope = random.uniform(-1, 1, dimensions)
    points = Points(places, places @ slope)
    shares = random.dirichlet(np.ones(12))
    found = points.at(shares @ places)
    assert found is None or found == pytest.approx(shares @ places @ slope, abs=1e-6)
    assert points.at(places.max(0) + 1) is None
    assert points.at(places[3]) == pytest.approx(places[3] @ slope, abs=1e-6)


def test_points_on_a_line_say_nothing_beside_it() -> None:
    points = Points(np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]), np.array([0.0, 1.0, 5.0]))
    assert points.at(np.array([1.5, 1.5])) == pytest.approx(3.0)
    assert points.at(np.array([1.5, 1.4])) is None
    assert points.at(np.array([2.5, 2.5])) is None


def test_features_are_those_of_the_shapes() -> None:
    texts = Texts(b"[[8,4,16],[8,16,32]]", b'["Tensor(c10::BFloat16)","Tensor(c10::BFloat16)"]',
                  b"[[8,4,32]]", b'["Tensor(c10::BFloat16)"]')  # fmt: skip
    row = features_of_call("aten::bmm", texts).tolist()
    assert row[:6] == [8, 4, 32, 16, 2 * 8 * 4 * 32 * 16, 2 * 8 * (4 * 16 + 16 * 32 + 4 * 32)]
    assert dtype_of(texts.input_types) == "bf16"
    assert dtype_of(b'["Int","GenericList[Tensor(float),Tensor(float)]"]') == "fp32"
    assert dtype_of(b"broken") == dtype_of(b'["Int"]') == ""


def relu(node_id: int, took: int, start: int) -> dict[str, object]:
    return node(node_id, start=start, took=took, name="aten::relu", is_cpu_op=True,
                inputs=(b"[]", b"[[4,8]]", b'["Tensor(float)"]'), category="cpu_op")  # fmt: skip


def test_calls_of_a_run_and_how_its_transfers_are_timed() -> None:
    world: dict[str, tuple[int, ...]] = {"0": (0, 1)}
    run = TraceSet({
        rank: trace(relu(1, 500 + rank, 0), coll(2, start=1000 + late, took=9000 - late,
                    deps=(1,), pg_name="0"), rank=rank, world=2, groups=world)
        for rank, late in ((0, 0), (1, 4000))
    })  # fmt: skip
    calls = calls_of(run[1])
    assert calls.call_of.tolist() == [0, 1]
    assert calls.keys == [RELU, Key("ALL_REDUCE", "", "links")]
    assert calls.took_ns.tolist() == [501, 5000]
    found = samples_of(run, "model")
    assert found.keys == [Key("ALL_REDUCE", "", "links"), RELU]
    # The rank that came last did not wait; half of two times is the lower one.
    assert found.median_ns.tolist() == [5000, 500]
    assert found.count.tolist() == [1, 2]
    alone = samples_of(TraceSet({0: run[0]}), "model")
    assert [key.device for key in alone.keys] == ["host"]


def test_a_file_gives_what_was_written_and_the_same_bytes_again(tmp_path: Path) -> None:
    for name in ("a.json", "b.json", "c.json.gz"):
        write_samples(Samples.joined([GRID.samples]), tmp_path / name)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    back = read_samples(tmp_path / "c.json.gz")
    write_samples(back, tmp_path / "d.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "d.json").read_bytes()
    assert asked(KernelTimes.load(tmp_path / "a.json"), RELU, pointwise(1 << 20))[0] == 100_000
    write_samples(Samples.joined([]), tmp_path / "none.json")
    assert len(read_samples(tmp_path / "none.json")) == 0


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"kernel_times": 2, "rows": []}', '{"kernel_times": 1}',
     '{"kernel_times": 1, "rows": [{"operator": "a"}]}',
     '{"kernel_times": 1, "rows": [{"operator": "a", "device": "host", "model": "m", "count": 0,'
     ' "median_ns": 1, "total_ns": 1}]}',
     '{"kernel_times": 1, "rows": [{"operator": "a", "device": "host", "model": "m", "count": 1,'
     f' "median_ns": 1, "total_ns": 1{"0" * 30}}}]}}'],
)  # fmt: skip
def test_what_is_no_table_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(FormatError, match="chakra fit"):
        KernelTimes.load(path)
    with pytest.raises(ChakraError):
        KernelTimes.load(tmp_path / "missing.json")


def test_nothing_asked_nothing_told() -> None:
    times, provenance = GRID.times_ns([], np.zeros((0, len(FEATURES))))
    assert (len(times), len(provenance)) == (0, 0)
    empty: Features = np.zeros((1, len(FEATURES)))
    nothing = KernelTimes(Samples.joined([]))
    assert nothing.times_ns([RELU], empty)[1].tolist() == [Provenance.UNKNOWN]


def test_a_recorded_model_is_foretold_by_its_own_table(data: Path) -> None:
    from chakra_et.loading import load

    found = samples_of(load(data / "dlrm8"), "dlrm8")
    devices = {key.device for key in found.keys}
    assert devices == {"host", "links", "Tesla V100-SXM2-32GB"}
    kernels = [row for row, key in enumerate(found.keys)
               if key == Key("aten::addmm", "fp32", "Tesla V100-SXM2-32GB")]  # fmt: skip
    assert len(kernels) > 3
    assert (found.features[kernels, 1:5] > 0).all()
    assert set(found.models) == {"dlrm8"}
