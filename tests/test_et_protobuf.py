"""The protobuf form: what is written is read again, and agrees with protobuf's own classes."""

from __future__ import annotations

import gzip
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import scalars, traces, unknown_fields

from chakra_et.converters.et import decode_et, encode_et
from chakra_et.converters.et.old_schema import OldSchemaError
from chakra_et.converters.et.wire import WireError, field_bytes, read_varint, varint
from chakra_et.definitions import Kind
from chakra_et.model import (
    UNKNOWN_NS,
    AttributeKey,
    AttributeTable,
    EdgeKind,
    Edges,
    Metadata,
    Nodes,
    Trace,
)
from chakra_et.proto import et_def_pb2 as pb

VERSION = field_bytes(1, b"1.0.0")


def encoded(trace: Trace) -> bytes:
    return b"".join(encode_et(trace))


def framed(*messages: bytes) -> bytes:
    return b"".join(varint(len(message)) + message for message in messages)


def unframed(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        length, at = read_varint(data, at, len(data))
        yield data[at : at + length]
        at += length


def one_node(message: bytes) -> Any:
    return decode_et(framed(VERSION, message)).nodes[0]


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


# --- Round trips ---------------------------------------------------------------------------------


@given(traces())
def test_what_is_written_is_read_again(trace: Trace) -> None:
    data = encoded(trace)
    again = decode_et(data)
    assert again == trace
    assert encoded(again) == data


def test_every_real_file_is_rewritten_byte_for_byte(data: Path) -> None:
    files = sorted(data.rglob("*.et"))
    assert files
    for path in files:
        content = path.read_bytes()
        assert encoded(decode_et(content)) == content, path


def test_a_real_file_of_an_older_converter_is_rewritten_byte_for_byte(data: Path) -> None:
    content = gzip.decompress((data / "et" / "broken_graph.0.et.gz").read_bytes())
    trace = decode_et(content)
    assert len(trace.nodes) == 3664
    assert encoded(trace) == content


def test_a_trace_without_nodes_or_metadata_is_one_empty_record() -> None:
    empty = Trace(trace_of_one().nodes.take(np.zeros(0, np.int64)), Edges.empty(0))
    assert encoded(empty) == b"\x00"
    assert decode_et(b"\x00") == empty


def test_more_nodes_than_are_encoded_at_once_are_read_again() -> None:
    count = (1 << 16) + 3
    messages = [pb.Node(id=i, attr=[{"name": "a", "int64_val": i}]) for i in range(count)]
    data = framed(VERSION, *(m.SerializeToString() for m in messages))
    trace = decode_et(data)
    assert trace.nodes.attributes.get(count - 1, "a") == count - 1
    assert encoded(trace) == data


# --- Agreement with protobuf's own classes -------------------------------------------------------


@given(traces(utf8=True))
def test_protobuf_reads_what_we_write(trace: Trace) -> None:
    metadata, *nodes = unframed(encoded(trace))
    assert pb.GlobalMetadata.FromString(metadata).version == trace.metadata.version
    assert len(nodes) == len(trace.nodes)
    for node, data in zip(trace.nodes, nodes, strict=True):
        message = pb.Node.FromString(data)
        assert (message.id, message.type, message.name) == (node.id, node.type, node.name)
        assert list(message.ctrl_deps) == node.ctrl_deps
        assert list(message.data_deps) == node.data_deps
        assert abs(message.duration_micros * 1000 - node.duration_ns) <= 500
        told = trace.nodes.attributes.at(node.row)
        for attribute, (key, value) in zip(message.attr, told, strict=False):
            assert (attribute.name, attribute.doc_string) == (key.name, key.doc)
            assert same(value_of(attribute), value)


@given(traces(utf8=True))
def test_what_protobuf_rewrites_means_the_same(trace: Trace) -> None:
    metadata, *nodes = unframed(encoded(trace))
    rewritten = framed(
        pb.GlobalMetadata.FromString(metadata).SerializeToString(),
        *(pb.Node.FromString(node).SerializeToString() for node in nodes),
    )
    assert decode_et(rewritten) == trace


def value_of(attribute: Any) -> Any:
    field = attribute.WhichOneof("value")
    if field is None:
        return None
    value = getattr(attribute, field)
    return tuple(value.values) if field.endswith("_list") else value


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return (
        bool(a == b and math.copysign(1, a or 0) == math.copysign(1, b or 0))
        if isinstance(a, float) and a == a
        else bool(a == b or (a != a and b != b))
    )


@st.composite
def messages(draw: st.DrawFn) -> Any:
    """Random messages of protobuf's own class."""
    node = pb.Node(
        id=draw(st.integers(0, 2**64 - 1)),
        name=draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=4)),
        type=cast("Any", draw(st.integers(-(2**31), 2**31 - 1))),
        ctrl_deps=draw(st.lists(st.integers(0, 2**64 - 1), max_size=3)),
        data_deps=draw(st.lists(st.integers(0, 2**64 - 1), max_size=3)),
        start_time_micros=draw(st.integers(0, 2**53)),
        duration_micros=draw(st.integers(0, 2**53)),
    )
    if draw(st.booleans()):
        node.inputs.values = draw(st.sampled_from(["", "[1]"]))
        node.inputs.SetInParent()
    for kind in draw(st.lists(st.sampled_from(Kind), max_size=4)):
        attribute = node.attr.add(name=draw(st.sampled_from(["a", "b"])))
        field = attribute.DESCRIPTOR.fields_by_number[kind].name
        if kind.name.endswith("_LIST"):
            items = draw(st.lists(scalars(Kind(kind - 1), utf8=True), max_size=3))
            getattr(attribute, field).values.extend(items)
            getattr(attribute, field).SetInParent()
        else:
            setattr(attribute, field, draw(scalars(kind, utf8=True)))
    if draw(st.booleans()):
        node.storage.fs.pathname = "/data"
    return node


