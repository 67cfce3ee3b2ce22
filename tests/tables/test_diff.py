"""What two runs differ in: each kind of difference, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import chakra
from hypothesis import given
from hypothesis import strategies as st
from places import EXAMPLES
from traces import coll, node, run, trace

from chakra_et import EdgeKind, Trace, TraceSet, cure, write
from chakra_et.definitions import Kind
from chakra_et.loading import load
from chakra_et.tables.diff import SECTIONS, Difference, diff

PROGRAM = EdgeKind.PROGRAM


@pytest.fixture(scope="module")
def ddp() -> TraceSet:
    """Two ranks of data-parallel training on the host."""
    return load(EXAMPLES / "ddp_2rank")


def op(number: int, name: str, took: int = 5, **more: Any) -> dict[str, Any]:
    """An operator on thread 1 that begins at 10 times its number."""
    told = {"is_cpu_op": True, "thread": 1, **more}
    return node(number, name=name, start=10 * number, took=took, **told)


def two(left: list[dict[str, Any]], right: list[dict[str, Any]], **options: Any) -> Difference:
    """The difference of two traces of one rank."""
    return diff(run(trace(*left, rank=0)), run(trace(*right, rank=0)), **options)


def told(found: Difference, section: str, *names: str) -> list[tuple[Any, ...]]:
    """Some columns of all rows of a section."""
    return [tuple(row[name] for name in names) for row in found.sections[section].as_dicts()]


def test_a_run_is_the_same_as_itself(ddp: TraceSet) -> None:
    found = diff(ddp, ddp)
    assert found.same
    assert found.matched == sum(len(one.nodes) for one in ddp.values())


def test_other_ids_and_another_order_of_the_file_are_no_other_structure(ddp: TraceSet) -> None:
    moved = {rank: renumbered(one) for rank, one in ddp.items()}
    found = diff(ddp, moved, ["structure", "operators", "time", "groups"])
    assert found.same
    assert found.matched == sum(len(one.nodes) for one in ddp.values())


def renumbered(one: Trace) -> Trace:
    """The trace with ids that have nothing in common with what they were."""
    nodes = one.nodes.take(np.arange(len(one.nodes)))
    offset = np.uint64(1 << 40)
    nodes.id = nodes.id + offset
    edges = one.edges.select(np.ones(len(one.edges), np.bool_))
    edges.source = edges.source + offset
    parts = next(iter(nodes.attributes.named("time_parts")))
    texts = [_renumbered(text, int(offset)) for text in parts.values]
    nodes.attributes.remove(parts, parts.rows)
    nodes.attributes.add("time_parts", parts.key.kind, texts, parts.rows)  # type: ignore[arg-type]
    return Trace(nodes, edges, one.metadata)


def _renumbered(text: str, offset: int) -> str:
    pairs = [item.split(":") for item in text.split(" ")]
    return " ".join(
        f"{owner if owner == 'gap' else int(owner) + offset}:{ns}" for owner, ns in pairs
    )


def test_a_node_and_an_edge_of_one_side_are_told() -> None:
    left = [op(1, "a"), op(2, "b", deps=(1,), kind=PROGRAM), op(3, "c", deps=(2,), kind=PROGRAM)]
    right = [op(1, "a"), op(3, "c", deps=(1,), kind=PROGRAM)]
    found = two(left, right, only=["structure"])
    assert told(found, "structure", "what", "name", "only_left", "only_right") == [
        ("nodes", "b", 1, 0),
        ("edges", "program", 2, 1),
    ]


def test_an_edge_of_another_kind_is_another_edge() -> None:
    left, right = ([op(1, "a"), op(2, "b", deps=(1,), kind=k)] for k in (PROGRAM, EdgeKind.DATA))
    found = two(left, right)
    assert told(found, "structure", "name", "only_left", "only_right") == [
        ("program", 1, 0),
        ("data", 0, 1),
    ]


def test_an_operator_that_took_longer_shows_in_its_name_the_span_and_the_node() -> None:
    found = two([op(1, "a"), op(2, "b")], [op(1, "a"), op(2, "b", took=25)])
    assert told(found, "operators", "name", "left_self_ns", "right_self_ns", "change_ns") == [
        ("b", 5, 25, 20)
    ]
    assert told(found, "time", "what", "change_ns") == [("span", 20), ("compute", 20)]
    assert told(found, "attributes", "name", "changed", "example") == [
        ("duration_ns", 1, "node 2: 5 -> 25")
    ]
    assert not found.sections["structure"].as_dicts()


def test_attributes_are_told_apart_by_who_has_them() -> None:
    left = [op(1, "a", stream=3, correlation=1), op(2, "b", correlation=5)]
    right = [op(1, "a", correlation=1), op(2, "b", correlation=6, device=0)]
    found = two(left, right)
    assert sorted(told(found, "attributes", "name", "only_left", "only_right", "changed")) == [
        ("correlation", 0, 0, 1),
        ("device", 0, 1, 0),
        ("stream", 1, 0, 0),
    ]


def test_groups_ranks_and_metadata_are_compared() -> None:
    left = run(trace(coll(1, pg_name="g"), rank=0, world=2, groups={"g": (0, 1)}), trace(rank=1))
    right = run(trace(coll(1, pg_name="g"), rank=0, world=4, groups={"g": (0, 1, 2)}))
    found = diff(run(*left.values()), {0: right[0], 2: trace(node(1), rank=2)})
    assert told(found, "groups", "group", "left_ranks", "right_ranks") == [("g", [0, 1], [0, 1, 2])]
    assert told(found, "structure", "rank", "name", "only_left", "only_right") == [
        (1, "(all of the rank)", 0, 0),
        (2, "(all of the rank)", 0, 1),
    ]
    assert told(found, "metadata", "name", "left", "right") == [("world_size", "2", "4")]


def test_what_is_no_number_is_the_same_as_itself() -> None:
    one = trace(op(1, "a"))
    one.metadata.set("loss", Kind.DOUBLE, float("nan"))
    assert diff({0: one}, {0: one}).same


def test_two_runs_of_one_rank_are_compared_whatever_their_numbers() -> None:
    found = diff({0: trace(op(1, "a"))}, {7: trace(op(1, "a"))})
    assert found.matched == 1


def test_what_a_pass_made_of_a_run_still_stands_for_it(ddp: TraceSet) -> None:
    cured = cure(ddp, "astra-sim", host="fold").traces
    found = diff(ddp, cured)
    assert found.matched == sum(len(one.nodes) for one in cured.values())
    assert "is_cpu_op" in [row["name"] for row in found.sections["attributes"].as_dicts()]


@given(st.lists(st.sampled_from("abc"), max_size=12), st.integers(0, 11))
def test_one_node_more_is_one_node_more(names: list[str], place: int) -> None:
    longer = [*names[:place], "new", *names[place:]]
    left, right = (
        [op(i + 1, name, deps=(i,) if i else (), kind=PROGRAM) for i, name in enumerate(side)]
        for side in (names, longer)
    )
    found = two(left, right, only=["structure"])
    nodes = [row for row in found.sections["structure"].as_dicts() if row["what"] == "nodes"]
    assert [(row["name"], row["only_left"], row["only_right"]) for row in nodes] == [("new", 0, 1)]


def test_sections_can_be_chosen(ddp: TraceSet) -> None:
    assert list(diff(ddp, ddp, ["time", "groups"]).sections) == ["time", "groups"]
    assert list(diff(ddp, ddp).sections) == list(SECTIONS)


# --- chakra diff ---------------------------------------------------------------------------------


def test_the_exit_code_tells_whether_runs_differ(tmp_path: Path) -> None:
    for name, took in (("a.et", 5), ("b.et", 6)):
        write(trace(op(1, "x", took=took)), tmp_path / name)
    same = chakra("diff", tmp_path / "a.et", tmp_path / "a.et")
    assert (same.code, "the same: structure, operators, time" in same.output) == (0, True)
    other = chakra("diff", tmp_path / "a.et", tmp_path / "b.et")
    assert (other.code, "the same: structure, groups, metadata" in other.output) == (1, True)
    assert chakra("diff", tmp_path / "a.et", tmp_path / "b.et", "--only", "structure").code == 0
    assert chakra("diff", tmp_path / "a.et", tmp_path / "none.et").code == 2


def test_json_says_all_that_differs(tmp_path: Path) -> None:
    for name, took in (("a.et", 5), ("b.et", 6)):
        write(trace(op(1, "x", took=took)), tmp_path / name)
    found = json.loads(chakra("diff", tmp_path / "a.et", tmp_path / "b.et", "--json").raw)
    assert (found["same"], found["matched_nodes"], found["structure"]) == (False, 1, [])
    assert found["operators"][0]["change_ns"] == 1
