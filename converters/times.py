"""Times in a profile: decimal microseconds, as text, to integer nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.patterns import lazy_pattern

_THREE_DECIMALS: Final = lazy_pattern(rb"(?:-?\d+\.\d{3}\n)*")
_INTEGERS: Final = lazy_pattern(rb"(?:-?\d+\n)*")
_LIMIT_NS: Final = 1 << 63


def nanoseconds(texts: Sequence[bytes | msgspec.Raw]) -> npt.NDArray[np.int64]:
    """Microseconds, as they stand in a file, in nanoseconds: int64[len(texts)].

    A float64 cannot hold today's time in nanoseconds, so the digits are read as they are. Text in
    quotes counts as a number; digits beyond the nanosecond are rounded, half to even.
    Raises ValueError with the text that is no time or does not fit.
    """
    joined = b"\n".join(texts) + b"\n" if texts else b""
    longest = max(map(len, texts), default=0)
    # Files are uniform: all with three decimals, or all whole. Then digits need no parsing here.
    if longest < 19 and _THREE_DECIMALS.fullmatch(joined):
        return np.fromstring(joined.replace(b".", b""), np.int64, sep="\n")
    if longest < 16 and _INTEGERS.fullmatch(joined):
        return np.fromstring(joined, np.int64, sep="\n") * 1000
    plain = list(map(bytes, texts))
    known = {text: _one(text) for text in set(plain)}
    return np.array([known[text] for text in plain], np.int64)


def time_or_none(text: bytes) -> int | None:
    """One time in nanoseconds; None where the text is no time or does not fit."""
    try:
        return int(nanoseconds([text])[0])
    except ValueError:
        return None


def _one(text: bytes) -> int:
    plain = text.strip(b'"').decode("ascii", "replace")
    try:
        value = round(Decimal(plain) * 1000)
    except (InvalidOperation, ValueError, OverflowError):
        raise ValueError(f"{plain!r} is not a time") from None
    if abs(value) >= _LIMIT_NS:
        raise ValueError(f"{plain} microseconds do not fit into 64-bit nanoseconds")
    return value
