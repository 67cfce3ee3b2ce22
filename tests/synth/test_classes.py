"""Ranks that choose alike are a class, and samples have each class and each way in their shares."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import coll, node, trace

from chakra_et.model import EdgeKind, Trace, TraceSet
from chakra_et.synth import Sampler, fit
from chakra_et.synth.chain import Order, Sequences
from chakra_et.synth.classes import classes_of
from chakra_et.synth.quotas import Quota, places_in_classes


def chosen(choices: list[list[int]], roles: list[int] | None = None) -> list[set[int]]:
    """The classes of ranks of which each made some choices, one in each of as many sequences."""
    ranks, each = len(choices), len(choices[0])
    tokens = np.array(choices, np.int64).ravel()
    rank = np.repeat(np.arange(ranks), each)
    key = np.tile(np.arange(each), ranks)
    none = np.zeros(len(tokens), np.int64)
    found = Sequences(tokens, np.arange(len(tokens) + 1), key, none, rank)
    role = np.array(roles or [0] * ranks, np.int64)
    sizes, number = classes_of(found, {0: Order(1)}, rank, role)
    members: dict[int, set[int]] = {}
    for own, of in enumerate(number.tolist()):
        members.setdefault(of, set()).add(own)
    told = [size for of_role in sizes for size in of_role]
    assert told == [len(members[n]) for n in sorted(members) if n]
    return [members[n] for n in sorted(members) if n]


def test_choices_that_come_together_make_classes() -> None:
    a, b = [0] * 8, [1] * 8
    assert chosen([a, b, b, a, a, b]) == [{0, 3, 4}, {1, 2, 5}]


def test_choices_that_have_nothing_to_do_with_each_other_make_none() -> None:
    random = np.random.default_rng(5)
    for _ in range(20):
        assert chosen(random.integers(0, 2, (8, 40)).tolist()) == []


def test_who_chooses_like_all_others_or_like_nobody_is_in_no_class() -> None:
    assert chosen([[0] * 8] * 6) == []
    assert chosen([[0] * 8, [1] * 8]) == []
    assert chosen([[0] * 8] * 7 + [[1] * 8]) == []


def test_roles_have_classes_of_their_own() -> None:
    a, b = [0] * 8, [1] * 8
    assert chosen([a, b, b, a, a, b] + [a, b] * 3, [0] * 6 + [1] * 6) == [
        {0, 3, 4}, {1, 2, 5}, {6, 8, 10}, {7, 9, 11}
    ]  # fmt: skip


def test_of_very_many_ranks_all_have_their_class() -> None:
    assert [len(c) for c in chosen([[n % 3 == 0] * 6 for n in range(150)])] == [50, 100]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 4), st.integers(0, 99))
def test_each_class_has_its_share_also_of_ranks_that_follow_each_other(
    sizes: list[int], times: int, seed: int
) -> None:
    ranks = sum(sizes) * times
    of, place, members = places_in_classes(sizes, ranks, np.random.default_rng(seed))
    assert Counter(of.tolist()) == {n: size * times for n, size in enumerate(sizes)}
    for n, size in enumerate(sizes):
        assert sorted(place[of == n].tolist()) == list(range(size * times))
        assert (members[of == n] == size * times).all()


def test_half_of_the_ranks_has_half_of_each_class() -> None:
    of, _, _ = places_in_classes((2, 4, 2), 16, np.random.default_rng(3))
    assert Counter(of[:8].tolist()) == Counter(of[8:].tolist()) == {0: 2, 1: 4, 2: 2}


@given(st.integers(1, 40), st.integers(0, 1 << 32), st.lists(st.integers(-2, 1 << 20), max_size=3))
def test_numbers_of_one_choice_are_spread_over_ranks(
    ranks: int, seed: int, choice: list[int]
) -> None:
    random = np.random.default_rng(1)
    drawn = [Quota(1, place, ranks, seed, random).draw(*choice) for place in range(ranks)]
    assert sorted(int(number * ranks) for number in drawn) == list(range(ranks))


def test_ways_that_ranks_took_come_out_as_often_and_together() -> None:
    """Two of eight ranks wait for another thread twice; so do two of eight in every sample."""
    model = fit(
        [TraceSet({rank: odd(rank) if rank in (2, 5) else even(rank) for rank in range(8)})]
    )
    assert model.model.parts[0].classes == ((6, 2),)
    for seed in range(10):
        sample = Sampler(model.model, 8, seed=seed).traces()
        waits = [int((t.edges.kind == EdgeKind.THREAD).sum()) for t in sample.values()]
        assert sorted(waits) == [0] * 6 + [2] * 2
        assert (
            len({tuple(n.comm_size for n in t.nodes.where(type=7)) for t in sample.values()}) == 1
        )


def even(rank: int, *waits: int) -> Trace:
    """A rank of two threads, of which one waits for the other where it is told to."""
    nodes = []
    for number in range(1, 13):
        other = {"deps": (number - 1,), "kind": EdgeKind.THREAD} if number in waits else {}
        nodes.append(node(number, name="aten::mm" if number % 2 else "aten::add", took=5,
                          is_cpu_op=True, thread=1 + number % 2, **other))  # fmt: skip
        if number % 4 == 0:
            nodes.append(coll(100 + number, size=number, pg_name="0", deps=(number,)))
    return trace(*nodes, rank=rank, world=8, groups={"0": tuple(range(8))})


def odd(rank: int) -> Trace:
    """A rank that waits twice."""
    return even(rank, 2, 10)


@pytest.mark.parametrize("ranks", [1, 3, 8, 20])
def test_any_number_of_ranks_has_classes(ranks: int) -> None:
    model = fit(
        [TraceSet({rank: odd(rank) if rank % 2 else even(rank) for rank in range(6)})]
    ).model
    sample = Sampler(model, ranks, seed=1).traces()
    waits = [int((t.edges.kind == EdgeKind.THREAD).sum()) for t in sample.values()]
    assert abs(waits.count(2) - ranks / 2) <= 1
    assert set(waits) <= {0, 2}
