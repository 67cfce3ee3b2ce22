"""Texts of an ET that mostly differ are made when somebody looks at them."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from both_ways import needs_kernel
from et_bytes import VERSION, framed

import chakra_et
from chakra_et.converters.et import decode_et
from chakra_et.converters.et.compiled_reading import compiled_nodes
from chakra_et.converters.et.wire import field_bytes, varint
from chakra_et.kernel import FORCE_PYTHON
from chakra_et.model import AttributeColumn

pytestmark = needs_kernel

COUNT = 70_000
"""The kernel looks at 65 536 texts before it decides."""
LAST = COUNT - 1


def told_texts(value: Callable[[int], bytes]) -> bytes:
    """An ET of many nodes, each with a text and a list of texts, which `value` makes."""
    nodes = (
        b"\x08" + varint(row + 1)
        + field_bytes(10, field_bytes(1, b"text") + field_bytes(29, b"t%d" % row))
        + field_bytes(10, field_bytes(1, b"list") + field_bytes(30, value(row)))
        for row in range(COUNT)
    )  # fmt: skip
    return framed(VERSION, *nodes)


@cache
def distinct() -> bytes:
    """An ET of texts and lists that all differ, with bytes in them that are no text."""
    return told_texts(lambda row: field_bytes(1, b"%d" % row) + field_bytes(1, b"\xff"))


def columns(data: bytes) -> list[AttributeColumn]:
    return decode_et(data).nodes.attributes.columns


def is_made(column: AttributeColumn) -> bool:
    return not callable(column._values)


def test_texts_are_as_python_reads_them() -> None:
    trace = decode_et(distinct())
    text, texts = trace.nodes.attributes.columns
    assert not is_made(text)
    assert not is_made(texts)
    assert text.at(LAST) == "t69999"
    assert texts.at(LAST) == ("69999", "\udcff")
    assert is_made(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FORCE_PYTHON, "1")
        assert trace.nodes.same(decode_et(distinct()).nodes)


def test_a_damaged_list_is_left_to_python() -> None:
    data = told_texts(lambda row: b"\x0a\x7f" if row == 69_000 else b"\x0a\x01a")
    assert compiled_nodes(data, len(framed(VERSION))) is None


def test_a_column_outlives_its_trace_and_its_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.0.et"
    path.write_bytes(distinct())
    text, texts = chakra_et.read(path).nodes.attributes.columns
    path.write_bytes(b"")
    gc.collect()
    assert text.at(LAST) == "t69999"
    path.unlink()
    assert texts.at(LAST) == ("69999", "\udcff")


@pytest.mark.parametrize(
    "of",
    [
        lambda column: column.part(np.array([LAST])),
        lambda column: column.within(LAST, COUNT),
        lambda column: column.repeated(np.array([LAST, LAST]), LAST + 1),
        lambda column: copy.deepcopy(column),
        lambda column: pickle.loads(pickle.dumps(column)),
    ],
    ids=["part", "within", "repeated", "copied", "pickled"],
)
def test_what_is_made_of_a_column_holds_no_file(of: Callable[[AttributeColumn], Any]) -> None:
    data = distinct()
    before = sys.getrefcount(data)
    text = columns(data)[0]
    assert sys.getrefcount(data) > before
    made = of(text)
    del text
    gc.collect()
    assert sys.getrefcount(data) == before
    assert made.values[-1] == "t69999"


def test_a_file_is_let_go_when_all_its_texts_are_made() -> None:
    data = distinct()
    before = sys.getrefcount(data)
    kept = columns(data)
    assert all(len(column.values) == COUNT for column in kept)
    gc.collect()
    assert sys.getrefcount(data) == before