@given(st.lists(messages(), max_size=4))
def test_what_protobuf_writes_is_rewritten_byte_for_byte(nodes: list[Any]) -> None:
    data = framed(VERSION, *(node.SerializeToString() for node in nodes))
    trace = decode_et(data)
    assert encoded(trace) == data
    for message, node in zip(nodes, trace.nodes, strict=True):
        assert node.start_ns == (message.start_time_micros * 1000 or None)
        told = [value for _, value in trace.nodes.attributes.at(node.row)]
        assert all(map(same, map(value_of, message.attr), told))


# --- What is not known ---------------------------------------------------------------------------


@given(unknown_fields(), unknown_fields(), unknown_fields())
def test_unknown_fields_survive(of_metadata: bytes, of_node: bytes, of_attribute: bytes) -> None:
    attribute = field_bytes(10, field_bytes(1, b"a") + of_attribute)
    data = framed(VERSION + of_metadata, b"\x08\x01" + attribute + of_node)
    assert encoded(decode_et(data)) == data


def test_the_fields_of_storage_nodes_survive() -> None:
    node = pb.Node(id=1, type=pb.STORAGE_NODE)
    node.storage.block.lba = 2**40
    data = framed(VERSION, node.SerializeToString())
    assert encoded(decode_et(data)) == data


def test_an_unknown_node_type_survives_as_a_number() -> None:
    node = one_node(b"\x08\x01\x18\x2a")
    assert node.type == 42


def test_a_name_that_is_no_utf8_survives() -> None:
    data = framed(VERSION, b"\x08\x01" + field_bytes(2, b"\xff\x00ok"))
    trace = decode_et(data)
    assert trace.nodes[0].name == "\udcff\x00ok"
    assert encoded(trace) == data


