"""Whether two things that readers give are the same, down to types and to the order in pools."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def difference(a: Any, b: Any, place: str = "") -> str:
    """Where two values differ, "" where they do not."""
    if type(a) is not type(b):
        return f"{place}: {type(a).__name__} and {type(b).__name__}"
    if isinstance(a, np.ndarray):
        same = a.dtype == b.dtype and np.array_equal(a, b)
        return "" if same else f"{place}: {a.dtype}{a.shape} and {b.dtype}{b.shape}"
    if isinstance(a, dict):
        if list(map(repr, a)) != list(map(repr, b)):
            return f"{place}: keys {list(a)[:8]} and {list(b)[:8]}"
        return _first([difference(a[key], b[key], f"{place}[{key!r}]") for key in a])
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return f"{place}: {len(a)} and {len(b)} items"
        return _first([difference(x, y, f"{place}[{i}]") for i, (x, y) in enumerate(zip(a, b))])  # noqa: B905
    if is_dataclass(a):
        names = [item.name for item in fields(a)]
        return _first([difference(getattr(a, n), getattr(b, n), f"{place}.{n}") for n in names])
    if hasattr(a, "__dict__"):
        return difference(vars(a), vars(b), place)
    return "" if a == b or a is b or (a != a and b != b) else f"{place}: {a!r} and {b!r}"


def _first(found: list[str]) -> str:
    return next(filter(None, found), "")
