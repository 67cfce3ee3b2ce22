"""The tree of calls as intervals."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.linker.edges.data.call_tree import call_tree


@given(st.lists(st.integers(-1, 8), max_size=9))
def test_what_a_node_calls_lies_inside_it_and_nothing_else_does(callers: list[int]) -> None:
    """Circles, and nodes that call themselves, call nothing and lie outside of all others."""
    count = len(callers)
    caller = np.array([c if c < count else -1 for c in callers], np.int64)
    tree = call_tree(caller, np.arange(count))
    assert sorted(tree.position.tolist()) == list(range(count))
    for node in range(count):
        above, seen = [], node
        while caller[seen] >= 0 and caller[seen] not in (*above, node):
            seen = int(caller[seen])
            above.append(seen)
        rooted = caller[seen] < 0
        inside = {
            other
            for other in range(count)
            if other != node and tree.position[other] < tree.position[node] < tree.end[other]
        }
        assert inside == (set(above) if rooted else set())
        below = [
            n for n in range(count) if tree.position[node] <= tree.position[n] < tree.end[node]
        ]
        assert tree.last_begun[node] == max(below)
