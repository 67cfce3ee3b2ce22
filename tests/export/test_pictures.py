"""Pictures of parts of a graph: what is chosen, what is one box, and that nothing is a mess."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from command import chakra
from missing import without
from places import EXAMPLES
from traces import coll, node, run, trace

from chakra_et import ChakraError, EdgeKind, Trace, write
from chakra_et.export.choosing import around, within_steps
from chakra_et.export.dot import dot, svg
from chakra_et.export.graphml import graphml
from chakra_et.export.picture import COLLECTIVE, picture
from chakra_et.loading import load

TOLD = {"is_cpu_op": True, "thread": 1}
PROGRAM, LAUNCH = EdgeKind.PROGRAM, EdgeKind.LAUNCH


def chain(length: int) -> Trace:
    """Nodes 1, 2 and so on, each of which waits for the one before it."""
    return trace(
        *(node(i, deps=(i - 1,) if i > 1 else (), kind=PROGRAM) for i in range(1, length + 1))
    )


def step() -> Trace:
    """Two steps of the profiler: in the first, a linear layer calls a product that has a kernel."""
    op = {**TOLD, "category": "cpu_op"}
    step_of = {**TOLD, "category": "user_annotation"}
    kernel = {"is_cpu_op": False, "stream": 7}
    return trace(
        node(1, name="ProfilerStep#1", start=0, took=1, inclusive_ns=50, **step_of),
        node(2, name="aten::linear", start=5, took=5, ctrl=(1,), **op),
        node(3, name="aten::mm", start=10, took=5, ctrl=(2,), deps=(2,), kind=PROGRAM, **op),
        node(4, name="gemm", start=60, took=100, deps=(3,), kind=LAUNCH, **kernel),
        coll(5, start=160, took=9, ctrl=(3,), deps=(3, 4), pg_name="g", stream=9),
        node(6, name="ProfilerStep#2", start=50, took=1, inclusive_ns=20, **step_of),
        node(7, name="aten::relu", start=55, took=5, ctrl=(6,), **op),
    )


def everything(one: Trace) -> np.ndarray:
    return np.ones(len(one.nodes), np.bool_)


def test_around_a_node_lies_what_so_many_edges_lead_to() -> None:
    one = chain(10)
    for hops in (0, 1, 3, 20):
        near = one.nodes.id[around(one, 5, hops)].tolist()
        assert near == [i for i in range(1, 11) if abs(i - 5) <= hops]


@pytest.mark.parametrize("wrong", [11, -1, 1 << 64])
def test_around_a_node_that_is_not_there_is_nothing(wrong: int) -> None:
    with pytest.raises(ChakraError, match=f"no node has the id {wrong}"):
        around(chain(10), wrong, 1)


def test_a_step_holds_what_began_in_it_and_the_work_that_it_launched() -> None:
    one = step()
    assert one.nodes.id[within_steps({0: one}, "1")[0]].tolist() == [1, 2, 3, 4, 5]
    assert one.nodes.id[within_steps({0: one}, "2")[0]].tolist() == [6, 7]
    with pytest.raises(ChakraError, match=r"nothing lies within steps 3.*ProfilerStep#1"):
        within_steps({0: one}, "3")
    with pytest.raises(ChakraError, match="The trace has no steps"):
        within_steps({0: chain(2)}, "3")


def test_an_operator_is_one_box_with_what_it_calls_and_launches() -> None:
    one = step()
    drawn = picture({0: one}, {0: everything(one)}, collapse="operator")
    boxes = {box.name: (box.nodes, box.self_ns, box.side) for box in drawn.boxes}
    assert boxes["aten::linear"] == (3, 110, "host")
    assert boxes["node 5"] == (1, 9, "communication")
    assert len(boxes) == 5
    into = [(a.kind, a.count) for a in drawn.arrows if a.target == "r0n5"]
    assert into == [("call", 1), ("data", 2)]


def test_a_module_is_one_box() -> None:
    one = step()
    drawn = picture({0: one}, {0: everything(one)}, collapse="module")
    assert {(box.name, box.side, box.nodes) for box in drawn.boxes} == {
        ("(outside of all)", "host", 6),
        ("(outside of all): communication", "communication", 1),
    }


def test_kinds_of_edges_can_be_chosen() -> None:
    one = step()
    drawn = picture({0: one}, {0: everything(one)}, kinds=[LAUNCH])
    assert [(a.source, a.target) for a in drawn.arrows] == [("r0n3", "r0n4")]


def test_members_of_a_collective_are_joined_by_a_line() -> None:
    ranks = run(*(trace(coll(1, pg_name="g"), rank=r, groups={"g": (0, 1)}) for r in (0, 1)))
    drawn = picture(ranks, {r: everything(one) for r, one in ranks.items()})
    assert [(a.source, a.target, a.kind) for a in drawn.arrows] == [("r0n1", "r1n1", COLLECTIVE)]
    assert b'subgraph "cluster_1"' in dot(drawn)


def test_nobody_gets_a_hairball() -> None:
    one = chain(201)
    with pytest.raises(ChakraError, match=r"201 nodes.*more than 200\. Narrow it with --around"):
        picture({0: one}, {0: everything(one)})
    assert len(picture({0: one}, {0: everything(one)}, limit=0).boxes) == 201


ODD = trace(node(1, name='"\\x1b<b>&\x1b[2J\n' + "long" * 20), node(2, deps=(1,)))


def test_any_name_makes_a_sound_picture() -> None:
    drawn = picture({0: ODD}, {0: everything(ODD)})
    text = dot(drawn).decode()
    assert "\x1b" not in text
    found = ElementTree.fromstring(graphml(drawn))
    names = [e.text for e in found.iter() if e.get("key") == "node_name"]
    assert names[0] == '"\\x1b<b>&\\x1b[2J\\n' + "long" * 20
    assert names[1] == "node 2"


def test_graphml_tells_the_type_of_each_field() -> None:
    one = step()
    root = ElementTree.fromstring(graphml(picture({0: one}, {0: everything(one)})))
    space = {"g": "http://graphml.graphdrawing.org/xmlns"}
    kinds = {k.get("attr.name"): k.get("attr.type") for k in root.findall("g:key", space)}
    assert kinds["self_ns"] == "long"
    assert kinds["inferred"] == "boolean"
    assert len(root.findall(".//g:node", space)) == 7
    assert len(root.findall(".//g:edge", space)) == one.edges.offsets[-1]


@pytest.mark.parametrize("program", ["dot", None])
def test_graphviz_draws_every_box(program: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if program is not None and shutil.which(program) is None:
        pytest.skip("the program dot is not installed")
    if program is None:
        pytest.importorskip("pygraphviz")
        monkeypatch.setattr(shutil, "which", lambda _name: None)
    drawn = svg(picture({0: ODD}, {0: everything(ODD)}))
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(re.findall(rb'class="node"', drawn)) == 2
    assert len(re.findall(rb'class="edge"', drawn)) == 1


def test_without_graphviz_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    without(monkeypatch, "pygraphviz")
    with pytest.raises(ChakraError, match=r"needs pygraphviz.*chakra-et\[pictures\]"):
        svg(picture({0: ODD}, {0: everything(ODD)}))


# --- chakra export -------------------------------------------------------------------------------


def test_a_node_s_surroundings_are_drawn(tmp_path: Path) -> None:
    write(chain(300), tmp_path / "t.et")
    words = ("export", tmp_path / "t.et", "--to", "dot", "-o", tmp_path / "o.dot")
    assert "this is a picture of 300 nodes" in chakra(*words).errors
    assert not (tmp_path / "o.dot").exists()
    done = chakra(*words, "--around", 150, "--hops", 2)
    assert (done.code, "5 boxes, 4 arrows" in done.errors) == (0, True)
    assert (tmp_path / "o.dot").read_text().startswith("digraph")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--to", "perfetto", "--around", "1"), "--around is for pictures"),
        (("--to", "chrome", "--collapse", "module"), "--collapse is for pictures"),
        (("--to", "dot", "--replayed"), "--replayed is for timelines"),
        (("--to", "dot", "--around", "1", "--steps", "1"), "both --around and --steps"),
        (("--to", "dot", "--edges", "lunch"), "no edges are of kind 'lunch'"),
        (("--to", "dot", "--rank", "7"), "no rank 7"),
        (("--to", "dot", "--around", "1"), "--around is about one rank"),
        (("--to", "dot", "--steps", "x"), "'x' are not a range of steps"),
    ],
)
def test_what_cannot_be_is_told(words: tuple[str, ...], says: str, tmp_path: Path) -> None:
    done = chakra("export", EXAMPLES / "ddp_2rank", *words, "-o", tmp_path / "out")
    assert (done.code, says in done.errors) == (2, True)


def test_a_step_of_a_real_run_is_drawn_in_parts() -> None:
    traces = load(EXAMPLES / "ddp_2rank")
    drawn = picture(traces, within_steps(traces, "3"), collapse="operator", limit=0)
    assert sum(box.nodes for box in drawn.boxes) > 3 * len(drawn.boxes)
    assert {arrow.kind for arrow in drawn.arrows} >= {"program", "data", COLLECTIVE}
