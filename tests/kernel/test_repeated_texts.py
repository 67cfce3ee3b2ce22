"""What stands in a file again is recognised by its text; it is read as where it stood first."""

from __future__ import annotations

import re

import pytest
from alike import difference
from both_ways import both_ways, needs_kernel
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.converters.kineto import read_device
from chakra_et.converters.pytorch import read_host
from chakra_et.converters.pytorch.compiled import host_decoder
from chakra_et.io.text_buffer import SPARE_BYTES

BLANKS = st.sampled_from(["", " ", "\n    "])
TEXTS = (
    "[]", "[[2]]", "[1, -2.5e3]", '["a}"]', '["{", "\\"}"]', '{"shapes": []}', '"é"', "null"
)  # fmt: skip
VALUES = st.sampled_from(TEXTS)


@st.composite
def objects(draw: st.DrawFn, keys: tuple[str, ...]) -> str:
    """The text of an object with some of the keys, in any order, some of them twice."""
    members = draw(st.lists(st.tuples(st.sampled_from(keys), VALUES), max_size=6))
    blank = draw(BLANKS)
    comma = draw(BLANKS) + "," + draw(BLANKS)
    inside = comma.join(f'"{key}":{blank}{value}' for key, value in members)
    return "{" + draw(BLANKS) + inside + draw(BLANKS) + "}"


@st.composite
def repeated(draw: st.DrawFn, kinds: st.SearchStrategy[str]) -> list[str]:
    """Many texts, of which few differ."""
    return draw(
        st.lists(st.sampled_from(draw(st.lists(kinds, min_size=1, max_size=4))), max_size=40)
    )


OPERANDS = objects(("values", "shapes", "types", "strides", "device"))


@needs_kernel
@given(inputs=repeated(OPERANDS), outputs=repeated(OPERANDS), lost=st.integers(0, 20_000))
def test_operands_are_read_alike(
    tmp_path_factory: pytest.TempPathFactory, inputs: list[str], outputs: list[str], lost: int
) -> None:
    """Also where one character is lost, of which most texts have fewer."""
    nodes = [
        f'{{"id": {row}, "name": "n", "inputs": {used}, "outputs": {made}, "attrs": []}}'
        for row, (used, made) in enumerate(zip(inputs, outputs, strict=False), 1)
    ]
    text = '{"schema": "1.1.1-chakra.0.0.4", "nodes": [' + ",\n".join(nodes) + "]}"
    path = tmp_path_factory.getbasetemp() / "repeated.json"
    path.write_bytes((text[:lost] + text[lost + 1 :]).encode())
    assert difference(*both_ways(read_host, path)) == ""


ARGUMENTS = objects(
    ("Concrete Inputs", "Input type", "Input Dims", "Ev Idx", "External id", "correlation", "cbid")
)


@needs_kernel
@given(
    args=repeated(ARGUMENTS),
    category=st.sampled_from(["cpu_op", "kernel"]),
    number=st.integers(0, 3),
    lost=st.integers(0, 20_000),
)
def test_arguments_are_read_alike(
    tmp_path_factory: pytest.TempPathFactory, args: list[str], category: str, number: int, lost: int
) -> None:
    for key in ("External id", "correlation"):  # Others than numbers are left to Python.
        known = re.compile(rf'("{key}":\s*)(?:{"|".join(map(re.escape, TEXTS))})')
        args = [known.sub(rf"\g<1>{number}", text) for text in args]
    spans = [
        f'{{"ph": "X", "cat": "{category}", "name": "a", "pid": 1, "tid": 2, "ts": {row}.5, '
        f'"dur": 1, "args": {text}}}'
        for row, text in enumerate(args)
    ]
    text = '{"traceEvents": [' + ", ".join(spans) + "]}"
    path = tmp_path_factory.getbasetemp() / "repeated.json"
    path.write_bytes((text[:lost] + text[lost + 1 :]).encode())
    assert difference(*both_ways(read_device, path)) == ""


@needs_kernel
@pytest.mark.parametrize(
    "second",
    [
        '{"values": [] {"shapes": []}',  # no comma: a brace begins an object only
        '{, "shapes": []}',
        '{"values": [],}',
        '{"values": [], "shapes": []',
        '{"values": [], "shapes": []]',
    ],
)
def test_what_stands_between_values_has_its_place(second: str) -> None:
    """A brace and a comma that are known are so where they stood, and nowhere else."""
    node = '{"id": 1, "name": "", "attrs": [], "inputs": %s}'
    first = '{"values": [], "shapes": []}'
    text = (node % first + "," + node % second).encode()
    assert host_decoder().decode_elements(memoryview(text + bytes(SPARE_BYTES)), len(text)) is None
