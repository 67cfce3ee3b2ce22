"""Broadcasts for a simulator that has none: an all-gather brings each rank as many bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import coll, run, trace

from chakra_et import passes
from chakra_et.definitions import CollectiveType
from chakra_et.model import TraceSet

BROADCAST = CollectiveType.BROADCAST


def broadcasts(ranks: int, size: int, world: int | None = None) -> TraceSet:
    """A broadcast of `size` bytes on some ranks."""
    return run(
        *(trace(coll(1, BROADCAST, size), rank=r, world=world or ranks) for r in range(ranks))
    )


@given(st.integers(2, 9), st.integers(0, 1 << 40))
def test_every_rank_receives_as_many_bytes_as_of_the_broadcast(ranks: int, size: int) -> None:
    done = passes.lower_broadcasts(broadcasts(ranks, size))
    assert len(done.changes) == ranks
    for one in done.traces.values():
        node = one.node(1)
        assert node.comm_type == CollectiveType.ALL_GATHER
        received = (ranks - 1) * node.comm_size
        assert size <= received < size + ranks - 1 + (size == 0)


def test_the_node_and_the_report_say_so() -> None:
    done = passes.cure(broadcasts(4, 1000), "astra-sim")
    note = "BROADCAST of 1000 bytes as ALL_GATHER of 334 from each rank"
    assert done.traces[3].node(1).attributes["cured"] == note
    (first, *_) = done.changes["lower-broadcasts"]
    assert (first.what, first.count, first.rank) == ("broadcasts made all-gathers", 1, 0)
    assert first.nodes == [(1, note)]
    assert not done.left.outcomes
    assert not passes.lower_broadcasts(done.traces).modified


def test_a_group_of_some_ranks_is_counted_by_its_members() -> None:
    group = {"3": (0, 2, 5)}
    given = run(
        *(trace(coll(1, BROADCAST, 64, pg_name="3"), rank=r, world=6, groups=group)
          for r in (0, 2, 5))
    )  # fmt: skip
    assert passes.lower_broadcasts(given).traces[5].node(1).comm_size == 32


UNREADY = {
    "a rank is missing": broadcasts(2, 64, world=3),
    "a rank is alone": broadcasts(1, 64),
    "sizes differ": run(
        trace(coll(1, BROADCAST, 64), rank=0, world=2),
        trace(coll(1, BROADCAST, 32), rank=1, world=2),
    ),
    "types differ": run(
        trace(coll(1, BROADCAST, 64), rank=0, world=2), trace(coll(1, 0, 64), rank=1, world=2)
    ),
    "one has more": run(
        trace(coll(1, BROADCAST, 64), coll(2, BROADCAST, 64), rank=0, world=2),
        trace(coll(1, BROADCAST, 64), rank=1, world=2),
    ),
    "it stands for what no file tells": run(
        *(trace(coll(1, BROADCAST, 0, takes_recorded_time="its size"), rank=r, world=2)
          for r in (0, 1))
    ),
}  # fmt: skip


@pytest.mark.parametrize("given", UNREADY.values(), ids=UNREADY)
def test_where_ranks_are_missing_or_disagree_it_stays(given: TraceSet) -> None:
    assert not passes.lower_broadcasts(given).modified
