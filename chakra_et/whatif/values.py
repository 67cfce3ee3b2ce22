"""Values of edits: numbers in texts."""

from __future__ import annotations

import math
from typing import Final

from chakra_et.errors import ChakraError

_GREATEST: Final = 1e9
"""Times of hours, this many times as long, still fit 63 bits of nanoseconds."""
_DIGITS: Final = 9
_UNITS: Final = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def number(text: str, value: str, least: float) -> float:
    """A number that is not below `least`; `text` is the edit, for the error."""
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    if not least <= found <= _GREATEST or 0 < found < 1 / _GREATEST:
        raise ChakraError(
            f"{text}: expected a number from {least:g} to {_GREATEST:g}, got {value!r}",
            remedy="chakra whatif -h shows how edits are written.",
        )
    return found


def numbers(text: str, value: str, defaults: tuple[float, ...]) -> tuple[float, ...]:
    """Numbers between commas, as many as there are defaults; later ones may be left out."""
    items = value.split(",")
    if not value or len(items) > len(defaults):
        raise ChakraError(
            f"{text}: expected up to {len(defaults)} numbers, got {value!r}",
            remedy="chakra whatif -h shows how edits are written.",
        )
    found = [number(text, item, least=0) for item in items]
    return (*found, *defaults[len(found) :])


def rank_and_factor(text: str, value: str) -> tuple[int, float]:
    """A rank and a factor, as in `3:1.1`."""
    rank, found, factor = value.partition(":")
    if not found or not rank.isascii() or not rank.isdigit() or len(rank) > _DIGITS:
        raise ChakraError(
            f"{text}: expected a rank and a factor, got {value!r}",
            remedy="Write straggler=3:1.1.",
        )
    return int(rank), number(text, factor, least=0)


def whole(text: str, value: str, least: int) -> int:
    """A whole number that is not below `least`; `text` is the edit, for the error."""
    if not (value.isascii() and value.isdigit() and len(value) <= _DIGITS and int(value) >= least):
        raise ChakraError(
            f"{text}: expected a whole number from {least} to {'9' * _DIGITS}, got {value!r}",
            remedy="chakra whatif -h shows how edits are written.",
        )
    return int(value)


def size_bytes(text: str, value: str) -> int:
    """A size in bytes, as in `25MB`, `1MiB` or `4096`."""
    for unit, factor in _UNITS.items():
        if value.endswith(unit):
            return max(1, int(number(text, value.removesuffix(unit), least=0) * factor))
    return whole(text, value, least=1)
