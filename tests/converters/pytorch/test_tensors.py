"""Tensors out of raw text, and what schemas say of arguments."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.converters.pytorch import tensors
from chakra_et.converters.pytorch.operators import operators
from chakra_et.converters.pytorch.tensors import find_tensors

IDS = st.integers(1, 1 << 62)
DEVICES = st.sampled_from(["cpu", "cuda:0", "cuda:15", "privateuseone:3", ""])
TENSORS = st.tuples(IDS, IDS, st.integers(0, 1 << 40), st.integers(0, 1 << 40),
                    st.integers(1, 16), DEVICES).map(list)  # fmt: skip
OTHERS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 60), 1 << 60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet='ab[],"\\:0 \n', max_size=12)
)
VALUES = st.recursive(TENSORS | OTHERS, lambda inner: st.lists(inner, max_size=5), max_leaves=12)


def found_in(value: Any, argument: int | None = None) -> list[tuple[Any, ...]]:
    """The tensors of a decoded text, by walking through it."""
    if not isinstance(value, list):
        return []
    numbers = value[:5]
    if len(value) == 6 and isinstance(value[5], str) and all(type(n) is int for n in numbers):
        _, storage, offset, count, size, device = value
        return [(argument, storage, offset * size, (offset + count) * size, device[-8:])]
    parts = [found_in(v, i if argument is None else argument) for i, v in enumerate(value)]
    return [tensor for part in parts for tensor in part]


@given(st.lists(st.lists(VALUES, max_size=5), max_size=5), st.sampled_from([None, 1]))
def test_all_tensors_of_all_texts_are_found(values: list[Any], indent: int | None) -> None:
    found = find_tensors([json.dumps(value, indent=indent).encode() for value in values])
    rows = zip(
        found.argument.tolist(),
        found.storage.tolist(),
        found.begin.tolist(),
        found.end.tolist(),
        [found.devices[code] for code in found.device.tolist()],
        strict=True,
    )
    expected = [found_in(value) for value in values]
    assert list(rows) == [tensor for text in expected for tensor in text]
    assert np.diff(found.offsets).tolist() == [len(text) for text in expected]


def test_long_lists_of_texts_are_taken_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [b'[[%d,%d,0,4,4,"cpu"],%d]' % (n, n + 7, n) for n in range(1, 200)]
    whole = find_tensors(texts)
    monkeypatch.setattr(tensors, "_PIECE", 100)
    pieces = find_tensors(texts)
    assert pieces.storage.tolist() == whole.storage.tolist() == [n + 7 for n in range(1, 200)]
    assert pieces.offsets.tolist() == whole.offsets.tolist()


def test_a_tensor_without_storage_goes_by_its_own_id() -> None:
    assert find_tensors([b'[[12,0,0,0,8,"cuda:0"]]']).storage.tolist() == [-12]


@pytest.mark.parametrize(
    "text",
    [
        b'["[1,2,3,4,5,\\"cpu\\"]"]',
        b'[[1,2,3,4,5,"cpu",6]]',
        b'[[1,2,3,4,"cpu"]]',
        b'[[1,2.5,3,4,5,"cpu"]]',
        b'[[1,-2,3,4,5,"cpu"]]',
        b'[[1,12345678901234567890,3,4,5,"cpu"]]',
        b"[]",
        b"",
    ],
)
def test_what_only_looks_like_a_tensor_is_none(text: bytes) -> None:
    assert len(find_tensors([text]).storage) == 0


@pytest.mark.parametrize(
    ("schema", "reads", "writes"),
    [
        ("aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", [0, 1], [0]),
        ("aten::copy_(Tensor(a!) self, Tensor src, bool b=False) -> Tensor(a!)", [1, 2], [0]),
        ("aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", [0, 1], [2]),
        ("aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other) -> ()", [0, 1], [0]),
        ("aten::sum.o(Tensor self, int[1]? d=[0, 1], *, Tensor(a!) o) -> Tensor(a!)", [0, 1], [2]),
        ("aten::zeros_like(Tensor self) -> Tensor", [], []),
        ("aten::detach_(Tensor(a!) self) -> Tensor(a!)", [], []),
        ("c10d::alltoall_base_(Tensor output, Tensor input, int t) -> Work", [1, 2], [0]),
        ("c10d::recv_(Tensor[] tensors, int rank) -> Work", [0, 1], [0]),
        ("mine::scale(Tensor x, float by) -> Tensor", [0, 1], []),
        ("no schema at all", [0, 1], []),
    ],
)  # fmt: skip
def test_a_schema_says_what_is_read_and_written(
    schema: str, reads: list[int], writes: list[int]
) -> None:
    known = operators([schema])
    count = max([1, *reads, *writes]) + 1
    assert np.flatnonzero(known.reads[0, :count]).tolist() == reads
    assert np.flatnonzero(known.writes[0]).tolist() == writes


def test_an_operator_of_the_backend_works_in_place_by_its_name() -> None:
    known = operators(["c10d::allreduce_(Tensor[] tensors, int t) -> (Tensor[], Work)"])
    assert known.in_place.tolist() == [True]
    assert not known.writes.any()


@pytest.mark.parametrize(
    "schema",
    ["a" * 1_000_000, "a." * 500_000, "a(" + ") -> " * 200_000 + "\n\n", "(" * 1_000_000 + ") -> "],
    ids=["name", "overloads", "arrows", "brackets"],
)
def test_a_long_text_that_is_no_schema_costs_no_more_than_its_length(schema: str) -> None:
    assert operators([schema]).reads.all()


def test_what_allocates_writes_nothing() -> None:
    schemas = ["aten::empty_like(Tensor self) -> Tensor", "aten::zeros_like(Tensor self) -> Tensor"]
    assert operators(schemas).allocates.tolist() == [True, False]
