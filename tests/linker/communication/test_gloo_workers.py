"""Transfers on worker threads of a backend: who asked, who waits, and how long they take."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import Profile

from chakra_et.conversion import Conversion, convert
from chakra_et.model import Node
from chakra_et.replay import replay

WORKER = 4009


def recording(*, first: int = 11, wait: str = "_c10d_functional::wait_tensor") -> Profile:
    """Two transfers on one worker, 2 ms apart; the main thread waits for the first.

    The first call still runs when the worker begins, the second has ended long before.
    """
    return (
        Profile()
        .op("c10d::allreduce_", 0, 100, rf_id=10)
        .op("gloo:all_reduce", 40, 600, rf_id=first, tid=WORKER, cat="user_annotation")
        .op("wrap", 110, 5, rf_id=12)
        .op(wait, 120, 530, rf_id=13)
        .op("compute", 660, 1900, rf_id=14)
        .op("c10d::allreduce_", 2600, 20, rf_id=15)
        .op("compute", 2620, 500, rf_id=17)
        .op("gloo:all_reduce", 2700, 200, rf_id=16, tid=WORKER, cat="user_annotation")
    )


def converted(profile: Profile, folder: Path) -> Conversion:
    return convert(None, profile.write(folder / "device.json"))


def times(node: Node, base: int = Profile.base_ns) -> tuple[float, float]:
    """Where a node's own time begins, and how long it lasts, in us."""
    assert node.start_ns is not None
    begin = node.attributes.get("own_start_ns", node.start_ns)
    assert isinstance(begin, int)
    return (begin - base) / 1000, int(node.duration_ns) / 1000


def thread_edges(result: Conversion) -> dict[tuple[float, float], bool]:
    """By the recorded starts of both ends in us; the value says whether the edge is inferred."""
    trace = result.trace
    start = ((trace.nodes.start_ns - Profile.base_ns) / 1000).tolist()
    return {
        (start[trace.nodes.by_id(int(source)).row], start[row]): guessed
        for row in range(len(trace.nodes))
        for source, kind, guessed in trace.edges.into(row)
        if kind.label == "thread"
    }


def test_a_transfer_lasts_as_long_as_its_record(tmp_path: Path) -> None:
    first, second = converted(recording(), tmp_path).trace.nodes.where(name="gloo:all_reduce")
    assert times(first) == (40, 600)
    assert times(second) == (2700, 200)


def test_the_operation_whose_number_comes_before_asked_for_it(tmp_path: Path) -> None:
    result = converted(recording(), tmp_path)
    edges = thread_edges(result)
    assert edges[0, 40] is False
    assert edges[2600, 2700] is False
    joins = {j.by: j.matched for j in result.report.joins if j.what.startswith("waits of threads")}
    assert joins["record function id"] == 2


def test_a_call_that_still_runs_hands_over_as_the_transfer_begins(tmp_path: Path) -> None:
    nodes = converted(recording(), tmp_path).trace.nodes
    first, second = nodes.where(name="c10d::allreduce_")
    assert times(first) == (0, 40)
    assert times(*nodes.where(name="wrap")) == (40, 80)
    assert times(second) == (2600, 20)
    assert [t.late_ns for t in nodes.where(name="gloo:all_reduce")] == [None, 80_000]


def test_another_number_before_tells_nothing(tmp_path: Path) -> None:
    result = converted(recording(first=9), tmp_path)
    assert (0, 40) not in thread_edges(result)


def test_an_operation_that_waits_begins_when_the_transfer_has_ended(tmp_path: Path) -> None:
    result = converted(recording(), tmp_path)
    assert thread_edges(result)[40, 120] is True
    (wait,) = result.trace.nodes.where(start_ns=Profile.base_ns + 120_000)
    assert times(wait) == (640, 20)


def test_other_operations_beside_a_transfer_do_not_wait(tmp_path: Path) -> None:
    result = converted(recording(wait="aten::mm"), tmp_path)
    assert (40, 120) not in thread_edges(result)
    (other,) = result.trace.nodes.where(start_ns=Profile.base_ns + 120_000)
    assert times(other) == (120, 540)


@pytest.mark.parametrize(("factor", "span"), [(1.0, 3120), (0.5, 2820), (0.0, 2600)])
def test_a_faster_transfer_lets_the_waiting_thread_go_on(
    tmp_path: Path, factor: float, span: int
) -> None:
    """Without any, the main thread's own 2600 us are left."""
    trace = converted(recording(), tmp_path).trace
    done = replay(trace, scale=[("name=gloo:all_reduce", factor)])
    assert done.figures[0].span_ns == span * 1000


def test_what_a_backend_does_inside_a_transfer_is_over_with_it(tmp_path: Path) -> None:
    """A gather copies what came in; the worker then idles for 2 ms, which is nobody's time.

    The transfer has its whole time, and tells what of it went into the copy.
    """
    profile = (
        Profile()
        .op("c10d::allgather_", 0, 20, rf_id=10)
        .op("gloo:all_gather", 40, 600, rf_id=11, tid=WORKER, cat="user_annotation")
        .op("aten::copy_", 500, 80, rf_id=12, tid=WORKER)
        .op("c10d::allreduce_", 2600, 20, rf_id=13)
        .op("gloo:all_reduce", 2700, 200, rf_id=14, tid=WORKER, cat="user_annotation")
    )
    result = converted(profile, tmp_path)
    nodes = result.trace.nodes
    (gather,), (copy,) = nodes.where(name="gloo:all_gather"), nodes.where(name="aten::copy_")
    assert times(gather) == (40, 600)
    assert times(copy) == (640, 0)
    assert gather.time_parts == f"{copy.id}:80000"
    assert times(*nodes.where(name="gloo:all_reduce")) == (2700, 200)
    assert {(0, 40), (2600, 2700)} <= set(thread_edges(result))


