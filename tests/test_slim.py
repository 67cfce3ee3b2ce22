"""Slimming: what is left out is what others say, and nothing else is."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.graph.slim import chains, implied


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Nodes on some lanes, edges along most of each lane, and some across; edges lead forward."""
    count = draw(st.integers(2, 30))
    lane = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    edges: dict[tuple[int, int], bool] = {}
    last: dict[int, int] = {}
    for node, mine in enumerate(lane):
        if mine in last and draw(st.integers(0, 9)):
            edges[last[mine], node] = True
        last[mine] = node
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    for a, b in draw(st.lists(pairs, max_size=40)):
        if a != b:
            edges.setdefault((min(a, b), max(a, b)), False)
    ordered = draw(st.permutations(sorted(edges)))
    source, target = (np.array([edge[side] for edge in ordered], np.int64) for side in (0, 1))
    return count, source, target, np.array([edges[edge] for edge in ordered], np.bool_)


def reach(count: int, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Which node is reached from which, by plain search."""
    reached = np.eye(count, dtype=np.bool_)
    for a, b in sorted(pairs, key=lambda pair: pair[1]):
        reached[:, b] |= reached[:, a]
    return reached


@given(graphs(), st.randoms(use_true_random=False))
def test_an_edge_is_implied_if_and_only_if_a_path_of_others_is(graph, random) -> None:
    count, source, target, in_order = graph
    within = np.array([flag or random.random() < 0.8 for flag in in_order], np.bool_)
    asked = np.array([flag and random.random() < 0.6 for flag in within & ~in_order], np.bool_)
    chain, linked = chains(count, source, target, in_order)
    found = implied(chain, source, target, linked, within, asked)
    pairs = list(zip(source.tolist(), target.tolist(), strict=True))
    for place, (a, b) in enumerate(pairs):
        others = [pair for i, pair in enumerate(pairs) if i != place and within[i]]
        assert found[place] == (asked[place] and reach(count, others)[a, b]), (a, b)
    left = [pair for i, pair in enumerate(pairs) if within[i] and not found[i]]
    everything = [pair for i, pair in enumerate(pairs) if within[i]]
    assert np.array_equal(reach(count, left), reach(count, everything))
