"""Recorded ranks grow, too: what was recorded of each stays as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import chakra
from traces import coll, node, trace

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.directory import convert_files
from chakra_et.files import read_set, write
from chakra_et.model import Trace, TraceSet

EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp_2rank"
SMALL = Path(__file__).parents[1] / "collection" / "data"


def collectives(found: Trace) -> list[tuple[int | None, int | None]]:
    nodes = found.nodes.where(type=NodeType.COMM_COLL)
    return [(one.comm_type, one.comm_size) for one in nodes]


def scaled(source: Path, place: Path, *words: object) -> tuple[TraceSet, TraceSet]:
    """The recorded ranks, and those that they became."""
    convert_files([source], place / "few")
    done = chakra("scale", place / "few", "-o", place / "many", *words)
    assert (done.code, done.errors) == (0, "")
    return read_set(place / "few"), read_set(place / "many")


def test_data_parallel_training(tmp_path: Path) -> None:
    """Rank r is a copy of recorded rank r mod 2, in a group of all eight."""
    few, many = scaled(EXAMPLE, tmp_path, "--dp", "2->8")
    assert list(many) == list(range(8))
    for rank, copy in many.items():
        source = few[rank % 2]
        assert (copy.rank, copy.world_size) == (rank, 8)
        assert [group.ranks for group in copy.groups] == [tuple(range(8))]
        assert copy.groups[0].description == source.groups[0].description
        assert copy.edges == source.edges
        assert np.array_equal(copy.nodes.start_ns, source.nodes.start_ns)
        assert np.array_equal(copy.nodes.duration_ns, source.nodes.duration_ns)
        assert collectives(copy) == collectives(source) != []
        assert copy.metadata.get("pid") == source.metadata.get("pid")


def test_a_scaled_recording_is_ready_for_astra_sim(tmp_path: Path) -> None:
    scaled(EXAMPLE, tmp_path, "--dp", "8")
    out = tmp_path / "sim"
    assert chakra("convert", tmp_path / "many", "--for", "astra-sim", "-o", out).code == 0
    assert chakra("validate", out, "-p", "astra-sim", "--fail-on", "info").code == 0


def test_facts_of_groups_on_nodes(tmp_path: Path) -> None:
    """Sizes of groups and elements follow; what tells ranks, which differ in copies, goes."""
    host = node(1, pg_name="7", pg_size=2)
    gather = coll(
        2, CollectiveType.ALL_GATHER, 64, pg_name="7", in_msg_nelems=16, out_msg_nelems=32,
        pg_size=2, global_rank_start=0, global_rank_stride=1, in_split_size="[]",
        inputs=(b"", b"[[16]]", b'["Tensor(float)"]'),
    )  # fmt: skip
    for rank in (0, 1):
        few = trace(host, gather, rank=rank, world=2, groups={"7": (0, 1)})
        write(few, tmp_path / f"trace.{rank}.et")
    words = ("--dp", "2->8", "--grid", "dp2", "--gathered", "whole")
    done = chakra("scale", tmp_path, "-o", tmp_path / "many", *words)
    assert "left out: global_rank_start (8 times)" in done.words
    for rank, made in read_set(tmp_path / "many").items():
        asked, gathered = made.nodes
        assert made.rank == rank
        assert (asked.pg_name, asked.pg_size) == ("1", 8)
        assert (gathered.pg_name, gathered.pg_size, gathered.comm_size) == ("1", 8, 16)
        assert (gathered.in_msg_nelems, gathered.out_msg_nelems) == (4, 32)
        assert gathered.inputs.shapes == b"[[4]]"
        assert gathered.global_rank_start is None


@pytest.mark.parametrize(
    ("name", "words", "role", "ranks"),
    [
        ("dlrm8", ("--dp", "8->64"), "dp 8 to 64 (DistributedDataParallel ran", 64),
        ("torch213/tp_2rank", ("--tp", "2->8"), "tp 2 to 8 (many of one size in a step", 8),
    ],
)
def test_roles_of_real_recordings(
    data: Path, tmp_path: Path, name: str, words: tuple[str, ...], role: str, ranks: int
) -> None:
    """DLRM exchanges embeddings and sums gradients over the same ranks; TP sums in every layer."""
    convert_files([data / name], tmp_path / "few")
    done = chakra("scale", tmp_path / "few", "-o", tmp_path / "many.set", "--pack", *words)
    assert role in done.words
    assert f"to {ranks}, " in done.words


def test_sharded_training(tmp_path: Path) -> None:
    """FSDP: each of eight ranks gathers an eighth of the weights, where each of two had a half."""
    few, many = scaled(SMALL / "sharded", tmp_path, "--dp", "2->8")
    gather, scatter = CollectiveType.ALL_GATHER, CollectiveType.REDUCE_SCATTER
    assert collectives(few[0]) == [(gather, 2048), (scatter, 4096)]
    assert collectives(many[7]) == [(gather, 512), (scatter, 4096)]


def test_recorded_stages_are_known_by_their_messages(tmp_path: Path) -> None:
    convert_files([SMALL / "two_stages"], tmp_path / "few")
    done = chakra("scale", tmp_path / "few", "-o", tmp_path / "many", "--pp", "4")
    assert "axis pp cannot grow: stages differ" in done.errors
