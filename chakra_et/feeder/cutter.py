"""Where the records of a trace begin and end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chakra_et.converters.et.side_by_side import PIECE, Ints, add_starts
from chakra_et.feeder import errors
from chakra_et.feeder.errors import FeederError
from chakra_et.feeder.frames import LONGEST_LENGTH, Buffer, cut


class Cutter:
    """Where the records that start within a piece begin and end, and where the next one is."""

    def __init__(
        self, data: Buffer, buffer: npt.NDArray[np.uint8], base: int, max_record: int
    ) -> None:
        self.error: FeederError | None = None
        size = len(data)
        piece = bytes(data[base : base + PIECE + LONGEST_LENGTH])
        starts: list[int] = []

        def behind(at: int) -> int:
            return cut(data, base + at, size, 0, max_record)[1] - base

        try:
            at = add_starts(starts, piece, min(PIECE, size - base), behind)
        except FeederError as error:
            self.error = error
            at = starts.pop()
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
