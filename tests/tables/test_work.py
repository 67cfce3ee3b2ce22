"""Work of operators, from their shapes: closed forms, and what shapes do not tell."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.tables import work_of

lengths = st.integers(1, 64)


def work(name: str, inputs: list[Any], outputs: list[Any], dtype: str = "float") -> Any:
    """The work of an operator of tensors of one type."""
    texts = []
    for shapes in (inputs, outputs):
        kinds = ["Tensor(" + dtype + ")" if shape else "Int" for shape in shapes]
        texts += [json.dumps(shapes).encode(), json.dumps(kinds).encode()]
    return work_of(name, *texts)


@given(lengths, lengths, lengths, lengths)
def test_products_are_two_operations_for_each_pair(b: int, m: int, k: int, n: int) -> None:
    assert work("aten::mm", [[m, k], [k, n]], [[m, n]]).flops == 2 * m * k * n
    assert work("aten::addmm", [[n], [m, k], [k, n], []], [[m, n]]).flops == 2 * m * k * n
    assert work("aten::bmm", [[b, m, k], [b, k, n]], [[b, m, n]]).flops == 2 * b * m * k * n


def test_a_convolution_is_a_product_over_its_window() -> None:
    # The first layer of ResNet-50 on 224 x 224: 118 million multiply-adds an image.
    shapes = [[32, 3, 224, 224], [64, 3, 7, 7]], [[32, 64, 112, 112]]
    assert work("aten::cudnn_convolution", *shapes).flops == 2 * 32 * 118013952
    # Its backward pass gives the gradients of weight and, here, of no input.
    shapes = [[32, 64, 112, 112], [32, 3, 224, 224], [64, 3, 7, 7]], [[], [64, 3, 7, 7], []]
    assert work("aten::convolution_backward", *shapes).flops == 2 * 32 * 118013952


@given(lengths, lengths, lengths, lengths, lengths)
def test_attention_is_two_products_and_its_backward_pass_five(
    b: int, h: int, s: int, t: int, d: int
) -> None:
    qkv = [[b, h, s, d], [b, h, t, d], [b, h, t, d]]
    name = "aten::_scaled_dot_product_flash_attention"
    assert work(name, qkv, [[b, h, s, d]]).flops == 2 * 2 * b * h * s * t * d
    back = work(name + "_backward", [[b, h, s, d], *qkv], [[b, h, s, d]])
    assert back.flops == 5 * 2 * b * h * s * t * d


def test_what_only_calls_a_product_does_none_itself() -> None:
    assert work("aten::linear", [[4, 8], [16, 8]], [[4, 16]]).flops is None
    assert work("aten::relu", [[4, 8]], [[4, 8]]).flops is None


@pytest.mark.parametrize(
    ("dtype", "width"), [("float", 4), ("c10::Half", 2), ("c10::BFloat16", 2), ("long int", 8)]
)
def test_bytes_are_those_of_all_tensors(dtype: str, width: int) -> None:
    found = work("aten::add", [[3, 5], [3, 5], []], [[3, 5]], dtype)
    assert found.bytes == 3 * width * 15


def test_tensors_in_lists_count_each() -> None:
    shapes, kinds = b"[[[3],[4]],[]]", b'["GenericList[Tensor(float),Tensor(double)]","Int"]'
    assert work_of("aten::cat", shapes, kinds).bytes == 4 * 3 + 8 * 4


@pytest.mark.parametrize(
    ("shapes", "kinds"),
    [
        (b"", b""),
        (b"[[1,2]", b'["Tensor(float)"]'),
        (b"null", b"7"),
        (b"[[1,2],[3]]", b'["Tensor(float)","Tensor(float)"]'),
        (b'[["a"],[null]]', b'["Tensor(float)","Tensor(float)"]'),
        (b"[[2,3],[3,4]]", b'["Tensor(thing)","Tensor(float)"]'),
    ],
)
def test_shapes_that_tell_nothing_give_nothing(shapes: bytes, kinds: bytes) -> None:
    found = work_of("aten::mm", shapes, kinds)
    assert found.bytes is None or found.flops is None


@given(st.lists(lengths, min_size=1, max_size=4))
def test_a_type_of_unknown_width_leaves_bytes_open(shape: list[int]) -> None:
    assert work("aten::relu", [shape], [], "mystery").bytes is None
    assert work("aten::relu", [shape], [], "float").bytes == 4 * math.prod(shape)
