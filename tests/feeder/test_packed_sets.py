"""Feeders hand out of a set that was generated packed what they hand out of its ETs."""

from __future__ import annotations

import json
import random
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from native import NativeFeeder
from packs import changed, handed_out

from chakra_et.build import PackedSet, Rank, Workload, write_packed
from chakra_et.feeder import Code, Feeder, FeederError

MUTATIONS = 60
SOME = (0, 1, 64, 127, 128, 129)
"""Ranks on both sides of 128, where the numbers of peers grow by a byte."""


@pytest.fixture(scope="module", autouse=True)
def _needs_libraries(zstd: list[str], zlib: list[str]) -> None:
    if not zstd or not zlib:
        pytest.skip("no zstd.h or no zlib.h")


def stages(rank: Rank) -> None:
    """Each stage has a program of its own, with groups and peers."""
    stage = rank.coordinate("pp")
    if stage > 0:
        rank.receive(rank.peer(pp=-1), 64)
    rank.compute("matmul", flops=512, moved_bytes=192)
    rank.all_reduce("dp", 1024)
    if stage < rank.size("pp") - 1:
        rank.send(rank.peer(pp=1), 64)


def alone(rank: Rank) -> None:
    """All ranks are equal but for their metadata."""
    rank.compute("matmul", flops=512, moved_bytes=192)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sets") / "run.pack"
    write_packed(Workload(dp=65, pp=2), stages, path)
    return path


def unpacked(packed: Path, rank: int) -> bytes:
    return PackedSet(packed).file(rank)


@pytest.mark.parametrize("options", [{}, {"order": "start"}, {"window": 3}], ids=str)
def test_nodes_and_order_are_those_of_the_ets(
    native: Any, packed: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    for rank in SOME:
        plain = tmp_path / f"trace.{rank}.et"
        plain.write_bytes(unpacked(packed, rank))
        wanted = handed_out(native, plain, **options)
        assert handed_out(native, packed / plain.name, **options) == wanted
        assert len(wanted[1]) == 3
        in_python = [node.id for node in Feeder(packed / plain.name, **options)]
        assert in_python == [node_id for node_id, _ in wanted[1]]


def test_ranks_without_anything_of_their_own_are_read(native: Any, tmp_path: Path) -> None:
    write_packed(Workload(dp=3), alone, tmp_path / "run.pack")
    for rank in range(3):
        assert len(handed_out(native, tmp_path / "run.pack" / f"trace.{rank}.et")[1]) == 1


def described(packed: Path) -> list[dict[str, Any]]:
    """The templates that the description of a set lists."""
    with zipfile.ZipFile(packed) as archive:
        assert archive.getinfo("set.json").compress_type == zipfile.ZIP_DEFLATED
        found: list[dict[str, Any]] = json.loads(archive.read("set.json"))["templates"]
    return found


def test_one_rank_is_read_without_the_others(native: Any, packed: Path, tmp_path: Path) -> None:
    """What other programs are made of may be lost."""
    templates = described(packed)
    number, rank = 1, templates[1]["ranks"][0]
    lost = {
        f"{part}.{other}.zst": b""
        for part in ("nodes", "slots", "values", "heads")
        for other in range(len(templates))
        if other != number
    }
    other = changed(packed, tmp_path / "x.pack", lost)
    name = f"trace.{rank}.et"
    assert handed_out(native, other / name) == handed_out(native, packed / name)
    gone = templates[0]["ranks"][0]
    with pytest.raises(FeederError, match=rf"x\.pack/trace\.{gone}\.et: .*damaged.*copy"):
        NativeFeeder(native, other / f"trace.{gone}.et")


def test_what_cannot_be_opened_is_named(native: Any, packed: Path, tmp_path: Path) -> None:
    odd = changed(
        packed, tmp_path / "odd.pack", {"set.json": b'{"format": "chakra-et packed set 9"}'}
    )
    for path, said in {
        packed / "trace.999.et": r"run\.pack/trace\.999\.et: .*no such rank",
        packed: r"run\.pack: .*a packed file; open one of its ranks",
        odd / "trace.0.et": r"odd\.pack: .*no packed set",
    }.items():
        with pytest.raises(FeederError, match=said):
            NativeFeeder(native, path)


def frame(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def numbers(rng: random.Random, data: bytes) -> bytes:
    """Little-endian numbers, one of which is another one."""
    values = np.frombuffer(data, "<i8").copy()
    if len(values):
        values[rng.randrange(len(values))] = rng.choice([-1, 0, 1, 1 << 20, 1 << 62, -(1 << 63)])
    return values.tobytes()


def shorter_or_longer(rng: random.Random, data: bytes) -> bytes:
    return rng.choice([data[:-1], data + b"\0", b"", data[: len(data) // 2]])


def test_no_damage_brings_it_down(native: Any, packed: Path, tmp_path: Path) -> None:
    """Whatever a set says, a rank is an ET or an error that names it; and so it is in Python."""
    templates = described(packed)
    rank = templates[0]["ranks"][0]
    with zipfile.ZipFile(packed) as archive:
        members = {
            part: zstandard.ZstdDecompressor().decompress(archive.read(f"{part}.0.zst"))
            for part in ("nodes", "slots", "values", "heads")
        }
        table = json.loads(archive.read("set.json"))
    outcomes = set()
    for seed in range(MUTATIONS):
        rng = random.Random(f"set {seed}")
        part = rng.choice(["slots", "values", "heads", "table"])
        if part == "table":
            told = json.loads(json.dumps(table))
            slot = rng.choice(told["templates"][0]["slots"])
            slot[rng.choice(["width", "count"])] = rng.choice([0, 1, 3, 1 << 20, 1 << 63])
            copy = changed(packed, tmp_path / "x.pack", {"set.json": json.dumps(told).encode()})
        else:
            ways: list[Callable[[random.Random, bytes], bytes]] = [shorter_or_longer]
            ways += [numbers] if part == "slots" else []
            data = frame(rng.choice(ways)(rng, members[part]))
            copy = changed(packed, tmp_path / "x.pack", {f"{part}.0.zst": data})
        found = handed_out(native, copy / f"trace.{rank}.et")
        refused = found[0] is Code.IO and re.search("damaged|no packed set", found[-1]) is not None
        outcomes.add(refused)
        assert refused or isinstance(found[1], list) or found[0] in (Code.MALFORMED, Code.TRUNCATED)
    assert outcomes == {True, False}
