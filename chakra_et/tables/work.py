"""Floating-point operations and bytes moved by one call of an operator, where shapes tell.

A multiply and an add count as two. Only products of matrices and convolutions are counted; what an
operator does element by element is bound by the bytes it moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from chakra_et.io.json_text import from_json
from chakra_et.recording.libraries import element_bytes

Shapes: TypeAlias = list[Any]
"""Of each argument: the lengths of a tensor, or a list of such, as the host trace has them."""


@dataclass(frozen=True)
class Work:
    """What one call does; None where shapes do not tell."""

    flops: int | None = None
    bytes: int | None = None


def work_of(
    name: str,
    input_shapes: bytes,
    input_types: bytes,
    output_shapes: bytes = b"",
    output_types: bytes = b"",
) -> Work:
    """The work of one call, from the shapes and types of its inputs and outputs (JSON lists).

    `flops` are of the operators in `_FLOPS`, which do the work themselves: of `aten::linear` they
    stand at the `aten::addmm` that it calls. `bytes` are those of all tensors, each once.
    """
    inputs, outputs = _lists(input_shapes), _lists(output_shapes)
    moved = _moved(inputs, _lists(input_types))
    written = _moved(outputs, _lists(output_types))
    total = None if moved is None or written is None else moved + written
    return Work(_flops(name, inputs, outputs), total or None)


class Product(NamedTuple):
    """The lengths of a product of matrices: `batch` times (m, k) by (k, n)."""

    batch: int
    m: int
    n: int
    k: int


def product_of(name: str, input_shapes: bytes) -> Product | None:
    """The lengths of the product that an operator is; None for any other, or other arguments."""
    operands = _PRODUCTS.get(name.partition("::")[2])
    if operands is None:
        return None
    try:
        return _product(*operands, _lists(input_shapes))
    except (IndexError, TypeError, ValueError):
        return None


def _product(a: int, b: int, inputs: Shapes) -> Product:
    """The product of arguments a and b: (..., m, k) and (..., k, n)."""
    left, right = inputs[a], inputs[b]
    k = int(left[-1])
    if k != right[-2 if len(right) > 1 else -1]:
        raise ValueError
    n = int(right[-1]) if len(right) > 1 else 1
    return Product(int(math.prod(left[:-2])), int(left[-2]) if len(left) > 1 else 1, n, k)


def _flops(name: str, inputs: Shapes, outputs: Shapes) -> int | None:
    count = _FLOPS.get(name.partition("::")[2])
    if count is None:
        return None
    try:
        return count(inputs, outputs)
    except (IndexError, TypeError, ValueError):
        # Other arguments than the operator has: nothing is known.
        return None


def _lists(text: bytes) -> list[Any]:
    try:
        found = from_json(text)
    except msgspec.DecodeError:
        return []
    return found if isinstance(found, list) else []


def _moved(shapes: Shapes, types: list[Any]) -> int | None:
    """Bytes of all tensors among some arguments; None for a type of unknown width."""
    total = 0
    for shape, kind in zip(shapes, types):  # noqa: B905 - damaged files may have lists of two lengths
        if not isinstance(kind, str) or "Tensor(" not in kind or "nullptr" in kind:
            continue
        kinds, several = [kind], [shape]
        if kind.startswith(("GenericList[", "Tuple[")):
            kinds, several = kind.partition("[")[2].rstrip("]").split(","), shape
        for part, one in zip(several, kinds):  # noqa: B905 - the same
            width = element_bytes(one)
            if not _is_shape(part):
                continue
            if width is None:
                return None
            total += width * math.prod(part)
    return total


def _is_shape(item: Any) -> bool:
    return isinstance(item, list) and all(isinstance(length, int) for length in item)


def _matrices(a: int, b: int) -> Callable[[Shapes, Shapes], int]:
    """The product of arguments a and b: (..., m, k) and (..., k, n)."""

    def count(inputs: Shapes, _outputs: Shapes) -> int:
        return 2 * math.prod(_product(a, b, inputs))

    return count


def _convolution(inputs: Shapes, outputs: Shapes) -> int:
    """Each element of the output takes a product over the window and the channels of a group."""
    return 2 * int(math.prod(outputs[0])) * int(math.prod(inputs[1][1:]))


def _convolution_backward(inputs: Shapes, outputs: Shapes) -> int:
    """The gradients of input and weight, each as much as forward; either may be left out."""
    gradient, _, weight = inputs[:3]
    wanted = sum(bool(shape) for shape in outputs[:2])
    return wanted * 2 * int(math.prod(gradient)) * int(math.prod(weight[1:]))


def _attention(products: int, query_at: int = 0) -> Callable[[Shapes, Shapes], int]:
    """Products of (heads, queries, width) and (heads, keys, width); masks are not looked at."""

    def count(inputs: Shapes, _outputs: Shapes) -> int:
        query, key, value = inputs[query_at : query_at + 3]
        if not len(query) == len(key) == len(value) == 4:
            raise ValueError
        heads = int(math.prod(query[:-1])) * int(key[-2])
        # Half of the products are as wide as the keys, and half as the values.
        return products * heads * (int(query[-1]) + int(value[-1]))

    return count


_PRODUCTS: Final = {
    "mm": (0, 1),
    "bmm": (0, 1),
    "addmm": (1, 2),
    "_addmm_activation": (1, 2),
    "baddbmm": (1, 2),
    "addmv": (1, 2),
    "mv": (0, 1),
    "_int_mm": (0, 1),
    "_scaled_mm": (0, 1),
}
"""Operators that are one product, and which of their arguments are its operands."""
_FLOPS: Final[dict[str, Callable[[Shapes, Shapes], int]]] = {
    **{name: _matrices(*operands) for name, operands in _PRODUCTS.items()},
    "cudnn_convolution": _convolution,
    "miopen_convolution": _convolution,
    "mkldnn_convolution": _convolution,
    "thnn_conv2d": _convolution,
    "_slow_conv2d_forward": _convolution,
    "_conv_depthwise2d": _convolution,
    "slow_conv3d_forward": _convolution,
    "convolution_backward": _convolution_backward,
    "_scaled_dot_product_flash_attention": _attention(2),
    "_scaled_dot_product_flash_attention_for_cpu": _attention(2),
    "_scaled_dot_product_efficient_attention": _attention(2),
    "_scaled_dot_product_cudnn_attention": _attention(2),
    "_scaled_dot_product_flash_attention_backward": _attention(5, 1),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention(5, 1),
    "_scaled_dot_product_efficient_attention_backward": _attention(5, 1),
    "_scaled_dot_product_cudnn_attention_backward": _attention(5, 1),
}
"""Operators that do the work; those that only call one of them are left out, so sums are right."""
