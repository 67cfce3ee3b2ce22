"""Columns of long recordings: packed, they are what they are unpacked."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et import narrow
from chakra_et.definitions import Kind
from chakra_et.model import (
    AttributeColumn,
    AttributeKey,
    CodedTexts,
    JoinedTexts,
    TextsOfRows,
    row_sets,
)

NODES = 5_000
rows = st.lists(st.integers(0, NODES - 1), min_size=1, max_size=60, unique=True).map(sorted)


@pytest.fixture(autouse=True, scope="module")
def few_are_many() -> Iterator[None]:
    """Columns are packed however few values they have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrow, "MANY", 1)
        yield


def texts_of(numbers: list[int]) -> list[str]:
    return [f"ü{number}" for number in numbers]


def as_coded(numbers: list[int]) -> Any:
    distinct = sorted(set(numbers))
    codes = np.array([distinct.index(number) for number in numbers], np.int64)
    return CodedTexts(codes, texts_of(distinct))


def as_joined(numbers: list[int]) -> Any:
    pieces = [text.encode() + b"\n" for text in texts_of(numbers)]
    return JoinedTexts.of([b"".join(pieces[:2]), *pieces[2:]])


def as_texts_of_rows(numbers: list[int]) -> Any:
    return TextsOfRows(lambda rows: texts_of(rows.tolist()), np.array(numbers, np.int64))


LEAST = [-(1 << 63), -(1 << 31), -(1 << 15), -(1 << 7), 0]
GREATEST = [127, 255, 32_767, 65_535, (1 << 31) - 1, (1 << 32) - 1, (1 << 63) - 1]


@given(rows=rows, least=st.sampled_from(LEAST), greatest=st.sampled_from(GREATEST), data=st.data())
def test_numbers_of_any_width(
    rows: list[int], least: int, greatest: int, data: st.DataObject
) -> None:
    numbers = st.integers(least, greatest) | st.sampled_from([least, greatest])
    values = data.draw(st.lists(numbers, min_size=len(rows), max_size=len(rows)))
    kind, dtype = (Kind.UINT64, np.uint64) if least == 0 else (Kind.INT64, np.int64)
    packed = AttributeColumn(AttributeKey("a", kind), np.array(rows), np.array(values, dtype))
    assert packed.values.dtype == dtype
    check(packed, rows, values)


@given(rows=rows, data=st.data())
@pytest.mark.parametrize("pack", [as_coded, as_joined, as_texts_of_rows, texts_of])
def test_texts(rows: list[int], data: st.DataObject, pack: Any) -> None:
    numbers = data.draw(st.lists(st.integers(0, 5), min_size=len(rows), max_size=len(rows)))
    key = AttributeKey("a", Kind.STRING)
    check(AttributeColumn(key, np.array(rows), pack(numbers)), rows, texts_of(numbers))


def check(column: AttributeColumn, rows: list[int], values: list[Any]) -> None:
    """Whatever is asked of a column, it says what these rows and values say."""
    plain = AttributeColumn.trusted(column.key, np.array(rows), np.array(values, object))
    first, end = rows[len(rows) // 3], rows[-1]
    assert told(column.within(first, end)) == told(plain.within(first, end))
    assert told(column.within(end, 2 * NODES)) == [(end, values[-1])]
    assert told(column.within(NODES, NODES + 1)) == []
    places = np.arange(len(rows))[::-2]
    assert told(column.part(places)) == told(plain.part(places))
    order = np.arange(NODES)[::-1]
    assert told(column.take(order, order)) == told(plain.take(order, order))
    twice = np.array([rows[0], rows[-1], rows[0]])
    assert told(column.repeated(twice, NODES)) == told(plain.repeated(twice, NODES))
    assert column.at(rows[-1]) == values[-1]
    assert type(column.at(rows[0])) is type(values[0])
    with pytest.raises(KeyError):
        column.at(NODES)
    assert told(pickle.loads(pickle.dumps(column))) == told(plain)
    assert len(column) == len(rows)
    assert told(column) == told(plain)


def told(column: AttributeColumn) -> list[tuple[int, Any]]:
    return list(zip(column.rows.tolist(), np.asarray(column.values).tolist(), strict=True))


def test_many_rows_take_a_bit_each() -> None:
    """And numbers of one byte take one byte."""
    rows = np.arange(0, 100_000, 2)
    column = AttributeColumn(AttributeKey("a", Kind.INT64), rows, rows % 100)
    assert isinstance(column._rows, row_sets.RowSet)
    assert column._rows._bits.nbytes < 100_000 / 8 + 600
    assert column._values._narrow.nbytes == len(rows)


@pytest.mark.parametrize("rows", [[3, 2], [2, 2], [-1, 4], [0, 1 << 40]])
def test_rows_that_are_no_set_stay_as_they_are(rows: list[int]) -> None:
    column = AttributeColumn(AttributeKey("a", Kind.INT64), np.array(rows), [1, 2])
    assert column.rows.tolist() == rows
