"""The inputs of an operation: how many elements their tensors have, and of how many bytes."""

from __future__ import annotations

import msgspec


class Operand(msgspec.Struct, frozen=True):
    """One argument that is a tensor, or a list of tensors.

    `elements` counts those of all its tensors, `width` is the bytes of each; both are None where
    the recording does not tell. `typed` is false where the type of the elements is not recorded, so
    that others may tell it.
    """

    elements: int | None
    width: int | None
    typed: bool = True


Operands = list[Operand | None]
"""One entry for each argument; None for one that is no tensor and holds none."""
