"""What is proved of a set is read back from its files, and no set appears that fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from chakra_et.build import Rank, Workload, write_workload
from chakra_et.build.template import Template
from chakra_et.definitions import CollectiveType
from chakra_et.errors import ChakraError
from chakra_et.scale import Degree, Proofs, plan_scale, write_scaled


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """Two stages of two replicas: weights gathered, a message, and gradients scattered."""

    def program(rank: Rank) -> None:
        with rank.on(stream=0, phase="gather"):
            rank.all_gather("dp", 4096)
        if rank.coordinate("pp") == 0:
            rank.send(rank.peer(pp=1), 64)
        else:
            rank.receive(rank.peer(pp=-1), 64)
        with rank.on(stream=0, phase="gradients"):
            rank.reduce_scatter("dp", 8192)

    write_workload(Workload(dp=2, pp=2), program, tmp_path / "few")
    return tmp_path / "few"


def scaled(source: Path) -> Proofs:
    out = source.parent / "many"
    return write_scaled(plan_scale(source, {"dp": Degree(8)}), out).proofs


def test_what_was_proved(sharded: Path) -> None:
    """Files of two ranks of each program are read; wholes stay, each gathers an eighth of it."""
    proved = scaled(sharded)
    assert proved.members == 2 + 8
    assert proved.sequences == 16 * 2
    assert proved.peers == 16
    assert proved.bytes == 2 * 2 * 3
    gathered = ("dp", CollectiveType.ALL_GATHER.name)
    assert (proved.before[gathered], proved.after[gathered]) == (16 * 4096, 16 * 1024)
    scattered = ("dp", CollectiveType.REDUCE_SCATTER.name)
    assert proved.before[scattered] == proved.after[scattered] == 16 * 8192


def first_file(template: Template, _rank: int) -> bytes:
    """The file of the first rank of a program, for all of them."""
    return FILE(template, int(template.ranks[0]))


FILE = Template.file


@pytest.mark.parametrize(
    ("place", "put", "problem"),
    [
        (
            "scale.programs.resize",
            lambda *_: mock.MagicMock(),
            "does not fit together: rank 0: a ALL_GATHER of 4096 bytes became one of 4096",
        ),
        ("build.template.Template.file", first_file, "rank 7 says that it is rank 0"),
    ],
)
def test_a_fault_leaves_nothing_behind(
    sharded: Path, place: str, put: Callable[..., Any], problem: str
) -> None:
    with mock.patch(f"chakra_et.{place}", put), pytest.raises(ChakraError) as error:
        scaled(sharded)
    assert problem in str(error.value)
    assert not (sharded.parent / "many").exists()
