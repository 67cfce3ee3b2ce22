"""Equal pieces of bytes found side by side, so that each distinct one is handled once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et.side_by_side import Ints, Wire, Words
from chakra_et.pool import Pool

_LONGEST: Final = 64
"""Bytes of a piece that is compared with others; longer ones seldom repeat next to each other."""
_MASKS: Final = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(29)


def distinct(wire: Wire, at: Ints, behind: Ints) -> tuple[Ints, Ints]:
    """Which of the pieces in `at` to `behind` stand for all, and for each piece which of these.

    Of pieces with equal bytes one stands for all, but for long ones, which stand for themselves.
    """
    size = behind - at
    words = _words(wire, at, size)
    mark = size.view(np.uint64) * _ODD
    for chosen, word in words:
        mixed = (mark[chosen] ^ word) * _ODD
        mark[chosen] = mixed ^ mixed >> _HALF
    model = _models(mark, np.flatnonzero(size <= _LONGEST))
    # Marks are equal where pieces are, and hardly ever else.
    unequal = size != size[model]
    by_piece = np.zeros(len(at), np.uint64)
    for chosen, word in words:
        by_piece[chosen] = word
        unequal[chosen] |= by_piece[model[chosen]] != word
    model[unequal] = np.flatnonzero(unequal)
    itself = model == np.arange(len(at))
    return np.flatnonzero(itself), (np.cumsum(itself) - 1)[model]


def _models(mark: Words, open_: Ints) -> Ints:
    """For each mark the place of one that is equal, the same for all of these.

    Marks that are not `open_` have their own place.
    """
    model = np.arange(len(mark))
    bits = max(1, len(open_).bit_length())
    table = np.zeros(1 << bits, np.int64)
    salt = mark
    while len(open_):
        slot = (salt[open_] >> np.uint64(64 - bits)).view(np.int64)
        table[slot] = open_
        found = table[slot]
        same = mark[found] == mark[open_]
        model[open_[same]] = found[same]
        open_ = open_[~same]
        salt = salt * _ODD
    return model


def _words(wire: Wire, at: Ints, size: Ints) -> list[tuple[Any, Words]]:
    """The bytes of the pieces, eight at a time: which pieces have as many, and the bytes.

    Pieces of less than eight have what is left of their first word, others end with their last.
    """
    last = len(wire.words) - 1
    place = np.minimum(at, last)
    first = wire.words[place] >> ((at - place) << 3).view(np.uint64)
    steps: list[tuple[Any, Words]] = [(slice(None), first & _MASKS[np.minimum(size, 8)])]
    chosen = np.flatnonzero((size > 8) & (size <= _LONGEST))
    step = 8
    while len(chosen):
        steps.append((chosen, wire.words[at[chosen] + np.minimum(size[chosen] - 8, step)]))
        step += 8
        chosen = chosen[size[chosen] > step]
    return steps


def pooled(
    pool: Pool[bytes], wire: Wire, data: bytes, at: Ints, behind: Ints
) -> npt.NDArray[np.int32]:
    """The code in `pool` of each piece of `data`, whose bytes `wire` holds."""
    first, code = distinct(wire, at, behind)
    pieces = slices(data, at[first], behind[first])
    return np.fromiter(map(pool.__getitem__, pieces), np.int32, len(pieces))[code]


def slices(data: bytes, at: Ints, behind: Ints) -> list[bytes]:
    """The pieces themselves."""
    return [data[start:end] for start, end in zip(at.tolist(), behind.tolist(), strict=True)]
