"""Recorded ranks grow, too: what was recorded of each stays as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import chakra

from chakra_et.definitions import NodeType
from chakra_et.directory import convert_files
from chakra_et.files import read_set
from chakra_et.model import Trace, TraceSet

EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp_2rank"


def collectives(trace: Trace) -> list[tuple[int | None, int | None]]:
    found = trace.nodes.where(type=NodeType.COMM_COLL)
    return [(node.comm_type, node.comm_size) for node in found]


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
    for rank, trace in many.items():
        source = few[rank % 2]
        assert (trace.rank, trace.world_size) == (rank, 8)
        assert [group.ranks for group in trace.groups] == [tuple(range(8))]
        assert trace.groups[0].description == source.groups[0].description
        assert trace.edges == source.edges
        assert np.array_equal(trace.nodes.start_ns, source.nodes.start_ns)
        assert np.array_equal(trace.nodes.duration_ns, source.nodes.duration_ns)
        assert collectives(trace) == collectives(source) != []
        assert trace.metadata.get("pid") == source.metadata.get("pid")


def test_a_scaled_recording_is_ready_for_astra_sim(tmp_path: Path) -> None:
    scaled(EXAMPLE, tmp_path, "--dp", "8")
    out = tmp_path / "sim"
    assert chakra("convert", tmp_path / "many", "--for", "astra-sim", "-o", out).code == 0
    assert chakra("validate", out, "-p", "astra-sim", "--fail-on", "info").code == 0


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
