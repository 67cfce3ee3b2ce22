"""Inputs of operations, by the shapes and types that a profile writes beside them."""

from __future__ import annotations

from typing import Any, Final

from chakra_et.patterns import lazy_pattern
from chakra_et.recording import Operand, Operands
from chakra_et.recording.libraries import element_bytes
from chakra_et.recording.numbers import is_int

_IN_LIST: Final = lazy_pattern(r"Tensor\((?P<dtype>[^()]*)\)")
"""The type of the elements where a list of tensors tells it: `GenericList[Tensor(float)]`."""
_LIST: Final = "TensorList"
_DEEPEST: Final = 4
"""How deep lists of tensors are nested, and a level more."""
_MOST: Final = 1 << 63
"""No tensor has more elements."""


def operands_of(args: dict[str, Any]) -> Operands:
    """The inputs that decoded arguments tell; none where they tell no shapes."""
    shapes, dtypes = args.get("Input Dims"), args.get("Input type", args.get("Input Types"))
    if not isinstance(shapes, list):
        return []
    if dtypes is None:
        return [_untyped(shape) for shape in shapes]
    if not isinstance(dtypes, list):
        return []
    return [_operand(shape, told) for shape, told in zip(shapes, dtypes, strict=False)]


def _untyped(shape: Any) -> Operand | None:
    """An argument of a profile that writes no types."""
    return Operand(_elements(shape), None, typed=False) if isinstance(shape, list) else None


def _operand(shape: Any, told: Any) -> Operand | None:
    """One argument: a tensor, or a list of tensors, nested once or twice."""
    if not isinstance(told, str):
        return None
    match = _IN_LIST.search(told)
    width = element_bytes(match["dtype"] if match else told)
    if not isinstance(shape, list) or (not shape and width is None):
        # Old profiles tell nothing of lists.
        return Operand(None, None) if told == _LIST else None
    # A list of tensors does not tell the type of its elements in most profiles.
    typed = width is not None or not any(isinstance(item, list) for item in shape)
    return Operand(_elements(shape), width, typed)


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
