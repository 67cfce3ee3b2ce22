"""Files of older schemas and of forks are told by their content, and read as what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from accounts import write

import chakra_et
from chakra_et import ChakraError
from chakra_et.converters.et.wire import field_bytes, tag, varint
from chakra_et.definitions import NodeType


def fields(*pairs: tuple[int, Any]) -> bytes:
    """A message of varints, texts and messages."""
    return b"".join(
        field_bytes(number, value) if isinstance(value, bytes) else tag(number, 0) + varint(value)
        for number, value in pairs
    )


def framed(*messages: bytes) -> bytes:
    return b"".join(varint(len(message)) + message for message in messages)


FLOAT_HALF = b"\x00\x00\x00\x3f"


def attribute(name: bytes, place: int, value: Any) -> bytes:
    """An attribute of 0.0.2 or 0.0.3: its type is the place of the value's field."""
    if value == FLOAT_HALF:
        return fields((1, name), (2, place)) + tag(4 + place, 5) + value
    return fields((1, name), (2, place), (4 + place, value))


OLD: dict[str, bytes] = {
    "0.0.1": framed(
        fields((1, 0), (2, b"COMP_NODE_a"), (3, 3), (7, 5), (6, 64), (12, 9)),
        fields((1, 1), (2, b"COMM_COLL_NODE_b"), (3, 6), (4, 0), (13, 2), (14, 1), (14, 0),
               (18, 4096)),
    ),
    "0.0.2": framed(
        fields((1, 0), (2, b"COMP_NODE_a"), (3, 3), (5, b"[1]"),
               (11, attribute(b"x", 0, FLOAT_HALF))),
        fields((1, 1), (2, b"COMM_COLL_NODE_b"), (3, 6), (4, 0),
               (11, attribute(b"comm_type", 1, 1)), (11, attribute(b"comm_size", 1, 4096)),
               (11, attribute(b"s", 2, b"text"))),
    ),
    "0.0.3": framed(
        fields((1, 0), (2, b"COMP_NODE_a"), (3, 4), (5, b"[1]"),
               (11, attribute(b"x", 1, FLOAT_HALF))),
        fields((1, 1), (2, b"COMM_COLL_NODE_b"), (3, 7), (4, 0),
               (11, attribute(b"comm_type", 2, 1)), (11, attribute(b"comm_size", 2, 4096)),
               (11, attribute(b"is_cpu_op", 0, 1)), (11, attribute(b"s", 3, b"text"))),
    ),
    "0.0.3 with unsigned values": framed(
        fields((1, attribute(b"schema", 4, b"1.0.1"))),
        fields((1, 0), (2, b"COMP_NODE_a"), (3, 4), (11, attribute(b"x", 1, FLOAT_HALF))),
        fields((1, 1), (2, b"COMM_COLL_NODE_b"), (3, 7), (4, 0),
               (11, attribute(b"comm_type", 3, 1)), (11, attribute(b"comm_size", 2, 4096)),
               (11, attribute(b"s", 4, b"text"))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("schema", OLD)
def test_files_of_old_schemas_are_read(tmp_path: Path, schema: str) -> None:
    trace = chakra_et.read(write(tmp_path / "old.et", OLD[schema]))
    assert trace.metadata.get("converted_from") == schema
    first, second = trace.nodes
    assert (first.name, first.type) == ("COMP_NODE_a", NodeType.COMP)
    assert (second.name, second.type) == ("COMM_COLL_NODE_b", NodeType.COMM_COLL)
    assert second.data_deps == [first.id]
    assert second.attributes["comm_type"] == 6
    assert second.attributes["comm_size"] == 4096
    if schema == "0.0.1":
        assert (first.duration_ns, first.attributes["tensor_size"]) == (5000, 64)
        assert list(second.attributes["involved_dim"]) == [True, False]
    else:
        assert first.attributes["x"] == 0.5
        assert second.attributes["s"] == "text"


def test_an_old_file_that_does_not_show_its_schema_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "old.et", framed(fields((1, 0), (2, b"plain"), (3, 3))))
    with pytest.raises(ChakraError, match="does not show which"):
        chakra_et.read(path)


@pytest.mark.parametrize("schema", OLD)
def test_the_name_of_a_file_does_not_matter(tmp_path: Path, schema: str) -> None:
    assert len(chakra_et.read(write(tmp_path / "old.eg", OLD[schema])).nodes) == 2


def test_a_fork_that_moves_types_is_told_by_the_names(tmp_path: Path) -> None:
    data = framed(
        fields((2, fields((1, b"schema")) + field_bytes(29, b"1.0.2-chakra.0.0.4"))),
        fields((1, 1), (2, b"COMP_NODE_layer"), (3, 5), (7, 1500)),
        fields((1, 2), (2, b"COMM_COLL_NODE_layer"), (3, 8), (5, b"\x01"), (7, 0)),
    )
    trace = chakra_et.read(write(tmp_path / "t.et", data))
    assert [node.type for node in trace.nodes] == [NodeType.COMP, NodeType.COMM_COLL]
    assert [node.duration_ns for node in trace.nodes] == [1500, 0]


def test_what_was_converted_from_a_fork_is_not_converted_again(tmp_path: Path) -> None:
    data = framed(
        fields((2, fields((1, b"schema")) + field_bytes(29, b"1.0.2-chakra.0.0.4"))),
        fields((1, 1), (2, b"COMP_NODE_layer"), (3, 5), (7, 1500)),
    )
    trace = chakra_et.read(write(tmp_path / "fork.et", data))
    trace.nodes.type[0] = NodeType.COMM_SEND
    chakra_et.write(trace, tmp_path / "t.et")
    assert chakra_et.read(tmp_path / "t.et") == trace
