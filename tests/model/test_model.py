"""The trace in memory: columns, views, edges, groups and metadata."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import traces, values

from chakra_et.definitions import Kind, NodeType
from chakra_et.model import (
    UNKNOWN_NS,
    AttributeColumn,
    AttributeKey,
    AttributeTable,
    EdgeKind,
    Edges,
    Metadata,
    MetadataAttribute,
    NodeIO,
    Nodes,
    ProcessGroup,
    Trace,
    TraceSet,
    attributes,
)


def trace_of(ids: list[int], edges: Edges | None = None, **columns: Any) -> Trace:
    count = len(ids)
    nodes = Nodes(
        id=np.array(ids, np.uint64),
        type=np.array(columns.pop("type", [4] * count), np.int32),
        name_code=np.arange(count, dtype=np.int32),
        names=[f"op{i}" for i in ids],
        start_ns=np.array(columns.pop("start_ns", [UNKNOWN_NS] * count), np.int64),
        duration_ns=np.zeros(count, np.int64),
        **columns,
    )
    return Trace(nodes, Edges.empty(count) if edges is None else edges)


def collected(count: int, *found: tuple[int, int, EdgeKind, bool]) -> Edges:
    target, source, kind, inferred = zip(*found, strict=True)
    return Edges.collect(
        count,
        np.array(target, np.int64),
        np.array(source, np.uint64),
        np.array(kind, np.uint8),
        np.array(inferred, np.bool_),
    )


# --- Attributes ----------------------------------------------------------------------------------


def test_attributes_keep_their_order_in_each_node() -> None:
    table = AttributeTable(3)
    table.add("a", Kind.INT64, [1, 2, 3])
    table.add("b", Kind.STRING, ["x"], np.array([1]))
    table.add("c", Kind.BOOL, [True, False], np.array([1, 2]))
    assert [[key.name for key, _ in table.at(row)] for row in range(3)] == [
        ["a"],
        ["a", "b", "c"],
        ["a", "c"],
    ]
    assert table.get(1, "b") == "x"
    assert table.get(0, "b") is None


def test_an_attribute_added_in_parts_is_one_column() -> None:
    parts, whole = AttributeTable(3), AttributeTable(3)
    parts.add("a", Kind.INT64, [2], np.array([1]))
    parts.add("a", Kind.INT64, [1, 3], np.array([0, 2]))
    whole.add("a", Kind.INT64, [1, 2, 3])
    assert len(parts.columns) == 1
    assert parts.same(whole)


def test_a_name_added_twice_to_a_node_stands_there_twice() -> None:
    table = AttributeTable(2)
    table.add("a", Kind.INT64, [1, 2])
    table.add("a", Kind.INT64, [3], np.array([1]))
    table.add("a", Kind.STRING, ["x"], np.array([1]))
    assert [value for _, value in table.at(1)] == [2, 3, "x"]
    assert [value for _, value in table.at(0)] == [1]


def test_an_attribute_leaves_the_nodes_it_is_removed_from() -> None:
    table = AttributeTable(3)
    table.add("a", Kind.INT64, [1, 2, 3])
    table.add("b", Kind.INT64, [4, 5, 6])
    (a,) = table.named("a")
    table.remove(a, np.array([0, 2]))
    assert [[v for _, v in table.at(row)] for row in range(3)] == [[4], [2, 5], [6]]
    table.remove(table.named("a")[0], np.array([1]))
    assert [column.key.name for column in table.columns] == ["b"]
    table.add("c", Kind.INT64, [7, 8, 9])
    assert [[v for _, v in table.at(row)] for row in range(3)] == [[4, 7], [5, 8], [6, 9]]


def test_dense_columns_fill_gaps() -> None:
    table = AttributeTable(3)
    table.add("a", Kind.INT64, [5], np.array([1]))
    table.add("b", Kind.STRING, ["x", "y"], np.array([0, 2]))
    assert table.dense("a", -1, np.int64).tolist() == [-1, 5, -1]
    assert table.dense("b", None, object).tolist() == ["x", None, "y"]
    assert table.present("b").tolist() == [True, False, True]
    assert table.dense("none", 0, np.int64).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Kind.INT32, 2**31),
        (Kind.UINT32, -1),
        (Kind.UINT64, -1),
        (Kind.UINT64, 2**64),
        (Kind.SFIXED32, -(2**31) - 1),
        (Kind.INT64, 2**63),
        (Kind.STRING, b"x"),
        (Kind.BYTES, "x"),
        (Kind.INT32_LIST, (1, 2**31)),
        (Kind.STRING_LIST, ("x", 5)),
        (Kind.BOOL_LIST, ("x",)),
    ],
)
def test_a_value_must_fit_its_kind(kind: Kind, value: Any) -> None:
    with pytest.raises(ValueError, match="attribute 'a'"):
        AttributeTable(1).add("a", kind, [value])
    if kind not in (Kind.UINT64, Kind.INT64):
        with pytest.raises(ValueError, match="attribute 'a'"):
            MetadataAttribute(AttributeKey("a", kind), value)


def test_an_array_must_fit_its_kind() -> None:
    with pytest.raises(ValueError, match="attribute 'a': -1 is no UINT64"):
        AttributeTable(1).add("a", Kind.UINT64, np.array([-1]))
    with pytest.raises(ValueError, match=r"attribute 'a': 1\.5 is no INT64"):
        AttributeTable(1).add("a", Kind.INT64, np.array([1.5]))


def test_rows_and_values_must_be_equally_many() -> None:
    with pytest.raises(ValueError, match="2 rows but 1 values"):
        AttributeColumn(AttributeKey("a", Kind.INT64), np.array([0, 1]), [5])


def test_values_that_another_thread_has_just_made_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    column = AttributeColumn.deferred(AttributeKey("a", Kind.STRING), np.array([0]), lambda: ["x"])

    def looked_at_between(values: Any) -> bool:
        """What tells that values are still to be made, and another who makes them then."""
        monkeypatch.undo()
        found = callable(values)
        assert column.values == ["x"]
        return found

    monkeypatch.setattr(attributes, "callable", looked_at_between, raising=False)
    assert column.values == ["x"]


@given(st.data(), st.sampled_from(Kind))
def test_a_value_comes_out_as_it_went_in(data: st.DataObject, kind: Kind) -> None:
    value = data.draw(values(kind))
    table = AttributeTable(2)
    table.add("a", kind, [value], np.array([1]))
    found = table.get(1, "a")
    assert type(found) is type(value)
    assert found == value or repr(found) == repr(value)


def test_equality_tells_zeros_apart_and_takes_nan_for_nan() -> None:
    def table(kind: Kind, value: Any) -> AttributeTable:
        made = AttributeTable(1)
        made.add("a", kind, [value])
        return made

    for wrap in (lambda v: (Kind.DOUBLE, v), lambda v: (Kind.DOUBLE_LIST, (v,))):
        assert table(*wrap(math.nan)).same(table(*wrap(-math.nan)))
        assert not table(*wrap(0.0)).same(table(*wrap(-0.0)))
        assert not table(*wrap(0.0)).same(table(*wrap(math.nan)))


def test_equality_tells_orders_and_kinds_apart() -> None:
    one, other, third = AttributeTable(1), AttributeTable(1), AttributeTable(1)
    one.add("a", Kind.INT64, [1])
    one.add("b", Kind.INT64, [1])
    other.add("b", Kind.INT64, [1])
    other.add("a", Kind.INT64, [1])
    third.add("a", Kind.INT64, [1])
    third.add("b", Kind.INT32, [1])
    assert not one.same(other)
    assert not one.same(third)
    assert not one.same(AttributeTable(2))


# --- Nodes ---------------------------------------------------------------------------------------


def test_nodes_are_found_by_row_and_by_id() -> None:
    trace = trace_of([7, 0, 2**64 - 1])
    assert trace.node(2**64 - 1).row == 2
    assert [node.id for node in trace.nodes] == [7, 0, 2**64 - 1]
    assert trace.nodes[-1] == trace.node(2**64 - 1)
    assert [node.id for node in trace.nodes[1:]] == [0, 2**64 - 1]
    assert [node.id for node in trace.nodes[np.array([True, False, False])]] == [7]
    with pytest.raises(KeyError, match="no node with id 8"):
        trace.node(8)
    with pytest.raises(IndexError, match="row 3 of 3 nodes"):
        trace.nodes[3]


def test_an_id_that_no_node_has_has_no_row() -> None:
    assert trace_of([]).nodes.rows_of(np.array([1], np.uint64)).tolist() == [-1]
    rows = trace_of([5, 3]).nodes.rows_of(np.array([3, 4, 5, 2**64 - 1], np.uint64))
    assert rows.tolist() == [1, -1, 0, -1]


def test_an_unknown_start_is_none_and_an_unknown_type_a_number() -> None:
    trace = trace_of([1, 2], type=[7, 42], start_ns=[UNKNOWN_NS, 0])
    assert [node.start_ns for node in trace.nodes] == [None, 0]
    assert trace.nodes[0].type is NodeType.COMM_COLL
    assert trace.nodes[1].type == 42
    assert repr(trace.nodes) == "<Nodes 2: 1 COMM_COLL, 1 type 42>"
    assert repr(trace.nodes[1]) == "<Node 2 type 42 'op2' start_ns=0 duration_ns=0>"


def test_nodes_are_chosen_by_fields_and_attributes() -> None:
    trace = trace_of([1, 2, 3])
    trace.nodes.attributes.add("stream", Kind.INT64, [7, 8], np.array([0, 2]))
    assert [n.id for n in trace.nodes.where(stream=7)] == [1]
    assert [n.id for n in trace.nodes.where(stream=None)] == [2]
    assert [n.id for n in trace.nodes.where(name=lambda name: name > "op1", type=4)] == [2, 3]
    with pytest.raises(KeyError, match="no node has an attribute 'colour'"):
        trace.nodes.where(colour=1)


def test_a_property_takes_the_kinds_of_its_attribute_alone() -> None:
    trace = trace_of([1])
    trace.nodes.attributes.add("comm_size", Kind.STRING, ["many"])
    trace.nodes.attributes.add("comm_size", Kind.UINT32, [5])
    trace.nodes.attributes.add("is_cpu_op", Kind.INT32, [1])
    assert trace.nodes[0].comm_size == 5
    assert trace.nodes[0].is_cpu_op is True
    assert trace.nodes[0].attributes["comm_size"] == "many"
    assert trace.nodes[0].pg_name is None


def test_inputs_are_text_that_nodes_may_share() -> None:
    io = (b"[1]", b"[[]]", b'["Int"]', b"")
    trace = trace_of([1, 2], texts=[io], input_code=[0, -1], output_code=[0, 0])
    assert trace.nodes[0].inputs == NodeIO(*io) == trace.nodes[1].outputs
    assert trace.nodes[1].inputs is None


def test_columns_must_be_equally_long() -> None:
    with pytest.raises(ValueError, match="node columns differ in length"):
        trace_of([1, 2], start_ns=[1])
    with pytest.raises(ValueError, match="edges for 3 nodes, but 1 nodes"):
        trace_of([1], Edges.empty(3))


@given(traces(), st.randoms())
def test_nodes_taken_in_another_order_and_back_are_the_same(trace: Trace, random: Any) -> None:
    order = list(range(len(trace.nodes)))
    random.shuffle(order)
    back = np.argsort(np.array(order, np.int64))
    taken = trace.nodes.take(np.array(order, np.int64))
    assert taken.id.tolist() == [int(trace.nodes.id[row]) for row in order]
    assert taken.take(back).same(trace.nodes)


@given(traces())
def test_taking_some_nodes_keeps_what_they_hold(trace: Trace) -> None:
    some = np.arange(0, len(trace.nodes), 2)
    taken = trace.nodes.take(some)
    for new, old in enumerate(some.tolist()):
        pairs = zip(taken.attributes.at(new), trace.nodes.attributes.at(old), strict=True)
        assert all(a[0] == b[0] and repr(a[1]) == repr(b[1]) for a, b in pairs)
        assert taken.extra.get(new) == trace.nodes.extra.get(old)


# --- Edges ---------------------------------------------------------------------------------------


def test_collected_edges_are_sorted_with_calls_first() -> None:
    edges = collected(
        3,
        (2, 9, EdgeKind.DATA, False),
        (0, 5, EdgeKind.STREAM, True),
        (2, 4, EdgeKind.CALL, False),
        (2, 3, EdgeKind.LAUNCH, False),
    )
    assert edges.into(0) == [(5, EdgeKind.STREAM, True)]
    assert edges.into(1) == []
    assert edges.into(2) == [
        (4, EdgeKind.CALL, False),
        (3, EdgeKind.LAUNCH, False),
        (9, EdgeKind.DATA, False),
    ]
    assert edges.target.tolist() == [0, 2, 2, 2]


def test_of_two_edges_between_the_same_nodes_the_first_wins_but_a_call_stands_beside() -> None:
    edges = collected(
        1,
        (0, 5, EdgeKind.STREAM, True),
        (0, 5, EdgeKind.CALL, False),
        (0, 5, EdgeKind.DATA, False),
        (0, 5, EdgeKind.CALL, False),
    )
    assert edges.into(0) == [(5, EdgeKind.CALL, False), (5, EdgeKind.STREAM, True)]


def test_no_edges_can_be_collected() -> None:
    none = np.zeros(0, np.int64)
    found = Edges.collect(2, none, none.astype(np.uint64), none.astype(np.uint8), none > 0)
    assert found == Edges.empty(2)
    assert found.counts() == {}


def test_edges_are_counted_by_kind() -> None:
    edges = collected(
        2, (0, 1, EdgeKind.SYNC, True), (1, 1, EdgeKind.SYNC, False), (1, 2, EdgeKind.CALL, False)
    )
    assert edges.counts() == {EdgeKind.CALL: (1, 0), EdgeKind.SYNC: (2, 1)}
    assert repr(edges) == "<Edges 3: 1 call, 2 sync>"


@given(traces(), st.data())
def test_chosen_edges_stay_in_their_rows(trace: Trace, data: st.DataObject) -> None:
    edges = trace.edges
    count = len(edges)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), np.bool_)
    chosen = edges.select(mask)
    at = 0
    for row in range(len(trace.nodes)):
        flags = mask[at : at + len(edges.into(row))]
        at += len(edges.into(row))
        kept = [edge for edge, flag in zip(edges.into(row), flags, strict=True) if flag]
        assert chosen.into(row) == kept


def test_edge_columns_must_be_equally_long() -> None:
    with pytest.raises(ValueError, match="edge columns differ in length"):
        Edges(np.array([0, 2]), np.zeros(1, np.uint64), np.zeros(2, np.uint8), np.zeros(2, bool))


def test_a_node_knows_what_it_waits_for() -> None:
    edges = collected(2, (1, 7, EdgeKind.CALL, False), (1, 8, EdgeKind.EVENT, True))
    trace = trace_of([7, 9], edges)
    assert trace.nodes[1].ctrl_deps == [7]
    assert trace.nodes[1].data_deps == [8]
    assert trace.source_rows().tolist() == [0, -1]


# --- Metadata and groups -------------------------------------------------------------------------


def test_metadata_is_replaced_added_and_removed_by_name() -> None:
    metadata = Metadata("1.0.0")
    metadata.set("rank", Kind.INT64, 3)
    metadata.set("rank", Kind.INT64, 4)
    metadata.set("note", Kind.STRING, "x")
    assert [a.key.name for a in metadata.attributes] == ["rank", "note"]
    assert metadata.get("rank") == 4
    metadata.set("rank", Kind.INT64, None)
    assert metadata.get("rank") is None


def test_a_rank_that_is_no_number_is_no_rank() -> None:
    trace = trace_of([])
    trace.metadata.set("rank", Kind.STRING, "zero")
    assert trace.rank is None
    assert repr(trace) == "<Trace: 0 nodes, 0 edges>"
    trace.metadata.set("rank", Kind.INT64, 0)
    assert repr(trace) == "<Trace of rank 0: 0 nodes, 0 edges>"


def test_groups_travel_in_the_metadata() -> None:
    trace = trace_of([])
    groups = (
        ProcessGroup(name="0", ranks=(0, 1), size=2, source="metadata"),
        ProcessGroup(name="\u00e9", description="guess", inferred=True),
    )
    assert trace.groups == ()
    trace.groups = groups
    assert trace.groups == groups
    trace.metadata.set("process_groups", Kind.STRING, "[5]")
    with pytest.raises(ValueError, match="Expected `object`, got `int`"):
        _ = trace.groups


def test_a_set_of_traces_is_ordered_by_rank_and_shares_its_groups() -> None:
    first, second = trace_of([1]), trace_of([1, 2])
    first.groups = [ProcessGroup(name="0", ranks=(0, 3)), ProcessGroup(name="1")]
    second.groups = [ProcessGroup(name="0"), ProcessGroup(name="0", ranks=(0, 3))]
    traces = TraceSet({3: second, 0: first})
    assert list(traces) == [0, 3]
    assert traces[3] is second
    assert traces.world_size == 4
    assert [(g.name, g.ranks) for g in traces.groups] == [("0", (0, 3)), ("1", ())]
    assert repr(traces) == "<TraceSet: 2 ranks, 3 nodes, 2 groups>"
    second.metadata.set("world_size", Kind.INT64, 8)
    assert traces.world_size == 8


@given(traces())
def test_a_trace_equals_itself_and_not_one_with_a_change(trace: Trace) -> None:
    assert trace == trace
    other = Trace(trace.nodes, trace.edges, Metadata(trace.metadata.version + "x"))
    assert trace != other
    assert trace != 5
