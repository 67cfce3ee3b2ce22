"""The bytes of the tensors that an operation is given."""

from __future__ import annotations

from typing import Final

from chakra_et.recording import Operand, Operands
from chakra_et.recording.libraries import element_bytes
from chakra_et.recording.numbers import size

NO_TENSOR: Final = -1
"""What stands for an argument that is no tensor and holds none."""


def argument_bytes(operands: Operands, dtype: str | None = None) -> list[int | None]:
    """The bytes of the tensors in each argument of an operation.

    None stands for tensors whose bytes are not told. `dtype` is the type of their elements, for
    those that do not tell it.
    """
    return [NO_TENSOR if operand is None else _bytes(operand, dtype) for operand in operands]


def _bytes(operand: Operand, dtype: str | None) -> int | None:
    width = operand.width if operand.typed else element_bytes(dtype or "")
    return None if width is None or operand.elements is None else width * operand.elements


def total(arguments: list[int | None]) -> int | None:
    """The bytes of all tensors among arguments; None without any, or where some are not told."""
    tensors = [part for part in arguments if part != NO_TENSOR]
    return size(sum(part or 0 for part in tensors)) if tensors and None not in tensors else None
