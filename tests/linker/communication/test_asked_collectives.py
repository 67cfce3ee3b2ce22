"""Collectives over gloo are what was asked for, whatever the backend builds them of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recordings import Profile

from chakra_et import CollectiveType, NodeType, convert
from chakra_et.model import Node

INFO = {"backend": "gloo", "rank": 1, "world_size": 2}
FLOAT = "float"


def ask(profile: Profile, operation: str, dims: list[Any], **args: Any) -> None:
    """An operation at 0 that asks for communication, and something inside it; ids 10 and 11."""
    types = ["TensorList" if d and isinstance(d[0], list) else FLOAT if d else "" for d in dims]
    shapes = {"Input Dims": dims, "Input type": types}
    profile.op(operation, 0, 100, rf_id=10, **{**shapes, **args})
    profile.op("aten::clone", 10, 20, rf_id=11)


def transfer(profile: Profile, name: str, rf_id: int, *dims: list[int]) -> None:
    """A range of gloo on a worker thread."""
    shapes = {"Input Dims": [list(d) for d in dims], "Input type": [FLOAT] * len(dims)}
    start = 50 * rf_id
    profile.op(
        f"gloo:{name}", start, 40, rf_id=rf_id, tid=7, cat="user_annotation",
        **(shapes if dims else {}),
    )  # fmt: skip


def collectives(profile: Profile, folder: Path) -> list[Node]:
    profile.op("aten::add", 5000, 10, rf_id=90)
    trace = convert(device=profile.write(folder / "device.1.json")).trace
    return [node for node in trace.nodes if node.type is NodeType.COMM_COLL]


def test_a_reduce_scatter_built_of_an_all_reduce_is_a_reduce_scatter(tmp_path: Path) -> None:
    profile = Profile(info=INFO)
    ask(profile, "c10d::_reduce_scatter_base_", [[3120], [6240]])
    transfer(profile, "all_reduce", 12, [6240])
    (node,) = collectives(profile, tmp_path)
    assert (node.comm_type, node.comm_size) == (CollectiveType.REDUCE_SCATTER, 24960)
    assert node.comm_facts == "operation around"


def test_all_reduces_of_the_tensors_of_a_reduce_scatter_are_parts_of_it(tmp_path: Path) -> None:
    profile = Profile(info=INFO)
    ask(profile, "c10d::reduce_scatter_", [[[65]], [[[65], [65]]]])
    transfer(profile, "all_reduce", 12, [65])
    transfer(profile, "all_reduce", 13, [65])
    parts = [(node.comm_type, node.comm_size) for node in collectives(profile, tmp_path)]
    assert parts == [(CollectiveType.REDUCE_SCATTER, 260)] * 2
    (told,) = convert(device=profile.write(tmp_path / "device.1.json")).report.warnings
    assert told.startswith("1 reduce-scatter ran as 2 transfers")


def test_an_all_reduce_that_was_asked_for_stays_one(tmp_path: Path) -> None:
    profile = Profile(info=INFO)
    ask(profile, "c10d::allreduce_", [[[65]]])
    transfer(profile, "all_reduce", 12, [65])
    (node,) = collectives(profile, tmp_path)
    assert (node.comm_type, node.comm_size) == (CollectiveType.ALL_REDUCE, 260)


@pytest.mark.parametrize(("dtype", "size"), [(FLOAT, 260), ("Tensor(c10::Half)", 130)])
def test_a_rank_that_is_not_the_root_of_a_scatter_brings_its_buffer(
    tmp_path: Path, dtype: str, size: int
) -> None:
    profile = Profile(info=INFO)
    ask(profile, "c10d::scatter_", [[[65]], []], **{"Input type": [dtype, ""]})
    transfer(profile, "scatter", 12)
    (node,) = collectives(profile, tmp_path)
    assert (node.comm_type, node.comm_size) == (CollectiveType.SCATTER, size)
