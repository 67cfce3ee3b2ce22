"""Numbers as recordings write them: quoted or not, and sometimes such that cannot be."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from chakra_et.io.json_text import from_json

MOST_RANKS: Final = 1 << 20
"""No group has more; larger sizes are damage."""


def is_int(value: Any) -> bool:
    """Whether a value is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def whole(value: Any) -> int | None:
    """A whole number of any size, also as text or with a decimal point."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if is_int(value) else None


def integer(value: Any) -> int | None:
    """A whole number below 2**63, also as text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and len(value) < 20:
        try:
            value = int(value)
        except ValueError:
            return None
    return value if isinstance(value, int) and abs(value) < 1 << 63 else None


def rank_number(value: Any) -> int | None:
    """A rank that can be: ranks are 32-bit integers wherever they are written."""
    rank = integer(value)
    return rank if rank is not None and 0 <= rank < 1 << 31 else None


def rank_or_tag(value: Any) -> int | None:
    """A rank, or a tag, that can be: they are 32-bit integers wherever they are written."""
    rank = whole(value)
    return rank if rank is not None and 0 <= rank < 1 << 31 else None


def parse_ranks(value: Any) -> list[int]:
    """A list of ranks, as a list or as its text; dictionaries map ranks to places."""
    if isinstance(value, str):
        try:
            value = from_json(value)
        except msgspec.DecodeError:
            return []
    if isinstance(value, dict):
        value = list(value)
    if not isinstance(value, list):
        return []
    ranks = [rank_number(item) for item in value]
    return [rank for rank in ranks if rank is not None] if None not in ranks else []


def text(value: Any) -> str | None:
    """A name: text that is not empty, or a number as text."""
    return str(value) if is_int(value) or (isinstance(value, str) and value) else None


def size(size_bytes: int) -> int | None:
    """A size that can be: neither negative nor beyond 64 bits."""
    return size_bytes if 0 <= size_bytes < 1 << 63 else None
