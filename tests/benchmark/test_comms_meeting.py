"""Before anything starts: what would never meet is refused, with ranks and nodes."""

from __future__ import annotations

from typing import Any

import pytest
from traces import coll, recv, run, send, trace

from chakra_et.benchmark.comms.job import prepare
from chakra_et.definitions import CollectiveType
from chakra_et.errors import ChakraError
from chakra_et.model import TraceSet

GATHER, CAST = int(CollectiveType.ALL_GATHER), int(CollectiveType.BROADCAST)


def ranks(*nodes: list[dict[str, Any]], **facts: Any) -> TraceSet:
    world = facts.pop("world", len(nodes))
    return run(*(trace(*n, rank=rank, world=world, **facts) for rank, n in enumerate(nodes)))


def refusal(traces: TraceSet) -> str:
    with pytest.raises(ChakraError) as raised:
        prepare(traces)
    return str(raised.value)


@pytest.mark.parametrize(
    ("mine", "theirs", "told"),
    [
        ([coll(1), coll(2, GATHER)], [coll(1, GATHER), coll(2)], ("another order", "ordinal 0")),
        ([coll(1)], [coll(1, CAST)], ("another collective", "BROADCAST")),
        ([coll(1, size=64)], [coll(1, size=128)], ("64 bytes", "128 bytes", "rank 1, node 1")),
        ([coll(1), coll(2)], [coll(1)], ("1 collectives", "2")),
        ([send(1, 1, tag=3)], [recv(1, 0, tag=4)], ("tag 3", "rank 1 has no receive")),
        ([send(1, 1, size=8)], [recv(1, 0, size=4)], ("8 bytes", "is of 4")),
        (
            [recv(1, 1), send(2, 1, deps=(1,))],
            [recv(1, 0), send(2, 0, deps=(1,))],
            ("rank 0 node 1", "waits for", "rank 1 node 2"),
        ),
        ([coll(1, dtype="Float")], [coll(1, dtype="Int")], ("float32 and int32",)),
    ],
)
def test_calls_that_never_meet_are_told(
    mine: list[dict[str, Any]], theirs: list[dict[str, Any]], told: tuple[str, ...]
) -> None:
    text = refusal(ranks(mine, theirs))
    assert "would never meet, so nothing was started" in text
    for part in told:
        assert part in text


def test_a_rank_that_is_no_member_of_its_group_is_told() -> None:
    groups = {"5": (0, 1)}
    nodes = [coll(1, pg_name="5")]
    text = refusal(ranks(nodes, nodes, nodes, groups=groups))
    assert "rank 2, node 1" in text
    assert "[0, 1]" in text


def test_a_rank_without_a_trace_is_told_with_the_remedy() -> None:
    text = refusal(ranks([coll(1)], [coll(1)], world=4))
    assert "no trace of ranks 2, 3, which rank 0 communicates with" in text
    assert "--shrink 2" in text
    assert "rank 3" in refusal(ranks([send(1, 3)], [coll(1)]))


def test_only_the_first_few_are_shown() -> None:
    mine, theirs = ([send(n, 1, tag=n + at) for n in range(1, 10)] for at in (0, 100))
    text = refusal(ranks(mine, [recv(n["id"], 0, tag=n["id"] + 100) for n in theirs]))
    assert text.count("ET505") == 5
    assert "… and 13 more" in text


def test_traces_without_communication_are_told() -> None:
    assert "no collective and no message" in refusal(ranks([], []))
    unsized = [{**coll(1), "attributes": {"comm_type": 0}}]
    assert "can be run: its size is unknown" in refusal(ranks(unsized, unsized))


def test_what_meets_is_planned_for_each_rank() -> None:
    nodes = [coll(1, pg_name="5"), coll(2), send(3, 1), recv(4, 1)]
    other = [coll(1, pg_name="5"), coll(2), recv(3, 0), send(4, 0)]
    job = prepare(ranks(nodes, other, groups={"5": (0, 1)}))
    assert [plan.rank for plan in job.plans] == [0, 1]
    assert [[call.kind for call in plan.calls] for plan in job.plans] == [
        ["ALL_REDUCE", "ALL_REDUCE", "SEND", "RECV"],
        ["ALL_REDUCE", "ALL_REDUCE", "RECV", "SEND"],
    ]
    # All ranks make all groups, in one order.
    assert job.plans[0].groups == job.plans[1].groups
    assert sorted(group.name for group in job.plans[0].groups) == ["", "5"]
