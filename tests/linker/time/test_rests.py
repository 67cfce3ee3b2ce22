"""What is left of a thread's work behind its last launch, and what begins a thread: kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import BACKWARD, MAIN, Profile

from chakra_et.conversion import Conversion, convert
from chakra_et.replay import replay

WORKER, OTHER = 4009, 4010


def converted(profile: Profile, folder: Path) -> Conversion:
    return convert(None, profile.write(folder / "device.json"))


def spans(result: Conversion) -> tuple[int, int]:
    """Replayed and recorded, in us."""
    (figures,) = replay(result.trace).figures.values()
    return figures.span_ns // 1000, figures.recorded_span_ns // 1000


def tail() -> Profile:
    """A kernel begins while its operation still runs, and the annotation goes on for long."""
    return (
        Profile()
        .op("inference", 0, 1000, cat="user_annotation")
        .op("aten::mm", 5, 20)
        .call("cudaLaunchKernel", 10, 5, 1)
        .kernel("gemm", 20, 10, 1)
    )


def test_the_rest_behind_the_last_launch_of_a_thread_is_a_node(tmp_path: Path) -> None:
    result = converted(tail(), tmp_path)
    assert spans(result) == (1000, 1000)
    (outer, rest), (product,) = (
        result.trace.nodes.where(name=n) for n in ("inference", "aten::mm")
    )
    assert rest.rest_of == outer.id
    assert rest.thread == outer.thread
    assert (rest.self_ns, rest.duration_ns) == (0, 980_000)
    assert rest.time_parts == f"{product.id}:5000 {outer.id}:975000"
    assert (outer.self_ns, product.self_ns) == (980_000, 15_000)
    assert list(result.report.added.values()) == [1]
    faster = replay(result.trace, scale=[("name=inference", 0.5)]).figures[0]
    assert faster.span_ns == 510_000


def test_it_waits_for_a_blocking_copy(tmp_path: Path) -> None:
    profile = (
        Profile()
        .op("item", 0, 100)
        .call("cudaMemcpy", 10, 60, 1)
        .kernel("Memcpy DtoH (Device -> Pageable)", 20, 40, 1, cat="gpu_memcpy")
    )
    result = converted(profile, tmp_path)
    assert spans(result) == (100, 100)
    (rest,) = (n for n in result.trace.nodes if n.rest_of)
    assert (rest.name, rest.duration_ns) == ("item", 40_000)
    assert replay(result.trace, scale=[("name~Memcpy DtoH", 3)]).figures[0].span_ns == 180_000


def test_what_was_left_before_a_wait_is_not_lost_in_it(tmp_path: Path) -> None:
    """A faster kernel ends the wait earlier, but what the host did before takes as long as ever."""
    profile = (
        Profile()
        .op("aten::mm", 0, 400)
        .call("cudaLaunchKernel", 10, 10, 1)
        .kernel("gemm", 30, 970, 1)
        .call("cudaDeviceSynchronize", 500, 510, 2)
    )
    result = converted(profile, tmp_path)
    assert spans(result) == (1010, 1010)
    (product,) = (n for n in result.trace.nodes if n.name == "aten::mm" and not n.rest_of)
    assert product.self_ns == 390_000
    assert replay(result.trace, scale=[("name=gemm", 0.1)]).figures[0].span_ns == 510_000


def test_the_rest_before_a_wait_for_another_thread(tmp_path: Path) -> None:
    profile = (
        Profile()
        .op("forward", 0, 300, **{"Sequence number": 1, "Fwd thread id": 0})
        .call("cudaLaunchKernel", 10, 10, 1)
        .kernel("gemm", 30, 20, 1)
        .op("backward", 310, 500, tid=BACKWARD, **{"Sequence number": 1, "Fwd thread id": 1})
        .op("step", 820, 100)
    )
    result = converted(profile, tmp_path)
    assert spans(result) == (920, 920)
    (rest,) = (n for n in result.trace.nodes if n.rest_of)
    assert (rest.name, rest.duration_ns) == ("forward", 280_000)


def test_a_thread_that_ends_by_asking_for_a_transfer_goes_on(tmp_path: Path) -> None:
    profile = (
        Profile()
        .op("ProfilerStep#1", 0, 5000, cat="user_annotation")
        .op("c10d::allreduce_", 100, 100, rf_id=10)
        .op("gloo:all_reduce", 150, 600, rf_id=11, tid=WORKER, cat="user_annotation")
    )
    assert spans(converted(profile, tmp_path)) == (5000, 5000)


def test_what_nobody_ended_just_before_begins_a_thread_when_it_did(tmp_path: Path) -> None:
    profile = (
        Profile()
        .op("main", 0, 100, tid=MAIN)
        .op("first", 700, 400, tid=WORKER)
        .op("second", 900, 1000, tid=OTHER)
    )
    result = converted(profile, tmp_path)
    assert spans(result) == (1900, 1900)
    (main,), (first,), (second,) = (
        result.trace.nodes.where(name=name) for name in ("main", "first", "second")
    )
    assert first.edges == [(main.id, *first.edges[0][1:])]
    assert second.edges == [(main.id, *second.edges[0][1:])]
    assert (first.late_ns, second.late_ns) == (600_000, 800_000)
    assert first.edges[0][2], "it is a guess"
    assert replay(result.trace, scale=[("name=main", 0)]).figures[0].span_ns == 1_800_000


def test_the_first_thread_of_all_waits_for_nobody(tmp_path: Path) -> None:
    profile = Profile().op("a", 0, 900, tid=MAIN).op("b", 300, 100, tid=WORKER)
    result = converted(profile, tmp_path)
    assert spans(result) == (900, 900)
    assert [n.late_ns for n in result.trace.nodes] == [None, None]


def queued() -> Profile:
    """The last launch of a thread is over long before its stream is free, its operation is not."""
    return (
        Profile()
        .op("first", 0, 40)
        .call("cudaLaunchKernel", 10, 10, 1)
        .kernel("long", 25, 300, 1)
        .op("last", 50, 100)
        .call("cudaLaunchKernel", 60, 10, 2)
        .kernel("short", 326, 50, 2)
    )


@pytest.mark.parametrize("wait", ["", "cudaDeviceSynchronize", "cudaFree"])
def test_what_follows_a_launch_whose_work_had_to_queue_is_not_lost(
    tmp_path: Path, wait: str
) -> None:
    profile = queued().call(wait, 200, 180, 3) if wait else queued()
    trace = convert(None, profile.write(tmp_path / "device.json")).trace
    assert replay(trace).figures[0].span_error == 0
    (last,) = (n for n in trace.nodes.where(name="last") if not n.rest_of)
    (rest,) = (n for n in trace.nodes if n.rest_of)
    assert (last.self_ns, rest.rest_of, rest.duration_ns) == (
        90_000,
        last.id,
        130_000 if wait else 80_000,
    )
    # The work itself goes on as soon as the stream is free: its launch had ended with the call.
    (short,) = replay(trace, scale=[("name=long", 0)]).trace.nodes.where(name="short")
    assert short.start_ns - trace.nodes.start_ns.min() == 71_000


def test_a_call_lasts_until_what_waits_for_another_stream(tmp_path: Path) -> None:
    """No room is left for the rest of a call that only an event explains: it is the call's."""
    profile = queued().op("end", 500, 10)
    profile.events[-2]["tid"] = profile.events[-2]["args"]["stream"] = 20
    profile.call("cudaStreamWaitEvent", 52, 3, 3).call("cudaDeviceSynchronize", 200, 180, 4)
    trace = convert(None, profile.write(tmp_path / "device.json")).trace
    assert replay(trace).figures[0].span_error == 0
    (last,) = (n for n in trace.nodes.where(name="last") if not n.rest_of)
    assert last.self_ns == 87_000


