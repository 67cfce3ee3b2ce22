"""Messages over gloo: their ranges lie on the thread that asked for them, and run beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from gloo import GlooRun
from recordings import Profile

from chakra_et import validate
from chakra_et.conversion import Conversion, convert, trace_set
from chakra_et.directory import convert_directory
from chakra_et.replay import replay

RANGE = {"cat": "user_annotation"}


def exchange(profile: Profile | None = None, *, backend: str = "gloo") -> Profile:
    """A receive, then a send; both end where the thread has waited for them, 1 ms later."""
    return (
        (profile or Profile())
        .op("c10d::recv_", 0, 60, rf_id=10)
        .op(f"{backend}:recv", 40, 1000, rf_id=11, **RANGE)
        .op("c10d::send", 100, 50, rf_id=12)
        .op(f"{backend}:send", 120, 1180, rf_id=13, **RANGE)
        .op("aten::add", 1310, 100, rf_id=14)
    )


def converted(profile: Profile, folder: Path) -> Conversion:
    return convert(None, profile.write(folder / "device.json"))


def edges(result: Conversion) -> set[tuple[str, str, str]]:
    trace = result.trace
    return {
        (trace.node(int(source)).name, kind.label, trace.nodes[row].name)
        for row in range(len(trace.nodes))
        for source, kind, _ in trace.edges.into(row)
    }


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_a_message_waits_for_the_call_that_asked_and_holds_up_no_other(
    tmp_path: Path, backend: str
) -> None:
    found = edges(converted(exchange(backend=backend), tmp_path))
    assert ("c10d::recv_", "thread", f"{backend}:recv") in found
    assert ("c10d::recv_", "program", "c10d::send") in found
    assert ("c10d::send", "thread", f"{backend}:send") in found
    assert (f"{backend}:recv", "thread", "c10d::send") not in found
    assert (f"{backend}:recv", "program", "c10d::send") not in found


def test_a_message_lasts_as_long_as_its_range(tmp_path: Path) -> None:
    nodes = converted(exchange(), tmp_path).trace.nodes
    (receive,), (send,) = (nodes.where(name=f"gloo:{side}") for side in ("recv", "send"))
    assert (receive.duration_ns, send.duration_ns) == (1_000_000, 1_180_000)


def test_the_thread_waits_where_a_range_ended(tmp_path: Path) -> None:
    result = converted(exchange(), tmp_path)
    assert {("gloo:recv", "thread", "aten::add"), ("gloo:send", "thread", "aten::add")} <= edges(
        result
    )
    trace = result.trace
    assert replay(trace).figures[0].span_ns == 1_410_000
    # The send ends 260 us after the receive; without both, the thread's own time is left.
    without_send = replay(trace, scale=[("name=gloo:send", 0.0)]).figures[0].span_ns
    assert without_send == 1_410_000 - 260_000


def test_no_time_of_a_call_is_lost_behind_the_beginning_of_its_range(tmp_path: Path) -> None:
    """What follows has it; where that waits, a node of its own."""
    nodes = converted(exchange(), tmp_path).trace.nodes
    (receive,) = nodes.where(name="c10d::recv_")
    send, rest = nodes.where(name="c10d::send")
    assert (receive.duration_ns, send.duration_ns, rest.duration_ns) == (40_000, 80_000, 30_000)


def test_messages_are_numbered_right_after_who_asked(tmp_path: Path) -> None:
    names = [node.name for node in converted(exchange(), tmp_path).trace.nodes]
    assert names[:4] == ["c10d::recv_", "gloo:recv", "c10d::send", "gloo:send"]


def test_without_ids_the_operation_in_which_a_range_begins_asked(tmp_path: Path) -> None:
    profile = exchange()
    for event in profile.events:
        event["args"].pop("Record function id")
    found = edges(converted(profile, tmp_path))
    assert ("c10d::send", "program", "gloo:send") not in found
    assert {("c10d::recv_", "thread", "gloo:recv"), ("c10d::send", "thread", "gloo:send")} & found


def test_two_ranks_that_receive_before_they_send_do_not_wait_in_a_circle(tmp_path: Path) -> None:
    run = GlooRun(2)
    for rank, other in ((0, 1), (1, 0)):
        run.ask_message(rank, "recv", other, 1000, tag=1, us=(0, 60, 40, 900))
        run.ask_message(rank, "send", other, 1000, tag=1, us=(100, 50, 120, 860))
    conversions = convert_directory(run.write(tmp_path / "in"), None)
    traces = trace_set(conversions)
    assert not validate(traces).exit_code()
    assert all(figure.span_error == 0 for figure in replay(traces).figures.values())


def test_collectives_are_ordered_as_they_were_asked_for(tmp_path: Path) -> None:
    """On rank 1 the second of two worker threads begins first."""
    run = GlooRun(2)
    run.collective("all_reduce", (0, 1), 4810, late_us={1: 400}, step_us=200)
    run.collective("all_reduce", (0, 1), 2112)
    traces = trace_set(convert_directory(run.write(tmp_path / "in"), None))
    for trace in traces.values():
        sizes = [node.comm_size for node in trace.nodes.where(name="gloo:all_reduce")]
        assert sizes == [4810 * 4, 2112 * 4]
    assert not validate(traces).exit_code()
