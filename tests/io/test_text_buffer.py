"""The part of a document that is in memory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.io.source import filling
from chakra_et.io.text_buffer import SPARE_BYTES, TextBuffer, blockwise


@given(
    blocks=st.lists(st.binary(max_size=40), max_size=12),
    drops=st.lists(st.integers(0, 50), max_size=12),
)
def test_what_is_added_comes_back_in_order(blocks: list[bytes], drops: list[int]) -> None:
    text, taken = TextBuffer(), b""
    steps = blockwise(blocks)(text)
    for drop in [*drops, *[0] * len(blocks)]:
        next(steps, None)
        drop = min(drop, len(text))
        taken += text.part(0, drop)
        text.drop(drop)
        assert text.offset == len(taken)
        with text.view() as view:
            assert bytes(view) == text.part() + bytes(SPARE_BYTES)
    assert taken + text.part() == b"".join(blocks)


def test_places_count_from_the_beginning_of_what_is_in_memory() -> None:
    text = TextBuffer()
    text.add(b"gone, [1, 2]")
    text.drop(5)
    assert text.last(b",", 0, len(text)) == 3
    assert text.last(b",", 0, 3) < 0
    assert text.behind(re.compile(rb"\s*\[")) == 2
    assert text.behind(re.compile(rb"\["), 0) is None
    assert text.behind_next(re.compile(rb"\d"), 3) == 6


@pytest.mark.parametrize("wanted", [1, 7, 1000])
def test_a_file_is_put_there_as_much_as_is_wanted(wanted: int, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(bytes(range(256)))
    text = TextBuffer()
    taken = b""
    text.wanted = wanted
    for _ in filling(path)(text):
        assert len(text) <= wanted
        taken += text.part()
        text.drop(len(text))
    assert taken == bytes(range(256))