def test_a_thread_that_begins_with_a_wait_begins_when_it_did(tmp_path: Path) -> None:
    """Another thread has launched what it waits for, before; nothing on its own came first."""
    profile = tail().call("cudaDeviceSynchronize", 500, 20, 9, tid=OTHER)
    trace = converted(profile, tmp_path).trace
    wait, again = (
        found.nodes.where(name="cudaDeviceSynchronize")[0] for found in (trace, replay(trace).trace)
    )
    assert again.start_ns == wait.start_ns


def test_a_call_does_not_wait_for_later_work_without_a_launch(tmp_path: Path) -> None:
    """What began after the call was over was launched after it, by whatever was not recorded."""
    profile = (
        Profile()
        .call("cudaLaunchKernel", 0, 5, 1)
        .kernel("before", 10, 100, 1)
        .call("cudaDeviceSynchronize", 20, 95, 2)
        .op("next", 120, 30)
        .kernel("unlaunched", 400, 50, 77)
        .kernel("unlaunched too", 410, 50, 78, stream=8)
        .call("cudaLaunchKernel", 500, 5, 3)
        .kernel("behind", 510, 20, 3)
        .call("cudaDeviceSynchronize", 520, 15, 4)
    )
    trace = convert(None, profile.write(tmp_path / "device.json")).trace
    done = replay(trace)
    assert done.figures[0].span_error == 0
    first, last = (
        {s for s, *_ in n.edges} for n in done.trace.nodes.where(name="cudaDeviceSynchronize")
    )
    names = {n.id: n.name for n in trace.nodes}
    assert {"unlaunched", "unlaunched too"} & {names[i] for i in first} == set()
    assert "behind" in {names[i] for i in last}


def test_a_call_waits_for_work_of_another_thread_whose_launch_had_ended(tmp_path: Path) -> None:
    """The launch's node lasts until its work begins, but the stream has the work before."""
    profile = (
        Profile()
        .op("a", 0, 60)
        .call("cudaLaunchKernel", 10, 5, 1)
        .kernel("late", 200, 500, 1)
        .op("b", 400, 900)
        .call("cudaDeviceSynchronize", 100, 602, 2, tid=OTHER)
        .op("then", 710, 400, tid=OTHER)
    )
    trace = converted(profile, tmp_path).trace
    assert replay(trace).figures[0].span_error == 0
    (then,) = replay(trace).trace.nodes.where(name="then")
    assert then.start_ns - trace.nodes.start_ns.min() == 710_000


def test_a_copy_that_had_returned_long_ago_does_not_hold_up_what_waits(tmp_path: Path) -> None:
    """The time to return runs beside the wait for another thread, not after it."""
    profile = (
        Profile()
        .op("main", 0, 465)
        .op("goes on", 466, 20)
        .call("cudaMemcpy", 50, 30, 1, tid=OTHER)
        .kernel("Memcpy DtoH (Device -> Pageable)", 55, 20, 1, cat="gpu_memcpy")
        .call("cudaMemcpy", 480, 30, 2, tid=OTHER)
        .kernel("Memcpy DtoH (Device -> Pageable)", 483, 20, 2, cat="gpu_memcpy")
        .op("then", 520, 300, tid=OTHER)
    )
    trace = converted(profile, tmp_path).trace
    assert replay(trace).figures[0].span_error == 0
    second = trace.nodes.where(name="cudaMemcpy")[1]
    assert second.return_ns == 5_000
    begins_ns = second.own_start_ns - trace.nodes.start_ns.min()
    assert begins_ns == 466_000, "when the other thread went on"
