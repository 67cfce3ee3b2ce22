"""A long array inside a JSON document is decoded piece by piece, wherever pieces are cut."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.errors import FormatError
from chakra_et.io.json_array import JsonArray
from chakra_et.io.text_buffer import Filling, blockwise


class Element(msgspec.Struct):
    id: int
    name: str = ""
    args: msgspec.Raw = msgspec.Raw(b"")


def blocks(text: bytes, size: int) -> Filling:
    return blockwise(text[i : i + size] for i in range(0, len(text), size))


def read(text: bytes, *, size: int = 7, piece: int = 64) -> tuple[list[Element], bytes, bool]:
    array = JsonArray(
        "file.json",
        blocks(text, size),
        "nodes",
        msgspec.json.Decoder(list[Element]),
        piece_bytes=piece,
    )
    elements = [element for part in array for element in part]
    return elements, array.rest, array.found


def document(count: int, **extra: Any) -> dict[str, Any]:
    nodes = [{"id": i, "name": f"op {i}", "args": {"list": [{"id": i}]}} for i in range(count)]
    return {"schema": "x", "nodes": nodes, **extra}


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_all_elements_come_and_the_rest_stays(count: int, indent: int | None) -> None:
    text = json.dumps(document(count, finish=5, more=[{"id": 1}]), indent=indent).encode()
    elements, rest, found = read(text)
    assert found
    assert [element.id for element in elements] == list(range(count))
    assert json.loads(rest) == {"schema": "x", "nodes": [], "finish": 5, "more": [{"id": 1}]}


def test_a_bare_list_is_an_array_too() -> None:
    elements, rest, _ = read(b' [{"id": 1}, {"id": 2}] ')
    assert [element.id for element in elements] == [1, 2]
    assert json.loads(rest) == []


def test_a_document_without_the_array_says_so() -> None:
    elements, rest, found = read(b'{"other": [1]}')
    assert (elements, rest, found) == ([], b'{"other": [1]}', False)


def test_text_that_looks_like_an_element_does_not_mislead() -> None:
    tricky = [{"id": i, "name": '}, {"id": 7, "name": "'} for i in range(50)]
    elements, _, _ = read(json.dumps({"nodes": tricky}).encode())
    assert [element.name for element in elements] == ['}, {"id": 7, "name": "'] * 50


def test_elements_that_begin_in_different_ways_all_come() -> None:
    mixed = [{"id": i} if i % 3 else {"name": "n", "id": i} for i in range(60)]
    elements, _, _ = read(json.dumps({"nodes": mixed}).encode())
    assert [element.id for element in elements] == list(range(60))


def test_a_value_of_the_wrong_type_is_named_by_its_place() -> None:
    nodes: list[dict[str, Any]] = [{"id": i} for i in range(40)]
    nodes[33]["name"] = 5
    with pytest.raises(FormatError, match=r"file.json: nodes\[33\].name: Expected `str`"):
        read(json.dumps({"nodes": nodes}).encode())


@pytest.mark.parametrize("cut", [1, 2, 5, 20, 60])
def test_a_cut_document_is_refused_with_the_place(cut: int) -> None:
    text = json.dumps({"nodes": [{"id": i} for i in range(40)]}).encode()
    with pytest.raises(FormatError, match=r"file.json: byte \d+: not valid JSON"):
        read(text[:-cut].removesuffix(b"]"))


def test_a_broken_element_is_refused_with_the_place() -> None:
    text = b'{"nodes": [{"id": 1}, {"id": 2, "name": "a "quoted" word"}, {"id": 3}]}'
    with pytest.raises(FormatError, match=f"byte {text.index(b'quoted')}: "):
        read(text)


FIRST_KEYS = {
    "two at the front begin otherwise": lambda i: "id" if i < 2 else "other",
    "one of many": lambda i: "id" if i % 1000 else "other",
    "each one": lambda i: f"key {i}",
    "in turn": lambda i: f"key {i % 7}",
}


@pytest.mark.parametrize("kind", FIRST_KEYS)
def test_the_work_does_not_depend_on_the_keys(kind: str) -> None:
    nodes = [{FIRST_KEYS[kind](i): i, "id": i, "list": [{"id": 1}, {"id": 2}]} for i in range(4000)]
    text = json.dumps({"nodes": nodes}).encode()
    array = JsonArray(
        "f", blocks(text, 999), "nodes", msgspec.json.Decoder(list[Element]), piece_bytes=4096
    )
    assert [element.id for part in array for element in part] == list(range(4000))
    assert array.looked_at < 4 * len(text)


def test_an_element_longer_than_a_piece_comes_whole() -> None:
    nodes = [{"id": i, "name": "x" * (i % 5) * 200} for i in range(50)]
    elements, _, _ = read(json.dumps({"nodes": nodes}).encode())
    assert [element.id for element in elements] == list(range(50))


def test_an_integer_of_thousands_of_digits_is_walked() -> None:
    text = b'{"nodes": [{"id": 1, "args": %s}, {"id": 2}]}' % (b"9" * 5000)
    elements, _, _ = read(text)
    assert [element.id for element in elements] == [1, 2]


@given(
    st.lists(st.text(max_size=8), max_size=30),
    st.integers(1, 40),
    st.integers(1, 200),
    st.sampled_from([None, 2]),
)
def test_pieces_and_blocks_of_any_size_give_the_same(
    names: list[str], size: int, piece: int, indent: int | None
) -> None:
    nodes = [{"id": i, "name": name} for i, name in enumerate(names)]
    text = json.dumps({"a": [[]], "nodes": nodes, "z": {"nodes": []}}, indent=indent).encode()
    elements, rest, _ = read(text, size=size, piece=piece)
    assert [element.name for element in elements] == names
    assert json.loads(rest) == {"a": [[]], "nodes": [], "z": {"nodes": []}}
