"""Transfers that a host asks worker threads for: merged, and waited for at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import coll, linked, node

from chakra_et.model import EdgeKind, Trace, TraceSet
from chakra_et.replay import replay
from chakra_et.whatif import parse_edit

HOST: dict[str, Any] = {"is_cpu_op": True, "thread": 1}
WORK, ASK, AFTER = 10, 1, 5


def step(transfers: list[int], merged: int = 1, at_once: bool = False) -> Trace:
    """Work before each transfer, which a worker makes; then waits, each with work behind it."""
    nodes: list[dict[str, Any]] = []
    edges: list[tuple[int, int, EdgeKind]] = []
    moved: list[int] = []
    last = waits_for = None

    def add(make: Any, took: int, name: str, **more: Any) -> int:
        nodes.append(make(len(nodes) + 1, start=len(nodes), took=took, name=name, **more))
        return len(nodes)

    def on_host(took: int, name: str) -> None:
        nonlocal last, waits_for
        number = add(node, took, name, **HOST)
        edges.extend((number, s, k) for s, k in ((last, EdgeKind.PROGRAM),
                     (waits_for, EdgeKind.THREAD)) if s is not None)  # fmt: skip
        last, waits_for = number, None

    for place in range(len(transfers)):
        on_host(WORK, "backward")
        if (place + 1) % merged == 0 or place == len(transfers) - 1:
            first = place - place % merged
            on_host(ASK, "allreduce_")
            size = 100 * (place - first + 1)
            number = add(coll, sum(transfers[first : place + 1]), "gloo:all_reduce", size=size,
                         thread=2)  # fmt: skip
            edges.append((number, number - 1, EdgeKind.THREAD))
            edges.extend((number, before, EdgeKind.GROUP) for before in moved[-1:])
            moved += [number] * (place - first + 1)
            waits_for = number if at_once else None
        elif not at_once:
            on_host(0, "allreduce_")
    for number in moved:
        waits_for = moved[-1] if at_once else number
        on_host(AFTER, "copy_")
    return linked(nodes, edges)


def edited(trace: Trace, text: str) -> Trace:
    return parse_edit(text).apply(TraceSet({0: trace}))[0][0]


def span(trace: Trace) -> int:
    return replay(trace).figures[0].span_ns


transfers = st.lists(st.integers(1, 60), min_size=1, max_size=7)


@given(transfers, st.integers(1, 4))
def test_merged_transfers_are_those_of_larger_buckets(times: list[int], size: int) -> None:
    found = edited(step(times), f"merge:type=COMM_COLL={size}")
    wanted = step(times, merged=size)
    assert span(found) == span(wanted)
    sizes = [made.nodes.attributes.dense("comm_size", 0, np.int64) for made in (found, wanted)]
    assert sizes[0].tolist() == sizes[1].tolist()
    assert found.nodes.name.tolist() == wanted.nodes.name.tolist()


@given(transfers)
def test_without_overlap_a_host_waits_for_each_transfer(times: list[int]) -> None:
    found = edited(step(times), "overlap=off")
    assert span(found) == span(step(times, at_once=True))
    assert span(found) == sum(times) + len(times) * (WORK + ASK + AFTER)
    assert span(edited(found, "overlap=off")) == span(found)


def test_merging_one_by_one_changes_nothing() -> None:
    before = step([5, 6, 7])
    assert edited(before, "merge:type=COMM_COLL=1") == before
    assert edited(before, "merge:name=nobody=2") == before


def test_transfers_of_two_steps_stay_apart() -> None:
    note = {**HOST, "category": "user_annotation"}
    nodes, edges = [], []
    for first in (0, 3):
        nodes += [node(first + 1, start=10 * first, took=1, name="step", **note),
                  node(first + 2, start=10 * first + 1, took=1, name="allreduce_", **HOST),
                  coll(first + 3, start=10 * first + 2, took=9, thread=2)]  # fmt: skip
        edges += [(first + 2, first + 1, EdgeKind.CALL), (first + 2, first + 1, EdgeKind.PROGRAM),
                  (first + 3, first + 2, EdgeKind.THREAD)]  # fmt: skip
    before = linked(nodes, edges)
    assert edited(before, "merge:type=COMM_COLL=2") == before


@pytest.mark.parametrize("text", ["merge:type=COMM_COLL=0", "merge:type=COMM_COLL=1.5", "merge=2"])
def test_what_is_no_number_of_transfers_is_refused(text: str) -> None:
    from chakra_et.errors import ChakraError

    with pytest.raises(ChakraError):
        parse_edit(text)
