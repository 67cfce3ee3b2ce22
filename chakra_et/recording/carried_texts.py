"""Texts that are only carried, packed: those of a long recording take a tenth of its size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, overload

import numpy as np
import numpy.typing as npt

from chakra_et.columns import NO_ROW, Mask, Rows

MANY: Final = 1 << 20
"""So many rows are worth packing: it takes a tenth of the time of reading them."""
_TOGETHER: Final = 512
_OPEN: Final = 16
"""So many blocks are kept unpacked: rows in order of time are nearly in that of the file."""


class CarriedTexts(Sequence[str]):
    """A text for each row, most of them empty; the others lie in compressed blocks."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._places = [np.zeros(0, np.int32)]
        self._blocks: list[bytes] = []
        self._lengths: list[npt.NDArray[np.int32]] = []
        self._last: list[str] = []
        """The texts behind the last block, which are fewer than one holds."""
        self._open: dict[int, list[str]] = {}
        self.extend(texts)

    def extend(self, texts: Sequence[str]) -> None:
        """Put the texts of further rows behind the others."""
        told = np.fromiter(map(bool, texts), np.bool_, len(texts))
        before = len(self._blocks) * _TOGETHER + len(self._last)
        place = before + np.cumsum(told, dtype=np.int32) - 1
        self._places.append(np.where(told, place, np.int32(NO_ROW)))
        some = [*self._last, *(texts[row] for row in np.flatnonzero(told).tolist())]
        whole = len(some) - len(some) % _TOGETHER
        for start in range(0, whole, _TOGETHER):
            self._pack(list(map(_encoded, some[start : start + _TOGETHER])))
        self._last = some[whole:]

    def _pack(self, texts: list[bytes]) -> None:
        import zstandard  # Short recordings do without.

        packed = zstandard.ZstdCompressor(level=1).compress(b"".join(texts))
        # A copy: what the compressor gives keeps the room for texts that cannot be compressed.
        self._blocks.append(bytes(memoryview(packed)))
        self._lengths.append(np.fromiter(map(len, texts), np.int32, len(texts)))

    @property
    def _place(self) -> npt.NDArray[np.int32]:
        """Of each row, the place of its text among those that are not empty."""
        if len(self._places) > 1:
            self._places = [np.concatenate(self._places)]
        return self._places[0]

    @property
    def told(self) -> Mask:
        """Which rows have a text."""
        told: Mask = self._place != NO_ROW
        return told

    def __len__(self) -> int:
        return len(self._place)

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> list[str]: ...

    def __getitem__(self, row: int | slice) -> str | list[str]:
        """The text of a row; a list of them for a slice."""
        if isinstance(row, slice):
            return self.at(np.arange(*row.indices(len(self))))
        return self._text(int(self._place[row]))

    def __iter__(self) -> Iterator[str]:
        return map(self._text, self._place.tolist())

    def at(self, rows: Rows) -> list[str]:
        """The texts of some rows."""
        return list(map(self._text, self._place[rows].tolist()))

    def select(self, mask: Mask) -> CarriedTexts:
        """The texts of some of the rows, in the same blocks."""
        chosen = CarriedTexts()
        chosen._blocks, chosen._lengths, chosen._last = self._blocks, self._lengths, self._last
        chosen._places = [self._place[mask]]
        return chosen

    def _text(self, place: int) -> str:
        if place == NO_ROW:
            return ""
        number, within = divmod(place, _TOGETHER)
        if number == len(self._blocks):
            return self._last[within]
        block = self._open.get(number)
        if block is None:
            if len(self._open) == _OPEN:
                del self._open[next(iter(self._open))]
            block = self._open[number] = self._unpacked(number)
        return block[within]

    def _unpacked(self, number: int) -> list[str]:
        import zstandard

        whole = zstandard.ZstdDecompressor().decompress(self._blocks[number])
        ends = np.cumsum(self._lengths[number]).tolist()
        pieces = zip([0, *ends[:-1]], ends, strict=True)
        return [whole[start:end].decode("utf-8", "surrogatepass") for start, end in pieces]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
