"""Chains: probabilities, orders that held-out sequences choose, and walks of what was seen."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.synth.chain import (
    MASTER_KIND,
    Events,
    Order,
    Sequences,
    by_frequency,
    choose_orders,
    likelihoods,
    visits,
)
from chakra_et.synth.graph import ChainGraph, Walker, chain_graph


def sequences(texts: list[list[int]], key: list[int] | None = None) -> Sequences:
    """Sequences of units of their own."""
    first = np.append(0, np.cumsum([len(text) for text in texts])).astype(np.int64)
    tokens = np.array([t for text in texts for t in text], np.int64)
    keys = np.array(key or [0] * len(texts), np.int64)
    return Sequences(tokens, first, keys, np.zeros(len(texts), np.int64), np.arange(len(texts)))


TEXTS = st.lists(st.lists(st.integers(0, 3), max_size=8), min_size=2, max_size=6)


@given(TEXTS, st.lists(st.integers(0, 3), max_size=4))
def test_the_probabilities_of_all_that_may_follow_add_up_to_at_most_one(
    texts: list[list[int]], start: list[int]
) -> None:
    symbols = sorted({t for text in texts for t in text})
    sums = np.zeros((2, 6))
    for symbol in [*symbols, None]:
        # Each candidate is foreseen behind one start; None stands for the end.
        tried = sequences([*texts, start if symbol is None else [*start, symbol]])
        trained = np.arange(len(tried)) < len(texts)
        [(_, bits)] = likelihoods(tried, [trained], 4)
        sums += 2 ** -bits[:, :, len(start)]
    assert (sums <= 1 + 1e-9).all()
    # What is left belongs to symbols that were never seen.
    assert (sums > 0.2).all()


def test_a_chain_knows_its_order() -> None:
    # After 0 1 comes 2, after 3 1 comes 4: one token says nothing, two say all.
    random = np.random.default_rng(0)
    texts = [
        [t for part in random.integers(0, 2, 30).tolist() for t in ([0, 1, 2], [3, 1, 4])[part]]
        for _ in range(10)
    ]
    choice = choose_orders(sequences(texts))
    assert choice.orders[0].tokens >= 2
    assert choice.chosen <= choice.bits[2] < choice.bits[1] < choice.bits[0]
    assert choice.chosen < by_frequency(sequences(texts)) / 2


def test_held_out_loops_are_foreseen_by_counting() -> None:
    """Seven rounds, always: without a count, each round may be the last."""
    choice = choose_orders(sequences([[0, 1, 2] * 7] * 5))
    assert choice.orders[0].counts
    assert choice.chosen < min(choice.bits) / 2


def test_visits_count_within_a_sequence() -> None:
    found = sequences([[5, 5, 6], [5]])
    events = Events.of(found)
    assert visits(events, events.symbol).tolist() == [0, 1, 0, 0, 0, 0]


@given(TEXTS, st.integers(0, 3), st.booleans(), st.integers(0, 9))
def test_walks_consist_of_what_was_seen(
    texts: list[list[int]], order: int, counts: bool, seed: int
) -> None:
    key = [i % 2 for i in range(len(texts))]
    found = sequences(texts, key)
    walker = Walker(chain_graph(found, {0: Order(order, counts)}, 3))
    random = np.random.default_rng(seed)
    for own in (0, 1):
        mine = [text for text, k in zip(texts, key, strict=True) if k == own]
        walk = walker.walk(own, lambda *_: random.random()).tolist()
        # Lengths and, beyond their order, neighbours are those of sequences of the same key.
        assert len(walk) in {len(text) for text in mine}
        pairs = {pair for text in mine for pair in pairwise(text)}
        assert order == 0 or set(pairwise(walk)) <= pairs
    assert not walker.knows(2)


def test_a_chain_that_saw_one_sequence_repeats_it_and_two_are_mixed_as_often() -> None:
    walker = Walker(chain_graph(sequences([[0, 1], [0, 1], [0, 2], [3, 1]]), {0: Order(1)}, 1))
    random = np.random.default_rng(1)
    drawn = Counter(tuple(walker.walk(0, lambda *_: random.random()).tolist()) for _ in range(4000))
    # 0 begins in 3 of 4, and is followed by 1 in 2 of 3.
    assert drawn.keys() == {(0, 1), (0, 2), (3, 1)}
    assert abs(drawn[0, 1] / 4000 - 0.5) < 0.03
    assert abs(drawn[0, 2] / 4000 - 0.25) < 0.03


def test_masters_have_an_order() -> None:
    found = sequences([[0, 1]] * 4)
    found.kind[:] = MASTER_KIND
    assert choose_orders(found).orders[MASTER_KIND].tokens >= 1


def test_a_class_walks_where_its_own_sequences_went() -> None:
    texts = [[0, 1, 2], [0, 3, 2, 2], [0, 1, 4]]
    graph = chain_graph(sequences(texts), {0: Order(1)}, 2, np.array([1, 2, 0]))
    random = np.random.default_rng(1)

    def drawn(chosen: int | None) -> set[tuple[int, ...]]:
        walker = Walker(graph, chosen)
        assert not walker.knows(1)
        return {tuple(walker.walk(0, lambda *_: random.random()).tolist()) for _ in range(200)}

    assert drawn(1) == {(0, 1, 2)}
    assert drawn(2) == {(0, 3, 2, 2)}
    assert drawn(0) == {(0, 1, 4)}
    assert drawn(None) >= {tuple(text) for text in texts}


BROKEN = {
    "columns differ": {"counts": ((1, 1),)},
    "no such state": {"target": (7,)},
    "no token": {"target": (0,), "length": (0,), "tokens": ()},
    "counts of tokens": {"length": (3,)},
    "keys": {"times": ((),)},
    "classes": {"times": (((1,),), ((0,),))},
    "a class without a way": {"counts": ((1,), (0,)), "times": (((1,),), ((1,),))},
    "less than no way": {"counts": ((2,), (-1,)), "times": (((1,),), ((0,),))},
    "lengths": {"lengths": ((1 << 40,),)},
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_graph_that_none_would_make_is_refused(change: dict[str, object]) -> None:
    sound = {"source": (0,), "target": (-1,), "counts": ((1,),), "length": (1,), "tokens": (5,),
             "start": (0,), "lengths": ((1,),), "times": (((1,),),)}  # fmt: skip
    ChainGraph(**sound)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"chain|sequence|keys|class"):
        ChainGraph(**{**sound, **change})  # type: ignore[arg-type]
