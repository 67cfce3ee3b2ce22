"""How long transfers take once all ranks are there, and what they would take with other bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from chakra_et.model import TraceSet
from chakra_et.replay.meetings import Meetings

INTERPOLATED: Final = "interpolated"
EXTRAPOLATED: Final = "extrapolated"
RECORDED: Final = "recorded"


def common_times(traces: TraceSet) -> dict[tuple[int, int], int]:
    """Of each communication that all members recorded, what it took for all, by rank and row."""
    meetings = Meetings.of(traces)
    common = meetings.recorded().common.tolist()
    return {
        (rank, row): ns
        for (match, _), ns in zip(meetings.matches, common, strict=True)
        for rank, row in match.members.items()
    }


def flat_shapes(text: bytes, before: int, after: int) -> bytes:
    """Shapes in which the flat tensor of so many bytes has others, whatever its elements are."""
    for element in (4, 2, 8):
        flat = b"[%d]" % (before // element)
        if flat in text:
            return text.replace(flat, b"[%d]" % (after // element))
    return text


class TransferLine:
    """Times of transfers by bytes: medians of each size, and the line of least squares through
    them; in proportion to the bytes where there is one size alone, or where no such line can be.
    """

    def __init__(self, points: Sequence[tuple[int, int]]) -> None:
        sizes = np.array([size for size, _ in points], np.float64)
        ns = np.array([ns for _, ns in points], np.float64)
        self._known = {int(size): int(np.median(ns[sizes == size])) for size in np.unique(sizes)}
        self._least, self._most = min(self._known), max(self._known)
        x, y = (np.array(list(c), np.float64) for c in (self._known.keys(), self._known.values()))
        slope, start = np.polyfit(x, y, 1).tolist() if len(x) > 1 else (0.0, -1.0)
        if slope <= 0 or start < 0:
            # Noise: no transfer begins before it begins, or takes less for more bytes.
            slope, start = float((x @ y) / (x @ x)), 0.0
        self._slope, self._start = slope, start

    def time_ns(self, size: int) -> tuple[int, str]:
        """What a transfer of so many bytes takes, and where that comes from."""
        if size in self._known:
            return self._known[size], RECORDED
        inside = self._least <= size <= self._most
        return round(self._start + self._slope * size), INTERPOLATED if inside else EXTRAPOLATED
