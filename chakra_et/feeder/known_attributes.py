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
    """An attribute with one number: its flag, and the words that its bytes begin and go on with."""

    flag: int
    size: int  # bytes up to the value
    head: np.uint64
    tail: np.uint64  # the last word before the value

    @classmethod
    def of(cls, flag: int, key: AttributeKey) -> Told:
        """How an attribute is written."""
        prefix = _prefix(key)
        return cls(flag, len(prefix), _word(prefix[:WORD]), _word(prefix[-WORD:]))


EDGE_KINDS_HEAD: Final = _word(_prefix(_EDGE_KINDS)[:WORD])
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