@pytest.mark.parametrize("bits", [0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FC12345, 0x80000000])
def test_every_float_keeps_its_bits(bits: int) -> None:
    value = b"\x2d" + struct.pack("<I", bits)
    data = framed(VERSION, b"\x08\x01" + field_bytes(10, field_bytes(1, b"a") + value))
    assert encoded(decode_et(data)) == data


# --- Other ways to write the same ----------------------------------------------------------------


def test_unpacked_numbers_mean_the_same_as_packed_ones() -> None:
    packed = one_node(b"\x22\x02\x05\x06\x2a\x03\x01\xac\x02")
    unpacked = one_node(b"\x28\x01\x20\x05\x28\xac\x02\x20\x06")
    mixed = one_node(b"\x22\x01\x05\x20\x06\x28\x01\x2a\x02\xac\x02")
    assert packed.ctrl_deps == unpacked.ctrl_deps == mixed.ctrl_deps == [5, 6]
    assert packed.data_deps == unpacked.data_deps == mixed.data_deps == [1, 300]


def test_list_items_may_stand_one_by_one() -> None:
    items = field_bytes(10, field_bytes(1, b"a") + field_bytes(10, b"\x08\x05\x0a\x02\x06\x07"))
    assert one_node(items).attributes == {"a": (5, 6, 7)}


def test_the_fields_of_a_node_may_stand_in_any_order() -> None:
    message = pb.Node(id=3, name="n", type=pb.COMP_NODE, data_deps=[1], duration_micros=2)
    message.attr.add(name="a", int64_val=-1)
    fields = [b"\x08\x03", b"\x12\x01n", b"\x18\x04", b"\x2a\x01\x01", b"\x38\x02"]
    fields.append(field_bytes(10, message.attr[0].SerializeToString()))
    assert b"".join(fields) == message.SerializeToString()
    expected = decode_et(framed(VERSION, b"".join(fields)))
    assert decode_et(framed(VERSION, b"".join(reversed(fields)))) == expected


@given(st.permutations([b"\x0a\x01a", b"\x12\x03doc", b"\x48\x05", field_bytes(99, b"x")]))
def test_the_fields_of_an_attribute_may_stand_in_any_order(fields: list[bytes]) -> None:
    ordinary = field_bytes(10, b"\x0a\x01a\x48\x04")
    trace = decode_et(framed(VERSION, ordinary, field_bytes(10, b"".join(fields))))
    key = AttributeKey("a", Kind.INT64, 0, "doc", field_bytes(99, b"x"))
    assert list(trace.nodes.attributes.at(0)) == [(AttributeKey("a", Kind.INT64), 4)]
    assert list(trace.nodes.attributes.at(1)) == [(key, 5)]


def test_a_value_before_its_name_joins_the_column_of_that_name() -> None:
    usual, other = field_bytes(10, b"\x0a\x01a\x48\x04"), field_bytes(10, b"\x48\x05\x0a\x01a")
    trace = decode_et(framed(VERSION, usual, other, usual))
    (column,) = trace.nodes.attributes.columns
    assert column.values.tolist() == [4, 5, 4]


def test_of_several_values_of_an_attribute_the_last_counts() -> None:
    usual = field_bytes(10, b"\x0a\x01a\x48\x04")
    twice = field_bytes(10, b"\x0a\x01a\x48\x04\x48\x06")
    trace = decode_et(framed(VERSION, usual, twice))
    assert trace.nodes[1].attributes == {"a": 6}


def test_of_several_values_of_a_field_the_last_counts() -> None:
    assert one_node(b"\x08\x01\x08\x02\x12\x01a\x12\x01b").id == 2
    assert one_node(b"\x08\x01\x08\x02\x12\x01a\x12\x01b").name == "b"


def test_a_number_may_have_more_bytes_than_it_needs() -> None:
    assert one_node(b"\x08\x81\x80\x00\x2a\x03\x81\x80\x00").data_deps == [1]
    assert one_node(field_bytes(10, b"\x0a\x01a\x48\x84\x00")).attributes == {"a": 4}


