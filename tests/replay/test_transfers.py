"""Waiting and transfer of communication: members start and end each at its own time."""

from __future__ import annotations

import pytest
from traces import coll, node, trace

from chakra_et.model import Trace, TraceSet
from chakra_et.replay import AlphaBeta, Replay, replay

BASE = 1_700_000_000_000_000_000
CLOCK = 7_777
"""What the second rank's clock is ahead of the first one's."""

LAST, APART = [(0, 100), (1000, 100), (2000, 500)], [(50, 50), (1000, 100), (2300, 700)]
"""Start and duration of each collective on two ranks. The members of the third end 500 ns apart."""


def rank(number: int, collectives: list[tuple[int, int]], work: int | None = None) -> Trace:
    """A rank's collectives; the last one waits for `work` ns of host work, if given."""
    clock = BASE + CLOCK * number
    nodes = [
        coll(place, start=clock + start, took=took, pg_name="all")
        for place, (start, took) in enumerate(collectives)
    ]
    if work is not None:
        host = node(90, start=clock, took=work, name="work", is_cpu_op=True)
        start, took = collectives[-1]
        last = len(collectives) - 1
        nodes[last:] = [
            host,
            coll(last, deps=(90,), start=clock + start, took=took, pg_name="all"),
        ]
    return trace(*nodes, rank=number, world=2, groups={"all": (0, 1)})


def both(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> TraceSet:
    return TraceSet({0: rank(0, first), 1: rank(1, second)})


def took(done: Replay) -> list[list[int]]:
    """Durations of the collectives, by rank."""
    return [[n.duration_ns for n in t.nodes if n.name != "work"] for t in done.traces.values()]


def test_members_end_apart_as_recorded() -> None:
    done = replay(both(LAST, APART))
    assert done.clock_offsets_ns == {0: 0, 1: CLOCK}
    assert took(done) == [[100, 100, 500], [50, 100, 700]]


def test_scaling_leaves_the_waiting() -> None:
    """Of the third, 300 ns are waiting on rank 0; rank 1 takes 500 more than the 200 in common."""
    done = replay(both(LAST, APART), scale=[("type=COMM_COLL_NODE", 0.5)])
    assert took(done) == [[75, 50, 400], [25, 50, 350]]


def test_a_network_model_replaces_what_is_common() -> None:
    done = replay(both(LAST, APART), network=AlphaBeta(20.0, 1e15))
    assert took(done) == [[90, 40, 340], [40, 40, 540]]


def test_a_duration_that_is_given_is_the_transfer() -> None:
    done = replay(both(LAST, APART), duration=lambda node: 10)
    assert took(done)[0][:2] == [60, 10]
    assert took(done)[1][:2] == [10, 10]


@pytest.mark.parametrize("scale", [1.0, 0.5, 0.0])
def test_a_member_that_ended_before_the_last_began_never_ends_before_it_begins(
    scale: float,
) -> None:
    root, other = [*LAST[:2], (2000, 100)], [*APART[:2], (2300, 100)]
    assert took(replay(both(root, other))) == [[100, 100, 100], [50, 100, 100]]
    ranks = {0: rank(0, root, work=2000), 1: rank(1, other)}
    later = replay(ranks, scale=[("name=work", 2.0), ("type=COMM_COLL_NODE", scale)])
    assert [took(later)[i][2] for i in (0, 1)] == [0, 1700 + 100 * scale]


def test_without_times_the_shortest_duration_is_the_transfer() -> None:
    ranks = {
        number: trace(coll(0, took=ns, pg_name="all"), rank=number, world=2, groups={"all": (0, 1)})
        for number, ns in enumerate((100, 60))
    }
    assert took(replay(ranks)) == [[60], [60]]
