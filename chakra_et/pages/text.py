"""How numbers read on a page."""

from __future__ import annotations

from typing import Final

_TIMES: Final = ((10**9, "s"), (10**6, "ms"), (10**3, "µs"))
_SIZES: Final = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def time(ns: float) -> str:
    """A time in the unit that suits it: `12.3 ms`."""
    return _scaled(ns, _TIMES, "ns")


def size(count: float) -> str:
    """A number of bytes in the unit that suits it: `1.05 MB`."""
    return _scaled(count, _SIZES, "B")


def share(part: float) -> str:
    """A share of 1 in per cent: `12%`, and `0.4%` where it is small."""
    if 0 < abs(part) < 0.0005:
        return "<0.1%"
    return f"{part:.1%}" if abs(part) < 0.1 and part else f"{part:.0%}"


def number(value: float) -> str:
    """A number as people write it: `12,345`, `1.25`."""
    return f"{int(value):,}" if float(value).is_integer() else f"{value:,.3g}"


def _scaled(value: float, units: tuple[tuple[int, str], ...], least: str) -> str:
    for factor, unit in units:
        if abs(value) >= factor:
            return f"{_three_digits(value / factor)} {unit}"
    return f"{value:.0f} {least}"


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
