"""The protobuf schema, the registry of attributes, and what is derived from them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chakra_et import definitions
from chakra_et.definitions import (
    ATTRIBUTES,
    TRACE_ATTRIBUTES,
    CollectiveType,
    EdgeKind,
    Kind,
    NodeAttributes,
    NodeType,
)
from chakra_et.proto import et_def_pb2

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "schema"
INTEGERS = {
    getattr(Kind, f"{prefix}{bits}")
    for prefix in ("INT", "UINT", "SINT", "FIXED", "SFIXED")
    for bits in (32, 64)
}

sys.path.insert(0, str(ROOT / "tools"))
registry = importlib.import_module("derive.registry")
render = importlib.import_module("derive.definitions").render
render_reference = importlib.import_module("derive.reference").render

# Facts of the format, one line per message: field number, type, name.
MESSAGES = {
    "GlobalMetadata": "1 string version, 2 *AttributeProto attr",
    "Node": (
        "1 uint64 id, 2 string name, 3 NodeType type, 4 *uint64 ctrl_deps, 5 *uint64 data_deps, "
        "6 uint64 start_time_micros, 7 uint64 duration_micros, 8 IOInfo inputs, 9 IOInfo outputs, "
        "10 *AttributeProto attr, 11 StorageInfo storage, 12 DataOpType data_op"
    ),
    "IOInfo": "1 string values, 2 string shapes, 3 string types",
    "Tensor": (
        "1 uint64 tensor_id, 2 uint64 storage_id, 3 uint64 offset, 4 uint64 num_elem, "
        "5 uint64 elem_bytes, 6 string device"
    ),
    "StorageInfo": "1 StorageLevel level, 10 FsOp fs, 11 PageOp page, 12 BlockOp block",
    "FsOp": (
        "1 OpType op, 2 string pathname, 3 int32 fd, 4 uint64 offset, 5 uint64 size_bytes, "
        "6 uint32 flags"
    ),
    "PageOp": "1 OpType op, 2 uint64 inode, 3 uint64 page_index, 4 uint32 nr_pages",
    "BlockOp": (
        "1 OpType op, 2 QueueEvent queue_event, 3 string device, 4 uint64 lba, "
        "5 uint32 nr_sectors, 6 uint32 req_op_flags"
    ),
}
SCALARS = [
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
    *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
]
ENUMS = {
    "NodeType": (
        "INVALID_NODE METADATA_NODE MEM_LOAD_NODE MEM_STORE_NODE COMP_NODE COMM_SEND_NODE "
        "COMM_RECV_NODE COMM_COLL_NODE STORAGE_NODE DATA_OP_NODE"
    ),
    "CollectiveCommType": (
        "ALL_REDUCE REDUCE ALL_GATHER GATHER SCATTER BROADCAST ALL_TO_ALL REDUCE_SCATTER "
        "REDUCE_SCATTER_BLOCK BARRIER"
    ),
    "DataOpType": "DATA_OP_UNKNOWN DATA_OP_DATALOADER DATA_OP_CHECKPOINT DATA_OP_KV_TRANSFER",
    "StorageLevel": (
        "STORAGE_LEVEL_UNKNOWN STORAGE_LEVEL_FS STORAGE_LEVEL_PAGE STORAGE_LEVEL_BLOCK "
        "STORAGE_LEVEL_DEVICE"
    ),
}

# ------------------------------------------------------------------------------------------------
# Protobuf


def type_name(field: Any) -> str:
    named = field.message_type or field.enum_type
    if named is not None:
        return str(named.name)
    names = {getattr(field, f"TYPE_{scalar.upper()}"): scalar for scalar in SCALARS}
    return names[field.type]


def is_list(field: Any) -> bool:
    repeated = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if repeated is None else repeated)


def described(message: str) -> str:
    fields = et_def_pb2.DESCRIPTOR.message_types_by_name[message].fields
    return ", ".join(
        f"{f.number} {'*' if is_list(f) else ''}{type_name(f)} {f.name}"
        for f in sorted(fields, key=lambda field: field.number)
    )


@pytest.mark.parametrize("message", MESSAGES)
def test_fields_of_a_message(message: str) -> None:
    assert described(message) == MESSAGES[message]


def test_fields_of_an_attribute() -> None:
    expected = ["1 string name", "2 string doc_string"]
    for place, scalar in enumerate(SCALARS):
        name = scalar.capitalize()
        expected.append(f"{2 * place + 3} {scalar} {scalar}_val")
        expected.append(f"{2 * place + 4} {name}List {scalar}_list")
        assert described(f"{name}List") == f"1 *{scalar} values"
    assert described("AttributeProto") == ", ".join(expected)


def test_there_are_no_other_messages_and_enums() -> None:
    messages = set(et_def_pb2.DESCRIPTOR.message_types_by_name)
    lists = {f"{scalar.capitalize()}List" for scalar in SCALARS}
    assert messages == {*MESSAGES, *lists, "AttributeProto"}
    assert set(et_def_pb2.DESCRIPTOR.enum_types_by_name) == set(ENUMS)
    assert et_def_pb2.DESCRIPTOR.package == "ChakraProtoMsg"


@pytest.mark.parametrize("enum", ENUMS)
def test_values_of_an_enum(enum: str) -> None:
    values = et_def_pb2.DESCRIPTOR.enum_types_by_name[enum].values
    assert [(v.name, v.number) for v in values] == [
        (name, number) for number, name in enumerate(ENUMS[enum].split())
    ]


@pytest.mark.parametrize(
    ("message", "oneof", "first", "last"),
    [
        ("Node", "op_info", 11, 12),
        ("AttributeProto", "value", 3, 32),
        ("StorageInfo", "detail", 10, 12),
    ],
)
def test_oneofs(message: str, oneof: str, first: int, last: int) -> None:
    fields = et_def_pb2.DESCRIPTOR.message_types_by_name[message].oneofs_by_name[oneof].fields
    assert [field.number for field in fields] == list(range(first, last + 1))


def test_bytes_of_a_node() -> None:
    node = et_def_pb2.Node(id=0, name="a", type=et_def_pb2.COMP_NODE, data_deps=[1, 300])
    assert node.SerializeToString() == bytes.fromhex("12 01 61 18 04 2a 03 01 ac 02")


def test_unpacked_numbers_are_read() -> None:
    node = et_def_pb2.Node.FromString(bytes.fromhex("28 01 28 ac 02"))
    assert list(node.data_deps) == [1, 300]


@pytest.mark.parametrize(
    ("attribute", "wire"),
    [
        ({"int64_val": 1}, "48 01"),
        ({"uint64_val": 1}, "68 01"),
        ({"int32_val": 1}, "38 01"),
        ({"bool_val": True}, "d8 01 01"),
        ({"string_val": "a"}, "ea 01 01 61"),
    ],
)
def test_bytes_of_an_attribute(attribute: dict[str, Any], wire: str) -> None:
    message = et_def_pb2.AttributeProto(name="n", **attribute)
    assert message.SerializeToString() == bytes.fromhex("0a 01 6e") + bytes.fromhex(wire)


# ------------------------------------------------------------------------------------------------
# Registry and definitions


def test_definitions_agree_with_the_protobuf_code() -> None:
    node_types = {f"{t.name}_NODE": t.value for t in NodeType}
    assert node_types == dict(et_def_pb2.NodeType.items())
    assert {t.name: t.value for t in CollectiveType} == dict(et_def_pb2.CollectiveCommType.items())
    value = et_def_pb2.AttributeProto.DESCRIPTOR.oneofs_by_name["value"]
    kinds = {f.name.removesuffix("_val").upper(): f.number for f in value.fields}
    assert {kind.name: kind.value for kind in Kind} == kinds


@pytest.mark.parametrize(
    ("path", "text"),
    [("chakra_et/definitions.py", render), ("docs/attributes.md", render_reference)],
)
def test_derived_files_are_current(path: str, text: Callable[[Any], str]) -> None:
    assert (ROOT / path).read_text("utf-8") == text(registry.load())


def test_names_are_unique() -> None:
    attributes = registry.load().attribute
    assert len({(a.scope, a.name) for a in attributes}) == len(attributes)
    assert len(ATTRIBUTES) + len(TRACE_ATTRIBUTES) == len(attributes)


@pytest.mark.parametrize("table", [ATTRIBUTES, TRACE_ATTRIBUTES])
def test_every_attribute_is_whole(table: dict[str, definitions.Attribute]) -> None:
    for name, attribute in table.items():
        assert attribute.name == name
        assert attribute.kind in attribute.accepts
        assert attribute.meaning.endswith(".")
        assert attribute.writers or attribute.readers
        assert not attribute.kind.name.startswith("SINT")
        if attribute.kind in INTEGERS:
            assert attribute.accepts == INTEGERS


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("is_cpu_op", Kind.BOOL),
        ("num_ops", Kind.INT64),
        ("tensor_size", Kind.UINT64),
        ("comm_type", Kind.INT64),
        ("comm_size", Kind.INT64),
        ("comm_priority", Kind.INT32),
        ("comm_src", Kind.INT32),
        ("comm_dst", Kind.INT32),
        ("comm_tag", Kind.INT32),
        ("pg_name", Kind.STRING),
        ("involved_dim", Kind.BOOL_LIST),
    ],
)
def test_kinds_that_simulators_read(name: str, kind: Kind) -> None:
    # One of them reads these kinds alone and takes any other for zero.
    assert ATTRIBUTES[name].kind == kind


def test_is_cpu_op_is_read_from_integers_too() -> None:
    assert ATTRIBUTES["is_cpu_op"].accepts == {Kind.BOOL, *INTEGERS}


def test_edge_kinds() -> None:
    labels = ["call", "program", "thread", "launch", "stream", "event", "sync", "data", "group"]
    assert [kind.label for kind in EdgeKind][: len(labels)] == labels, "numbers are never reused"
    for kind in list(EdgeKind)[1:]:
        assert kind.label in ATTRIBUTES["edge_kinds"].meaning


class Recorder(NodeAttributes):
    """A node that answers with the accessor and the name that a property asks for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def _note(self, accessor: str, name: str) -> None:
        self.asked.append((accessor, name))

    def _integer(self, name: str, /) -> int:
        self._note("integer", name)
        return 0

    def _boolean(self, name: str, /) -> bool:
        self._note("boolean", name)
        return False

    def _real(self, name: str, /) -> float:
        self._note("real", name)
        return 0.0

    def _text(self, name: str, /) -> str:
        self._note("text", name)
        return ""

    def _integers(self, name: str, /) -> list[int]:
        self._note("integers", name)
        return []

    def _booleans(self, name: str, /) -> list[bool]:
        self._note("booleans", name)
        return []

    def _texts(self, name: str, /) -> list[str]:
        self._note("texts", name)
        return []


