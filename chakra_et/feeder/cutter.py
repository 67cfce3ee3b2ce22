"""Where the records of a trace begin and end."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.feeder import errors
from chakra_et.feeder.errors import FeederError
from chakra_et.feeder.frames import LONGEST_LENGTH, Buffer, cut

Ints = npt.NDArray[np.int64]

PIECE: Final = 1 << 21
"""Bytes whose records are read side by side: enough to be fast, few enough for the caches."""


class Cutter:
    """Where the records that start within a piece begin and end, and where the next one is."""

    def __init__(
        self, data: Buffer, buffer: npt.NDArray[np.uint8], base: int, max_record: int
    ) -> None:
        self.error: FeederError | None = None
        size = len(data)
        piece = bytes(data[base : base + PIECE + LONGEST_LENGTH])
        starts: list[int] = []
        add = starts.append
        at, stop, last = 0, min(PIECE, size - base), len(piece) - 1
        while at < stop:
            add(at)
            length = piece[at]
            if length < 0x80:
                at += length + 1
            elif at < last and (high := piece[at + 1]) < 0x80:
                at += (length & 0x7F | high << 7) + 2
            else:
                try:
                    at = cut(data, base + at, size, 0, max_record)[1] - base
                except FeederError as error:
                    self.error = error
                    starts.pop()
                    break
        self.behind = base + at
        if self.behind > size:
            self.error = errors.truncated(base + starts.pop())
        self._place(buffer, np.array(starts, np.int64) + base, max_record)

    def _place(self, buffer: npt.NDArray[np.uint8], start: Ints, max_record: int) -> None:
        begin = start + 1
        behind = self.behind
        if self.error is not None and self.error.offset is not None:
            behind = self.error.offset  # the record that cannot be cut is left out
        while len(long := np.flatnonzero(buffer[begin - 1] >= 0x80)):
            begin[long] += 1
        end = np.append(start[1:], behind) if len(start) else start
        big = np.flatnonzero(end - begin > max_record)
        if len(big):
            first = int(big[0])
            self.error = errors.too_large(int(start[first]), int(end[first] - begin[first]))
            start, begin, end = start[:first], begin[:first], end[:first]
        self.start, self.begin, self.end = start, begin, end
