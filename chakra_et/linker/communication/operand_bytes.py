"""The bytes of tensors, from the shapes and types that a profile writes beside operations."""

from __future__ import annotations

import re
from typing import Any, Final

from chakra_et.recording import Operands
from chakra_et.recording.libraries import element_bytes
from chakra_et.recording.numbers import is_int, size

_IN_LIST: Final = re.compile(r"Tensor\((?P<dtype>[^()]*)\)")
"""The type of the elements where a list of tensors tells it: `GenericList[Tensor(float)]`."""
_LIST: Final = "TensorList"
_DEEPEST: Final = 4
"""How deep lists of tensors are nested, and a level more."""
_MOST: Final = 1 << 63
"""No tensor has more elements."""
NO_TENSOR: Final = -1
"""What stands for an argument that is no tensor and holds none."""


def argument_bytes(operands: Operands, dtype: str | None = None) -> list[int | None]:
    """The bytes of the tensors in each argument of an operation.

    None stands for tensors whose bytes are not told. A list of tensors does not tell the type of
    its elements in most profiles: `dtype` is it, where it is known otherwise.
    """
    dtypes = operands.dtypes
    if dtypes is None:
        dtypes = [] if dtype is None else [dtype] * len(operands.shapes)
    pairs = zip(operands.shapes, dtypes, strict=False)
    return [_argument(shape, told, dtype) for shape, told in pairs]


def _argument(shape: Any, told: Any, dtype: str | None) -> int | None:
    """The bytes of one argument: a tensor, or a list of tensors, nested once or twice."""
    if not isinstance(told, str):
        return NO_TENSOR
    match = _IN_LIST.search(told)
    width = element_bytes(match["dtype"] if match else told)
    if not isinstance(shape, list) or (not shape and width is None):
        # Old profiles tell nothing of lists.
        return None if told == _LIST else NO_TENSOR
    if width is None and any(isinstance(item, list) for item in shape):
        width = element_bytes(dtype or "")
    count = _elements(shape)
    return None if width is None or count is None else width * count


def _elements(shape: Any, depth: int = _DEEPEST) -> int | None:
    """The elements of tensors of a shape, or of nested shapes; None where it is no shape."""
    if not isinstance(shape, list) or depth == 0:
        return None
    if any(isinstance(item, list) for item in shape):
        parts = [_elements(item, depth - 1) for item in shape]
        return None if None in parts else sum(part or 0 for part in parts)
    count = 1
    for length in shape:
        if not is_int(length) or length < 0 or count > _MOST:
            return None
        count *= length
    return count


def total(arguments: list[int | None]) -> int | None:
    """The bytes of all tensors among arguments; None without any, or where some are not told."""
    tensors = [part for part in arguments if part != NO_TENSOR]
    return size(sum(part or 0 for part in tensors)) if tensors and None not in tensors else None
