"""Ranges that are done more often: the graph of a program with so many of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import coll, linked, node

from chakra_et import ChakraError
from chakra_et.model import EdgeKind, Trace, TraceSet
from chakra_et.replay import replay
from chakra_et.whatif import parse_edit

P = EdgeKind.PROGRAM


def program(counts: list[int], kernels: bool = True) -> Trace:
    """Steps of so many layers: operator, kernel and transfer of each, and a wait at the end."""
    nodes: list[dict[str, Any]] = []
    edges: list[tuple[int, int, EdgeKind]] = []

    def add(name: str, took: int, *before: tuple[int | None, EdgeKind], **more: Any) -> int:
        number = len(nodes) + 1
        make = more.pop("make", node)
        nodes.append(make(number, start=10 * number, took=took, name=name, **more))
        edges.extend((number, other, kind) for other, kind in before if other is not None)
        return number

    host: dict[str, Any] = {"is_cpu_op": True, "thread": 1}
    note = {**host, "category": "user_annotation"}
    last = kernel = moved = None
    width = 10 * (3 + kernels)
    for layers in counts:
        step = last = add("step", 5, (last, P), **note, inclusive_ns=layers * width + 19)
        made = []
        for _ in range(layers):
            layer = add(
                "layer", 1, (last, P), (step, EdgeKind.CALL), **note, inclusive_ns=width - 1
            )
            last = add("addmm", 7, (layer, P), (layer, EdgeKind.CALL), **host)
            if kernels:
                kernel = add("gemm", 50, (last, EdgeKind.LAUNCH), (kernel, EdgeKind.STREAM),
                             is_cpu_op=False, stream=7, device=0)  # fmt: skip
            moved = add("all_reduce", 20, (last, EdgeKind.THREAD), (moved, EdgeKind.GROUP),
                        make=coll, thread=2)  # fmt: skip
            made.append(moved)
        last = add("wait", 3, (last, P), (step, EdgeKind.CALL),
                   *((other, EdgeKind.THREAD) for other in made), **host)  # fmt: skip
    return linked(nodes, edges)


def repeated(trace: Trace, times: int, selector: str = "name=layer") -> Trace:
    edit = parse_edit(f"repeat:{selector}={times}")
    return edit.apply(TraceSet({0: trace}))[0][0]


def shape(trace: Trace) -> tuple[list[str], list[int], set[tuple[int, int, int]]]:
    """Names, durations and edges by row."""
    edges = zip(trace.source_rows().tolist(), trace.edges.target.tolist(),
                trace.edges.kind.tolist(), strict=True)  # fmt: skip
    return trace.nodes.name.tolist(), trace.nodes.duration_ns.tolist(), set(edges)


def span(trace: Trace) -> int:
    return replay(trace).figures[0].span_ns


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 6), st.booleans())
def test_layers_are_those_of_a_program_with_so_many(
    counts: list[int], times: int, kernels: bool
) -> None:
    found = repeated(program(counts, kernels), times)
    wanted = program([times] * len(counts), kernels)
    assert sorted(shape(found)[0]) == sorted(shape(wanted)[0])
    assert sorted(shape(found)[1]) == sorted(shape(wanted)[1])
    if times >= max(counts):
        assert len(shape(found)[2]) == len(shape(wanted)[2])
    assert (found.source_rows() < found.edges.target).all()
    assert span(found) == span(wanted)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3).map(lambda n: [n[0]] * len(n)))
def test_more_and_back_is_what_was_there(counts: list[int]) -> None:
    before = program(counts)
    back = repeated(repeated(before, counts[0] + 2), counts[0])
    assert shape(repeated(before, counts[0])) == shape(before)
    assert (span(back), sorted(shape(back)[0])) == (span(before), sorted(shape(before)[0]))


def test_whole_steps_are_ranges_too() -> None:
    found = repeated(program([2, 2, 2]), 5, "name=step")
    assert span(found) == span(program([2] * 5))


def test_what_names_a_node_by_id_names_the_one_of_its_copy() -> None:
    host: dict[str, Any] = {"is_cpu_op": True, "thread": 1}
    before = linked([
        node(1, start=0, took=5, name="layer", inclusive_ns=20, category="user_annotation", **host),
        node(2, start=5, took=5, name="launch", **host),
        node(3, start=10, took=9, name="rest", rest_of=2, time_parts="1:4 2:3", **host),
        node(4, start=30, took=1, name="end", time_parts="gap:1", **host),
    ], [(2, 1, P), (3, 2, P), (4, 3, P), (2, 1, EdgeKind.CALL)])  # fmt: skip
    found = repeated(before, 3)
    assert found.nodes.name.tolist() == ["layer", "launch", "rest"] * 3 + ["end"]
    rests = [found.nodes[row] for row in (2, 5, 8)]
    assert [rest.attributes["rest_of"] for rest in rests] == [2, 5, 8]
    assert [rest.attributes["time_parts"] for rest in rests] == ["1:4 2:3", "4:4 5:3", "7:4 8:3"]
    assert span(found) == 3 * 19 + 1


@pytest.mark.parametrize("text", ["repeat:name=layer=0", "repeat:name=layer=2.5", "repeat=2",
                                  "repeat:name=layer=20000", "repeat:name=nobody=2"])  # fmt: skip
def test_what_cannot_be_repeated_is_refused(text: str) -> None:
    with pytest.raises(ChakraError):
        parse_edit(text).apply(TraceSet({0: program([2])}))


def test_a_range_that_waits_for_another_thread_is_refused() -> None:
    host: dict[str, Any] = {"is_cpu_op": True, "thread": 1}
    before = linked([
        node(1, start=0, took=5, name="step", inclusive_ns=40, category="user_annotation", **host),
        node(2, start=5, took=5, name="forward", **host),
        node(3, start=10, took=20, name="backward", is_cpu_op=True, thread=2),
        node(4, start=30, took=9, name="optimizer", **host),
    ], [(2, 1, P), (3, 2, EdgeKind.THREAD), (4, 2, P), (4, 3, EdgeKind.THREAD)])  # fmt: skip
    with pytest.raises(ChakraError, match="node 3, 'backward', runs while a part that is repeated"):
        repeated(before, 2, "name=step")


def test_an_attribute_is_taken_as_often_as_its_node() -> None:
    nodes = program([1]).nodes
    again = nodes.take(np.array([2, 1, 2, 0, 2]))
    assert again.attributes.dense("is_cpu_op", None, object).tolist() == [
        nodes[row].attributes["is_cpu_op"] for row in (2, 1, 2, 0, 2)
    ]
