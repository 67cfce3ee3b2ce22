"""The JSON form: nothing is lost, protobuf's own parser reads it, and errors name the place."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from et_bytes import framed, unframed
from google.protobuf import json_format  # noqa: TID251 - the other side of the agreement
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT
from strategies import traces

from chakra_et.converters.et import decode_et, decode_json, encode_et, encode_json
from chakra_et.converters.et.json_mapping import JsonError
from chakra_et.converters.et.wire import field_bytes
from chakra_et.definitions import FORMAT_VERSION, Kind
from chakra_et.model import AttributeKey, EdgeKind, Trace
from chakra_et.proto import et_def_pb2 as pb

SCHEMA = json.loads((ROOT / "schema" / "et.schema.json").read_bytes())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
FEEDER_KINDS = {
    "is_cpu_op": Kind.BOOL,
    "tensor_size": Kind.UINT64,
    "comm_type": Kind.INT64,
    "comm_size": Kind.INT64,
    "comm_priority": Kind.INT32,
    "comm_src": Kind.INT32,
    "comm_dst": Kind.INT32,
    "comm_tag": Kind.INT32,
}


def encoded(trace: Trace) -> bytes:
    return b"".join(encode_json(trace))


def document(*nodes: Any, metadata: Any = None, **other: Any) -> bytes:
    found = {"format": "chakra-et", "metadata": metadata or {}, "nodes": list(nodes), **other}
    return json.dumps(found).encode()


def one_node(**fields: Any) -> Any:
    return decode_json(document(fields)).nodes[0]


def with_value(**value: Any) -> Any:
    return one_node(attr=[{"name": "a", **value}]).attributes["a"]


# --- Round trips ---------------------------------------------------------------------------------


@given(traces())
def test_what_is_written_is_read_again(trace: Trace) -> None:
    again = decode_json(encoded(trace))
    assert again == trace
    assert b"".join(encode_et(again)) == b"".join(encode_et(trace))


def test_real_files_come_back_from_json_byte_for_byte(data: Path) -> None:
    for path in sorted((data / "et").rglob("*.et")):
        content = path.read_bytes()
        trace = decode_json(encoded(decode_et(content)))
        assert b"".join(encode_et(trace)) == content, path


def test_each_node_stands_in_a_line_of_its_own() -> None:
    trace = decode_json(document({"id": "1", "name": "mm", "type": "COMP_NODE"}, {"id": "2"}))
    assert encoded(trace) == (
        b'{"format": "chakra-et", "metadata": {},\n"nodes": [\n'
        b'{"id":"1","name":"mm","type":"COMP_NODE"},\n'
        b'{"id":"2"}\n]}\n'
    )


def test_a_trace_without_nodes_is_read_again() -> None:
    trace = decode_json(document())
    assert len(trace.nodes) == 0
    assert decode_json(encoded(trace)) == trace


@pytest.mark.parametrize(
    "node",
    [
        b"\x08\x01" + field_bytes(2, b"\xff"),
        b"\x08\x01" + field_bytes(8, field_bytes(1, b"\xff") + field_bytes(2, b"[]")),
        field_bytes(10, field_bytes(1, b"\xff") + b"\x48\x05"),
        field_bytes(10, b"\x0a\x01a" + field_bytes(29, b"\xff")),
        field_bytes(10, b"\x0a\x01a" + field_bytes(30, b"\x0a\x01x\x0a\x01\xff")),
        field_bytes(10, b"\x0a\x01a\x19" + b"\x01" + b"\0" * 5 + b"\xf8\x7f"),
        b"\x08\x01" + field_bytes(99, b"x") + field_bytes(11, b"\x08\x01"),
        b"\x08\x01" + field_bytes(11, b"\x08\x00"),
        b"\x08\x01" + field_bytes(11, b"\x08\x01") + b"\x60\x02",
        b"\x08\x01\x60\x00",
        b"\x08\x01\x51" + b"\0" * 8,
    ],
)
def test_what_json_cannot_say_stands_as_it_is_on_the_wire(node: bytes) -> None:
    data = framed(field_bytes(1, b"1.0.0"), node)
    document = encoded(decode_et(data))
    json.loads(document)
    assert b"".join(encode_et(decode_json(document))) == data


def test_storage_is_told_in_words() -> None:
    message = pb.Node(id=1, type=pb.STORAGE_NODE)
    message.storage.level = pb.STORAGE_LEVEL_FS
    message.storage.fs.pathname = "/data"
    message.storage.fs.size_bytes = 4096
    trace = decode_et(framed(b"", message.SerializeToString()))
    (node,) = json.loads(encoded(trace))["nodes"]
    assert node["storage"] == {
        "level": "STORAGE_LEVEL_FS",
        "fs": {"pathname": "/data", "sizeBytes": "4096"},
    }
    assert decode_json(encoded(trace)) == trace


def test_operations_on_storage_have_the_names_of_the_schema() -> None:
    messages = [pb.Node(id=place, type=pb.STORAGE_NODE) for place in range(1, 5)]
    messages[0].storage.fs.op = pb.FsOp.FS_OP_PREAD
    messages[1].storage.page.op = pb.PageOp.PAGE_OP_READAHEAD_ASYNC
    messages[2].storage.block.queue_event = pb.BlockOp.BLOCK_EVENT_DISPATCH
    messages[2].storage.block.nr_sectors = 8
    messages[3].storage.page.op = 5  # has no name
    trace = decode_et(framed(b"", *(m.SerializeToString() for m in messages)))
    document = encoded(trace)
    assert [node["storage"] for node in json.loads(document)["nodes"]] == [
        json_format.MessageToDict(message)["storage"] for message in messages
    ]
    assert decode_json(document) == trace


# --- Agreement with protobuf and with the schema -------------------------------------------------


@given(traces(utf8=True))
def test_protobuf_parses_each_node_to_the_same_message(trace: Trace) -> None:
    found = json.loads(encoded(trace))
    kinds = [pb.GlobalMetadata] + [pb.Node] * len(trace.nodes)
    parts = [found["metadata"], *found["nodes"]]
    for kind, part, data in zip(kinds, parts, unframed(b"".join(encode_et(trace))), strict=True):
        expected = kind.FromString(data)
        expected.DiscardUnknownFields()
        for told, attribute in zip(part.get("attr", []), expected.attr, strict=True):
            field = attribute.WhichOneof("value") or ""
            is_real = field.startswith(("double", "float"))
            if is_real and told.keys() <= {"name", "docString", "unknownFields"}:
                attribute.ClearField(field)  # a NaN with unusual bits, which JSON cannot tell
        parsed = json_format.Parse(json.dumps(part), kind(), ignore_unknown_fields=True)
        assert parsed.SerializeToString() == expected.SerializeToString()


@given(traces(utf8=True))
def test_what_is_written_is_valid_by_the_schema(trace: Trace) -> None:
    VALIDATOR.validate(json.loads(encoded(trace)))


@given(traces(utf8=True))
def test_what_protobuf_prints_is_read(trace: Trace) -> None:
    parts: list[tuple[Any, Any]] = []
    for data in unframed(b"".join(encode_et(trace))):
        message = (pb.Node if parts else pb.GlobalMetadata).FromString(data)
        message.DiscardUnknownFields()
        parts.append((message, json_format.MessageToDict(message)))
    read = decode_json(document(*(d for _, d in parts[1:]), metadata=parts[0][1]))
    assert read == decode_et(framed(*(m.SerializeToString() for m, _ in parts)))


# --- Values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Kind.INT64, -(2**63), '"int64Val":"-9223372036854775808"'),
        (Kind.UINT64, 2**64 - 1, '"uint64Val":"18446744073709551615"'),
        (Kind.SFIXED32, -5, '"sfixed32Val":-5'),
        (Kind.INT64, 0, '"int64Val":"0"'),
        (Kind.BOOL, False, '"boolVal":false'),
        (Kind.DOUBLE, math.inf, '"doubleVal":"Infinity"'),
        (Kind.DOUBLE, -math.inf, '"doubleVal":"-Infinity"'),
        (Kind.DOUBLE, math.nan, '"doubleVal":"NaN"'),
        (Kind.DOUBLE, -0.0, '"doubleVal":-0.0'),
        (Kind.FLOAT, 0.1, '"floatVal":0.1'),
        (Kind.STRING, 'a"\n\u00e9', '"stringVal":"a\\"\\n\u00e9"'),
        (Kind.BYTES, b"\xfb\xff", '"bytesVal":"+/8="'),
        (Kind.INT64_LIST, (1, -1), '"int64List":{"values":["1","-1"]}'),
        (Kind.BOOL_LIST, (), '"boolList":{}'),
        (Kind.BYTES_LIST, (b"", b"x"), '"bytesList":{"values":["","eA=="]}'),
    ],
)
def test_a_value_of_each_kind_has_its_form(kind: Kind, value: Any, text: str) -> None:
    trace = decode_json(document({}))
    trace.nodes.attributes.add("a", kind, [value])
    assert f'{{"name":"a",{text}}}' in encoded(trace).decode()
    assert decode_json(encoded(trace)) == trace


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"int64Val": 5}, 5),
        ({"int64Val": "5"}, 5),
        ({"int32Val": "5"}, 5),
        ({"int32Val": 5.0}, 5),
        ({"int64_val": "5"}, 5),
        ({"doubleVal": 3}, 3.0),
        ({"doubleVal": "1.5"}, 1.5),
        ({"bytesVal": "-_8"}, b"\xfb\xff"),
        ({"bytesVal": "+/8="}, b"\xfb\xff"),
        ({"stringList": {"values": ["x"]}}, ("x",)),
        ({"stringList": {}}, ()),
        ({"int64Val": None}, None),
        ({"docString": "words"}, None),
    ],
)
def test_other_spellings_that_the_mapping_allows_are_read(given: Any, read: Any) -> None:
    assert with_value(**given) == read


def test_a_node_type_is_a_name_or_a_number() -> None:
    assert one_node(type="COMM_COLL_NODE").type == one_node(type=7).type == 7
    assert one_node(type=42).type == 42
    assert json.loads(encoded(decode_json(document({"type": 42}))))["nodes"] == [{"type": 42}]


def test_a_byte_order_mark_is_no_part_of_the_document() -> None:
    assert decode_json(b"\xef\xbb\xbf" + document({"id": "4"})).nodes[0].id == 4


# --- The older form ------------------------------------------------------------------------------


def test_the_older_form_is_read(data: Path) -> None:
    trace = decode_json((data / "et" / "small.0.json").read_bytes())
    assert trace.nodes.id.tolist() == [216, 217, 430, 432, 433, 435, 541]
    assert trace.nodes.type.tolist() == [4, 4, 4, 7, 7, 7, 4]
    assert trace.nodes.duration_ns.tolist() == [n * 1000 for n in (318, 28, 4, 85, 79, 28, 153)]
    assert [node.is_cpu_op for node in trace.nodes] == [True, True, False, True, True, False, True]
    assert {node.start_ns for node in trace.nodes} == {None}
    node = trace.node(435)
    assert node.name.startswith("ncclKernel_Broadcast_RING_LL_Sum_int8_t(")
    assert (node.ctrl_deps, node.data_deps) == ([434], [432, 216, 217])
    assert {kind for _, kind, _ in node.edges} == {EdgeKind.CALL, EdgeKind.DATA}
    told = {a.key.name: (a.key.kind, a.value) for a in trace.metadata.attributes}
    assert told == {
        "workload_name": (Kind.STRING, "workload_name"),
        "ngpus": (Kind.INT64, 8),
        "soc": (Kind.STRING, "soc_name"),
    }
    assert trace.metadata.version == FORMAT_VERSION
    assert decode_json(encoded(trace)) == trace


def feeder(*nodes: Any, **other: Any) -> Trace:
    return decode_json(json.dumps({"workload_graph": list(nodes), **other}).encode())


def test_the_keys_of_the_older_form_become_attributes_in_the_kind_of_the_registry() -> None:
    values = dict.fromkeys(FEEDER_KINDS, 3) | {"is_cpu_op": False}
    trace = feeder({"Id": 1, "Name": "n", "NodeType": 5, "data_deps": [], **values})
    found = {key.name: (key.kind, value) for key, value in trace.nodes.attributes.at(0)}
    assert found == {name: (FEEDER_KINDS[name], value) for name, value in values.items()}


@pytest.mark.parametrize(
    ("value", "kind", "kept"),
    [
        (True, Kind.BOOL, True),
        (5, Kind.INT64, 5),
        (2**63, Kind.UINT64, 2**63),
        (2**64, Kind.STRING, "18446744073709551616"),
        (1.5, Kind.DOUBLE, 1.5),
        ("x", Kind.STRING, "x"),
        (None, None, None),
        ([True], Kind.BOOL_LIST, (True,)),
        ([1, 2], Kind.INT64_LIST, (1, 2)),
        ([0.5], Kind.DOUBLE_LIST, (0.5,)),
        (["x", "y"], Kind.STRING_LIST, ("x", "y")),
        ([1, "x"], Kind.STRING, '[1,"x"]'),
        ([[1], [2]], Kind.STRING, "[[1],[2]]"),
        ([], Kind.STRING, "[]"),
        ({"a": 1}, Kind.STRING, '{"a":1}'),
    ],
)
def test_any_other_key_of_the_older_form_is_kept(value: Any, kind: Kind | None, kept: Any) -> None:
    trace = feeder({"Id": 1, "key": value}, beside=value)
    assert list(trace.nodes.attributes.at(0)) == [(AttributeKey("key", kind), kept)]
    (attribute,) = trace.metadata.attributes
    assert (attribute.key, attribute.value) == (AttributeKey("beside", kind), kept)


def test_a_value_that_the_registry_does_not_allow_is_kept_in_another_kind() -> None:
    trace = feeder({"Id": 1, "comm_src": 2**40, "comm_size": "many", "pg_name": 3})
    found = {key.name: (key.kind, value) for key, value in trace.nodes.attributes.at(0)}
    assert found == {
        "comm_src": (Kind.INT64, 2**40),
        "comm_size": (Kind.STRING, "many"),
        "pg_name": (Kind.INT64, 3),
    }


# --- Errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "place", "problem"),
    [
        ({"id": -1}, "nodes[1].id", "-1 is outside uint64"),
        ({"id": "x"}, "nodes[1].id", "expected an integer, got a string"),
        ({"id": True}, "nodes[1].id", "got true or false"),
        ({"id": 1.5}, "nodes[1].id", "got 1.5"),
        ({"name": 5}, "nodes[1].name", "expected a string, got 5"),
        ({"type": "NO_NODE"}, "nodes[1].type", "unknown value 'NO_NODE'"),
        ({"dataDeps": "1"}, "nodes[1].dataDeps", "expected a list"),
        ({"dataDeps": ["1", None]}, "nodes[1].dataDeps[1]", "got null"),
        ({"inputs": []}, "nodes[1].inputs", "expected an object, got a list"),
        ({"inputs": {"values": 1}}, "nodes[1].inputs.values", "expected a string"),
        ({"colour": 1}, "nodes[1].colour", "unknown field"),
        ({"unknownFields": "!"}, "nodes[1].unknownFields", "invalid base64"),
        ({"unknownFields": "gA=="}, "nodes[1].unknownFields", "not the fields of a message"),
        ({"attr": {}}, "nodes[1].attr", "expected a list"),
        ({"attr": [{"name": "a"}, 5]}, "nodes[1].attr[1]", "expected an object, got 5"),
        ({"attr": [{"int32Val": 2**31}]}, "nodes[1].attr[0].int32Val", "outside int32"),
        ({"attr": [{"boolVal": 1}]}, "nodes[1].attr[0].boolVal", "expected true or false"),
        ({"attr": [{"doubleVal": "x"}]}, "nodes[1].attr[0].doubleVal", "expected a number"),
        ({"attr": [{"floatVal": 1e300}]}, "nodes[1].attr[0].floatVal", "outside float"),
        (
            {"attr": [{"int64Val": 1, "boolVal": True}]},
            "nodes[1].attr[0].boolVal",
            "only one is allowed",
        ),
        (
            {"attr": [{"int64List": {"values": ["1", "x"]}}]},
            "nodes[1].attr[0].int64List.values[1]",
            "expected an integer",
        ),
        ({"startTimeMicros": str(2**62)}, "nodes[1]", "more than 292 years"),
        ([], "nodes[1]", "expected an object"),
    ],
)
def test_an_error_names_its_place(node: Any, place: str, problem: str) -> None:
    with pytest.raises(JsonError) as caught:
        decode_json(document({}, node, {}))
    assert caught.value.place == place
    assert problem in caught.value.problem
    assert str(caught.value).startswith(f"{place}: ")


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        (b"", "", "truncated"),
        (b'{"format": "chakra-et", "nodes": [', "", "truncated"),
        (b'{"format": "chakra-et" "nodes"}', "byte 23", "not valid JSON"),
        (b'{"format": "chakra-et", "metadata": {}, "nodes": []} x', "byte 54", "trailing"),
        (b"[]", "", "Expected `object`, got `array`"),
        (b"{}", "format", 'expected "chakra-et"'),
        (b'{"format": 5}', "format", 'expected "chakra-et"'),
        (b'{"format": "chakra-et", "nodes": []}', "metadata", "missing"),
        (b'{"format": "chakra-et", "metadata": {}}', "nodes", "missing"),
        (document(metadata=[1]), "metadata", "expected an object"),
        (document(metadata={"attr": [{"name": 1}]}), "metadata.attr[0].name", "expected a string"),
        (document(other=1), "other", "no such key"),
        (document().replace(b"[]", b"{}"), "nodes", "expected a list"),
        (b'{"workload_graph": {}}', "workload_graph", "expected a list"),
        (b'{"workload_graph": [{"Id": 1}, {"Name": "x"}]}', "workload_graph[1]", "has no Id"),
        (b'{"workload_graph": [5]}', "workload_graph[0]", "expected an object"),
        (
            b'{"workload_graph": [{"Id": 1, "data_deps": [-1]}]}',
            "workload_graph[0].dataDeps[0]",
            "outside uint64",
        ),
    ],
)
def test_an_error_in_the_document_names_its_place(text: bytes, place: str, problem: str) -> None:
    with pytest.raises(JsonError) as caught:
        decode_json(text)
    assert caught.value.place == place
    assert problem in caught.value.problem


def test_nesting_without_end_is_an_error() -> None:
    deep = b'{"workload_graph": [{"Id": 1, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]}"
    with pytest.raises(JsonError, match="nested too deep"):
        decode_json(deep)


@given(st.binary(max_size=40))
def test_random_bytes_are_an_error(data: bytes) -> None:
    with pytest.raises(JsonError):
        decode_json(data)


@given(st.binary(max_size=40))
def test_random_unknown_fields_are_kept_or_refused(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    try:
        trace = decode_json(document({"unknownFields": text}))
    except JsonError as error:
        assert error.place.startswith("nodes[0]")  # noqa: PT017
    else:
        assert decode_json(encoded(trace)) == trace
        assert np.array_equal(trace.nodes.id, decode_json(encoded(trace)).nodes.id)
