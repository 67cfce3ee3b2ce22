"""Exact times and kinds of edges: columns that stand in attributes."""

from __future__ import annotations

import numpy as np
import pytest
from et_bytes import VERSION, encoded, framed, one_node, unframed

from chakra_et.converters.et import decode_et
from chakra_et.converters.et.wire import WireError, field_bytes, varint
from chakra_et.definitions import Kind
from chakra_et.model import UNKNOWN_NS, EdgeKind, Edges, Metadata, Nodes, Trace
from chakra_et.proto import et_def_pb2 as pb


def trace_of_one(
    *, start: int = UNKNOWN_NS, duration: int = 0, edges: Edges | None = None
) -> Trace:
    nodes = Nodes(
        id=np.array([7], np.uint64),
        type=np.array([4], np.int32),
        name_code=np.array([0], np.int32),
        names=["op"],
        start_ns=np.array([start], np.int64),
        duration_ns=np.array([duration], np.int64),
    )
    return Trace(nodes, Edges.empty(1) if edges is None else edges, Metadata("1.0.0"))


def edges_of_one(*found: tuple[int, EdgeKind, bool]) -> Edges:
    sources, kinds, inferred = zip(*found, strict=True)
    return Edges(
        np.array([0, len(found)]),
        np.array(sources, np.uint64),
        np.array(kinds, np.uint8),
        np.array(inferred, np.bool_),
    )


@pytest.mark.parametrize(
    ("start", "micros"),
    [(1500, 2), (2500, 2), (2501, 3), (1499, 1), (500, 0), (2**63 - 1, 2**63 // 1000 + 1)],
)
def test_a_time_is_rounded_once_and_told_exactly(start: int, micros: int) -> None:
    data = encoded(trace_of_one(start=start, duration=start))
    message = pb.Node.FromString(list(unframed(data))[1])
    assert (message.start_time_micros, message.duration_micros) == (micros, micros)
    assert {a.name: a.int64_val for a in message.attr} == {
        "start_time_ns": start,
        "duration_ns": start,
    }
    assert decode_et(data).nodes[0].start_ns == start


def test_whole_microseconds_need_no_attribute_but_a_start_of_zero_does() -> None:
    def names(trace: Trace) -> list[str]:
        return [a.name for a in pb.Node.FromString(list(unframed(encoded(trace)))[1]).attr]

    assert names(trace_of_one(start=5000, duration=3000)) == []
    assert names(trace_of_one(start=UNKNOWN_NS)) == []
    assert names(trace_of_one(start=0)) == ["start_time_ns"]


def test_an_exact_time_that_disagrees_with_its_field_stays_an_attribute() -> None:
    node = one_node(b"\x30\x05" + field_bytes(10, b"\x0a\x0dstart_time_ns\x48\x07"))
    assert node.start_ns == 5000
    assert node.attributes == {"start_time_ns": 7}


def test_of_two_exact_times_the_last_counts() -> None:
    first = field_bytes(10, b"\x0a\x0dstart_time_ns\x48\x07")
    second = field_bytes(10, b"\x0a\x0dstart_time_ns\x48\x09")
    data = framed(VERSION, b"\x08\x01" + first + second)
    trace = decode_et(data)
    assert trace.nodes[0].start_ns == 9
    assert trace.nodes[0].attributes == {"start_time_ns": 7}
    assert encoded(trace) == data


def test_an_attribute_that_would_pass_for_a_column_does_not() -> None:
    edges = edges_of_one((1, EdgeKind.DATA, False), (2, EdgeKind.DATA, False))
    trace = trace_of_one(start=5000, duration=8000, edges=edges)
    trace.nodes.attributes.add("start_time_ns", Kind.INT64, [5100])
    trace.nodes.attributes.add("duration_ns", Kind.INT64, [7900])
    trace.nodes.attributes.add("edge_kinds", Kind.STRING, ["stream,launch?"])
    assert decode_et(encoded(trace)) == trace


def test_a_negative_time_is_refused() -> None:
    with pytest.raises(ValueError, match="node 7: a negative start"):
        encoded(trace_of_one(start=-2000))
    with pytest.raises(ValueError, match="node 7: a negative duration"):
        encoded(trace_of_one(duration=-2000))


@pytest.mark.parametrize("field", [b"\x30", b"\x38"])
def test_a_time_of_more_than_292_years_is_an_error(field: bytes) -> None:
    data = framed(VERSION, b"\x08\x01", field + varint(2**63 // 1000 + 1))
    with pytest.raises(WireError, match="node 1: a time of more than 292 years") as caught:
        decode_et(data)
    assert caught.value.at == data.index(field, 10)


def test_kinds_of_edges_stand_in_an_attribute() -> None:
    edges = edges_of_one(
        (1, EdgeKind.CALL, False), (2, EdgeKind.LAUNCH, False), (3, EdgeKind.STREAM, True)
    )
    message = pb.Node.FromString(list(unframed(encoded(trace_of_one(edges=edges))))[1])
    assert (list(message.ctrl_deps), list(message.data_deps)) == ([1], [2, 3])
    assert [(a.name, a.string_val) for a in message.attr] == [("edge_kinds", "launch,stream?")]


def test_plain_data_edges_need_no_attribute() -> None:
    edges = edges_of_one((1, EdgeKind.DATA, False), (2, EdgeKind.DATA, False))
    message = pb.Node.FromString(list(unframed(encoded(trace_of_one(edges=edges))))[1])
    assert not message.attr


@pytest.mark.parametrize(
    "text", ["launch", "launch,stream,sync", "launch,call", "launch,other", ""]
)
def test_kinds_that_do_not_fit_the_edges_stay_an_attribute(text: str) -> None:
    told = field_bytes(10, field_bytes(1, b"edge_kinds") + field_bytes(29, text.encode()))
    data = framed(VERSION, b"\x08\x09\x2a\x02\x01\x02" + told)
    trace = decode_et(data)
    assert trace.edges.into(0) == [(1, EdgeKind.DATA, False), (2, EdgeKind.DATA, False)]
    assert trace.nodes[0].attributes == {"edge_kinds": text}
    assert encoded(trace) == data
