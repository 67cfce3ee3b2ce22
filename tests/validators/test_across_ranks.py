"""Findings between ranks name ranks, group, ordinal and both nodes."""

from __future__ import annotations

from traces import coll, recv, run, send, trace

from chakra_et.definitions import CollectiveType
from chakra_et.model import Trace, TraceSet
from chakra_et.validators import validate

AR, AG = CollectiveType.ALL_REDUCE, CollectiveType.ALL_GATHER


def ranks(*sequences: list) -> TraceSet:  # type: ignore[type-arg]
    """Traces of ranks 0, 1 and so on, with a group of all of them."""
    made = [
        trace(
            *(
                coll(10 * rank + place, kind, size, pg_name="5", name=f"c{place}")
                for place, (kind, size) in enumerate(sequence)
            ),
            rank=rank,
            world=len(sequences),
            groups={"5": tuple(range(len(sequences)))},
        )
        for rank, sequence in enumerate(sequences)
    ]
    return run(*made)


USUAL = [(AR, 100), (AG, 10), (AR, 300), (AR, 400)]


def test_two_collectives_swapped_on_one_rank() -> None:
    swapped = [USUAL[0], USUAL[2], USUAL[1], USUAL[3]]
    result = validate(ranks(USUAL, USUAL, swapped))
    (finding,) = result["ET503"].findings
    assert result.rules == {"ET503"}
    assert (finding.rank, finding.node) == (2, 21)
    for part in ("group '5'", "[0, 1, 2]", "another order", "ordinal 1", "rank 0, node 1 "):
        assert part in finding.evidence
    assert "ALL_REDUCE of 300 bytes (rank 2, node 21 'c1')" in finding.evidence


def test_two_alike_of_different_sizes_swapped() -> None:
    swapped = [*USUAL[:2], USUAL[3], USUAL[2]]
    result = validate(ranks(USUAL, swapped, USUAL))
    assert result.rules == {"ET503"}
    assert "ordinal 2" in result["ET503"].findings[0].evidence


def test_another_collective_on_one_rank() -> None:
    result = validate(ranks(USUAL, [USUAL[0], (AR, 10), *USUAL[2:]], USUAL))
    (finding,) = result["ET503"].findings
    assert (finding.rank, finding.node) == (1, 11)
    assert "another collective at ordinal 1" in finding.evidence


def test_one_size_changed() -> None:
    result = validate(ranks(USUAL, USUAL, [*USUAL[:3], (AR, 4000)]))
    (finding,) = result["ET504"].findings
    assert result.rules == {"ET504"}
    assert (finding.rank, finding.node) == (2, 23)
    assert "another size at ordinal 3" in finding.evidence
    assert "4000 bytes (rank 2, node 23" in finding.evidence
    assert "400 bytes (rank 0, node 3" in finding.evidence


def test_one_collective_missing() -> None:
    result = validate(ranks(USUAL, [USUAL[0], *USUAL[2:]], USUAL))
    (finding,) = result["ET502"].findings
    assert result.rules == {"ET502"}
    assert finding.rank == 1
    assert "3 collectives of group '5'" in finding.evidence
    assert "part at ordinal 1" in finding.evidence
    assert "ALL_GATHER of 10 bytes (rank 0, node 1 " in finding.evidence


def test_a_rank_without_any_collective() -> None:
    assert validate(ranks(USUAL, USUAL, []))["ET502"].findings[0].rank == 2


def test_send_without_its_receive() -> None:
    given = run(
        trace(send(1, 1, tag=3), send(2, 1, tag=4), rank=0, world=2),
        trace(recv(7, 0, tag=3), rank=1, world=2),
    )
    (finding,) = validate(given)["ET505"].findings
    assert (finding.rank, finding.node) == (0, 2)
    assert "send from rank 0 to rank 1 with tag 4" in finding.evidence


def test_send_and_receive_of_different_sizes_name_both_nodes() -> None:
    given = run(
        trace(send(1, 1), send(2, 1, size=8), rank=0, world=2),
        trace(recv(6, 0), recv(7, 0, size=16), rank=1, world=2),
    )
    result = validate(given)
    (finding,) = result["ET506"].findings
    assert result.rules == {"ET506"}
    assert (finding.rank, finding.node) == (0, 2)
    assert "rank 1, node 7, is of 16" in finding.evidence


def test_starts_tell_the_order_where_they_are_known() -> None:
    one = trace(coll(1, AR, start=10), coll(2, AG, start=20), rank=0, world=2)
    other = trace(coll(2, AR, start=10), coll(1, AG, start=20), rank=1, world=2)
    assert "ET503" not in validate(run(one, other)).rules
    assert "ET704" in validate(run(one, other), "astra-sim").rules


def test_deadlock_by_messages_names_ranks_and_nodes() -> None:
    given = run(
        trace(recv(1, 1), send(2, 1, deps=(1,)), rank=0, world=2),
        trace(recv(6, 0), send(7, 0, deps=(6,)), rank=1, world=2),
    )
    result = validate(given)
    assert result.rules == {"ET510"}
    (finding,) = result["ET510"].findings
    for part in ("rank 0 node 1", "rank 0 node 2", "rank 1 node 6", "rank 1 node 7"):
        assert part in finding.evidence


def test_deadlock_by_collectives_of_two_groups() -> None:
    def rank(number: int, *order: str) -> Trace:
        first, second = (coll(i + 1, pg_name=name) for i, name in enumerate(order))
        second["deps"] = (1,)
        return trace(first, second, rank=number, world=2, groups={"5": (0, 1), "6": (0, 1)})

    assert validate(run(rank(0, "5", "6"), rank(1, "5", "6"))).rules == set()
    assert validate(run(rank(0, "5", "6"), rank(1, "6", "5"))).rules == {"ET510"}


def test_a_message_across_a_collective_is_no_deadlock() -> None:
    given = run(
        trace(send(1, 1), coll(2, deps=(1,)), recv(3, 1, deps=(2,)), rank=0, world=2),
        trace(coll(1), recv(2, 0, deps=(1,)), send(3, 0, deps=(2,)), rank=1, world=2),
    )
    assert validate(given).rules == set()
