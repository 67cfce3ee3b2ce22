"""Times of a profile are read from their digits, to the nanosecond."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.converters.times import nanoseconds


def read(*texts: str) -> list[int]:
    return [int(value) for value in nanoseconds([text.encode() for text in texts])]


def test_a_time_that_no_float64_holds_is_exact() -> None:
    assert read("5111560233970.721", "1790857026000000.001") == [
        5111560233970721,
        1790857026000000001,
    ]


def test_whole_microseconds_are_exact() -> None:
    assert read("1689360808083239", "0", "5") == [1689360808083239000, 0, 5000]


def test_text_in_quotes_is_a_number() -> None:
    assert read('"1704161511420306.491"', "1") == [1704161511420306491, 1000]


def test_digits_beyond_the_nanosecond_are_rounded_half_to_even() -> None:
    assert read("0.0005", "0.0015", "2.3704", "1e3") == [0, 2, 2370, 1000000]


def test_negative_times_are_times() -> None:
    assert read("-1.500", "-2") == [-1500, -2000]


def test_no_times_are_no_times() -> None:
    assert read() == []


@pytest.mark.parametrize("text", ["null", '"soon"', "NaN", "1.7976931348623157e308", "{}"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"time|fit"):
        read("1.000", text)


@given(st.lists(st.decimals(-(10**14), 10**14, places=3).map(lambda d: d + 0), min_size=1))
def test_any_number_of_thousandths_is_exact(times: list[Decimal]) -> None:
    assert read(*(f"{time:f}" for time in times)) == [int(time * 1000) for time in times]


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1))
def test_any_whole_number_is_exact(times: list[int]) -> None:
    assert read(*map(str, times)) == [time * 1000 for time in times]
