"""Jobs of many ranks: clocks, skew, stragglers, hangs, the path, utilisation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traces import coll, node, recv, send, trace
from truth.linked import linked_ranks
from truth.machine import play
from truth.program import Collective, Launch, Op, Program, Statement, SyncDevice

from chakra_et.analyze import (
    Job,
    Work,
    aligned,
    find_hang,
    job_path,
    on_clock,
    skews,
    stragglers,
    utilisation,
)
from chakra_et.analyze.clocks import Clock
from chakra_et.analyze.tables import TABLES, mfu_table
from chakra_et.conversion import convert
from chakra_et.errors import ChakraError
from chakra_et.files import read_set
from chakra_et.model import UNKNOWN_NS, EdgeKind, Trace, TraceSet

APART_NS = 1_000_003
"""The clock of each rank of the model machine is so much ahead of the one before."""


def steps(count: int, slow_ns: int = 2000, slow: int = -1) -> list[Statement]:
    """Rounds of host work, a kernel and an all-reduce; one of them is slow on the host."""
    body: list[Statement] = []
    for i in range(count):
        body += [
            Op(slow_ns if i == slow else 2000),
            Launch(7, 300, 9000, 100),
            Collective(30, 300, 50_000, 100),
            SyncDevice(100),
        ]
    return [*body, Op(500)]


def job(*ranks: list[Statement]) -> TraceSet:
    program = Program(list(ranks))
    return linked_ranks(program, play(program))


@pytest.fixture(scope="module")
def late() -> TraceSet:
    return job(steps(10), steps(10, 80_000, slow=4), steps(10))


@pytest.fixture(scope="module")
def pair(data: Path) -> TraceSet:
    folder = data / "torch213/tp_2rank"
    files = [(folder / f"host.{r}.json.gz", folder / f"device.{r}.json.gz") for r in (0, 1)]
    return TraceSet({rank: convert(*file).trace for rank, file in enumerate(files)})


def test_clocks_are_told_to_the_nanosecond_where_members_end_together(late: TraceSet) -> None:
    told = Job.of(late).clocks()
    # The profile writes microseconds with three digits.
    assert [round(clock.ahead_ns) for clock in told.values()] == [0, APART_NS, 2 * APART_NS]
    assert all(clock.drift_ppm == pytest.approx(0, abs=1e-6) for clock in told.values())
    assert all(clock.residual_ns < 1 for clock in told.values())
    back = aligned(late, told)
    ends = [trace.nodes.start_ns[trace.nodes.name_code >= 0].max() for trace in back.values()]
    assert max(ends) - min(ends) < 100_000


def wrong_clock(trace: Trace, ahead_ns: int, ppm: float) -> Trace:
    """A trace as recorded by a clock that is ahead and fast."""
    known = trace.nodes.start_ns[trace.nodes.start_ns != UNKNOWN_NS]
    return on_clock(trace, Clock(-float(ahead_ns), -ppm, int(known.min()), 0, 0.0))


@pytest.mark.parametrize("run", ["torch213/tp_2rank", "torchrec4"])
def test_an_injected_error_of_a_second_and_50_ppm_is_found(data: Path, run: str) -> None:
    folder = data / run
    traces = {}
    for rank in (0, 1):
        host = folder / f"host.{rank}.json.gz"
        device = folder / f"device.{rank}.json.gz"
        traces[rank] = convert(host if host.exists() else None, device).trace
    good = Job.of(TraceSet(traces))
    bad = Job.of(TraceSet({0: traces[0], 1: wrong_clock(traces[1], 10**9, 50.0)}))
    timed = good.columns[1].timed
    right = good.clocks()[1].to_common(good.columns[1].start[timed])
    found = bad.clocks()[1].to_common(bad.columns[1].start[timed])
    assert np.abs(found - right).max() <= 20_000


def test_ranks_that_never_meet_have_no_common_clock() -> None:
    alone: list[Statement] = [Op(2000), Launch(7, 300, 900, 10), SyncDevice(10)]
    with pytest.raises(ChakraError, match=r"clocks of ranks \[1\] cannot be told"):
        Job.of(job(alone, alone)).clocks()
    with pytest.raises(ChakraError, match="one rank has nobody"):
        Job.of(job(alone)).clocks()


def test_skew_is_laid_to_what_made_the_last_rank_late(late: TraceSet) -> None:
    analysed = Job.of(late)
    found = skews(analysed.columns, analysed.matching.matches, analysed.clocks())
    worst = found[0]
    assert worst.place == "group '0', call 4"
    assert (worst.last, worst.skew_ns) == (1, 78_000)
    assert worst.cause is not None
    assert worst.cause.startswith("op ")
    assert worst.share == pytest.approx(1.0)
    # Ranks of the machine begin 7 us apart; after the first meeting they are together.
    assert [skew.skew_ns > 100 for skew in found[1:]] == [True] + [False] * 8


def test_a_skew_is_laid_to_the_caller_whose_time_it_was() -> None:
    """A host node lasts to the next start, so it holds what its caller does behind it."""
    traces = {}
    for rank, behind in enumerate((100, 50_000)):
        then: dict[str, Any] = {"kind": EdgeKind.PROGRAM, "is_cpu_op": True}
        view = {"name": "view", "time_parts": f"2:{behind}", **then}
        reduce = {**coll(4, start=10_200 + behind, took=90_000 - behind), "deps": (3,)}
        traces[rank] = trace(
            coll(1, start=0, took=10_000),
            node(2, deps=(1,), start=10_000, took=100, name="addmm", **then),
            node(3, deps=(2,), start=10_100, took=100 + behind, **view),
            {**reduce, "kind": EdgeKind.PROGRAM},
            rank=rank,
            world=2,
        )
    run = Job.of(TraceSet(traces))
    worst = skews(run.columns, run.matching.matches, run.clocks())[0]
    assert (worst.last, worst.cause, worst.share) == (1, "addmm", 1.0)


def test_a_host_that_is_slower_in_3_of_10_steps_is_named() -> None:
    random = np.random.default_rng(3)
    host = (10_000_000 * (1 + random.normal(0, 0.005, (8, 10)))).astype(np.int64)
    host[:, 7] *= 2  # A step that is slow everywhere is nobody's fault.
    host[5, [2, 4, 9]] = host[5, [2, 4, 9]] * 11 // 10
    work = Work(tuple(range(8)), tuple(range(10)), {"host": host})
    (found,) = stragglers(work)
    assert (found.rank, found.what, found.steps) == (5, "host", (2, 4, 9))
    assert found.excess == pytest.approx(0.1, abs=0.02)
    two = Work((0, 1), tuple(range(10)), {"host": np.delete(host, 7, 1)[[4, 5]]})
    assert [s.rank for s in stragglers(two)] == [1]


def test_nobody_is_named_where_all_are_alike() -> None:
    host = np.full((8, 10), 10_000_000, np.int64)
    host[3, 1] += 9_000_000  # Once is chance.
    assert stragglers(Work(tuple(range(8)), tuple(range(10)), {"host": host})) == []


def test_of_eight_ranks_the_one_that_never_comes_is_named() -> None:
    ranks = [steps(3) for _ in range(8)]
    traces = job(*ranks)
    short = traces[6].nodes
    last = int(np.flatnonzero(short.name == [n for n in short.name if "AllReduce" in n][-1])[0])
    cut = convert_without(traces[6], last)
    found = find_hang(TraceSet({**traces, 6: cut}))
    assert found.suspects == [6]
    (stall,) = found.stalls
    assert (stall.place, stall.what, stall.absent) == (2, "ALL_REDUCE", (6,))
    assert stall.waiting == (0, 1, 2, 3, 4, 5, 7)


def convert_without(trace: Trace, row: int) -> Trace:
    """The trace of a rank that was stopped before a node."""
    from chakra_et.passes.edit import without_nodes

    gone = np.arange(len(trace.nodes)) >= row
    return without_nodes(trace, gone)


def test_a_rank_without_a_trace_is_the_first_suspect(late: TraceSet) -> None:
    found = find_hang(TraceSet({rank: late[rank] for rank in (0, 2)}))
    assert found.suspects == [1]
    assert find_hang(late).suspects == []


def test_the_path_goes_through_the_late_rank(late: TraceSet) -> None:
    _, last, stretches = job_path(late)
    assert last in late
    assert {stretch.rank for stretch in stretches} >= {1}
    slow = max(stretches, key=lambda s: s.longest_ns if s.longest.startswith("op") else 0)
    assert (slow.rank, slow.longest_ns) == (1, 80_000)


def test_stretches_of_the_path_follow_each_other_in_time(late: TraceSet) -> None:
    """Rank 0 waits for rank 1 in its collective: that time is a stretch of rank 1."""
    done, last, stretches = job_path(late)
    assert all(stretch.ns >= 0 for stretch in stretches)
    assert sum(stretch.ns for stretch in stretches) == pytest.approx(
        done.figures[last].span_ns, rel=0.05
    )
    assert sum(s.ns for s in stretches if s.rank == 1) > 80_000


def test_operations_are_those_of_the_shapes(pair: TraceSet) -> None:
    found = utilisation(Job.of(pair).columns)
    assert found[0].flops == found[1].flops > 0
    table = mfu_table(Job.of(pair), 1e12)
    assert table["mfu_share"][0] == pytest.approx(table["flops_per_s"][0] / 1e12)


def test_every_analysis_is_a_table(late: TraceSet) -> None:
    analysed = Job.of(late)
    for name, table in TABLES.items():
        assert table(analysed).name == name


def test_a_receive_hangs_where_no_send_came() -> None:
    """Rank 2 waits for rank 1, which waits for rank 0, which waits for nobody."""
    late = TraceSet({
        0: trace(send(1, 1, start=0, took=5), node(2, start=10, took=5), rank=0),
        1: trace(recv(1, 0, start=0, took=5), recv(2, 0, start=10, took=0), rank=1),
        2: trace(recv(1, 1, start=0, took=0), rank=2),
    })  # fmt: skip
    found = find_hang(late)
    assert [(stall.place, stall.what, stall.waiting, stall.absent) for stall in found.stalls] == [
        (1, "COMM_RECV", (1,), (0,)),
        (0, "COMM_RECV", (2,), (1,)),
    ]
    assert found.suspects == [0]


def test_messages_that_all_came_hold_nobody_up(data: Path) -> None:
    ring = read_set(data / "et/ring8")
    assert find_hang(ring).stalls == []
    assert find_hang(TraceSet({r: t for r, t in ring.items() if r != 3})).suspects == [3]
