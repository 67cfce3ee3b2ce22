"""Each pass does what it ensures, touches nothing else, and leaves what it is given as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traces import COLL, coll, node, recv, run, send, trace

from chakra_et import passes
from chakra_et.definitions import CollectiveType, Kind, NodeType
from chakra_et.errors import ChakraError
from chakra_et.model import EdgeKind, ProcessGroup, Trace, TraceSet
from chakra_et.passes import Pass
from chakra_et.passes.base import speaking
from chakra_et.replay.matching import match_communication
from chakra_et.validators import validate


def host(node_id: int, **more):  # type: ignore[no-untyped-def]
    return node(node_id, is_cpu_op=True, **more)


def gpu(node_id: int, **more):  # type: ignore[no-untyped-def]
    return node(node_id, is_cpu_op=False, stream=7, **more)


def with_repetition() -> Trace:
    broken = trace(coll(1), coll(2))
    broken.nodes.attributes.add("comm_size", Kind.INT64, [5], np.array([0]))
    return broken


ONE = {"5": (0,)}
BROKEN: dict[str, tuple[Pass, Callable[[], TraceSet]]] = {
    "version": (passes.set_version, lambda: run(trace(node(1), version=""))),
    "kinds": (
        passes.normalise_attributes,
        lambda: run(
            trace(node(1, COLL, comm_type=0, comm_size=(Kind.UINT64, 4), is_cpu_op=(Kind.INT32, 1)))
        ),
    ),
    "repetition": (passes.normalise_attributes, lambda: run(with_repetition())),
    "stale": (
        passes.normalise_attributes,
        lambda: run(trace(node(1), node(2, deps=(1,), edge_kinds="data,data"))),
    ),
    "stale evidence": (
        passes.normalise_attributes,
        lambda: run(trace(node(1), node(2, deps=(1,), edge_evidence="a,b"))),
    ),
    "edges": (
        passes.drop_bad_edges,
        lambda: run(trace(node(1, deps=(1, 9)), node(2, deps=(1, 1)), node(3, deps=(2,)))),
    ),
    "cycles": (
        passes.cut_cycles,
        lambda: run(
            trace(node(1, deps=(3,)), node(2, deps=(1, 4)), node(3, deps=(2,)), node(4, deps=(2,)))
        ),
    ),
    "ids": (passes.renumber, lambda: run(trace(node(3, deps=(1,)), node(1), node(1)))),
    "order": (
        passes.renumber,
        lambda: run(trace(coll(2, start=5), coll(1, start=9), node(5, deps=(9,)), node(9))),
    ),
    "metadata": (
        passes.drop_metadata_nodes,
        lambda: run(
            trace(
                node(1),
                node(2, NodeType.METADATA, ctrl=(1,)),
                node(3, 99, deps=(2,)),
                node(4, deps=(3,)),
                node(5, NodeType.MEM_LOAD, deps=(2,)),
            )
        ),
    ),
    "lone": (
        passes.drop_lone_collectives,
        lambda: run(
            trace(node(1), coll(2, pg_name="5", deps=(1,)), node(3, deps=(2,)), rank=0, groups=ONE)
        ),
    ),
    "lower": (
        passes.lower_collectives,
        lambda: run(
            *(
                trace(
                    *(coll(i + 1, kind, 64) for i, kind in enumerate((1, 3, 4, 8, 9))),
                    coll(7, 6, 8 * (rank + 1)),
                    coll(8, 2, 0),
                    coll(9, involved_dim=(Kind.BOOL_LIST, (False,))),
                    rank=rank,
                    world=2,
                )
                for rank in (0, 1)
            )
        ),
    ),
    "groups": (
        passes.number_groups,
        lambda: run(
            *(
                trace(coll(1), coll(2, pg_name="tp"), rank=rank, world=2, groups={"tp": (0, 1)})
                for rank in (0, 1)
            )
        ),
    ),
    "tags": (
        passes.number_messages,
        lambda: run(
            trace(node(1, NodeType.COMM_SEND, comm_dst=1, comm_size=4), send(2, 1), rank=0),
            trace(recv(1, 0, size=4), recv(2, 0, tag=1 << 30), rank=1),
        ),
    ),
    "order of groups": (
        passes.order_collectives,
        lambda: run(
            trace(coll(1, pg_name="5"), coll(2, pg_name="6"), coll(3, pg_name="5"), rank=0),
            trace(coll(1, pg_name="6"), coll(2, pg_name="5"), coll(3, pg_name="5"), rank=1),
        ),
    ),
    "calls": (
        passes.demote_calls,
        lambda: run(trace(node(1, COLL, is_cpu_op=True), coll(2, deps=(1,)))),
    ),
    "unknown": (
        passes.settle_unknown,
        lambda: run(
            *(
                trace(
                    node(1, COLL, is_cpu_op=False),
                    node(2, COLL, comm_type=6, is_cpu_op=False),
                    coll(3),
                    rank=rank,
                    world=2,
                )
                for rank in (0, 1)
            )
        ),
    ),
    "idle": (passes.fill_idle_ranks, lambda: run(trace(node(1), rank=0), trace(rank=1))),
    "host only": (passes.fold_host, lambda: run(trace(host(1, took=5), coll(2, deps=(1,))))),
}


@pytest.mark.parametrize("name", BROKEN)
def test_contract(name: str) -> None:
    item, make = BROKEN[name]
    given, same = make(), make()
    before = {rule for rule, _, _ in speaking(given, item.ensures)}
    # Rules about bytes cannot speak of what is in memory.
    assert before or item is passes.set_version
    result = item(given)
    assert result.modified
    assert speaking(result.traces, item.ensures) == []
    assert dict(given) == dict(same)
    again = item(result.traces)
    assert not again.modified
    assert dict(again.traces) == dict(result.traces)


@pytest.mark.parametrize("name", BROKEN)
def test_sound_traces_pass_through(name: str) -> None:
    item, _ = BROKEN[name]
    sound = run(trace(gpu(1, took=1000), coll(2, deps=(1,)), rank=0, world=1))
    result = item(sound)
    assert not result.modified or name == "groups"
    assert result.traces[0].nodes.same(sound[0].nodes)


def test_collectives_of_a_group_do_not_overtake_each_other() -> None:
    """On rank 1, 3 could be ready before 2, and 4 is behind 3 as it is."""
    given = run(
        *(
            trace(gpu(1, took=took), coll(2, deps=(1,)), coll(3), coll(4, deps=(3,)), rank=rank)
            for rank, took in ((0, 0), (1, 9_000))
        )
    )
    result = passes.order_collectives(given)
    assert [(change.count, change.rank) for change in result.changes] == [(1, 0), (1, 1)]
    assert result.traces[1].node(3).edges == [(2, EdgeKind.GROUP, True)]
    assert result.traces[1].node(4).data_deps == [3]
    assert passes.order_collectives(result.traces).changes == []


def test_waits_pass_through_dropped_nodes() -> None:
    given = run(
        trace(
            node(1),
            node(2, NodeType.METADATA, deps=(1,)),
            node(3, NodeType.METADATA, ctrl=(2,)),
            node(4, deps=(3,), kind=EdgeKind.PROGRAM),
        )
    )
    left = passes.drop_metadata_nodes(given).traces[0]
    assert left.node(4).edges == [(1, EdgeKind.PROGRAM, False)]


def test_renumbering_keeps_who_waits_for_whom() -> None:
    given = run(trace(node(30, deps=(10, 20)), node(20, deps=(10,)), node(10)))
    left = passes.renumber(given).traces[0]
    assert [(n.name, n.data_deps) for n in left.nodes] == [
        ("node 10", []),
        ("node 20", [1]),
        ("node 30", [1, 2]),
    ]


def test_renumber_refuses_cycles() -> None:
    with pytest.raises(ChakraError, match="ET105"):
        passes.renumber(run(trace(node(1, deps=(2,)), node(2, deps=(1,)))))


def test_lowered_collectives_carry_a_note() -> None:
    _, make = BROKEN["lower"]
    result = passes.lower_collectives(make())
    nodes = result.traces[0].nodes
    notes = [n.attributes.get("cured") for n in nodes]
    assert notes[0] == "REDUCE as ALL_REDUCE"
    assert notes[4] == "BARRIER as ALL_REDUCE"
    assert notes[5] == "8 bytes raised to 16"
    assert notes[6] == "0 bytes padded to 4"
    assert "involved_dim" not in nodes[7].attributes
    assert {CollectiveType(n.comm_type).name for n in nodes} == {
        "ALL_REDUCE", "ALL_GATHER", "REDUCE_SCATTER", "ALL_TO_ALL"
    }  # fmt: skip
    told = [note for change in result.changes for _, note in change.nodes]
    assert "BARRIER as ALL_REDUCE" in told


def test_sizes_that_must_be_equal_are_not_levelled() -> None:
    given = run(trace(coll(1, size=8), rank=0, world=2), trace(coll(1, size=16), rank=1, world=2))
    assert not passes.lower_collectives(given).modified


def unsized(node_id: int, kind: int | None):  # type: ignore[no-untyped-def]
    told = {} if kind is None else {"comm_type": kind}
    return node(node_id, COLL, is_cpu_op=False, took=5000, **told)


def test_a_size_that_one_rank_tells_holds_for_all_where_it_has_to_be_equal() -> None:
    given = run(
        trace(coll(1, 0, 64), coll(2, 2, 64), rank=0, world=2),
        trace(unsized(1, None), unsized(2, 2), rank=1, world=2),
    )
    cured = passes.settle_unknown(given).traces
    first, second = cured[1].nodes
    assert (first.comm_type, first.comm_size) == (CollectiveType.ALL_REDUCE, 64)
    assert "as other ranks tell it" in first.attributes["cured"]
    # To an all-gather every rank may bring another size; and what one replays, all do.
    assert second.takes_recorded_time == "ALL_GATHER of unknown size"
    assert cured[0].nodes[1].takes_recorded_time == "ALL_GATHER of unknown size"
    assert cured[0].nodes[0].takes_recorded_time is None


def test_what_takes_its_recorded_time_needs_no_other_rank() -> None:
    given = run(
        trace(unsized(1, None), unsized(2, 6), rank=0, world=2),
        trace(unsized(2, 6), rank=1, world=2),
    )
    assert validate(given).rules == {"ET205", "ET206"}
    cured = passes.cure(given, "astra-sim")
    assert cured.left.rules <= {"ET725", "ET706", "ET723"}
    assert [n.duration_ns for n in cured.traces[0].nodes] == [5000, 5000]
    assert match_communication(cured.traces).unmatched == {
        "a collective of unknown type, which takes its recorded time": 1,
        "ALL_TO_ALL of unknown size, which takes its recorded time": 2,
    }
    assert {n.comm_size for n in cured.traces[0].nodes} == {0}


def test_a_collective_that_may_be_of_several_groups_takes_its_recorded_time() -> None:
    groups = {"0": (0, 1), "1": (0,)}
    given = run(
        *(
            trace(
                coll(1, pg_candidates='["0","1"]', took=5000),
                coll(2, pg_name="0"),
                rank=rank,
                world=2,
                groups=groups,
            )
            for rank in (0, 1)
        )
    )
    cured = passes.cure(given, "astra-sim")
    assert cured.left.exit_code() == 0
    assert cured.traces[0].nodes[0].takes_recorded_time == "ALL_REDUCE of unknown group"


def test_members_of_a_group_that_has_more_than_use_its_name_stay_unknown() -> None:
    group = ProcessGroup(name="94857238472", size=2)
    given = run(
        *(
            trace(coll(1, pg_name=group.name), rank=rank, world=4, groups=[group] * (rank == 0))
            for rank in range(4)
        )
    )
    assert "ET404" in validate(passes.number_groups(given).traces, "astra-sim").rules


def test_world_without_other_groups_stays_without_a_name() -> None:
    given = run(*(trace(coll(1, pg_name="0"), rank=r, world=2) for r in (0, 1)))
    cured = passes.number_groups(given).traces
    assert "pg_name" not in cured[0].nodes[0].attributes
    assert passes.comm_groups(cured) == {"1": [0, 1]}


def test_world_among_other_groups_gets_a_number() -> None:
    _, make = BROKEN["groups"]
    cured = passes.number_groups(make()).traces
    names = [n.pg_name for n in cured[0].nodes]
    assert sorted(names) == ["1", "2"]
    assert passes.comm_groups(cured) == {"1": [0, 1], "2": [0, 1]}


def test_groups_of_one_name_with_other_members_are_numbered_apart() -> None:
    members = {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)}
    given = run(
        *(
            trace(coll(1, pg_name="7"), rank=rank, world=4, groups={"7": ranks})
            for rank, ranks in members.items()
        )
    )
    cured = passes.number_groups(given).traces
    assert passes.comm_groups(cured)["7"] == [0, 1]
    other = cured[3].nodes[0].pg_name
    assert other not in (None, "7")
    assert passes.comm_groups(cured)[str(other)] == [2, 3]
    assert validate(cured).rules == set()


def test_groups_that_nobody_explains_have_the_ranks_that_use_them() -> None:
    given = run(*(trace(coll(1, pg_name="a" if r < 2 else "b"), rank=r, world=4) for r in range(4)))
    cured = passes.number_groups(given).traces
    assert [0, 1] in passes.comm_groups(cured).values()
    assert isinstance(cured[0].groups[0], ProcessGroup)


def folded(*nodes) -> Trace:  # type: ignore[no-untyped-def]
    return passes.fold_host(run(trace(*nodes, rank=0))).traces[0]


def test_host_time_becomes_idle_time_before_the_kernel_that_was_late() -> None:
    left = folded(
        host(1, start=0, took=1000),
        gpu(2, start=1000, took=500, deps=(1,), kind=EdgeKind.LAUNCH),
        host(3, start=1000, took=2000, deps=(1,)),
        gpu(4, start=3000, took=500, deps=(3, 2), kind=EdgeKind.LAUNCH),
    )
    told = [(n.name, n.start_ns, n.duration_ns) for n in left.nodes]
    assert sorted(told, key=lambda t: t[1]) == [
        ("host time", 0, 1000),
        ("node 2", 1000, 500),
        ("host time", 1500, 1500),
        ("node 4", 3000, 500),
    ]
    assert finish(left) == 3500


def test_idle_time_too_short_for_the_simulator_is_told_with_the_next() -> None:
    left = folded(
        host(1, start=0, took=300),
        gpu(2, start=300, took=500, deps=(1,)),
        host(3, start=1100, took=10, deps=(1,)),
        gpu(4, start=1110, took=900, deps=(3,)),
    )
    assert [(n.name, n.duration_ns) for n in left.nodes] == [
        ("node 2", 500), ("node 4", 900), ("host time", 610)
    ]  # fmt: skip
    assert finish(left) == 2010


def test_what_ran_side_by_side_is_told_and_has_no_streams_to_lose() -> None:
    given = run(trace(
        host(1, start=0, took=1000),
        gpu(2, start=1000, took=900, deps=(1,)),
        node(3, is_cpu_op=False, start=1200, took=900, stream=8, deps=(1,)),
        rank=0,
    ))  # fmt: skip
    assert "ET706" in validate(given, "astra-sim").rules
    done = passes.fold_host(given)
    told = {c.what: c.count for c in done.changes}
    assert told["ns in which device nodes ran side by side, now one after the other"] == 700
    assert "ET706" not in validate(done.traces, "astra-sim").rules


def test_host_time_without_starts_is_folded_by_a_replay() -> None:
    given = trace(
        host(1, took=1000),
        gpu(2, took=500, deps=(1,), kind=EdgeKind.LAUNCH),
        host(3, took=2000, deps=(1,)),
        gpu(4, took=500, deps=(3, 2), kind=EdgeKind.LAUNCH),
        rank=0,
    )
    done = passes.replay_starts(run(given))
    assert [(c.count, c.rank) for c in done.changes] == [(4, 0)]
    left = passes.fold_host(done.traces).traces[0]
    assert [n.name for n in left.nodes] == ["node 2", "node 4", "host time", "host time"]
    assert finish(left) == 3500
    assert not passes.replay_starts(done.traces).changes


def test_waits_for_communication_stay_waits() -> None:
    left = folded(
        gpu(1, start=0, took=1000),
        coll(2, start=1000, took=10000, deps=(1,)),
        host(3, start=11000, took=600, deps=(2,)),
        gpu(4, start=11600, took=500, deps=(3,)),
    )
    assert finish(left) == 12100
    # A faster network: only the host's 600 ns remain between the collective and the kernel.
    left.nodes.duration_ns[left.nodes.type == COLL] = 2000
    assert finish(left) == 4100


def test_communication_beside_computation_stays_beside_it() -> None:
    left = folded(
        gpu(1, start=0, took=100),
        coll(2, start=100, took=500, deps=(1,)),
        gpu(3, start=100, took=400, deps=(1,)),
        host(4, start=500, took=5),
        gpu(5, start=600, took=10, deps=(2, 3)),
    )
    assert finish(left) == 610
    left.nodes.duration_ns[left.nodes.type == COLL] = 50
    assert finish(left) == 510


def finish(given: Trace) -> int:
    """When the last node ends, if each starts as soon as it may."""
    ends: dict[int, int] = {}
    waiting = {n.id: [s for s, _, _ in n.edges] for n in given.nodes}
    took = {n.id: n.duration_ns for n in given.nodes}
    while waiting:
        free = [i for i, deps in waiting.items() if all(d in ends for d in deps)]
        assert free
        for i in free:
            ends[i] = max((ends[d] for d in waiting.pop(i)), default=0) + took[i]
    return max(ends.values())


def test_for_astra_sim_leaves_no_error(data: Path, tmp_path: Path) -> None:
    from chakra_et import convert_directory
    from chakra_et.conversion import trace_set

    for name in ("dlrm8", "torch213/tp_2rank"):
        traces = trace_set(convert_directory(data / name, None))
        cured = passes.cure(traces, "astra-sim")
        ready = tmp_path / Path(name).name
        passes.write_for_astra_sim(cured.traces, ready, "trace")
        result = validate(ready, "astra-sim")
        assert result.rules == set()
        groups = json.loads((ready / "comm_groups.json").read_text())
        assert groups == {"1": list(range(len(traces)))}


def two_devices(*more: dict[str, Any]) -> TraceSet:
    """Host work that launches a kernel on each of two devices; the second one waits for the first.

    The devices are busy from 10 to 110 us, and from 120 to 150 us.
    """
    own = {"is_cpu_op": False, "stream": 7}
    host = {"is_cpu_op": True, "thread": 1}
    nodes = (
        node(1, start=0, took=10_000, **host),
        node(2, start=10_000, took=5_000, deps=(1,), **host),
        node(3, start=10_000, took=100_000, deps=(1,), name="first", device=0, **own),
        node(4, start=120_000, took=30_000, deps=(2, 3), name="second", device=1, **own),
    )
    return TraceSet({0: trace(*nodes, *more, rank=0, world=1)})


def test_each_device_of_a_process_becomes_a_rank_for_astra_sim() -> None:
    given = two_devices()
    cured = passes.cure(given, "astra-sim")
    assert list(cured.traces) == [0, 1]
    for rank, (name, start) in enumerate((("first", 10_000), ("second", 120_000))):
        part = cured.traces[rank]
        assert (part.rank, part.world_size) == (rank, 2)
        assert [n.name for n in part.nodes] == ["host time", name]
        assert finish(part) == start + (100_000, 30_000)[rank]
    (first, second) = cured.changes["split-devices"]
    assert (first.rank, second.rank) == (0, 1)
    assert "1 of its waits for them are recorded time now" in second.what
    assert (given[0].world_size, len(given[0].nodes)) == (1, 4)


def test_devices_that_communicate_or_wait_with_host_nodes_are_refused() -> None:
    talking = two_devices(coll(5, deps=(4,), device=1, stream=7))
    wanted = "nodes on device 0, . nodes on device 1"
    with pytest.raises(ChakraError, match=wanted):
        passes.cure(talking, "astra-sim")
    with pytest.raises(ChakraError, match=wanted):
        passes.cure(two_devices(), "astra-sim", host="keep")
    assert not passes.cure(two_devices()).left.outcomes


def test_broken_graph_can_be_cured_if_cycles_may_be_cut(data: Path) -> None:
    from chakra_et import read

    one = read(data / "et/broken_graph.0.et.gz")
    given = TraceSet({0: one, 1: one})
    with pytest.raises(ChakraError, match=r"ET105.*--cut-cycles"):
        passes.cure(given)
    cured = passes.cure(given, "astra-sim", cut=True)
    assert cured.left.rules == {"ET723"}
    assert cured.changes["drop-bad-edges"][0].count == 1277
    assert cured.changes["demote-calls"][0].count == 14


def test_a_rank_whose_others_are_missing_is_not_ready(tmp_path: Path) -> None:
    """What is written and what is said agree: a simulator cannot run it."""
    alone = trace(coll(1), rank=0, world=2)
    cured = passes.cure(TraceSet({0: alone}), "astra-sim")
    passes.write_for_astra_sim(cured.traces, tmp_path, "t")
    beside = validate(tmp_path, "astra-sim")
    assert cured.left.rules == beside.rules == {"ET501"}
    assert cured.left.exit_code() == beside.exit_code() == 1
