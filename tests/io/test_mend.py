"""Mending changes nothing that is sound, and loses nothing that is whole."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.io import mend
from chakra_et.io.mend import Mender, MendError
from chakra_et.io.mended_array import MendedArray
from chakra_et.io.repairs import Repair, Repairs, UnsoundError

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


def mended_array(text: bytes, size: int, repairs: Repairs) -> MendedArray[Element]:
    blocks: Iterator[bytes] = (text[i : i + size] for i in range(0, len(text), size))
    of = list[Element]
    return MendedArray(
        "file.json",
        blocks,
        "nodes",
        (msgspec.json.Decoder(of), msgspec.json.Decoder(of, strict=False)),
        repairs,
        keys=frozenset({"id", "name", "args"}),
        first=("id",),
        document="schema",
    )


def read(text: bytes, size: int, *, strict: bool = False) -> tuple[list[Element], Repairs]:
    repairs = Repairs(Path("file.json"), strict)
    array = mended_array(text, size, repairs)
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


class Account(Repairs):
    """Repairs that remember which bytes were left out."""

    spans: list[tuple[int, int]] = msgspec.field(default_factory=list)

    def _note(self, kind: str, offset: int | None, count: int, size: int) -> Repair:
        if size:
            assert offset is not None
            self.spans.append((offset, offset + size))
        return super()._note(kind, offset, count, size)


RECORD_KEYS = st.permutations(["id", "name", "args", "other"])
VALUES_BETWEEN = st.sampled_from([b"null", b"-7.5", b'"a text"', b"[1, [2]]", b"true", b"[]"])
OPENERS = st.sampled_from([b"{", b'"', b'{"name"', b'{"id": [', b"junk", b"\\", b":", b"\x00\xff"])
CLOSERS = st.sampled_from([b"}", b"]", b"}}", b"junk]", b"}]"])


def record(number: int, keys: list[str]) -> bytes:
    values = {"id": number, "name": "}, {", "args": {"a": [{"b": 1}]}, "other": [1]}
    return json.dumps({key: values[key] for key in keys}).encode()


@given(
    st.one_of(
        st.lists(st.one_of(RECORD_KEYS, RECORD_KEYS, VALUES_BETWEEN, junk), max_size=12)
        for junk in (OPENERS, CLOSERS)
    ),
    st.sampled_from([b",", b", ", b"\n", b""]),
    st.sampled_from([1, 50, 4096]),
)
def test_each_byte_between_the_brackets_is_kept_or_counted(
    chunks: list[bytes | list[str]], border: bytes, size: int
) -> None:
    text = bytearray(b'{"schema": "x", "nodes": [')
    begin, records = len(text), {}
    for number, chunk in enumerate(chunks):
        whole = chunk if isinstance(chunk, bytes) else record(1000 + number, chunk)
        if not isinstance(chunk, bytes):
            records[1000 + number] = (len(text), len(text) + len(whole))
        text += whole + border
    # Behind the last record, a stray bracket is the end of the array.
    end = max([high for _, high in records.values()], default=begin)
    text += b'], "finish": 5}'
    account = Account(Path("file.json"))
    kept = [e.id for piece in mended_array(bytes(text), size, account) for e in piece]
    assert len(set(kept)) == len(kept)
    seen = bytearray(len(text))
    for low, high in [*account.spans, *(records[i] for i in kept if i in records)]:
        assert not any(seen[low:high]), "counted twice"
        seen[low:high] = b"x" * (high - low)
    assert not [at for at in range(begin, end) if not seen[at] and text[at] not in b" ,\n"]


@given(st.lists(st.one_of(RECORD_KEYS, VALUES_BETWEEN), max_size=30), st.integers(1, 300))
def test_a_value_between_records_costs_no_record(
    chunks: list[bytes | list[str]], size: int
) -> None:
    whole = [c if isinstance(c, bytes) else record(i, c) for i, c in enumerate(chunks)]
    elements, repairs = read(b'{"nodes": [' + b", ".join(whole) + b"]}", size)
    numbers = [i for i, chunk in enumerate(chunks) if not isinstance(chunk, bytes)]
    assert [element.id for element in elements] == numbers
    assert repairs.left_out == len(chunks) - len(numbers)


HOSTILE = {
    "no commas": b'{"id": 1} ',
    "no commas, unknown keys": b'{"zz": 1} ',
    "documents": b'{"id": 1}]}{"schema": "x", "nodes": [',
    "never ending": b'{"id": [1,',
    "never ending behind sound ones": b'{"id": 1}, {"id": [1,',
    "unterminated": b'{"id": 1, "name": "\\',
    "quotes": b'{"id": 1, "name": "a "b" c"},',
    "stray quotes": b'"x',
    "stray brackets": b"]",
    "unknown openings": b'{"name": [',
    "values": b"null,",
    "lists": b"[",
    "deep": b'{"id":',
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_work_grows_with_the_size_whatever_the_damage(kind: str) -> None:
    work: list[int] = []
    for times in (2_000, 8_000):
        text = b'{"schema": "x", "nodes": [' + HOSTILE[kind] * times
        array = mended_array(text, 1 << 12, Repairs(Path("file.json")))
        for _ in array:
            pass
        work.append(array.looked_at)
        assert array.looked_at <= 20 * (len(text) + (1 << 18))
    assert work[1] <= 4.5 * work[0] + (1 << 18)


KNOWN = [b'{"id":"', b'{"id":1,"name":"', b'{"id":[']
OPENINGS = [*KNOWN, b'{"name":"', b'{"zz":"', b'{"zz":{},', b'{"id":']


@pytest.mark.parametrize("opening", OPENINGS)
def test_openings_that_never_close_cost_few_steps(opening: bytes) -> None:
    calls = []
    for times in (40_000, 80_000):
        text = b'{"schema": "x", "nodes": [{"id": 1}, ' + opening * times
        array = mended_array(text, 1 << 16, Repairs(Path("file.json")))
        calls.append(calls_of(lambda array=array: [*array]))  # type: ignore[misc]
    assert calls[1] - calls[0] < 1.5 * len(opening) * 40_000


def calls_of(run: Callable[[], object]) -> int:
    """How many functions are called, which is how the work of Python is measured."""
    count = itertools.count()
    before = sys.getprofile()
    sys.setprofile(lambda _frame, event, _: event.endswith("call") and next(count))
    try:
        run()
    finally:
        sys.setprofile(before)
    return next(count)


@pytest.mark.parametrize("opening", KNOWN)
@pytest.mark.parametrize("times", [1, 199, 200, 201, 300, 5000])
def test_each_opening_that_never_closes_is_counted_and_no_record_behind_it_lost(
    opening: bytes, times: int
) -> None:
    text = b'{"schema": "x", "nodes": [{"id": 1}, ' + opening * times + b'x, {"id": 2}, {"id": 3}]}'
    elements, repairs = read(text, 1 << 16)
    assert [element.id for element in elements][-1] == 3
    assert repairs.left_out + len(elements) >= times


def test_unique_first_keys_cost_one_look() -> None:
    nodes = b",".join(b'{"k%d": NaN, "id": %d}' % (i, i) for i in range(20_000))
    text = b'{"nodes": [' + nodes + b"]}"
    array = mended_array(text, 1 << 20, Repairs(Path("file.json")))
    assert sum(map(len, array)) == 20_000
    assert array.looked_at < 2 * len(text)