def test_a_transfer_follows_what_its_request_did_last(tmp_path: Path) -> None:
    """A reduce-scatter copies its input before it asks for an all-reduce."""
    profile = (
        Profile()
        .op("c10d::_reduce_scatter_base_", 0, 100, rf_id=10)
        .op("aten::copy_", 20, 30, rf_id=11)
        .op("gloo:all_reduce", 80, 600, rf_id=12, tid=WORKER, cat="user_annotation")
        .op("gloo:all_reduce", 90, 700, rf_id=13, tid=WORKER + 1, cat="user_annotation")
    )
    edges = thread_edges(converted(profile, tmp_path))
    assert edges == {(20, 80): False, (20, 90): False}


def test_threads_that_ask_at_the_same_time_are_told_apart_by_their_workers(tmp_path: Path) -> None:
    """A checkpoint is saved beside the training; ids are given to both threads in turn.

    Most of what a worker does is asked for by the thread that it serves. A call of that which has
    ended asks no more.
    """
    saver, its_worker = 4021, 4022
    profile = (
        Profile()
        .op("c10d::_reduce_scatter_base_", 0, 20, rf_id=10)
        .op("gloo:all_reduce", 30, 50, rf_id=11, tid=WORKER, cat="user_annotation")
        .op("c10d::allgather_", 100, 20, rf_id=12, tid=saver)
        .op("gloo:all_gather", 130, 50, rf_id=13, tid=its_worker, cat="user_annotation")
        .op("c10d::_reduce_scatter_base_", 200, 90, rf_id=14)
        .op("c10d::allgather_", 210, 70, rf_id=15, tid=saver)
        .op("aten::copy_", 220, 10, rf_id=16)
        .op("aten::view", 240, 10, rf_id=17, tid=saver)
        .op("gloo:all_reduce", 300, 50, rf_id=18, tid=WORKER, cat="user_annotation")
        .op("gloo:all_gather", 310, 50, rf_id=19, tid=its_worker, cat="user_annotation")
        .op("c10d::allreduce_", 400, 20, rf_id=20)
        .op("gloo:all_reduce", 430, 50, rf_id=21, tid=WORKER, cat="user_annotation")
        .op("c10d::allreduce_", 500, 20, rf_id=22)
        .op("gloo:all_reduce", 530, 50, rf_id=23, tid=WORKER, cat="user_annotation")
        .op("c10d::allgather_", 600, 20, rf_id=24, tid=saver)
        .op("gloo:all_gather", 630, 50, rf_id=25, tid=WORKER, cat="user_annotation")
    )
    edges = thread_edges(converted(profile, tmp_path))
    at_once = {(220, 300), (240, 310)}
    asked = {edge for edge, guessed in edges.items() if not guessed}
    assert asked == at_once | {(0, 30), (100, 130), (400, 430), (500, 530), (600, 630)}


def asked_inside(*, following: int = 700, wait: int = 600) -> Profile:
    """A function of autograd asks for a transfer, and returns when that has ended.

    `following` is when the thread goes on, `wait` for how long the function runs.
    """
    return (
        Profile()
        .op("Exchange", 0, wait, rf_id=10)
        .op("c10d::alltoall_base_", 10, 20, rf_id=11)
        .op("gloo:all_to_all", 40, 500, rf_id=12, tid=WORKER, cat="user_annotation")
        .op("aten::mm", following, 100, rf_id=13)
    )


@pytest.mark.parametrize(("factor", "span"), [(1.0, 800), (0.5, 550), (2.0, 1300)])
def test_an_operation_that_asked_and_then_did_nothing_waited(
    tmp_path: Path, factor: float, span: int
) -> None:
    trace = converted(asked_inside(), tmp_path).trace
    assert replay(trace, scale=[("name=gloo:all_to_all", factor)]).figures[0].span_ns == span * 1000
    (after,) = trace.nodes.where(name="aten::mm")
    (function,) = trace.nodes.where(name="Exchange")
    assert times(after) == (540, 260)
    assert after.time_parts == f"{function.id}:60000 gap:100000"


def test_who_wakes_late_has_waited_no_less(tmp_path: Path) -> None:
    """The function has ended long before: Python waited, and woke 0.4 ms after the transfer."""
    result = converted(asked_inside(following=940, wait=35), tmp_path)
    assert thread_edges(result)[40, 940] is True
    (after,) = result.trace.nodes.where(name="aten::mm")
    assert times(after) == (540, 500)


def test_who_goes_on_before_the_transfer_has_ended_does_not_wait(tmp_path: Path) -> None:
    result = converted(asked_inside(following=450, wait=800), tmp_path)
    assert list(thread_edges(result)) == [(10, 40)]


def test_a_short_pause_after_asking_is_no_wait(tmp_path: Path) -> None:
    profile = (
        Profile()
        .op("c10d::allreduce_", 0, 20, rf_id=10)
        .op("gloo:all_reduce", 30, 40, rf_id=11, tid=WORKER, cat="user_annotation")
        .op("aten::mm", 90, 100, rf_id=12)
    )
    assert list(thread_edges(converted(profile, tmp_path))) == [(0, 30)]