# --- Times and edges that attributes tell --------------------------------------------------------


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
    with pytest.raises(ValueError, match="node 7: a start of -2000 ns: below zero"):
        encoded(trace_of_one(start=-2000))
    with pytest.raises(ValueError, match="node 7: a duration of -2000 ns"):
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


# --- Errors --------------------------------------------------------------------------------------


def small_file() -> bytes:
    node = pb.Node(id=300, name="mm", type=pb.COMP_NODE, data_deps=[1, 300], duration_micros=9)
    node.inputs.values = "[1]"
    node.attr.add(name="comm_size", int64_val=-5)
    node.attr.add(name="d", double_val=0.5)
    node.attr.add(name="s", string_list={"values": ["x", "y"]})
    return framed(VERSION, node.SerializeToString(), node.SerializeToString())


def test_a_file_that_is_cut_anywhere_but_between_records_is_an_error() -> None:
    data = small_file()
    first, second, _ = (len(varint(len(m))) + len(m) for m in unframed(data))
    for length in range(1, len(data)):
        if length in (first, first + second):
            assert len(decode_et(data[:length]).nodes) == (length > first)
            continue
        with pytest.raises(WireError, match="cut off") as caught:
            decode_et(data[:length])
        assert 0 <= caught.value.at <= length


def test_an_empty_file_is_an_error() -> None:
    with pytest.raises(WireError, match="the length of the metadata: a number is cut off"):
        decode_et(b"")


def test_a_node_that_is_cut_anywhere_but_between_fields_is_an_error() -> None:
    message = pb.Node(id=300, name="mm", data_deps=[300])
    message.attr.add(name="a", int64_val=300)
    data = message.SerializeToString()
    borders = {0, 3, 7, 11, len(data)}
    for length in range(len(data)):
        if length in borders:
            assert decode_et(framed(VERSION, data[:length]))
        else:
            for rest in (b"", b"\x08\x01", framed(b"\x08\x01")):
                with pytest.raises(WireError):
                    decode_et(framed(VERSION, data[:length]) + framed(rest))


@pytest.mark.parametrize("wire_type", [3, 4, 6, 7])
@pytest.mark.parametrize("field", [1, 2, 10, 50])
def test_groups_and_unused_wire_types_are_errors(field: int, wire_type: int) -> None:
    bad = varint(field << 3 | wire_type) + b"\0" * 8
    at = 1 + len(VERSION) + 1
    for message in (bad, b"\x08\x01" + bad):
        with pytest.raises(WireError, match=f"wire type {wire_type}") as caught:
            decode_et(framed(VERSION, message))
        assert caught.value.at >= at
    with pytest.raises(WireError, match=f"attribute 'a': a field of wire type {wire_type}"):
        decode_et(framed(VERSION, field_bytes(10, b"\x0a\x01a" + bad)))
    with pytest.raises(WireError, match=f"wire type {wire_type}"):
        decode_et(framed(VERSION + bad))


@pytest.mark.parametrize("length", [2**32 - 1, 2**32, 2**63, 2**64 - 1])
def test_a_length_of_gigabytes_is_an_error_and_costs_nothing(length: int) -> None:
    with pytest.raises(WireError, match="bytes are missing") as caught:
        decode_et(framed(VERSION) + varint(length) + b"\x08\x01")
    assert caught.value.at == 8
    for field in (b"\x12", b"\x2a", b"\x52", b"\x9a\x06"):
        with pytest.raises(WireError, match="a field is cut off"):
            decode_et(framed(VERSION, field + varint(length) + b"\x08\x01"))


@pytest.mark.parametrize(
    "before",
    [b"", b"\x08", b"\x18", b"\x38", b"\x28", b"\x12", b"\x52", b"\x98\x06"],
    ids=lambda before: before.hex() or "tag",
)
def test_a_number_of_eleven_bytes_is_an_error(before: bytes) -> None:
    data = framed(VERSION, before + b"\x80" * 10 + b"\x01")
    with pytest.raises(WireError, match="more than ten bytes"):
        decode_et(data)


