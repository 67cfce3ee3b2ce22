"""Hand-over between threads: flows from forward to backward first, then sequence numbers."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from recordings import BACKWARD, MAIN, Profile

from chakra_et.columns import NO_ROW, UNTIMED
from chakra_et.conversion import Conversion, convert
from chakra_et.converters.kineto import read_device
from chakra_et.linker.edges.thread.forward_backward import find_forward_backward
from chakra_et.linker.edges.thread.host_time import _ended_elsewhere
from chakra_et.linker.joining import flow_ends as arrow_ends
from chakra_et.linker.joining.collect import collect
from chakra_et.model import EdgeKind, Trace
from chakra_et.replay import replay

OTHER = 4003
EVIDENCE = "arrow from a forward to its backward operation: evidence, not work"


def converted(profile: Profile, folder: Path) -> Conversion:
    return convert(None, profile.write(folder / "device.json"))


def thread_edges(trace: Trace) -> dict[tuple[str, str], bool]:
    """By the names of both ends; the value says whether the edge is inferred."""
    return {
        (trace.node(int(source)).name, trace.nodes[row].name): inferred
        for row in range(len(trace.nodes))
        for source, kind, inferred in trace.edges.into(row)
        if kind.label == "thread"
    }


def waits(result: Conversion) -> dict[str, int]:
    joins = result.report.joins
    return {j.by: j.matched for j in joins if j.what.startswith("waits of threads") and j.matched}


def two_forward_threads(*, flows: bool, numbers: tuple[int, int] = (5, 5)) -> Profile:
    """Two threads run forward operations; the backward thread follows the one that ended first."""
    profile = Profile()
    profile.op("left", 0, 100, tid=MAIN, **{"Sequence number": numbers[0], "Fwd thread id": 0})
    profile.op("right", 0, 140, tid=OTHER, **{"Sequence number": numbers[1], "Fwd thread id": 0})
    backward = {"Sequence number": 5, "Fwd thread id": 1}
    profile.op("wrapper", 150, 60, tid=BACKWARD)
    profile.op("inner", 155, 50, tid=BACKWARD, **backward)
    if flows:
        profile.flow("f", 1, 155, tid=BACKWARD).flow("s", 1, 0, tid=MAIN)
    return profile


def test_a_flow_tells_where_numbers_of_two_threads_are_equal(tmp_path: Path) -> None:
    result = converted(two_forward_threads(flows=True), tmp_path)
    edges = thread_edges(result.trace)
    assert edges["left", "wrapper"] is False
    assert ("right", "wrapper") not in edges
    assert waits(result)["fwdbwd flow"] == 1
    assert result.report.records["fwdbwd"].left_out == {EVIDENCE: 2}


def test_a_number_of_two_threads_names_none(tmp_path: Path) -> None:
    result = converted(two_forward_threads(flows=False), tmp_path)
    assert thread_edges(result.trace)["right", "wrapper"] is True
    assert "sequence number" not in waits(result)


def test_a_number_of_one_thread_names_it(tmp_path: Path) -> None:
    result = converted(two_forward_threads(flows=False, numbers=(5, 7)), tmp_path)
    assert thread_edges(result.trace)["left", "wrapper"] is False
    assert waits(result)["sequence number"] == 1


def test_a_backward_operation_waits_for_its_forward_one_without_a_gap(tmp_path: Path) -> None:
    """The backward thread is busy until then, so that no wait shows; the flow does."""
    profile = Profile()
    profile.op("first", 0, 10).op("forward", 300, 50).op("inside", 310, 20).op("rest", 350, 300)
    profile.op("busy", 120, 330, tid=BACKWARD).op("backward", 455, 20, tid=BACKWARD)
    profile.flow("s", 1, 300).flow("f", 1, 455, tid=BACKWARD)
    assert thread_edges(converted(profile, tmp_path).trace)["inside", "backward"] is False


def test_that_edge_is_left_out_where_a_wait_implies_it(tmp_path: Path) -> None:
    result = converted(two_forward_threads(flows=True), tmp_path)
    assert ("left", "inner") not in thread_edges(result.trace)


@pytest.mark.parametrize(
    ("ends", "pairs", "incomplete"),
    [
        ([("s", 1, 0.0), ("f", 1, 5.0)], 1, 0),
        ([("f", 1, 5.0), ("s", 1, 0.0)], 1, 0),
        ([("s", 1, 0.0), ("f", 2, 5.0)], 0, 2),
        ([("s", 1, 0.0), ("f", 1, 5.0), ("f", 1, 6.0)], 0, 3),
        ([("s", 1, 20.0), ("f", 1, 5.0), ("s", 1, 0.0), ("f", 1, 25.0)], 2, 0),
        ([], 0, 0),
    ],
)
def test_ends_of_arrows_pair_by_id(
    ends: list[tuple[str, int, float]], pairs: int, incomplete: int, tmp_path: Path
) -> None:
    profile = Profile().op("op", 0, 30)
    for phase, number, time in ends:
        profile.flow(phase, number, time)
    flows = read_device(profile.write(tmp_path / "device.json")).forward_flows
    assert (len(flows), flows.incomplete) == (pairs, incomplete)
    assert ((flows.source.time_ns - profile.base_ns) // 1000).tolist() == [0, 20][:pairs]
    assert ((flows.target.time_ns - profile.base_ns) // 1000).tolist() == [5, 25][:pairs]


@given(
    steps=st.lists(st.booleans(), max_size=30),
    arrows=st.lists(st.integers(0, 70), max_size=8, unique=True),
    climbs=st.sampled_from([0, 2, 64]),
)
def test_an_arrow_leads_to_the_innermost_operation_and_to_those_around_it(
    steps: list[bool], arrows: list[int], climbs: int
) -> None:
    """Held against the definition: of several arrows inside an operation, the first one counts."""
    open_now: list[int] = []
    begin: list[int] = []
    end: list[int] = []
    for time, opens in enumerate([*steps, *[False] * len(steps)]):
        if opens:
            open_now.append(len(begin))
            begin.append(time)
            end.append(len(steps) * 2)
        elif open_now:
            end[open_now.pop()] = time
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_ends, "_CLIMBS", climbs)
        found = handed_over(begin, end, arrows)

    followed: dict[int, int] = {}
    for arrow, time in enumerate(arrows):
        inside = [op for op in range(len(begin)) if begin[op] <= time <= end[op]]
        if inside:
            followed[inside[-1]] = arrow
    wanted = dict(followed)
    for target in sorted(followed, reverse=True):
        for op in range(target - 1, -1, -1):
            if end[op] > begin[target]:
                if op in followed:
                    break
                wanted[op] = followed[target]
    assert found == wanted


def handed_over(begin: list[int], end: list[int], arrows: list[int]) -> dict[int, int]:
    """The arrow that each of some nested operations follows; each has its forward operation."""
    profile = Profile()
    for arrow in range(len(arrows)):
        profile.op(f"forward {arrow}", 10 * arrow, 5)
    for op, (start, until) in enumerate(zip(begin, end, strict=True)):
        profile.op(f"op {op}", 1000 + start, until - start, tid=BACKWARD)
    for arrow, time in enumerate(arrows):
        profile.flow("s", arrow, 10 * arrow).flow("f", arrow, 1000 + time, tid=BACKWARD)
    with TemporaryDirectory() as folder:
        device = read_device(profile.write(Path(folder, "device.json")))
    table = collect(None, device, None)
    found = find_forward_backward(table, device)
    names = dict(enumerate(device.names))
    return {
        int(names[op].split()[1]): int(names[forward].split()[1])
        for op, forward in (
            (int(device.name[table.record[a]]), int(device.name[table.record[f]]))
            for a, f in enumerate(found.forward.tolist())
            if f != NO_ROW
        )
    }


def test_an_arrow_without_a_time_is_no_evidence(tmp_path: Path) -> None:
    profile = two_forward_threads(flows=True, numbers=(5, 7))
    profile.events[-1]["ts"] = "never"
    result = converted(profile, tmp_path)
    assert waits(result)["sequence number"] == 1
    assert result.report.records["fwdbwd"].left_out == {EVIDENCE: 2}


def test_flows_of_real_profiles(data: Path) -> None:
    for name, flows, told in (("kineto/train_mi250", 4, 1), ("resnet_rfid/device", 543, 3)):
        result = convert(None, data / f"{name}.json.gz")
        joined = [j for j in result.report.joins if j.by == "time on the thread"]
        assert [(j.matched, j.of) for j in joined] == [(flows, flows)]
        assert waits(result)["fwdbwd flow"] == told
        assert result.report.records["fwdbwd"].left_out == {EVIDENCE: 2 * flows}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=12),
       st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 10)), max_size=6))  # fmt: skip
def test_what_ended_last_on_another_thread(
    ended: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    lane, end, own, when = (
        np.array([pair[side] for pair in pairs], np.int64)
        for pairs in (ended, asked)
        for side in (0, 1)
    )
    known = [pair for pair in ended if pair[0] != 2]
    assume(known)
    expected = [
        max(((e, -other) for other, e in known if other != mine and e <= time), default=None)
        for mine, time in asked
    ]
    ends, lanes = _ended_elsewhere(lane, end, np.array([0, 1, 3]), own, when)
    assert ends.tolist() == [UNTIMED if e is None else e[0] for e in expected]
    assert lanes.tolist() == [NO_ROW if e is None else -e[1] for e in expected]


@pytest.mark.parametrize("category", ["user_annotation", "cpu_op"])
def test_a_thread_waits_within_an_annotation_which_does_nothing_itself(
    tmp_path: Path, category: str
) -> None:
    """Not so within an operation: that it waited is not known of it."""
    profile = (
        Profile()
        .op("forward", 0, 100)
        .op("backward pass", 100, 900, cat=category)
        .op("aten::mm", 150, 800, tid=BACKWARD)
        .op("step", 1010, 50)
    )
    trace = convert(None, profile.write(tmp_path / "device.json")).trace
    (product,), (step,) = trace.nodes.where(name="aten::mm"), trace.nodes.where(name="step")
    waits = category == "user_annotation"
    assert ((product.id, EdgeKind.THREAD, True) in step.edges) is waits
    assert replay(trace).figures[0].span_error == 0
    faster = replay(trace, scale=[("name=aten::mm", 0.5)]).figures[0]
    assert faster.span_ns == (660_000 if waits else 1_060_000)
