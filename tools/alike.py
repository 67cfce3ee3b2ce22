"""Whether two things that readers give are the same, down to types and to the order in pools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec
import numpy as np

from chakra_et.pool import Pool
from chakra_et.recording.packed_texts import PackedPool


def difference(a: Any, b: Any) -> str:
    """Where two values differ, "" where they do not. They may be nested to any depth."""
    todo = [(a, b, "")]
    while todo:
        one, other, place = todo.pop()
        one, other = _unpacked(one), _unpacked(other)
        if (found := _differ(one, other)) is not None:
            return f"{place}: {found}"
        todo += [(x, y, place + step) for x, y, step in _parts(one, other)]
    return ""


def _unpacked(value: Any) -> Any:
    """What stands for the same objects without any of its own, as the objects."""
    if isinstance(value, PackedPool):
        return Pool(zip(value, range(len(value)), strict=True))
    return value


def _parts(a: Any, b: Any) -> Iterator[tuple[Any, Any, str]]:
    """What two values of one type consist of."""
    if isinstance(a, dict):
        yield from ((a[key], b[key], f"[{key!r}]") for key in a)
    elif isinstance(a, (list, tuple)):
        yield from ((x, y, f"[{i}]") for i, (x, y) in enumerate(zip(a, b, strict=True)))
    elif _fields(a):
        names = _fields(a)
        yield from ((getattr(a, name), getattr(b, name), f".{name}") for name in names)
    elif _has_parts(a):
        yield vars(a), vars(b), ""


def _differ(a: Any, b: Any) -> str | None:
    """How two values differ apart from their parts."""
    if type(a) is not type(b):
        return f"{type(a).__name__} and {type(b).__name__}"
    if isinstance(a, np.ndarray):
        same = a.dtype == b.dtype and np.array_equal(a, b)
        return None if same else f"{a.dtype}{a.shape} and {b.dtype}{b.shape}"
    if isinstance(a, dict):
        same = list(map(repr, a)) == list(map(repr, b))
        return None if same else f"keys {list(a)[:8]} and {list(b)[:8]}"
    if isinstance(a, (list, tuple)):
        return None if len(a) == len(b) else f"{len(a)} and {len(b)} items"
    if _fields(a) or _has_parts(a) or a == b or (a != a and b != b):
        return None
    return f"{a!r} and {b!r}"


def _fields(value: Any) -> tuple[str, ...]:
    """The names of what a record holds; none for what is no record."""
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    is_table = is_dataclass(value) and not isinstance(value, type)
    return tuple(item.name for item in fields(value)) if is_table else ()


def _has_parts(value: Any) -> bool:
    """Whether a value has attributes, and no equality of its own."""
    kind: Any = type(value)
    return hasattr(value, "__dict__") and kind.__eq__ is object.__eq__
