"""blocked() names the nodes: an unmatched receive, a cycle, a parent that is not there."""

from __future__ import annotations

from typing import Any

import pytest
from feeder_traces import N, attribute, trace
from native import NativeFeeder

from chakra_et.feeder import Code, Feeder, FeederError, FeederSet, Next


def p2p(peer: str, rank: int, tag: int = 3) -> bytes:
    """Attributes of a send or a receive."""
    return attribute(peer, 7, rank) + attribute("comm_tag", 7, tag) + attribute("comm_size", 9, 8)


RECEIVE = [N(0), N(1, [0], type=6, name="recv", attrs=p2p("comm_src", 1)), N(2, [1]), N(3, [2])]
CYCLE = [N(0), N(1, [0, 3]), N(2, [1], name="two"), N(3, [2]), N(4, [3])]


def both(native: Any, nodes: list[N], **options: Any) -> list[Any]:
    return [
        Feeder(trace(nodes), **options),
        NativeFeeder(native, trace(nodes), **options),
        Feeder(trace(nodes), window=9, **options),
        NativeFeeder(native, trace(nodes), window=9, **options),
    ]


def test_unmatched_receive(native: Any) -> None:
    for feeder in both(native, RECEIVE):
        for node_id in (0, 1):
            feeder.take(node_id)
            if node_id == 0:
                feeder.done(0)
        assert feeder.next()[0] is Next.PENDING
        assert str(feeder.blocked()) == (
            "1 done, 1 taken, 0 ready, 2 waiting\n"
            'taken, not done: 1 "recv", type 6; 1 wait for it\n'
            '2 waits for 1 "recv" (taken)\n'
            "3 waits for 2 (waiting)\n"
        )


def test_cycle(native: Any) -> None:
    for feeder in both(native, CYCLE):
        feeder.take(0)
        feeder.done(0)
        assert feeder.next()[0] is Next.BLOCKED
        text = str(feeder.blocked())
        assert "cycle: 1 waits for 3 waits for 2 waits for 1\n" in text
        assert '3 waits for 2 "two" (waiting)' in text
    with pytest.raises(FeederError, match="cycle: 1 waits for 3 waits for 2 waits for 1") as caught:
        list(Feeder(trace(CYCLE)))
    assert (caught.value.code, caught.value.other) == (Code.BLOCKED, 4)


def test_names_do_not_steer_the_terminal(native: Any) -> None:
    name = "\x1b[31m red\n\r\t\x7f\x9b\u2028 é"
    for feeder in both(native, [N(0, name=name), N(1, [0])]):
        feeder.take(0)
        line = str(feeder.blocked()).splitlines()[1]
        told = r"\x1b[31m red\n\r\t\x7f\x9b\u2028 é"
        assert line == f'taken, not done: 0 "{told}", type 4; 1 wait for it'


def test_missing_parent_and_self_edge(native: Any) -> None:
    nodes = [N(0), N(1, [0, 77]), N(2, [2])]
    for feeder in both(native, nodes, missing_parent="wait", self_edge="wait"):
        feeder.take(0)
        feeder.done(0)
        text = str(feeder.blocked())
        assert "1 waits for 77 (not in the trace)" in text
        assert "cycle: 2 waits for 2" in text


def test_limits_and_deep_chains(native: Any) -> None:
    """A long chain behind a cycle: no recursion, and a short report."""
    nodes = [N(0, [1]), N(1, [0]), *(N(i, [i - 1]) for i in range(2, 20_000))]
    for feeder in both(native, nodes):
        text = str(feeder.blocked(3))
        assert text.count("\n") == 5
        assert "cycle: 0 waits for 1 waits for 0" in text


def test_a_node_with_many_parents(native: Any) -> None:
    """The list of what a node waits for is cut, and each parent is looked at once."""
    parents = list(range(1000))
    nodes = [*(N(i) for i in parents), N(1000, [*parents, *parents])]
    for feeder in both(native, nodes, missing_parent="wait")[:2]:
        text = str(feeder.blocked(3))
        assert (
            text.splitlines()[1] == "1000 waits for 0 (ready), 1 (ready), 2 (ready), and 997 more"
        )


def test_a_long_cycle_is_cut(native: Any) -> None:
    nodes = [N(i, [(i + 1) % 100]) for i in range(100)]
    for feeder in both(native, nodes)[:2]:
        last = str(feeder.blocked(1)).splitlines()[-1]
        assert last.startswith("cycle: 0 waits for 1 waits for 2 ")
        assert last.endswith("waits for 19 waits for 80 more waits for 0")


def test_many_receives_of_one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node is looked at a few times, however many receives wait; a few lines tell of them."""
    receives = [N(i, type=6, attrs=p2p("comm_src", 1)) for i in range(300)]
    sends = [N(0), N(1, [0], type=5, attrs=p2p("comm_dst", 0))]
    ranks = FeederSet({0: trace(receives), 1: trace(sends)})
    looks = 0
    node = Feeder.node

    def counting(feeder: Feeder, node_id: int) -> Any:
        nonlocal looks
        looks += 1
        return node(feeder, node_id)

    monkeypatch.setattr(Feeder, "node", counting)
    lines = ranks.blocked(2).splitlines()
    assert lines[1:4] == [
        "node 0 receives from rank 1 with tag 3: sent by node 1, which is waiting",
        "node 1 receives from rank 1 with tag 3: no send for it",
        "and 298 more receives",
    ]
    assert looks < 3 * (len(receives) + len(sends))


def test_across_ranks() -> None:
    sends = [N(0, type=5, attrs=p2p("comm_dst", 0, tag=4))]
    ranks = FeederSet({0: trace(RECEIVE), 1: trace(sends)})
    while ranks.next()[0] is Next.NODE:
        if ranks[0].counts().done == 0:
            ranks.done(0, 0)
    text = ranks.blocked()
    assert "node 1 receives from rank 1 with tag 3: no send for it" in text
    sends.append(N(1, [0], type=5, attrs=p2p("comm_dst", 0)))
    ranks = FeederSet({0: trace(RECEIVE), 1: trace(sends)})
    ranks[0].take(0)
    ranks[0].done(0)
    assert "with tag 3: sent by node 1, which is waiting" in ranks.blocked()
