"""Nodes that go: what waited for them waits for what they waited for, and for no more than that."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from traces import node, trace

from chakra_et.model import Trace
from chakra_et.passes.edit import without_nodes


def reached(one: Trace) -> dict[int, set[int]]:
    """The ids of all nodes that each node waits for, near and far."""
    found: dict[int, set[int]] = {}
    for each in one.nodes:
        near = [source for source, _, _ in one.edges.into(one.nodes.by_id(each.id).row)]
        found[each.id] = set(near).union(*(found[source] for source in near))
    return found


graphs = st.lists(st.sets(st.integers(1, 5), max_size=3), min_size=1, max_size=14)
"""For each node, how far back the nodes lie that it waits for."""


@given(graphs, st.sets(st.integers(1, 14), max_size=8))
def test_who_waits_for_whom_stays_without_the_nodes_between(
    back: list[set[int]], gone: set[int]
) -> None:
    before = trace(*(
        node(place, deps=tuple(place - far for far in sorted(steps) if place > far))
        for place, steps in enumerate(back, 1)
    ))  # fmt: skip
    after = without_nodes(before, np.isin(before.nodes.id, list(gone)))
    assert reached(after) == {
        row: waits - gone for row, waits in reached(before).items() if row not in gone
    }


def test_one_of_a_chain_stands_for_those_before_it() -> None:
    """A sum of 50 results of a chain goes, and with it 50 waits of each of the 50 that read it."""
    chain = [node(row, deps=(row - 1,) if row > 1 else ()) for row in range(1, 51)]
    total = node(51, deps=tuple(range(1, 51)))
    readers = [node(row, deps=(51,)) for row in range(52, 102)]
    before = trace(*chain, total, *readers)
    after = without_nodes(before, before.nodes.id == 51)
    assert [after.nodes.by_id(row).data_deps for row in (52, 101)] == [[50], [50]]
    assert len(after.edges) == 49 + 50
