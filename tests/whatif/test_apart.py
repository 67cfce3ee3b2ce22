"""Waits of communications taken out, so that edits may move and join transfers of several ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from edits import edited, spans
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import coll, linked, node, recv, run, send, trace

from chakra_et.model import EdgeKind, Trace, TraceSet
from chakra_et.replay import replay
from chakra_et.whatif.apart import waits_apart

P = EdgeKind.PROGRAM
HOST: dict[str, Any] = {"is_cpu_op": True, "thread": 1}
NOTE = {**HOST, "category": "user_annotation"}
CLOCK = 50_000


def layers(count: int, work: tuple[int, int], moved: int, noted: bool = True) -> TraceSet:
    """Two ranks whose layers take so long; each asks a worker for a transfer, which makes one after
    the other. All are awaited.
    """
    asked = [[(layer + 1) * (1 + ns) for layer in range(count)] for ns in work]
    done: list[int] = []
    for times in zip(*asked, strict=True):
        done.append(max([*times, *done[-1:]]) + moved)
    return run(
        *(_rank(i, ns, asked[i], done, NOTE if noted else HOST) for i, ns in enumerate(work))
    )


def _rank(number: int, work: int, asked: list[int], done: list[int], how: Any) -> Trace:
    clock = 1_000_000 + CLOCK * number
    nodes: list[dict[str, Any]] = []
    edges: list[tuple[int, int, EdgeKind]] = []
    for place, end in enumerate(done):
        first, ask = len(nodes) + 1, max([asked[place], *done[:place]])
        begin = clock + asked[place] - work - 1
        nodes += [node(first, start=begin, took=1, name="layer", inclusive_ns=work + 1, **how),
                  node(first + 1, start=begin + 1, took=work, name="mm", **HOST),
                  coll(first + 2, start=clock + ask, took=end - ask, thread=2)]  # fmt: skip
        if place:
            edges += [(first, first - 2, P), (first + 2, first - 1, EdgeKind.GROUP)]
        edges += [(first + 1, first, P), (first + 1, first, EdgeKind.CALL),
                  (first + 2, first + 1, EdgeKind.THREAD)]  # fmt: skip
    last = len(nodes) + 1
    begin = clock + max(asked[-1], max(done))
    nodes.append(node(last, start=begin, took=5, name="end", **HOST))
    edges += [(last, last - 2, P), *((last, at, EdgeKind.THREAD) for at in range(3, last, 3))]
    return linked(nodes, edges)


works = st.integers(10, 900)
few = settings(max_examples=25)


@given(st.integers(1, 5), st.tuples(works, works), works)
def test_a_replay_gives_what_it_gave_before(count: int, work: tuple[int, int], moved: int) -> None:
    before = layers(count, work, moved)
    apart = waits_apart(before)
    done, again = replay(before), replay(apart)
    assert again.traces == done.traces
    assert again.clock_offsets_ns == done.clock_offsets_ns == {0: 0, 1: CLOCK}
    took = [trace.nodes.duration_ns[2::3].tolist() for trace in apart.values()]
    assert took == [[moved] * count] * 2
    assert spans(waits_apart(apart)) == spans(before)


@few
@given(st.integers(2, 4), st.integers(2, 7), st.tuples(works, works), works)
def test_ranks_whose_layers_take_longer_on_one_of_them_get_more_layers(
    count: int, times: int, work: tuple[int, int], moved: int
) -> None:
    found = edited(layers(count, work, moved), f"repeat:name=layer={times}")
    assert spans(found) == spans(layers(times, work, moved))


def test_waits_are_no_part_of_what_a_merged_transfer_takes() -> None:
    # Rank 0 waits 400 for rank 1 in the first transfer, and 750 in the second.
    found = replay(edited(layers(2, (100, 500), 50, noted=False), "merge:type=COMM_COLL=2"))
    # The operator that asked for the first does not ask any more, and takes no time.
    ends = 1 + 501 + 2 * 50 + 5
    assert [one.span_ns for one in found.figures.values()] == [ends, ends]


def test_waits_are_told_in_the_order_of_nodes_whatever_was_matched_first() -> None:
    """Messages are matched behind collectives, here also those that came before them."""
    message = [send(1, 1, start=100, took=70, thread=1), recv(1, 0, start=60, took=120, thread=1)]
    apart = waits_apart(
        run(
            *(
                trace(each, coll(2, start=300 + 10 * rank, took=40 - 10 * rank, deps=(1,)))
                for rank, each in enumerate(message)
            )
        )
    )
    for each in apart.values():
        (met,) = each.nodes.attributes.named("met_ns")
        assert met.rows.tolist() == [0, 1]
        assert np.diff(met.values) > 0


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_slower_transfer_does_not_make_the_wait_for_another_rank_longer(factor: float) -> None:
    found = replay(edited(layers(2, (100, 500), 50), f"time:type=COMM_COLL={factor}"))
    wanted = replay(layers(2, (100, 500), round(50 * factor)))
    spans_ns = [[one.span_ns for one in done.figures.values()] for done in (found, wanted)]
    assert spans_ns[0] == spans_ns[1]


def test_time_between_operations_is_told_from_transfers() -> None:
    """Each of two layers begins 1 ns before its operator; transfers stay as they are."""
    before = layers(2, (100, 500), 50)
    found = spans(edited(before, "time:gap=true=11"))
    assert found == [span + 2 * 10 for span in spans(before)]
