"""Nodes split and inserted by columns are those of a model that goes node by node."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import node, run, trace

from chakra_et.model import EdgeKind, Edges, Trace
from chakra_et.whatif import edit, parse_edit

Place = tuple[int, int]
"""A node of the trace, and which of its parts."""
Wait = tuple[Place, Place, EdgeKind]
_ASKS = (EdgeKind.LAUNCH, EdgeKind.THREAD)
_WAITS = (EdgeKind.DATA, EdgeKind.SYNC, EdgeKind.EVENT)


@st.composite
def graphs(draw: st.DrawFn) -> Trace:
    """Nodes on two threads and two streams, in their order, with other waits among them."""
    lanes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=9))
    nodes, waits, last = [], {}, {}
    for row, lane in enumerate(lanes):
        chosen = draw(st.booleans())
        nodes.append(node(
            row + 1, start=10 * row, took=draw(st.integers(0, 20)), name="x" if chosen else "o",
            is_cpu_op=lane < 2, num_ops=draw(st.integers(0, 9)),
        ))  # fmt: skip
        if lane in last:
            waits[row, last[lane]] = EdgeKind.PROGRAM if lane < 2 else EdgeKind.STREAM
        last[lane] = row
    for row in range(1, len(lanes)):
        for source in draw(st.lists(st.integers(0, row - 1), unique=True, max_size=2)):
            kinds = (*_WAITS, EdgeKind.CALL, *(_ASKS if lanes[source] < 2 else ()))
            waits.setdefault((row, source), draw(st.sampled_from(kinds)))
    made = trace(*nodes)
    (target, source), kind = (
        np.array([*zip(*waits, strict=True)] or [(), ()], np.int64),
        [*waits.values()],
    )
    edges = Edges.collect(len(lanes), target, made.nodes.id[source], np.array(kind, np.uint8),
                          np.zeros(len(kind), np.bool_))  # fmt: skip
    return Trace(made.nodes, edges)


def waits_of(before: Trace, count: int, asks: bool) -> set[Wait]:
    """What waits for what, where each node `x` has so many parts."""
    chosen = [n.name == "x" for n in before.nodes]
    last = [count - 1 if x else 0 for x in chosen]
    found: set[Wait] = set()
    for row, x in enumerate(chosen):
        chain = EdgeKind.PROGRAM if before.nodes[row].attributes["is_cpu_op"] else EdgeKind.STREAM
        found |= {((row, i), (row, i + 1), chain) for i in range(count - 1) if x}
    for row, n in enumerate(before.nodes):
        for source_id, kind, _ in n.edges:
            source = source_id - 1
            stays = kind is EdgeKind.CALL or (kind in _ASKS and not asks)
            by = (source, 0 if stays else last[source])
            targets = range(last[row] + 1) if kind is EdgeKind.LAUNCH else [0]
            found |= {(by, (row, part), kind) for part in targets}
    return found


def found_in(after: Trace, names: dict[int, Place]) -> set[Wait]:
    """The same, of a trace; `names` says what its nodes are, by id."""
    return {(names[source], names[n.id], kind) for n in after.nodes for source, kind, _ in n.edges}


def named(before: Trace, after: Trace, count: int) -> dict[int, Place]:
    """Copies have ids behind all others, node by node."""
    rows = np.flatnonzero([n.name == "x" for n in before.nodes])
    names = {row + 1: (row, 0) for row in range(len(before.nodes))}
    new = sorted(set(after.nodes.id.tolist()) - set(names))
    parts = [(int(row), part) for row in rows for part in range(1, count)]
    return {**names, **dict(zip(new, parts, strict=True))}


@given(before=graphs(), count=st.integers(2, 4))
@settings(max_examples=60)
def test_parts_wait_as_a_model_says_and_add_up(before: Trace, count: int) -> None:
    after = edit(run(before), [parse_edit(f"split:name=x={count}")]).traces[0]
    names = named(before, after, count)
    assert found_in(after, names) == waits_of(before, count, asks=True)
    for name in ("duration_ns", "num_ops"):
        sums: Counter[int] = Counter()
        for n in after.nodes:
            sums[names[n.id][0]] += getattr(n, name)
        assert [sums[row] for row in range(len(before.nodes))] == before.nodes.column(name).tolist()


@given(before=graphs(), us=st.integers(0, 5))
@settings(max_examples=60)
def test_what_is_inserted_waits_as_a_model_says(before: Trace, us: int) -> None:
    after = edit(run(before), [parse_edit(f"insert:name=x={us}")]).traces[0]
    names = named(before, after, 2)
    assert found_in(after, names) == waits_of(before, 2, asks=False)
    took = {names[n.id]: n.duration_ns for n in after.nodes}
    for row, n in enumerate(before.nodes):
        assert took[row, 0] == n.duration_ns
        assert took.get((row, 1)) == (1000 * us if n.name == "x" else None)
