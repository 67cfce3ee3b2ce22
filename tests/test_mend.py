"""Mending changes nothing that is sound, and loses nothing that is whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.io import mend
from chakra_et.io.mend import Mender, MendError
from chakra_et.io.mended_array import MendedArray
from chakra_et.io.repairs import Repairs, UnsoundError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)


@given(VALUES, st.sampled_from([None, 1]))
def test_what_is_sound_stays(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent).encode()
    try:
        mended, end, done = Mender().mend(text + b" ,")
    except MendError:
        # Text that looks like the end of a text is not mended wrongly, but not at all.
        assert b'\\"' in text or isinstance(value, (str, dict))
        return
    if not done:
        assert json.loads(mended) == value
        assert end == len(text)


@pytest.mark.parametrize(
    ("text", "mended", "kind"),
    [
        (b'{"a": 1 "b": 2}', {"a": 1, "b": 2}, mend.COMMA),
        (b'{"a": [1 2]}', {"a": [1, 2]}, mend.COMMA),
        (b'{"a": 1,, "b": 2,}', {"a": 1, "b": 2}, mend.STRAY),
        (b'{"a": [1, 2,]}', {"a": [1, 2]}, mend.STRAY),
        (b'{"a": NaN, "b": -inf}', {"a": "nan", "b": "-inf"}, mend.NUMBER),
        (b'{"a": None, "b": [True]}', {"a": None, "b": [True]}, mend.WORD),
        (b'{"a": "\\ud800x"}', {"a": "\ufffdx"}, mend.SURROGATE),
        (b'{"a": "x\\q\\u12"}', {"a": "x\\q\\u12"}, mend.ESCAPE),
        (b'{"a": "\xff"}', {"a": "\ufffd"}, mend.ENCODING),
        (b'{"a": "x "y" z", "b": 2}', {"a": 'x "y" z', "b": 2}, mend.QUOTE),
        (b'{"a": ["x "y" z", "b"]}', {"a": ['x "y" z', "b"]}, mend.QUOTE),
    ],
)
def test_each_kind_of_damage_is_mended(text: bytes, mended: Any, kind: str) -> None:
    found, end, done = Mender().mend(text)
    assert json.loads(found) == mended
    assert end == len(text)
    assert {what for what, _ in done} == {kind}


@pytest.mark.parametrize("text", [b'{"a": }', b'{"a" 1}', b"{1: 2}", b'{"a": 1]', b'{"a": word}'])
def test_what_is_no_value_is_not_made_one(text: bytes) -> None:
    with pytest.raises(MendError):
        Mender().mend(text)


class Element(msgspec.Struct):
    id: int
    name: str = ""
    args: msgspec.Raw = msgspec.Raw(b"")


def read(text: bytes, size: int, *, strict: bool = False) -> tuple[list[Element], Repairs]:
    repairs = Repairs(Path("file.json"), strict)
    blocks: Iterator[bytes] = (text[i : i + size] for i in range(0, len(text), size))
    of = list[Element]
    array = MendedArray(
        "file.json",
        blocks,
        "nodes",
        (msgspec.json.Decoder(of), msgspec.json.Decoder(of, strict=False)),
        repairs,
        keys=frozenset({"id", "name", "args"}),
        first=("id",),
        document="schema",
    )
    return [element for piece in array for element in piece], repairs


def document(count: int) -> bytes:
    nodes = [{"id": i, "name": f'op "{i}"', "args": {"list": [{"x": i}]}} for i in range(count)]
    return json.dumps({"schema": "x", "nodes": nodes, "finish": 5}).encode()


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("count", [0, 1, 50])
def test_a_sound_document_needs_no_repair(count: int, size: int) -> None:
    elements, repairs = read(document(count), size)
    assert [element.id for element in elements] == list(range(count))
    assert not repairs


def test_a_cut_anywhere_leaves_all_that_is_whole() -> None:
    text = document(12)
    for cut in range(30, len(text)):
        elements, _ = read(text[:cut], 64)
        whole = text[:cut].count(b"]}}")
        assert [element.id for element in elements][:whole] == list(range(whole))


def test_strict_names_the_first_place() -> None:
    text = document(3).replace(b'"id": 1', b'"id": NaN')
    with pytest.raises(UnsoundError, match=r"byte \d+: not sound"):
        read(text, 64, strict=True)
