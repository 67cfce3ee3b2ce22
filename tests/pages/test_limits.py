"""What limits a run: right answers for runs that were built to have them, and for recorded ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from places import EXAMPLES
from runs import MS, balanced, built, host, kernels, straggler, transfers
from traces import coll, node, trace
from traces import run as run_of

from chakra_et.build import Rank
from chakra_et.conversion import trace_set
from chakra_et.directory import convert_files
from chakra_et.files import read_set
from chakra_et.model import TraceSet
from chakra_et.pages.arrivals import arrivals
from chakra_et.pages.limits import Verdict, verdict
from chakra_et.pages.path import run_path
from chakra_et.pages.ranks import make_run


def limit(traces: TraceSet) -> Verdict:
    run = make_run(traces)
    return verdict(run, run_path(run), arrivals(run))


@pytest.mark.parametrize(
    ("program", "kind", "share"),
    [(kernels, "device", 0.9), (transfers, "communication", 0.9), (host, "host", 0.8)],
)
def test_what_takes_most_of_the_path_limits_the_run(program, kind, share) -> None:
    found = limit(built(program))
    assert (found.kind, found.rank) == (kind, None)
    assert found.shares[kind] == pytest.approx(share)


def test_the_largest_part_is_named() -> None:
    assert limit(built(kernels)).sentence == (
        "Device work limits this run: 90% of the critical path is device work, and its largest "
        "single part gemm (60%)."
    )


def test_where_nothing_takes_half_of_the_path_all_are_named() -> None:
    found = limit(built(balanced))
    assert found.kind == "several"
    assert found.sentence == (
        "No single thing limits this run: its critical path is 40% host work, 30% device work, "
        "30% communication."
    )


def test_a_rank_that_the_others_wait_for_is_named() -> None:
    found = limit(built(straggler, 4))
    assert (found.kind, found.rank) == ("device", 1)
    assert found.sentence.startswith("Rank 1 limits this run: the others wait for it 60% of")


def test_waiting_is_counted_for_those_who_wait_and_for_the_one_they_wait_for() -> None:
    found = arrivals(make_run(built(straggler, 4)))
    assert found.waited_ns == {0: 6 * MS, 1: 0, 2: 6 * MS, 3: 6 * MS}
    assert found.awaited_ns == {0: 0, 1: 6 * MS, 2: 0, 3: 0}
    assert found.last == {0: 0, 1: 1, 2: 0, 3: 0}
    assert [(m.last, m.skew_ns) for m in found.meetings] == [(1, 6 * MS)]


def in_turn(rank: Rank) -> None:
    """First rank 1 is late by 6 ms, then rank 0 by 4."""
    number = rank.coordinate("rank")
    with rank.on(stream=0):
        done = None
        for late, ms in ((1, 7), (0, 5)):
            done = rank.compute("gemm", duration_ns=(ms if number == late else 1) * MS, after=done)
            done = rank.all_reduce("rank", 1 << 20, after=done, duration_ns=MS)


def test_ranks_that_wait_for_each_other_in_turn_limit_nothing_alone() -> None:
    run = make_run(built(in_turn))
    found = arrivals(run)
    assert found.awaited_ns == {0: 4 * MS, 1: 6 * MS}
    assert verdict(run, run_path(run), found).rank is None


def hidden(rank: Rank) -> None:
    """Rank 1 is late to a collective, beside which the others compute all the time."""
    late = rank.coordinate("rank") == 1
    with rank.on(stream=0):
        rank.compute("gemm", duration_ns=10 * MS)
    with rank.on(stream=1):
        done = rank.compute("copy", duration_ns=8 * MS if late else MS)
        rank.all_reduce("rank", 1 << 20, after=done, duration_ns=MS)


def test_waiting_that_computing_hides_is_no_loss() -> None:
    run = make_run(built(hidden))
    found = arrivals(run)
    assert found.meetings[0].skew_ns == 7 * MS
    assert found.waited_ns == found.awaited_ns == {0: 0, 1: 0}
    assert verdict(run, run_path(run), found).rank is None


def test_who_is_alone_in_a_group_waits_for_nobody() -> None:
    traces = [
        trace(
            coll(1, start=0, took=MS, pg_name=own),
            coll(2, start=MS, took=MS, pg_name="all"),
            rank=rank,
            groups={own: (rank,), "all": (0, 1)},
        )
        for rank, own in enumerate(("first", "second"))
    ]
    found = arrivals(make_run(run_of(*traces)))
    assert [meeting.rows for meeting in found.meetings] == [{0: 1, 1: 1}]


def test_a_path_that_covers_little_of_the_run_says_nothing_of_it() -> None:
    apart = trace(node(1, took=MS, start=0), node(2, took=MS, start=99 * MS), rank=0)
    found = limit(TraceSet({0: apart}))
    assert found.kind == "unknown"
    assert "the critical path covers 1.0% of it" in found.sentence


@pytest.mark.parametrize("nodes", [[], [node(1, took=0, start=5)]])
def test_a_run_in_which_nothing_takes_time_has_no_limit(nodes: list[Any]) -> None:
    found = limit(TraceSet({0: trace(*nodes, rank=0)}))
    assert found.kind == "none"


def test_a_trace_without_a_path_has_no_limit() -> None:
    found = limit(TraceSet({}))
    assert found.kind == "none"
    assert "the trace is empty" in found.sentence


def test_a_recorded_first_call_into_cuda_limits_its_run() -> None:
    conversions = convert_files(EXAMPLES / "simple_add", None)
    found = limit(trace_set(conversions))
    assert found.kind == "host"
    assert "cudaDeviceGetStreamPriorityRange (99%)" in found.sentence


def test_a_run_on_processors_is_limited_by_its_operators() -> None:
    found = limit(trace_set(convert_files(EXAMPLES / "mlp", None)))
    assert found.sentence.startswith("Computing on the host limits this run")


def test_dlrm_waits_for_the_rank_that_began_last(dlrm8: Path) -> None:
    run = make_run(read_set(dlrm8))
    begun = {rank: times.span[0] for rank, times in run.ranks.items()}
    path = run_path(run)
    late = arrivals(run)
    found = verdict(run, path, late)
    assert late.causes["group '0', call 0"] == "before the trace began"
    assert found.rank == max(begun, key=begun.__getitem__) == 7
    assert path is not None
    assert 7 in path.by_rank_ns()


def test_the_time_by_rank_and_by_bound_is_the_whole_path(dlrm8: Path) -> None:
    for traces in (read_set(dlrm8), trace_set(convert_files(EXAMPLES / "ddp_2rank", None))):
        path = run_path(make_run(traces))
        assert path is not None
        assert sum(path.by_rank_ns().values()) == sum(path.bound_ns.values()) == path.length_ns
        assert (path.took_ns >= 0).all()
