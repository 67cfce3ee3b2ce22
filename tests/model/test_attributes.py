"""Columns of attributes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.definitions import Kind
from chakra_et.model import AttributeColumn, AttributeKey, AttributeTable, CodedTexts

KEY = AttributeKey("category", Kind.STRING)
DISTINCT = ["", "kernel", "cpu_op", "ü"]


@given(st.lists(st.integers(0, len(DISTINCT) - 1)))
def test_coded_texts_are_the_texts(codes: list[int]) -> None:
    rows, texts = np.arange(len(codes)), [DISTINCT[code] for code in codes]
    coded = AttributeColumn(KEY, rows, CodedTexts(np.array(codes, np.int64), DISTINCT))
    plain = AttributeColumn(KEY, rows, texts)
    assert coded.coded is not None
    assert pickle.loads(pickle.dumps(coded)).values == texts
    assert coded.part(rows[::-1]).values == texts[::-1]
    assert coded.same(plain)
    assert coded.values == texts
    assert plain.coded is None


def test_coded_texts_must_be_texts_and_fit() -> None:
    with pytest.raises(ValueError, match="not every value is a string"):
        AttributeTable(1).add("category", Kind.STRING, CodedTexts(np.zeros(1, np.int32), [b"a"]))  # type: ignore[list-item]
    with pytest.raises(ValueError, match="2 rows but 1 values"):
        AttributeTable(2).add("category", Kind.STRING, CodedTexts(np.zeros(1, np.int32), ["a"]))
