"""The calls of each rank, as the recording tells them: by attributes, records and askers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gloo import GlooRun
from traces import COMP, coll, node, recv, run, send, trace

from chakra_et.benchmark.comms.agree import agree
from chakra_et.benchmark.comms.call import Call, Group
from chakra_et.benchmark.comms.listing import Listing, list_calls
from chakra_et.definitions import CollectiveType
from chakra_et.loading import load
from chakra_et.model import ProcessGroup, Trace

ALL4 = (0, 1, 2, 3)


def calls_of(*nodes: dict[str, Any], **facts: Any) -> list[Call]:
    """The calls of one rank of two."""
    facts = {"rank": 0, "world": 2} | facts
    return list_calls(run(trace(*nodes, **facts))).calls[0]


def listed(tmp_path: Path, made: GlooRun) -> Listing:
    listing = list_calls(load(made.write(tmp_path / "run")))
    assert agree(listing) == []
    return listing


def test_a_recording_over_gloo_tells_kinds_groups_types_and_roots(tmp_path: Path) -> None:
    made = GlooRun(4, groups=((0, 2), (1, 3)))
    made.collective("all_reduce", ALL4, 100).collective("broadcast", ALL4, 50, root=2)
    made.collective("gather", (0, 2), 30, root=1).collective("scatter", (1, 3), 20, root=1)
    calls = listed(tmp_path, made).calls
    told = [(c.kind, c.group.name, c.group.ranks, c.tensors, c.root) for c in calls[2]]
    assert told == [
        ("ALL_REDUCE", "", ALL4, (100,), None),
        ("BROADCAST", "", ALL4, (50,), 2),
        ("GATHER", "1", (0, 2), (30,), 2),
    ]
    scatter = {rank: calls[rank][-1] for rank in (1, 3)}
    assert {rank: (c.tensors, c.root) for rank, c in scatter.items()} == {
        1: ((20,), 3),
        3: ((40,), 3),
    }
    assert {call.dtype for mine in calls.values() for call in mine} == {"float32"}


def test_messages_name_both_ends_and_count_apart_by_tag(tmp_path: Path) -> None:
    made = GlooRun(2)
    for tag in (7, 8, 7):
        made.message(0, 1, (0, 1), 10 + tag, tag)
    calls = listed(tmp_path, made).calls
    assert [(c.kind, c.peer, c.tag, c.place, c.tensors) for c in calls[0]] == [
        ("SEND", 1, 7, 0, (17,)),
        ("SEND", 1, 8, 0, (18,)),
        ("SEND", 1, 7, 1, (17,)),
    ]
    assert [c.meeting for c in calls[0]] == [c.meeting for c in calls[1]]


def test_splits_of_an_all_to_all_come_from_the_operation_that_asked(data: Path) -> None:
    """DLRM's exchange of indices: each rank has its own number for every other one."""
    (calls,) = list_calls(load(data / "dlrm8" / "host.0.json.gz")).calls.values()
    sends = [call.sends for call in calls if call.kind == "ALL_TO_ALL"]
    assert (96, 224, 288, 1664, 592, 96, 192, 240) in sends
    assert {call.dtype for call in calls} == {"float32", "int64", "int32"}


def test_roots_and_types_of_a_record_of_nccl(data: Path) -> None:
    (calls,) = list_calls(load(data / "host_et" / "resnet_rank1_1.1.0.json.gz")).calls.values()
    first, second = calls[:2]
    assert (first.kind, first.root, first.dtype, first.tensors) == (
        "BROADCAST", 0, "float32", (53120,),
    )  # fmt: skip
    assert (second.dtype, second.tensors) == ("int64", (53,))
    assert first.is_async is True


def test_what_tells_only_bytes_has_elements_that_fit() -> None:
    calls = calls_of(coll(1, size=64), coll(2, size=63), coll(3, size=64, dtype="BFloat16"))
    assert [(c.dtype, c.tensors, c.dtype_told) for c in calls] == [
        ("float32", (16,), False),
        ("uint8", (63,), False),
        ("bfloat16", (32,), True),
    ]


def test_a_group_of_all_ranks_has_one_name_on_all() -> None:
    calls = calls_of(
        coll(1, pg_name="0"), coll(2), coll(3, pg_name="7"), groups={"7": (0, 1), "0": (0, 1)}
    )
    assert [call.group for call in calls] == [
        Group("", (0, 1)), Group("", (0, 1)), Group("7", (0, 1)),
    ]  # fmt: skip
    assert [call.place for call in calls] == [0, 1, 0]


def test_calls_wait_for_what_edges_say() -> None:
    """The second does not wait for the first; the fourth waits for both, over other nodes."""
    calls = calls_of(
        coll(1),
        coll(2),
        node(3, COMP, deps=(1, 2)),
        coll(4, deps=(3,)),
        node(5, COMP, deps=(3, 4)),
        coll(6, deps=(5,)),
    )
    # What the third waited for has ended when the fourth is asked for.
    assert [call.after for call in calls] == [(), (), (0, 1), (2,)]


