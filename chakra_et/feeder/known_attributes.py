"""Attributes that columns hold: those that every simulator reads, in the form that writers use.

A node that has one of them in another form is marked as odd, and read from its bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et.columns_in_attributes import EDGE_KINDS as _EDGE_KINDS
from chakra_et.converters.et.columns_in_attributes import EXACT_DURATION, EXACT_START
from chakra_et.converters.et.wire import BYTES, VARINT, tag
from chakra_et.definitions import Kind
from chakra_et.model import AttributeKey

CPU_KNOWN, CPU_TRUE, DURATION, START, EDGE_KINDS, ODD = 1, 2, 4, 8, 16, 32
"""Flags of a node: what its attributes tell."""

NOWHERE: Final = np.iinfo(np.int64).max
"""The start of a node without one: last, where starts order the nodes."""

NEAR_NS: Final = 500
"""Microseconds are the exact time rounded, so the two are at most this far apart."""

NAME_TAG: Final = tag(1, BYTES)[0]
WORD: Final = 8
_LONGEST_MICROS: Final = np.iinfo(np.int64).max // 1000 - 1


def _word(text: bytes) -> np.uint64:
    word: np.uint64 = np.uint64(int.from_bytes(text, "little"))
    return word


def _prefix(key: AttributeKey) -> bytes:
    """The bytes of an attribute up to its value."""
    name = key.name.encode()
    assert key.kind is not None
    kind = tag(key.kind, BYTES if key.kind is Kind.STRING else VARINT)
    return bytes((NAME_TAG, len(name))) + name + kind


@dataclass(frozen=True)
class Told:
    """An attribute with one number: its flag, and what its bytes begin with up to the number."""

    flag: int
    before: bytes

    @classmethod
    def of(cls, flag: int, key: AttributeKey) -> Told:
        """How an attribute is written."""
        return cls(flag, _prefix(key))

    @property
    def size(self) -> int:
        """Bytes up to the number."""
        return len(self.before)

    @property
    def head(self) -> np.uint64:
        """The first word."""
        return _word(self.before[:WORD])

    @property
    def tail(self) -> np.uint64:
        """The last word before the number."""
        return _word(self.before[-WORD:])


EDGE_KINDS_START: Final = _prefix(_EDGE_KINDS)[:WORD]
EDGE_KINDS_HEAD: Final = _word(EDGE_KINDS_START)
TOLD: Final = (
    Told.of(CPU_KNOWN, AttributeKey("is_cpu_op", Kind.BOOL)),
    Told.of(DURATION, EXACT_DURATION),
    Told.of(START, EXACT_START),
)


def nanoseconds(
    micros: npt.NDArray[np.uint64], exact: npt.NDArray[np.uint64], told: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Times in ns, where an exact one was taken, and where 63 bits are too few."""
    too_long = micros > _LONGEST_MICROS
    rounded = (np.where(too_long, 0, micros) * np.uint64(1000)).view(np.int64)
    near = told & ~too_long
    if near.any():
        times = exact.view(np.int64)
        near &= np.abs(times - rounded) <= NEAR_NS
        rounded = np.where(near, times, rounded)
    return rounded, near, too_long


def take_times(
    start_micros: npt.NDArray[np.uint64],
    exact_start: npt.NDArray[np.uint64],
    duration_micros: npt.NDArray[np.uint64],
    exact_duration: npt.NDArray[np.uint64],
    flags: npt.NDArray[np.uint8],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Starts and durations in ns; `flags` marks nodes whose times need more than 63 bits as odd."""
    duration_ns, _, odd_duration = nanoseconds(
        duration_micros, exact_duration, (flags & DURATION) != 0
    )
    start_ns, exact, odd_start = nanoseconds(start_micros, exact_start, (flags & START) != 0)
    start_ns[(start_micros == 0) & ~exact] = NOWHERE
    flags[odd_duration | odd_start] |= ODD
    return start_ns, duration_ns
