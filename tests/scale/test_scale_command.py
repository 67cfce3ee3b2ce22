"""`chakra scale`: what it writes and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from command import chakra
from llm_plans import DENSE

from chakra_et.build import PackedSet, write_packed, write_workload
from chakra_et.files import read_set
from chakra_et.workloads import Plan
from chakra_et.workloads.durations import Roofline, device
from chakra_et.workloads.generate import program

SMALL = msgspec.structs.replace(DENSE, layers=2)
A100 = Roofline(device("a100"))
PLAN = Plan(model=SMALL, tp=2, pp=2, dp=2, zero=3, sequence=64, global_batch=4)


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight generated ranks."""
    place = tmp_path_factory.mktemp("eight") / "set"
    write_workload(PLAN.workload(), program(PLAN, A100), place)
    return place


def test_what_it_says(eight: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = chakra("scale", eight, "-o", out, "--dp", "2->4", "-v")
    assert (done.code, done.errors) == (0, "")
    for text in (
        "8 ranks to 16",
        "2 distinct programs",
        "tp 2 (metadata)",
        "dp 2 to 4 (metadata)",
        "proved: members of 24 groups",
        "mp tp, pp 2 to 4 4 to 4",
        "optimizer steps on smaller parts",
    ):
        assert text in done.words
    assert chakra("validate", out, "-p", "astra-sim", "--fail-on", "info").code == 0


def test_the_account_as_json(eight: Path, tmp_path: Path) -> None:
    """Bytes of all ranks: sums are there once for each copy, wholes once for each group."""
    done = chakra("scale", eight, "-o", tmp_path / "out", "--dp", "8", "--json")
    told = json.loads(done.output)
    assert told["ranks"] == {"from": 8, "to": 32}
    assert {a["axis"]: a["to"] for a in told["axes"] if a["to"] > 1} == {"tp": 2, "dp": 8, "pp": 2}
    dp = next(family for family in told["families"] if family["family"] == "dp")
    assert (dp["groups"], dp["size"]) == ({"from": 4, "to": 4}, {"from": 2, "to": 8})
    bytes_of = {(row["family"], row["type"]): row for row in told["communication"]}
    gathers, scatters = (bytes_of["dp", f"{type}"] for type in ("ALL_GATHER", "REDUCE_SCATTER"))
    assert 4 * gathers["bytes"] == gathers["bytes_of_copies"]
    assert scatters["bytes"] == scatters["bytes_of_copies"]
    messages = bytes_of["messages", "COMM_SEND"]
    assert messages["bytes"] == bytes_of["messages", "COMM_RECV"]["bytes"] > 0
    assert told["proofs"]["peers"] == sum(
        len(trace.nodes.where(type=type)) for trace in read_set(tmp_path / "out").values()
        for type in (5, 6)
    )  # fmt: skip


def test_packed_sets_in_and_out(eight: Path, tmp_path: Path) -> None:
    """A packed set holds what the directory would."""
    write_packed(PLAN.workload(), program(PLAN, A100), tmp_path / "eight")
    assert (
        chakra("scale", tmp_path / "eight", "-o", tmp_path / "set", "--dp", 4, "--pack").code == 0
    )
    assert chakra("scale", eight, "-o", tmp_path / "plain", "--dp", 4, "-q").output == ""
    assert chakra("scale", eight, "-o", tmp_path / "small", "--dp", 4, "--compress").code == 0
    plain = {int(p.name.split(".")[1]): p.read_bytes() for p in (tmp_path / "plain").glob("*.et")}
    packed = PackedSet(tmp_path / "set")
    assert {rank: packed.file(rank) for rank in packed} == plain
    assert len(list((tmp_path / "small").glob("trace.*.et.zst"))) == 16
    both = chakra("scale", eight, "-o", tmp_path / "x", "--dp", 4, "--pack", "--compress")
    assert "--pack and --compress" in both.errors