def test_what_is_waited_for_does_not_pile_up_over_many_steps() -> None:
    nodes = []
    for step in range(50):
        before = (3 * step,) if step else ()
        nodes += [
            node(3 * step + 1, COMP, deps=before),
            coll(3 * step + 2, deps=(3 * step + 1,)),
            node(3 * step + 3, COMP, deps=(3 * step + 1, 3 * step + 2)),
        ]
    assert [call.after for call in calls_of(*nodes)][1:] == [(n,) for n in range(49)]


@pytest.mark.parametrize(
    ("left_out", "reason"),
    [
        (node(1, 7, comm_size=4), "its type is unknown"),
        (node(1, 7, comm_type=int(CollectiveType.ALL_REDUCE)), "its size is unknown"),
        (coll(1, pg_candidates='["1", "2"]'), "its group is unknown"),
        (coll(1, takes_recorded_time="why"), "it takes its recorded time alone"),
        (node(1, 6, comm_size=4), "the other rank of the message is unknown"),
    ],
)
def test_what_tells_too_little_is_left_out_with_a_reason(
    left_out: dict[str, Any], reason: str
) -> None:
    left_out["took"] = 5
    listing = list_calls(run(trace(left_out, coll(2), rank=0, world=2)))
    assert [(s.reason, s.count, s.recorded_ns) for s in listing.skipped[0]] == [(reason, 1, 5)]
    assert [call.node for call in listing.calls[0]] == [2]


def test_the_size_of_a_group_of_all_ranks_tells_how_many_there_are() -> None:
    """A host trace alone knows of its group no more than the size."""
    alone = trace(coll(1, pg_name="0"), rank=0, groups=[ProcessGroup(name="0", size=8)])
    listing = list_calls(run(alone))
    assert (listing.world_size, listing.calls[0][0].group.ranks) == (8, tuple(range(8)))
    groups = [ProcessGroup(name="3", size=8), ProcessGroup(name="4", size=4)]
    part = trace(coll(1, pg_name="3"), rank=0, groups=groups)
    (skipped,) = list_calls(run(part)).skipped[0]
    assert skipped.reason == "the members of its group are unknown"


def test_a_barrier_needs_no_size() -> None:
    barrier = node(1, 7, comm_type=int(CollectiveType.BARRIER))
    assert [(c.kind, c.elements) for c in calls_of(barrier)] == [("BARRIER", 0)]


def both(*pair: list[dict[str, Any]]) -> tuple[Trace, ...]:
    return tuple(trace(*nodes, rank=rank, world=len(pair)) for rank, nodes in enumerate(pair))


def problems(*pair: list[dict[str, Any]]) -> list[str]:
    return agree(list_calls(run(*both(*pair))))


EXCHANGE = int(CollectiveType.ALL_TO_ALL)


def exchange(sends: str, takes: str, size: int = 12) -> list[dict[str, Any]]:
    return [coll(1, EXCHANGE, size, dtype="Float", in_split_size=sends, out_split_size=takes)]


def test_sides_that_contradict_each_other_are_told() -> None:
    (text,) = problems(exchange("[1,2]", "[1,1]"), exchange("[1,2]", "[1,2]"))
    assert "rank 1 sends 1 elements to rank 0" not in text
    assert "rank 0 sends 2 elements to rank 1, which takes 1" in text
    (text,) = problems([coll(1, dtype="Float")], [coll(1, dtype="Int")])
    assert "elements of float32 and int32" in text


def test_splits_that_do_not_add_up_are_told() -> None:
    (text,) = problems(exchange("[1,1]", "[]", 12), exchange("[]", "[]", 12))
    assert "its splits [1, 1] do not add up to 3 elements" in text


def test_sides_tell_each_other_what_they_lack() -> None:
    listing = list_calls(run(*both(exchange("[1,2]", "[]"), exchange("[]", "[]"))))
    assert agree(listing) == []
    assert [listing.calls[rank][0].takes for rank in (0, 1)] == [(1, 2), (2, 1)]
    listing = list_calls(run(*both([coll(1, dtype="Half")], [coll(1)])))
    assert agree(listing) == []
    assert [listing.calls[rank][0].tensors for rank in (0, 1)] == [(512,), (512,)]


def test_shares_of_different_sizes_are_known_to_all() -> None:
    gather = int(CollectiveType.ALL_GATHER)
    listing = list_calls(run(*both([coll(1, gather, 8)], [coll(1, gather, 20)])))
    assert agree(listing) == []
    assert [listing.calls[rank][0].takes for rank in (0, 1)] == [(2, 5), (2, 5)]


def test_a_root_that_nobody_tells_is_the_one_with_all_parts_or_the_first() -> None:
    scatter, cast = int(CollectiveType.SCATTER), int(CollectiveType.BROADCAST)
    listing = list_calls(
        run(*both([coll(1, scatter, 8), coll(2, cast)], [coll(1, scatter, 16), coll(2, cast)]))
    )
    assert agree(listing) == []
    assert [[call.root for call in calls] for calls in listing.calls.values()] == [[1, 0], [1, 0]]


def test_both_sides_of_a_message_meet() -> None:
    listing = list_calls(run(*both([send(1, 1)], [recv(1, 0)])))
    assert agree(listing) == []
    assert listing.calls[0][0].meeting == listing.calls[1][0].meeting
