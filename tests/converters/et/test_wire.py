"""The protobuf wire format: numbers, fields, and what is not one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.converters.et.wire import (
    Heads,
    WireError,
    count_varints,
    joined,
    packed,
    read_tag,
    read_varint,
    skip,
    tag,
    unpack,
    varint,
    varint_block,
)

NUMBERS = st.integers(0, 2**64 - 1) | st.sampled_from([0, 127, 128, 16383, 16384, 2**63, 2**64 - 1])


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0, b"\x00"),
        (1, b"\x01"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),
        (2**64 - 1, b"\xff" * 9 + b"\x01"),
        (-1, b"\xff" * 9 + b"\x01"),
    ],
)
def test_a_number_has_seven_bits_in_each_byte(number: int, data: bytes) -> None:
    assert varint(number) == data
    assert read_varint(data, 0, len(data)) == (number % 2**64, len(data))


@given(NUMBERS)
def test_a_number_is_read_as_it_was_written(number: int) -> None:
    data = b"before" + varint(number) + b"after"
    assert read_varint(data, 6, len(data)) == (number, 6 + len(varint(number)))


@given(st.lists(NUMBERS, max_size=80))
def test_many_numbers_at_once_are_as_each_by_itself(numbers: list[int]) -> None:
    column = np.array(numbers, np.uint64)
    data, offsets = packed(column)
    assert data == b"".join(map(varint, numbers))
    assert [data[a:b] for a, b in pairwise(offsets)] == list(map(varint, numbers))
    assert unpack(data).tolist() == numbers
    assert count_varints(data) == len(numbers)


@given(st.lists(NUMBERS, max_size=300), st.binary(max_size=150), st.sampled_from([b"", b"\x52"]))
def test_many_fields_at_once_are_as_each_by_itself(
    numbers: list[int], before: bytes, outer: bytes
) -> None:
    payloads = [before + varint(number) for number in numbers]
    expected = [outer + varint(len(p)) + p if outer else p for p in payloads]
    block = varint_block(before, np.array(numbers, np.uint64), outer)
    if block is None:
        assert outer
        assert len(before) > 100
    else:
        assert joined([block]) == expected


@given(st.lists(st.tuples(NUMBERS, NUMBERS)))
def test_blocks_join_row_by_row_and_may_leave_out_zeros(pairs: list[tuple[int, int]]) -> None:
    numbers = np.array(pairs, np.uint64).reshape(-1, 2)
    first = varint_block(b"\x08", numbers[:, 0], omit_zero=True)
    second = varint_block(b"\x10", numbers[:, 1])
    assert first is not None
    assert second is not None
    assert joined([first, second]) == [
        (b"\x08" + varint(a) if a else b"") + b"\x10" + varint(b) for a, b in pairs
    ]


def test_a_number_may_be_longer_than_needed() -> None:
    assert read_varint(b"\x81\x80\x00", 0, 3) == (1, 3)
    assert unpack(b"\x81\x80\x00\x05").tolist() == [1, 5]


def test_bits_beyond_the_sixty_fourth_are_dropped() -> None:
    assert read_varint(b"\xff" * 9 + b"\x7f", 0, 10)[0] == 2**64 - 1
    assert unpack(b"\xff" * 9 + b"\x7f").tolist() == [2**64 - 1]


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff"])
def test_a_number_that_is_cut_off_is_an_error(data: bytes) -> None:
    with pytest.raises(WireError, match="a number is cut off"):
        read_varint(data, 0, len(data))


def test_a_number_of_eleven_bytes_is_an_error() -> None:
    data = b"\x80" * 10 + b"\x01"
    with pytest.raises(WireError, match="more than ten bytes") as caught:
        read_varint(b"\0\0" + data, 2, 13)
    assert caught.value.at == 2
    with pytest.raises(WireError, match="more than ten bytes") as caught:
        unpack(b"\x05" + data)
    assert caught.value.at == 1


def test_packed_numbers_that_end_within_one_are_an_error() -> None:
    with pytest.raises(WireError, match="cut off"):
        unpack(b"\x05\x80")


@pytest.mark.parametrize("wire_type", [3, 4, 6, 7])
def test_groups_and_unused_wire_types_are_an_error(wire_type: int) -> None:
    with pytest.raises(WireError, match=f"wire type {wire_type}"):
        skip(b"\0" * 20, 0, 20, wire_type)


@pytest.mark.parametrize(("wire_type", "length"), [(0, 1), (1, 8), (2, 4), (5, 4)])
def test_a_field_is_skipped_only_if_it_is_all_there(wire_type: int, length: int) -> None:
    data = b"\x03abcdefg"[:length] if wire_type else b"\x05"
    assert skip(data, 0, length, wire_type) == length
    with pytest.raises(WireError, match="cut off"):
        skip(data, 0, length - 1, wire_type)


@pytest.mark.parametrize("data", [b"\x00", b"\x07", b"\xff\xff\xff\xff\x7f"])
def test_no_field_has_number_zero_or_more_than_29_bits(data: bytes) -> None:
    with pytest.raises(WireError, match="which no field can have"):
        read_tag(data, 0, len(data))


def test_a_tag_is_a_number_and_a_wire_type() -> None:
    assert tag(10, 2) == b"\x52"
    assert read_tag(b"\x52", 0, 1) == (10, 2, 1)
    assert read_tag(tag(2**29 - 1, 0), 0, 5) == (2**29 - 1, 0, 5)


@given(st.lists(st.integers(0, 1 << 20)))
def test_the_head_of_a_field_is_its_tag_and_length(lengths: list[int]) -> None:
    heads = Heads(b"\x52")
    assert [heads[n] for n in lengths] == [b"\x52" + varint(n) for n in lengths]
