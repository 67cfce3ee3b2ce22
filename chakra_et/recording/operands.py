"""The inputs of an operation, as shapes and types of elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Operands:
    """One entry for each argument: `shapes[k]` is its shape, or a list of shapes for a list of
    tensors, `dtypes[k]` what the recorder calls its type.

    `dtypes` is None where the recorder writes no types.
    """

    shapes: list[Any]
    dtypes: list[Any] | None