def test_a_property_per_node_attribute() -> None:
    accessors = {
        Kind.BOOL: "boolean",
        Kind.STRING: "text",
        Kind.BOOL_LIST: "booleans",
        Kind.STRING_LIST: "texts",
    }
    renamed = {"inputs": "tensor_inputs", "outputs": "tensor_outputs"}
    node = Recorder()
    for name in ATTRIBUTES:
        getattr(node, renamed.get(name, name))
    assert node.asked == [
        (accessors.get(attribute.kind, "integer"), name) for name, attribute in ATTRIBUTES.items()
    ]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('name = "comm_dst"', 'name = "comm_src"'), "stands twice"),
        (('integer = [\n    "int32"', 'integer = [\n    "int33"'), "unknown kinds: int33"),
        (('kind = "bool"', 'kind = "double"'), "does not accept its own kind"),
    ],
)
def test_a_broken_registry_is_refused(
    tmp_path: Path, change: tuple[str, str], complaint: str
) -> None:
    text = (SCHEMA / "attributes.toml").read_text("utf-8")
    assert change[0] in text
    broken = tmp_path / "attributes.toml"
    broken.write_text(text.replace(*change, 1), "utf-8")
    with pytest.raises(registry.SchemaError, match=complaint):
        registry.load(broken)
