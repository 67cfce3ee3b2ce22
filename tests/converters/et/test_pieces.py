"""A file is read piece by piece; only a piece that holds anything unusual is read with care."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from et_bytes import VERSION, encoded, framed
from hypothesis import given
from hypothesis import strategies as st
from strategies import traces

from chakra_et.converters.et import block_reader, careful_reader, decode_et
from chakra_et.converters.et.attribute_columns import UnusualError
from chakra_et.converters.et.wire import WireError, field_bytes
from chakra_et.proto import et_def_pb2 as pb

USUAL = pb.Node(id=7, name="aten::mm", data_deps=[3, 300], duration_micros=9)
USUAL.attr.add(name="is_cpu_op", bool_val=True)
USUAL.inputs.values = "[1]"


def unusual() -> dict[str, bytes]:
    """Nodes that are sound, but not read side by side."""
    twice = pb.Node(id=8, name="twice", ctrl_deps=[7])
    for number in (1, 2):
        twice.attr.add(name="x", int64_val=number)
    value_first = b"\xd8\x01\x01" + field_bytes(1, b"is_cpu_op")
    # The tag of the id takes two bytes, of which the second says nothing.
    return {
        "an attribute twice": twice.SerializeToString(),
        "an attribute whose value comes first": field_bytes(10, value_first),
        "a long tag": b"\x88\x00\x05" + USUAL.SerializeToString(),
    }


@contextmanager
def pieces_of(size: int) -> Iterator[None]:
    """Pieces of so many bytes, for as long as this is open."""
    with (
        mock.patch.object(block_reader, "PIECE", size),
        mock.patch.object(careful_reader, "PIECE", size),
    ):
        yield


def outcome(data: bytes) -> Any:
    """The trace, or the error with its place."""
    try:
        return decode_et(data)
    except WireError as error:
        return str(error), error.at


def outcome_with_care(data: bytes) -> Any:
    """The same where every piece is read with care."""
    with mock.patch.object(block_reader.BlockReader, "_take", side_effect=UnusualError):
        return outcome(data)


@given(traces(), st.data())
def test_what_is_read_does_not_depend_on_pieces(trace: Any, drawn: st.DataObject) -> None:
    data = bytearray(encoded(trace))
    for _ in range(drawn.draw(st.integers(0, 3))):
        data[drawn.draw(st.integers(0, len(data) - 1))] = drawn.draw(st.integers(0, 255))
    expected = outcome_with_care(bytes(data))
    with pieces_of(drawn.draw(st.integers(1, 200))):
        assert outcome(bytes(data)) == expected


@pytest.mark.parametrize("kind", unusual())
@pytest.mark.parametrize("place", [0, 250, 499])
def test_one_unusual_node_costs_one_piece(kind: str, place: int) -> None:
    nodes = [USUAL.SerializeToString()] * 500
    nodes[place] = unusual()[kind]
    data = framed(VERSION, *nodes)
    expected = outcome_with_care(data)
    taken = careful_reader.CarefulReader._node
    with (
        pieces_of(400),
        mock.patch.object(careful_reader.CarefulReader, "_node", autospec=True) as node,
    ):
        node.side_effect = taken
        assert decode_et(data) == expected
    assert 1 <= node.call_count <= 400 // len(USUAL.SerializeToString()) + 1


def test_a_damaged_dependency_is_named_by_its_node_in_the_file() -> None:
    bad = b"\x2a\x0b" + b"\xff" * 10 + b"\x01"  # packed ids, of which one has eleven bytes
    data = framed(VERSION, *[USUAL.SerializeToString()] * 60, bad)
    expected = outcome_with_care(data)
    with pieces_of(100):
        assert outcome(data) == expected
    assert expected[0].startswith("node 60: ")
    assert decode_et(data[: -len(bad) - 1])