@pytest.mark.parametrize(
    "payload",
    [
        b"\x2a\x0b" + b"\x80" * 10 + b"\x01",
        field_bytes(10, b"\x0a\x01a\x48" + b"\x80" * 10 + b"\x01"),
    ],
)
def test_a_number_of_eleven_bytes_within_a_list_or_an_attribute_is_an_error(payload: bytes) -> None:
    data = framed(VERSION, b"\x08\x01\x2a\x02\x01\x02", payload)
    with pytest.raises(WireError, match="more than ten bytes") as caught:
        decode_et(data)
    assert data.index(payload) <= caught.value.at < len(data)


def test_a_broken_attribute_is_found_even_where_others_of_its_name_are_sound() -> None:
    sound = field_bytes(10, b"\x0a\x01a\x48\x04")
    broken = field_bytes(10, b"\x0a\x01a\x48\x84")
    data = framed(VERSION, sound, sound, broken, sound)
    with pytest.raises(WireError, match="attribute 'a': a number is cut off") as caught:
        decode_et(data)
    assert data.index(broken) <= caught.value.at < data.index(broken) + len(broken)


@pytest.mark.parametrize(
    "value",
    [
        field_bytes(4, field_bytes(1, b"1234567")),
        field_bytes(8, b"\x12\x01x"),
        field_bytes(8, b"\x0a\x01\x80"),
        field_bytes(30, b"\x08\x01"),
    ],
)
def test_a_list_that_holds_something_else_is_an_error(value: bytes) -> None:
    with pytest.raises(WireError, match="attribute 'a'"):
        decode_et(framed(VERSION, field_bytes(10, b"\x0a\x01a" + value)))


@given(st.binary(max_size=60))
def test_random_bytes_give_a_trace_or_a_clear_error(data: bytes) -> None:
    for content in (data, framed(VERSION) + data, framed(VERSION, data)):
        try:
            trace = decode_et(content)
        except WireError:
            continue
        assert decode_et(encoded(trace)) == trace


# --- Old schemas ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "schema"),
    [
        (b"\x08\x00\x12\x01a\x18\x03\x38\x05\x98\x01\x01", "0.0.1"),
        (b"\x08\x00\x12\x01a\x18\x03\x5a\x05\x0a\x03abc", "0.0.2 or 0.0.3"),
        (b"\x08\x00\x12\x01a\x18\x03\x20\x01", "0.0.1 to 0.0.3"),
        (b"\x08\x00\x80", "0.0.1 to 0.0.3"),
    ],
)
def test_a_file_that_begins_with_a_node_is_refused_by_its_schema(node: bytes, schema: str) -> None:
    with pytest.raises(OldSchemaError, match=f"of schema {schema}, ") as caught:
        decode_et(framed(node, node))
    assert caught.value.at == 1


def test_metadata_of_schema_0_0_3_is_refused() -> None:
    metadata = field_bytes(1, b"\n\x06schema\x10\x04B\x051.0.1")
    with pytest.raises(OldSchemaError, match=r"schema 0\.0\.3 \(August to October 2023\)"):
        decode_et(framed(metadata))


def test_a_first_node_without_an_id_is_no_metadata() -> None:
    node = pb.Node(name="aten::mm", type=pb.COMP_NODE, data_deps=[1]).SerializeToString()
    with pytest.raises(OldSchemaError, match="the first record is a node"):
        decode_et(framed(node))


def test_metadata_without_a_version_is_no_old_schema() -> None:
    metadata = pb.GlobalMetadata(attr=[{"name": "schema", "string_val": "1.0.2-chakra.0.0.4"}])
    trace = decode_et(framed(metadata.SerializeToString()))
    assert trace.metadata.get("schema") == "1.0.2-chakra.0.0.4"
    assert len(AttributeTable(0).columns) == 0
