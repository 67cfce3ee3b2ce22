"""Columns as people read them: names without units, times in milliseconds, bytes in their unit."""

from __future__ import annotations

from typing import Any, Final

import msgspec

_UNITS: Final = (
    ("_bytes_per_s", " GB/s"),
    ("_ns", " ms"),
    ("_share", " %"),
    ("_bytes", ""),
    ("_flops", ""),
)


def heading(name: str) -> str:
    """The name of a column, with the unit that its cells have: `self ms`."""
    for ending, unit in _UNITS:
        if name.endswith(ending):
            return (name.removesuffix(ending) + unit).replace("_", " ").strip()
    return name.replace("_", " ")


def cell(name: str, value: Any) -> str:
    """A value of a column; nothing for one that is not known."""
    if value is None:
        return ""
    if isinstance(value, list):
        return msgspec.json.encode(value).decode()
    if not is_number(value):
        return str(value)
    if name.endswith("_bytes_per_s"):
        return f"{value / 1e9:.2f}"
    if name.endswith("_ns"):
        return f"{value / 1e6:.3f}"
    if name.endswith("_share"):
        return f"{100 * value:.1f}"
    if name.endswith("_bytes"):
        return f"{scaled(value)}B"
    if name == "flops":
        return scaled(value).strip()
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def is_number(value: Any) -> bool:
    """Whether a value stands at the right of its column."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def scaled(value: float) -> str:
    """A number of bytes or operations: `1.05 M`."""
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.2f} {prefix}"
    return f"{value:.0f} "
