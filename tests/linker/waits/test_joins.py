"""Joins: nodes that stand between many that are waited for and many that wait."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pytest
from accounts import converted, names
from hypothesis import given
from hypothesis import strategies as st
from recordings import BACKWARD, MAIN, Profile

from chakra_et.conversion import Conversion
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.output.explain import explain
from chakra_et.linker.waits import joins
from chakra_et.model import EdgeKind
from chakra_et.replay import replay, resolving
from chakra_et.validators import Severity, validate

STREAMS, MESSAGES = "join of streams", "join of messages"
ADDED = "joins of many waits"


def launches_and_waits(steps: list[tuple[str, int]]) -> Profile:
    """One thread launches on streams and waits for all; a step is ("launch", stream) or a wait."""
    profile, at = Profile(), 0.0
    busy: dict[int, float] = {}
    for correlation, (what, number) in enumerate(steps, 1):
        if what == "launch":
            begin = max(at + 3, busy.get(number, 0))
            busy[number] = begin + 7 + number
            profile.call("cudaLaunchKernel", at, 2, correlation)
            profile.kernel(f"k{correlation}", begin, 7 + number, correlation, stream=number)
            at += 4
        else:
            tid = MAIN if number else BACKWARD
            end = max(at + 2, *busy.values(), 0)
            profile.call("cudaDeviceSynchronize", at, end - at, correlation, tid=tid)
            at = end + 1
    return profile


def linked(profile: Profile, many: int) -> Conversion:
    """The conversion with joins between more than so many nodes."""
    with TemporaryDirectory() as folder, patch.object(joins, "MANY", many):
        return converted(None, profile.write(Path(folder) / "device.json"))


def reach(result: Conversion) -> dict[tuple[str, int], set[tuple[str, int]]]:
    """What each node that is no join waits for, directly or not, by name and start."""
    trace = result.trace
    keys = list(zip(names(result), trace.nodes.start_ns.tolist(), strict=True))
    before: list[set[int]] = [set() for _ in keys]
    kinds = trace.edges.kind.tolist()
    for source, target, kind in zip(
        trace.source_rows().tolist(), trace.edges.target.tolist(), kinds, strict=True
    ):
        if kind != EdgeKind.CALL:
            before[target] |= {source, *before[source]}
    real = [not key[0].startswith("join") for key in keys]
    return {keys[row]: {keys[s] for s in found if real[s]}
            for row, found in enumerate(before) if real[row]}  # fmt: skip


def started(result: Conversion) -> list[tuple[str, int]]:
    """When each node that is no join starts in a replay."""
    starts = replay(result.trace).trace.nodes.start_ns.tolist()
    return sorted(pair for pair in zip(names(result), starts, strict=True) if pair[0] != STREAMS)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("launch"), st.integers(1, 4)),
        st.tuples(st.just("wait"), st.integers(0, 1)),
    ),
    max_size=24,
)


@given(steps)
def test_joins_say_what_edges_would(steps: list[tuple[str, int]]) -> None:
    profile = launches_and_waits(steps)
    plain, joined = linked(profile, 10**9), linked(profile, 1)
    assert reach(joined) == reach(plain)
    edges = [int(np.count_nonzero(r.trace.edges.kind == EdgeKind.SYNC)) for r in (plain, joined)]
    assert edges[1] <= edges[0]
    assert ADDED not in plain.report.added
    assert joined.report.added.get(ADDED, 0) == names(joined).count(STREAMS)
    assert started(joined) == started(plain)


@given(steps)
def test_a_replay_need_not_note_what_holds_up_nobody(steps: list[tuple[str, int]]) -> None:
    result = linked(launches_and_waits(steps), 10**9)
    every = started(result)
    with patch.object(resolving, "_MANY", 1):
        assert started(result) == every


def many(streams: int, calls: int) -> Profile:
    steps = [("launch", stream + 1) for stream in range(streams)]
    return launches_and_waits([*steps, *[("wait", 1)] * calls, ("launch", 1), ("wait", 1)])


@pytest.mark.parametrize(("streams", "calls"), [(20, 20), (200, 20), (20, 200)])
def test_work_is_waited_for_once(streams: int, calls: int) -> None:
    result = linked(many(streams, calls), joins.MANY)
    syncs = int(np.count_nonzero(result.trace.edges.kind == EdgeKind.SYNC))
    assert syncs == streams + calls + 1 + 2
    assert result.report.added[ADDED] == 2
    join = next(node for node in result.trace.nodes if node.name == STREAMS)
    assert join.duration_ns == 0
    assert join.is_cpu_op


@pytest.mark.parametrize(("streams", "calls"), [(16, 50), (50, 14)])
def test_few_nodes_need_no_join(streams: int, calls: int) -> None:
    assert ADDED not in linked(many(streams, calls), joins.MANY).report.added


def test_the_scope_of_a_call_is_told_behind_a_join() -> None:
    result = linked(many(20, 20), joins.MANY)
    scopes = {node.sync_on for node in result.trace.nodes if node.name == "cudaDeviceSynchronize"}
    assert scopes == {"device 0"}


def batches(messages: int, kernels: int) -> Profile:
    """Kernels of many messages each, one after the other on one stream."""
    profile, at = Profile(), 0.0
    facts = {"In msg nelems": 4, "Out msg nelems": 4, "dtype": "Float", "Group size": 2,
             "Process Group Name": "0", "Process Group Ranks": "[0, 1]",
             "Src Rank": 1, "Dst Rank": 1, "Rank": 0}  # fmt: skip
    for number in range(1, kernels + 1):
        for message in range(messages):
            name = "send" if message % 2 else "recv"
            profile.op("record_param_comms", at, 1, **{"Collective name": name, **facts})
            at += 1.5
        profile.call("cudaLaunchKernel", at, 1, number)
        profile.kernel("ncclDevKernel_SendRecv(x)", at + 3, 5, number)
        at += 10
    return profile


@pytest.mark.parametrize("messages", [17, 60])
def test_messages_of_a_kernel_wait_for_a_join_of_those_before(
    messages: int, tmp_path: Path
) -> None:
    result = converted(None, batches(messages, 3).write(tmp_path / "device.json"))
    stream = int(np.count_nonzero(result.trace.edges.kind == EdgeKind.STREAM))
    assert stream == 2 * 2 * messages
    assert result.report.added[ADDED] == 2
    first, second = result.trace.nodes.where(name=MESSAGES)
    assert not first.is_cpu_op
    assert {kind for _, kind, _ in first.edges} == {EdgeKind.STREAM}
    assert first.start_ns < second.start_ns
    replayed = replay(result.trace).figures[0]
    assert replayed.span_error == 0
    assert not validate(result.trace).count(Severity.ERROR)


def test_few_messages_wait_for_each_as_ever(tmp_path: Path) -> None:
    result = converted(None, batches(4, 3).write(tmp_path / "device.json"))
    assert ADDED not in result.report.added
    assert int(np.count_nonzero(result.trace.edges.kind == EdgeKind.STREAM)) == 2 * 4 * 4


def test_joins_tell_what_their_edges_rest_on() -> None:
    result = linked(many(20, 20), joins.MANY)
    assert result.report.evidence[Evidence.SYNC_DEVICE] == 20 + 20 + 1 + 2
    first, second = (row for row, name in enumerate(names(result)) if name == STREAMS)
    told = {
        (edge.kind, edge.evidence) for row in (first, second) for edge in explain(result.trace, row)
    }
    assert told == {(EdgeKind.SYNC, Evidence.SYNC_DEVICE.label)}
