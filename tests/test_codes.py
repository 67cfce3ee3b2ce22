"""Numbers in place of values: ranks, keys of rows, distinct values; columns that grow."""

from bisect import bisect_left, bisect_right

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.codes import (
    among,
    codes,
    distinct,
    distinct_rows,
    order_of,
    recoded,
    row_keys,
    search_rows,
)  # fmt: skip
from chakra_et.columns import EVER, NEVER

NUMBER = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([EVER, EVER + 1, NEVER - 1, NEVER]),
    st.integers(EVER, NEVER),
)
ROWS = st.lists(st.tuples(NUMBER, st.integers(-3, 3), NUMBER), max_size=8)


def columns(rows):
    return [np.array([row[k] for row in rows], np.int64) for k in range(3)]


@given(ROWS)
def test_keys_compare_as_rows_do(rows):
    keys = row_keys(*columns(rows)).tolist()
    for one, key in zip(rows, keys, strict=True):
        for other, other_key in zip(rows, keys, strict=True):
            assert (one < other) == (key < other_key)
            assert (one == other) == (key == other_key)


@given(ROWS)
def test_codes_are_ranks_among_distinct_rows(rows):
    ranks = {row: rank for rank, row in enumerate(sorted(set(rows)))}
    assert codes(*columns(rows)).tolist() == [ranks[row] for row in rows]


@given(st.integers(1, 5).flatmap(lambda n: st.tuples(
    st.lists(st.integers(0, n - 1), max_size=9), st.lists(st.integers(0, 9), min_size=n, max_size=n)
)))  # fmt: skip
def test_codes_that_change_and_those_that_do_not(told):
    column, places = (np.array(numbers, np.int32) for numbers in told)
    assert recoded(column, places).tolist() == [told[1][code] for code in told[0]]
    assert recoded(column, np.arange(len(places), dtype=np.int32)) is column


@given(ROWS.filter(len), st.lists(st.integers(1, 40), min_size=8, max_size=8))
def test_codes_of_rows_that_stand_many_times_in_a_row(rows, times):
    counts = times[: len(rows)]
    long = [np.repeat(column, counts) for column in columns(rows)]
    assert codes(*long).tolist() == np.repeat(codes(*columns(rows)), counts).tolist()


@given(st.lists(NUMBER, max_size=8))
def test_distinct_values_ascend(values):
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))


@given(ROWS)
def test_distinct_rows_ascend(rows):
    found = zip(*(column.tolist() for column in distinct_rows(*columns(rows))), strict=True)
    assert list(found) == sorted(set(rows))


@given(st.lists(NUMBER, max_size=8), st.lists(NUMBER, max_size=8))
def test_values_are_among_others_wherever_these_lie(values, some):
    found = among(np.array(values, np.int64), np.array(some, np.int64))
    assert found.tolist() == [value in some for value in values]
    assert among(np.array(values, np.int64), some).tolist() == found.tolist()


def test_keys_of_usual_times_need_no_sorting(monkeypatch):
    # Nanoseconds since the epoch on a hundred threads, some without a time.
    monkeypatch.setattr("chakra_et.codes.codes", None)
    start = 1_700_000_000_000_000_000 + np.arange(5) * 10**9
    keys = row_keys(np.array([99, 0, 0, 99, 99]), np.append(start[:4], EVER))
    assert np.argsort(keys).tolist() == [1, 2, 4, 0, 3]


@given(ROWS)
def test_an_order_is_that_of_rows_and_keeps_equal_ones(rows):
    expected = sorted(range(len(rows)), key=lambda place: rows[place])
    assert order_of(*columns(rows)).tolist() == expected


@given(ROWS, ROWS, st.sampled_from(["left", "right"]))
def test_rows_are_searched_in_ordered_ones(rows, wanted, side):
    bisect = {"left": bisect_left, "right": bisect_right}[side]
    found = search_rows(tuple(columns(sorted(rows))), tuple(columns(wanted)), side).tolist()
    assert found == [bisect(sorted(rows), row) for row in wanted]
