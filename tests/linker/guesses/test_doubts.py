"""Guesses that another step of the recording, or another rank of the run, shows to be wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from accounts import converted, names
from recordings import BACKWARD, Profile

from chakra_et import convert_directory
from chakra_et.conversion import Conversion
from chakra_et.linker.guesses.other_ranks import Guesses, History, judged_by_others
from chakra_et.model import EdgeKind
from chakra_et.replay import replay

STEP_US = 1000
WORKER = 4009
CALL = "cudaLaunchKernel"


def step(
    profile: Profile,
    number: int,
    beside_us: float,
    *,
    name: str = "ProfilerStep#{}",
    beside: str = "beside",
) -> None:
    """Work on streams 7 and 9, then a call that makes some stream wait, then work on stream 11.

    Of the two the work on stream 9 is what a guess takes, if it has ended before the wait is over.
    """
    at, first = number * STEP_US, 10 * number
    profile.op(name.format(number), at, STEP_US - 10, cat="user_annotation")
    profile.op("aten::mm", at + 5, 30).call(CALL, at + 10, 5, first + 1)
    profile.kernel("gemm", at + 20, 100, first + 1, stream=7)
    profile.op("aten::add", at + 40, 30).call(CALL, at + 45, 5, first + 2)
    profile.kernel(beside, at + 60, beside_us, first + 2, stream=9)
    profile.op("aten::mul", at + 80, 60).call("cudaStreamWaitEvent", at + 82, 2, first + 3)
    profile.call(CALL, at + 90, 5, first + 4).kernel("waits", at + 200, 50, first + 4, stream=11)


def steps(*beside_us: float, **options: str) -> Profile:
    profile = Profile()
    for number, lasts in enumerate(beside_us):
        step(profile, number, lasts, **options)
    return profile


def events(result: Conversion) -> list[tuple[str, int]]:
    """Where inferred events come from, and the step that they are in."""
    trace, told = result.trace, names(result)
    rows = np.flatnonzero((trace.edges.kind == EdgeKind.EVENT) & trace.edges.inferred)
    begin = (trace.nodes.start_ns - trace.nodes.start_ns.min()) // (STEP_US * 1000)
    return [(told[trace.source_rows()[row]], int(begin[trace.edges.target[row]]))
            for row in rows.tolist()]  # fmt: skip


def linked(profile: Profile, folder: Path) -> Conversion:
    return converted(None, profile.write(folder / "device.json"))


def tally(result: Conversion, others: str, kind: str = "event") -> tuple[int, int]:
    what = f"inferred {kind} edges that other {others} show"
    (join,) = (join for join in result.report.joins if join.what == what)
    return join.matched, join.of


@pytest.mark.parametrize("name", ["ProfilerStep#{}", "Iteration {}", "train_step"])
def test_what_another_step_refutes_is_left_out(tmp_path: Path, name: str) -> None:
    """In the last step the work on stream 9 still runs when its supposed waiter begins."""
    result = linked(steps(130, 130, 170, name=name), tmp_path)
    assert events(result) == [("gemm", 2)]
    assert tally(result, "steps") == (1, 3)
    assert ("2 inferred event edges were left out, as another step or rank refutes them"
            in result.report.warnings)  # fmt: skip


def test_what_all_steps_show_is_believed(tmp_path: Path) -> None:
    result = linked(steps(130, 120, 100), tmp_path)
    assert events(result) == [("beside", 0), ("beside", 1), ("beside", 2)]
    assert tally(result, "steps") == (3, 3)
    assert not [warning for warning in result.report.warnings if "refutes" in warning]


def test_a_clock_that_rounds_refutes_nothing(tmp_path: Path) -> None:
    assert ("beside", 0) in events(linked(steps(130, 141), tmp_path))
    assert ("beside", 0) not in events(linked(steps(130, 142), tmp_path))


def test_steps_that_do_something_else_are_no_evidence(tmp_path: Path) -> None:
    profile = steps(130, 130)
    step(profile, 2, 170, beside="another kernel")
    assert ("beside", 0) in events(linked(profile, tmp_path))


def test_steps_that_are_not_alike_are_no_steps(tmp_path: Path) -> None:
    profile = steps(130)
    profile.op("ProfilerStep#1", STEP_US, STEP_US, cat="user_annotation")
    for number in range(20):
        profile.op(f"aten::op{number}", STEP_US + 20 + 40 * number, 20)
    result = linked(profile, tmp_path)
    assert events(result) == [("beside", 0)]
    assert not [join for join in result.report.joins if "other steps" in join.what]


def threads(*late_us: float) -> Profile:
    """In each step a second thread begins to work after a pause, as the first one ends something.

    It begins `late_us` after that; where it begins before that, it has slept.
    """
    profile = Profile()
    for number, late in enumerate(late_us):
        at = number * STEP_US
        profile.op(f"ProfilerStep#{number}", at, STEP_US - 10, cat="user_annotation")
        profile.op("aten::first", at + 5, 500).op("aten::next", at + 505, 400)
        profile.op("aten::early", at + 260, 20, tid=BACKWARD)
        profile.op("aten::second", at + 505 + late, 100, tid=BACKWARD)
    return profile


def waits(result: Conversion) -> int:
    return sum(kind == EdgeKind.THREAD for kind in result.trace.edges.kind.tolist())


def test_a_thread_that_another_step_shows_to_have_slept_has_slept(tmp_path: Path) -> None:
    """Its pause is time of its own then, so that the recording still replays as it was."""
    always, once = (linked(threads(*late), tmp_path) for late in ((20, 30, 10), (20, -30, 10)))
    assert [waits(always), waits(once)] == [3, 0]
    assert tally(always, "steps", "thread") == (3, 3)
    assert tally(once, "steps", "thread") == (0, 2)
    for result in (always, once):
        assert replay(result.trace).figures[0].span_error == 0


def transfers(*late_us: float) -> Profile:
    """In each step a worker runs a transfer, for which the thread that asked does not wait at once.

    It does something else, then nothing until `late_us` after the transfer has ended; where it goes
    on before that, it has slept.
    """
    profile = Profile()
    for number, late in enumerate(late_us):
        at, first = number * STEP_US, 10 * number
        profile.op(f"ProfilerStep#{number}", at, STEP_US - 10, cat="user_annotation")
        profile.op("c10d::allreduce_", at + 10, 20, rf_id=first + 1)
        profile.op("gloo:all_reduce", at + 40, 460, rf_id=first + 2, tid=WORKER,
                   cat="user_annotation")  # fmt: skip
        profile.op("aten::other", at + 50, 100, rf_id=first + 3)
        profile.op("aten::next", at + 500 + late, 100, rf_id=first + 4)
    return profile


def test_that_a_thread_waited_for_a_transfer_is_tested_where_times_alone_tell_it(
    tmp_path: Path,
) -> None:
    always, once = (linked(transfers(*late), tmp_path) for late in ((2, 3, 1), (2, -30, 1)))
    assert [int(result.trace.edges.inferred.sum()) for result in (always, once)] == [3, 0]
    assert tally(always, "steps", "thread") == (3, 3)
    assert tally(once, "steps", "thread") == (0, 2)
    for result in (always, once):
        assert replay(result.trace).figures[0].span_error == 0


# ---------------------------------------------------------------------------------------------
# Ranks


def run(folder: Path, *beside_us: float, **options: str) -> list[Conversion]:
    """One rank for each time, of one step each."""
    folder.mkdir()
    for rank, lasts in enumerate(beside_us):
        profile = Profile(info={"backend": "nccl", "rank": rank})
        step(profile, 0, lasts, **(options if rank else {}))
        for event in profile.events:
            event["pid"] += 0 if event["pid"] == 0 else rank
        profile.write(folder / f"device.{rank}.json")
    return list(convert_directory(folder, None))


def test_what_another_rank_refutes_is_left_out(tmp_path: Path) -> None:
    first, second, third = run(tmp_path / "run", 130, 170, 120)
    assert [events(result) for result in (first, second, third)] == [[], [("gemm", 0)], []]
    assert [tally(result, "ranks") for result in (first, second, third)] == [(0, 1), (1, 1), (0, 1)]


def test_what_all_ranks_show_is_believed(tmp_path: Path) -> None:
    found = run(tmp_path / "run", 130, 120, 110)
    assert [events(result) for result in found] == [[("beside", 0)]] * 3
    assert [tally(result, "ranks") for result in found] == [(1, 1)] * 3


def test_ranks_that_do_something_else_are_no_evidence(tmp_path: Path) -> None:
    first, _ = run(tmp_path / "run", 130, 170, beside="another kernel")
    assert events(first) == [("beside", 0)]


def test_ranks_are_held_against_each_other_whoever_converts_them(tmp_path: Path) -> None:
    run(tmp_path / "run", 130, 170)
    reports = []
    for jobs in (1, 2):
        convert_directory(tmp_path / "run", tmp_path / f"{jobs}", jobs=jobs)
        reports.append(
            [(tmp_path / f"{jobs}" / f"trace.{rank}.et").read_bytes() for rank in (0, 1)]
        )
    assert reports[0] == reports[1]


def test_threads_of_ranks_pair_by_what_they_do() -> None:
    """The threads of the second rank are numbered the other way round."""

    def history(thread: list[int], name: list[int], begin: list[int]) -> Guesses:
        columns = (np.array(c, np.int64) for c in (thread, name))
        begins = np.array(begin, np.int64) * 10_000
        ends = begins + 5_000
        pair = np.array([0]), np.array([2])
        return Guesses(
            {"thread": History(np.arange(4), *columns, list("abcd"), begins, ends, *pair)}
        )

    first = history([1, 1, 2, 2], [0, 1, 2, 3], [0, 2, 1, 3])
    same = history([2, 2, 1, 1], [0, 1, 2, 3], [0, 2, 1, 3])
    other = history([2, 2, 1, 1], [0, 1, 2, 3], [1, 2, 0, 3])
    assert judged_by_others([(0, first), (1, same)])[0].shown == {"thread": 1}
    verdict = judged_by_others([(0, first), (1, other)])[0]
    assert verdict.any_refuted
    assert verdict.refuted["thread"].tolist() == [[0], [2]]
