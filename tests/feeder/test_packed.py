"""The C++ feeder hands out of a packed file what it hands out of the ETs that were packed."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from et_bytes import VERSION, encoded, framed
from feeder_traces import N, trace
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native import NativeFeeder
from packs import changed, handed_out
from places import EXAMPLES
from strategies import traces as any_traces

import chakra_et
from chakra_et import Trace
from chakra_et.converters.et.wire import field_bytes
from chakra_et.definitions import Kind
from chakra_et.feeder import Code, FeederError, Next
from chakra_et.pack import pack
from chakra_et.pack.differences import compress, decompress

MUTATIONS = 60


@pytest.fixture(scope="module", autouse=True)
def _needs_zstd(zstd: list[str]) -> None:
    if not zstd:
        pytest.skip("no zstd.h")


def packed_of(folder: Path, *ranks: bytes) -> Path:
    """A packed file of ETs, which lie beside it in `ets`."""
    (folder / "ets").mkdir(parents=True)
    for rank, data in enumerate(ranks):
        (folder / "ets" / f"trace.{rank}.et").write_bytes(data)
    pack(folder / "ets", folder / "run.pack")
    return folder / "run.pack"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three ranks of one class, and one of another recording."""
    run = [c.trace for c in chakra_et.convert_files(EXAMPLES / "ddp_2rank", None)]
    alike, ranks = run[0], []
    for rank in range(3):
        alike.nodes.duration_ns[:] = np.random.default_rng(rank).integers(0, 9000, len(alike.nodes))
        alike.metadata.set("rank", Kind.INT32, rank)
        ranks.append(encoded(alike))
    return packed_of(tmp_path_factory.mktemp("packed"), *ranks, encoded(run[1]))


def same(native: Any, packed: Path, **options: Any) -> list[Any]:
    """What is handed out of each rank, packed or not."""
    found = []
    for file in sorted((packed.parent / "ets").glob("*.et")):
        plain = handed_out(native, file, **options)
        assert handed_out(native, packed / file.name, **options) == plain
        found.append(plain)
    return found


@pytest.mark.parametrize("options", [{}, {"order": "start"}, {"window": 7}, {"repeat": 2}], ids=str)
def test_nodes_and_order_are_those_of_the_ets(
    native: Any, packed: Path, options: dict[str, Any]
) -> None:
    assert [len(nodes) for _, nodes, _ in same(native, packed, **options)] == [
        len(chakra_et.read(packed / f"trace.{rank}.et").nodes) * options.get("repeat", 1)
        for rank in range(4)
    ]


@given(st.lists(any_traces(), min_size=1, max_size=3))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_traces_are_read(
    native: Any, tmp_path_factory: pytest.TempPathFactory, ranks: list[Trace]
) -> None:
    same(native, packed_of(tmp_path_factory.mktemp("any"), *map(encoded, ranks)), gate=[])


def test_errors_are_those_of_the_ets(native: Any, tmp_path: Path) -> None:
    found = same(
        native,
        packed_of(
            tmp_path,
            trace([N(0), N(1, [7])]),
            trace([N(0), N(0)]),
            trace([N(0), N(3, [3])]),
            trace([N(0), N(1, [2]), N(2, [1])]),
            trace([N(0), N(1)])[:-1],
        ),
    )
    codes = [Code.MISSING_PARENT, Code.DUPLICATE_ID, Code.SELF_EDGE, Next.BLOCKED]
    assert [item[0] for item in found] == [*codes, Code.TRUNCATED]


def test_ets_that_are_kept_as_bytes_are_read(native: Any, tmp_path: Path) -> None:
    long_number = framed(VERSION, b"\x08\x81\x80\x00" + field_bytes(2, b"n"))
    unknown = framed(VERSION, b"\x08\x07" + field_bytes(99, b"later"))
    found = same(native, packed_of(tmp_path, long_number, unknown))
    assert [[node_id for node_id, _ in nodes] for _, nodes, _ in found] == [[1], [7]]


def test_one_rank_is_read_without_the_others(native: Any, packed: Path, tmp_path: Path) -> None:
    other = changed(packed, tmp_path / "x.pack", {"rank.0": b"", "rank.2": b"", "class.1": b""})
    whole = handed_out(native, packed / "trace.1.et")
    assert handed_out(native, other / "trace.1.et") == whole
    for rank in (0, 2, 3):
        with pytest.raises(FeederError, match=rf"x\.pack/trace\.{rank}\.et: .*damaged.*copy"):
            NativeFeeder(native, other / f"trace.{rank}.et")


def test_what_cannot_be_opened_is_named(native: Any, packed: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.zip"
    with zipfile.ZipFile(plain, "w") as archive:
        archive.writestr("trace.0.et", trace([N(0)]))
    for path, said in {
        packed / "trace.9.et": r"run\.pack/trace\.9\.et: .*no such rank",
        packed: r"run\.pack: .*a packed file; open one of its ranks",
        plain / "trace.0.et": r"plain\.zip: .*not made by chakra pack",
    }.items():
        for window in (0, 3):
            with pytest.raises(FeederError, match=said):
                NativeFeeder(native, path, window=window)


def mutated(rng: random.Random, value: Any) -> Any:
    """A value of msgpack with another one somewhere in it."""
    if isinstance(value, dict) and value and rng.random() < 0.95:
        name = rng.choice(sorted(value))
        rest = {key: item for key, item in value.items() if key != name}
        return rest if rng.random() < 0.1 else {**rest, name: mutated(rng, value[name])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return [*value[:at], mutated(rng, value[at]), *value[at + 1 :]]
    numbers = [0, -1, 2**31, 2**63 - 1, -(2**63), 2**64 - 1, None, 1.5]
    return rng.choice([*numbers, b"", "x", [], {}, ["#", "<i8", bytes(16)], ["#", 2, 1, b"ab"]])


def test_no_columns_bring_it_down(native: Any, packed: Path, tmp_path: Path) -> None:
    """Whatever columns are, a rank is the one that was packed or an error that names it."""
    with zipfile.ZipFile(packed) as archive:
        common = decompress(archive.read("class.0"))
        own = decompress(archive.read("rank.1"), common)
        entry = json.loads(archive.read("pack.json"))["ranks"][1]
    whole, outcomes = handed_out(native, packed / "trace.1.et"), set()
    assert entry["group"] == 0
    for seed in range(MUTATIONS):
        rng = random.Random(f"packed {seed}")
        columns, rank = common, own
        if rng.random() < 0.7:
            columns = msgspec.msgpack.encode(mutated(rng, msgspec.msgpack.decode(common)))
        else:
            rank = msgspec.msgpack.encode(mutated(rng, msgspec.msgpack.decode(own)))
        members = {"class.0": compress(columns), "rank.1": compress(rank, columns)}
        copy = changed(packed, tmp_path / "x.pack", members)
        found = handed_out(native, copy / "trace.1.et")
        assert found == whole or (found[0] is Code.IO and "damaged" in found[-1])
        outcomes.add(found == whole)
    assert outcomes == {True, False}
