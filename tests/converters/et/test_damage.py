"""Protobuf files that are damaged, or of an old schema."""

from __future__ import annotations

from pathlib import Path

import pytest
from et_bytes import VERSION, encoded, framed, unframed
from hypothesis import given
from hypothesis import strategies as st

from chakra_et import FormatError, read
from chakra_et.converters.et import decode_et
from chakra_et.converters.et.first_record import NoMetadataError, OldSchemaError
from chakra_et.converters.et.wire import WireError, field_bytes, varint
from chakra_et.proto import et_def_pb2 as pb


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
    with pytest.raises(NoMetadataError, match="the first record is a node"):
        decode_et(framed(node))


@pytest.mark.parametrize(
    "metadata", [b"", framed(field_bytes(2, field_bytes(1, b"producer") + b"\x53"))]
)
def test_a_file_of_today_whose_metadata_are_lost_or_broken_is_of_no_old_schema(
    tmp_path: Path, metadata: bytes
) -> None:
    compute = pb.Node(id=1, name="aten::mm", type=pb.COMP_NODE, data_deps=[0], duration_micros=7)
    compute.attr.add(name="is_cpu_op", bool_val=True)
    (tmp_path / "t.et").write_bytes(metadata + framed(compute.SerializeToString()))
    with pytest.raises(FormatError, match=r"(lost its|has no) metadata"):
        read(tmp_path / "t.et")


def test_metadata_without_a_version_is_no_old_schema() -> None:
    metadata = pb.GlobalMetadata(attr=[{"name": "schema", "string_val": "1.0.2-chakra.0.0.4"}])
    trace = decode_et(framed(metadata.SerializeToString()))
    assert trace.metadata.get("schema") == "1.0.2-chakra.0.0.4"
