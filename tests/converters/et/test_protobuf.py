"""The protobuf form: what is written is read again, and agrees with protobuf's own classes."""

from __future__ import annotations

import gzip
import math
import struct
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from et_bytes import VERSION, encoded, framed, one_node, unframed
from hypothesis import given
from hypothesis import strategies as st
from strategies import scalars, traces, unknown_fields
from traces_index import trace_files

from chakra_et.converters.et import decode_et
from chakra_et.converters.et.wire import field_bytes
from chakra_et.definitions import Kind
from chakra_et.model import (
    AttributeKey,
    Edges,
    Trace,
)
from chakra_et.proto import et_def_pb2 as pb

# --- Round trips ---------------------------------------------------------------------------------


@given(traces())
def test_what_is_written_is_read_again(trace: Trace) -> None:
    data = encoded(trace)
    again = decode_et(data)
    assert again == trace
    assert encoded(again) == data


def test_every_real_file_is_rewritten_byte_for_byte(data: Path) -> None:
    files = list(trace_files(data, "*.et"))
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
    nothing = np.zeros(0, np.int64)
    nodes = decode_et(framed(VERSION, b"\x08\x01")).nodes.take(nothing)
    empty = Trace(nodes, Edges.empty(0))
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
