"""The input values of single operations, decoded: of those few that say more than tensors."""

from __future__ import annotations

from typing import Any, Final

import msgspec

_TENSOR: Final = [int, int, int, int, int, str]
"""What the list of a tensor holds: true and false are no numbers."""


def decoded(text: bytes) -> list[Any]:
    """The values in a JSON text; none where it is no list."""
    try:
        values = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return []
    return values if isinstance(values, list) else []


def tensors(value: Any) -> list[tuple[int, int]]:
    """Elements, and bytes of each, of all tensors in decoded values, however they are nested."""
    if not isinstance(value, list):
        return []
    if len(value) == 6 and list(map(type, value)) == _TENSOR:
        return [(value[3], value[4])]
    return [tensor for item in value if isinstance(item, list) for tensor in tensors(item)]


def tensor_bytes(value: Any) -> int:
    """The bytes of all tensors in decoded input values, however they are nested."""
    if not isinstance(value, list):
        return 0
    return sum(elements * width for elements, width in tensors(value))


def first_shape(shapes: bytes) -> list[int] | None:
    """The first of the shapes in a JSON text; None where it is none of a tensor."""
    found = decoded(shapes)
    first = found[0] if found else None
    return first if isinstance(first, list) and first else None
