"""Ranks that share processors, which are handed out equally: times worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from edits import spans
from hypothesis import given
from hypothesis import strategies as st
from traces import coll, linked, node, run

from chakra_et import ChakraError
from chakra_et.model import EdgeKind, TraceSet
from chakra_et.replay import Processors, replay
from chakra_et.whatif import ask, edit, parse_edit

HOST: dict[str, Any] = {"is_cpu_op": True, "thread": 1}
CLOCK = 7_777
"""What the second rank's clock is ahead of the first one's."""


def two_ranks(
    before: tuple[int, int] = (1000, 1000),
    beside: int = 500,
    moved: int = 300,
    begin: int = 1_000_000,
) -> TraceSet:
    """Ranks that work, ask a worker for a transfer, work beside it, and wait for it: recorded as
    if each had processors enough.
    """
    met = max(before)
    made = []
    for rank, first in enumerate(before):
        at = begin + CLOCK * rank
        end = max(first + beside, met + moved)
        made.append(linked(
            [
                node(1, start=at, took=first, name="before", **HOST),
                node(2, start=at + first, took=beside, name="beside", **HOST),
                coll(3, start=at + first, took=met + moved - first, thread=2, name="moved"),
                node(4, start=at + end, took=10, name="end", **HOST),
            ],
            [(2, 1, EdgeKind.PROGRAM), (3, 1, EdgeKind.THREAD), (4, 2, EdgeKind.PROGRAM),
             (4, 3, EdgeKind.THREAD)],
        ))  # fmt: skip
    return run(*made)


def shared(count: int, traces: TraceSet, waits: str = "") -> TraceSet:
    """The timeline of work that has a processor to itself, on so many of them."""
    return replay(traces, processors=Processors(count, waits)).traces


def took(traces: TraceSet) -> list[int]:
    return traces[0].nodes.duration_ns.tolist()


def edited(traces: TraceSet, *texts: str) -> list[int]:
    """The span of each rank after edits."""
    figures = ask(traces, [parse_edit(text) for text in texts]).after.figures
    return [one.span_ns for one in figures.values()]


def test_threads_and_transfers_get_equal_parts_of_the_processors() -> None:
    # From 1000 on, two operators and the two members of a transfer want two processors: the
    # transfer takes twice as long, and so does what the operators do meanwhile.
    assert took(shared(2, two_ranks())) == pytest.approx([1000, 800, 600, 10], abs=1)
    assert took(shared(4, two_ranks())) == [1000, 500, 300, 10]
    # One processor does one thing after the other.
    assert spans(shared(1, two_ranks())) == pytest.approx([2 * 1810] * 2, abs=4)


def test_clocks_that_count_from_1970_lose_no_nanosecond() -> None:
    today = two_ranks(begin=1_790_000_000_123_456_789)
    assert took(shared(2, today)) == took(shared(2, two_ranks()))


def test_what_waits_without_a_processor_takes_none_from_others() -> None:
    assert took(shared(2, two_ranks(), "^beside$")) == [1000, 500, 300, 10]


@pytest.mark.parametrize(("now", "wanted"), [("2", 1810), ("2:4", 1510), ("2:1", 3620)])
def test_a_run_on_other_processors(now: str, wanted: int) -> None:
    recorded = shared(2, two_ranks())
    assert edited(recorded, f"processors={now}") == pytest.approx([wanted] * 2, abs=4)


def test_a_transfer_beside_which_nothing_runs_any_more_is_shorter() -> None:
    recorded = shared(2, two_ranks())
    # Alone it takes 300, and so the operators behind it take 500.
    assert edited(recorded, "overlap=off") == [1000 + 600 + 800 + 10] * 2
    assert edited(recorded, "overlap=off", "processors=2") == pytest.approx([1810] * 2, abs=2)


works = st.integers(50_000, 2_000_000)


@given(st.tuples(works, works), works, works, st.integers(1, 5), st.integers(1, 5))
def test_a_recording_on_some_processors_tells_the_run_on_others(
    before: tuple[int, int], beside: int, moved: int, had: int, has: int
) -> None:
    alone = two_ranks(before, beside, moved)
    found = edited(shared(had, alone), f"processors={had}:{has}")
    assert found == pytest.approx(spans(shared(has, alone)), rel=0.003)


def test_devices_networks_and_plans_are_refused() -> None:
    cpu = two_ranks()
    kernel = linked([node(1, took=5, start=0, is_cpu_op=False, stream=7, device=0)], [])
    for traces, more, why in ((run(kernel), (), "work on devices"),
                              (cpu, ("network=5,100",), "a network")):  # fmt: skip
        with pytest.raises(ChakraError, match=why):
            edit(traces, [parse_edit(text) for text in ("processors=2", *more)])


@pytest.mark.parametrize(
    "text", ["processors=0", "processors=2:x", "processors=2,(", "processors="]
)
def test_numbers_and_names_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ChakraError, match="processors"):
        parse_edit(text)
